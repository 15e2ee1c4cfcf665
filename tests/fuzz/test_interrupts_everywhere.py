"""Ctrl-C at every bytecode of a step: it arrives, no mode stays behind, and the next step is right."""

import pytest

from fuzz import interrupts
from fuzz.steps import STEPS


def check(step, every):
    told = interrupts.run(step, every)
    assert "died" not in told, told
    assert told["wrong"] == told["unraisable"] == []
    assert told["strikes"] == -(-told["bytecodes"] // every) > 20
    assert told["lost"] == 0


@pytest.mark.parametrize("step", STEPS)
def test_interrupts(step):
    check(step, {"several": 101, "algebra": 1009, "scattered": 4001, "files": 4001}.get(step, 307))


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_every_bytecode(step):
    check(step, 1)
