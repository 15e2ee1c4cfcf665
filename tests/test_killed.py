"""A training run that is killed at any moment and goes on from its checkpoint ends with the bits of one that is not."""

import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest
import tinytorch as tt

PROGRAM = pathlib.Path(__file__).parent / "killed_training.py"
STEPS = 40  # the most that a run is given


def started(folder, steps):
    """The program."""
    return subprocess.Popen([sys.executable, PROGRAM, folder, str(steps)], stdout=subprocess.PIPE, text=True)


def digest(folder, steps):
    """What the program says at its end."""
    run = started(folder, steps)
    words = run.communicate()[0].split()
    assert run.returncode == 0
    return words[-1]


def killed(times, tmp_path):
    rng = random.Random(times)
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    reached = []
    for _ in range(times):
        with started(tmp_path / "other", 10**9) as run:
            for _ in range(rng.randrange(STEPS)):
                assert run.stdout.readline() == "stepped\n"
            time.sleep(rng.uniform(0, 0.02))  # to any place in a step
            run.kill()
        assert run.returncode == -signal.SIGKILL
        if (tmp_path / "other" / "checkpoint.pt").exists():
            reached.append(tt.load(tmp_path / "other" / "checkpoint.pt")["step"])
    assert reached == sorted(reached) and len({*reached}) > times // 3  # it went on
    steps = reached[-1] + 20
    assert digest(tmp_path / "other", steps) == digest(tmp_path / "one", steps)
    assert len(os.listdir(tmp_path / "other")) <= 2  # what a killed process was about to name


def test_killed_and_resumed(tmp_path):
    killed(5, tmp_path)


@pytest.mark.slow
def test_killed_fifty_times_and_resumed(tmp_path):
    killed(50, tmp_path)
