"""Weak references to objects that die often, whose ends C notes: Python drops a KeyboardInterrupt that comes while a
callback or a ``__del__`` of its own runs."""

from __future__ import annotations

import weakref
from weakref import _remove_dead_weakref  # in one step, whatever other threads do


class End(weakref.ref):
    """A weak reference with a ``key``. Given a list's ``append`` as its callback, it lies there when its object is
    gone."""

    __slots__ = ("key",)

    def __new__(cls, value, append, key):
        return super().__new__(cls, value, append)

    def __init__(self, value, append, key):
        super().__init__(value, append)
        self.key = key


def taken(ended: list[End]) -> list[End]:
    """Takes off a list what lies there."""
    return [ended.pop() for _ in range(len(ended))]


class WeakValues:
    """Values by key, as long as they live: a WeakValueDictionary that forgets the dead when it is written."""

    def __init__(self):
        self._ends: dict[object, End] = {}
        self._ended: list[End] = []

    def _forget_the_dead(self) -> None:
        for end in taken(self._ended):
            _remove_dead_weakref(self._ends, end.key)

    def get(self, key):
        """The value of ``key``, or None."""
        end = self._ends.get(key)
        return None if end is None else end()

    def setdefault(self, key, value):
        """The value of ``key``, which is ``value`` where it had none."""
        known = self.get(key)
        if known is None:
            self[key] = known = value
        return known

    def __setitem__(self, key, value) -> None:
        self._forget_the_dead()
        self._ends[key] = End(value, self._ended.append, key)

    def __delitem__(self, key) -> None:
        del self._ends[key]

    def __iter__(self):
        return (key for key, end in list(self._ends.items()) if end() is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)
