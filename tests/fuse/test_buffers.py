"""Slices of buffers that are written, read and dropped in every order (buffers.py), in a process that may crash."""

import subprocess
import sys

import pytest

from fuse.helpers import ROOT, environment


@pytest.mark.parametrize(
    "first, count, how",
    [
        (0, 1500, ""),
        (0, 25, "compiled"),
        (0, 25, "emulator"),
        pytest.param(1500, 20000, "", marks=pytest.mark.slow),
        pytest.param(0, 500, "compiled", marks=pytest.mark.slow),
        pytest.param(0, 1000, "emulator", marks=pytest.mark.slow),
    ],
)
def test_buffers(first, count, how):
    done = subprocess.run(
        [sys.executable, "-m", "fuse.buffers", str(first), str(count), *how.split()],
        cwd=f"{ROOT}/tests",
        env=environment(),
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert int(done.stdout.split("\n")[-2].split()[0]) > 0.9 * count, "most programs should have results"
