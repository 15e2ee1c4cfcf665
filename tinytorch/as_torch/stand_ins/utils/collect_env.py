"""``torch.utils.collect_env``."""

import platform

from .. import __config__

__all__ = ["get_pretty_env_info", "main"]


def get_pretty_env_info() -> str:
    """Which library, Python and system these are."""
    return f"{__config__.show()}\nPython {platform.python_version()}\n{platform.platform()}"


def main() -> None:
    """Prints it."""
    print(get_pretty_env_info())
