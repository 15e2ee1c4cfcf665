"""tinytorch/weak.py: values by key, as long as they live."""

import gc

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
