"""tinytorch/weak.py: values by key, as long as they live."""

import gc
import sys
import weakref

import pytest
import tinytorch as tt
from fuzz.steps import STEPS
from tinytorch.weak import End, WeakValues, taken


class Thing:
    pass


def test_ends_lie_on_the_list():
    ended, thing = [], Thing()
    end = End(thing, ended.append, 7)
    assert end() is thing and not taken(ended)
    del thing
    assert end() is None and [e.key for e in taken(ended)] == [7] and not ended


def test_values_by_key():
    values, one = WeakValues(), Thing()
    values["a"] = one
    assert values.setdefault("a", Thing()) is one and values.get("a") is one and values.get("b") is None
    assert list(values) == ["a"] and len(values) == 1
    del one
    assert values.get("a") is None and not list(values) and len(values) == 0
    two = values.setdefault("a", Thing())  # in the place of a dead one, whose end was not looked at
    three = values.setdefault("b", Thing())
    assert values.get("a") is two and values.get("b") is three and len(values) == 2
    del values["b"]
    assert values.get("b") is None


def test_the_dead_take_no_room():
    values = WeakValues()
    for k in range(100):
        values[k] = Thing()
    gc.collect()
    values["last"] = last = Thing()
    assert list(values._ends) == ["last"] and values.get("last") is last


def shared():
    x = tt.ones(100).share_memory_()
    return x.untyped_storage(), x[1:].is_shared()


@pytest.mark.parametrize("step", [*STEPS.values(), shared], ids=lambda step: step.__name__)
def test_no_end_of_a_step_is_python(step):
    """Python drops a KeyboardInterrupt that comes in one. A callback is given a dead reference."""
    step()
    seen = []

    def called(frame, event, arg):
        code = frame.f_code
        if event == "call" and (
            code.co_name == "__del__"
            or "weakref" in code.co_filename
            or any(isinstance(value, weakref.ref) and value() is None for value in frame.f_locals.values())
        ):
            seen.append(code.co_name)

    sys.setprofile(called)
    try:
        step()
        gc.collect()
    finally:
        sys.setprofile(None)
    assert not seen
