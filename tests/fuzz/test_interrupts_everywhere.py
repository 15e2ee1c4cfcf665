"""Ctrl-C at every bytecode of a step: it arrives, no mode stays behind, and the next step is right."""

import sys
import weakref

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


@pytest.mark.parametrize("step", STEPS)
def test_no_finalizer_of_a_step_is_python(step):
    """Python drops a KeyboardInterrupt that comes in a ``__del__`` or a weak reference's callback."""
    seen = set()

    def called(frame, event, argument):
        values = frame.f_locals.values() if event == "call" else ()
        if any(isinstance(value, weakref.ref) and value() is None for value in values):
            seen.add(frame.f_code.co_name)
        if event == "call" and frame.f_code.co_name == "__del__":
            seen.add("__del__")

    STEPS[step]()
    sys.setprofile(called)
    try:
        STEPS[step]()
    finally:
        sys.setprofile(None)
    assert not seen


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_every_bytecode(step):
    check(step, 1)
