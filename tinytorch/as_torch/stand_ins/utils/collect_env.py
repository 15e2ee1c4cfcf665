"""``torch.utils.collect_env``."""

import platform
import subprocess

import tinytorch

from .. import __config__

__all__ = [
    "get_cpu_info",
    "get_gcc_version",
    "get_gpu_info",
    "get_nvidia_driver_version",
    "get_pretty_env_info",
    "main",
    "run",
    "run_and_read_all",
]


def run(command) -> tuple[int, str, str]:
    """Exit status, output and messages of a command: of a shell's, if it is a text."""
    try:
        done = subprocess.run(command, shell=isinstance(command, str), capture_output=True, text=True)
    except FileNotFoundError as e:
        return 127, "", str(e)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def run_and_read_all(run_lambda, command) -> str | None:
    """The output; None where the command fails."""
    status, output, _ = run_lambda(command)
    return None if status else output


def get_cpu_info(run_lambda) -> str | None:
    """What lscpu says."""
    return run_and_read_all(run_lambda, "lscpu")


def get_gcc_version(run_lambda) -> str | None:
    """The first line of ``gcc --version``."""
    return (run_and_read_all(run_lambda, "gcc --version") or "").partition("\n")[0] or None


def get_gpu_info(run_lambda) -> str | None:
    """The names of the CUDA devices, one a line."""
    cuda = tinytorch.cuda
    return "\n".join(map(cuda.get_device_name, range(cuda.device_count()))) or None if cuda.is_available() else None


def get_nvidia_driver_version(run_lambda) -> str | None:
    """What nvidia-smi says."""
    return run_and_read_all(run_lambda, "nvidia-smi --query-gpu=driver_version --format=csv,noheader")


def get_pretty_env_info() -> str:
    """Which library, Python and system these are."""
    return f"{__config__.show()}\nPython {platform.python_version()}\n{platform.platform()}"


def main() -> None:
    """Prints it."""
    print(get_pretty_env_info())
