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
STEPS = 40  # that a run would do, on average, in the longest time that it is given


def started(folder, steps):
    """The program, when its steps begin."""
    run = subprocess.Popen([sys.executable, PROGRAM, folder, str(steps)], stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "begin\n"
    return run


def ended(run):
    words = run.communicate()[0].split()
    assert run.returncode == 0 and len(words) == 2
    return float(words[0]), words[1]


def killed(times, tmp_path):
    rng = random.Random(times)
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    steps = STEPS * times
    second, expected = ended(started(tmp_path / "one", steps))
    reached = []
    for _ in range(times):
        run = started(tmp_path / "other", steps)
        time.sleep(rng.uniform(0, STEPS * second))
        run.kill()
        run.communicate()
        assert run.returncode == -signal.SIGKILL
        if (tmp_path / "other" / "checkpoint.pt").exists():
            reached.append(tt.load(tmp_path / "other" / "checkpoint.pt")["step"])
    assert reached == sorted(reached) and len({*reached}) > times // 3  # it was killed at work
    _, found = ended(started(tmp_path / "other", steps))
    assert found == expected and reached[-1] < steps
    assert len(os.listdir(tmp_path / "other")) <= 2  # what a killed process was about to name


def test_killed_and_resumed(tmp_path):
    killed(5, tmp_path)


@pytest.mark.slow
def test_killed_fifty_times_and_resumed(tmp_path):
    killed(50, tmp_path)
