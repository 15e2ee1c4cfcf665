"""float32 functions against float64 ones: within 2 ulp, by the C driver tests/scalar/ulp.c.

The quick test takes every 4099th bit pattern; the slow one all 2^32 (about an hour on two cores). What the whole sweep
found is kept in tests/scalar/README.md.
"""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLAGS = ["-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]


@pytest.fixture(scope="module")
def ulp(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    program = tmp_path_factory.mktemp("ulp") / "ulp"
    subprocess.run(
        [
            compiler,
            *FLAGS,
            "-march=native",
            "-I",
            str(ROOT / "kernels"),
            str(ROOT / "tests/scalar/ulp.c"),
            "-o",
            str(program),
            "-lm",
            "-lpthread",
        ],
        check=True,
    )
    return program


def sweep(program, *options):
    command = [str(program), "--threads", str(os.cpu_count() or 1), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tanh" in done.stdout


def test_sample(ulp):
    sweep(ulp, "--stride", "4099")


SCALED = ["exp", "exp2", "expm1", "tanh", "erf", "sigmoid", "silu", "gelu", "gelu_tanh", "ndtr", "softplus"]


def test_what_is_zero_does_not_underflow_on_its_way(ulp):
    done = subprocess.run([str(ulp), *SCALED, "--far"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count("does not underflow") == len(SCALED), done.stdout + done.stderr


@pytest.mark.slow
def test_every_float(ulp):
    sweep(ulp)
