"""``record_function``: pieces of a program that have names of the user's."""

from __future__ import annotations

import functools
import threading
import time

from ..backends.cpu import ffi, lib
from .instrument import names

_inside: dict[int, list[record_function]] = {}  # by thread: those that are open
_NULL = (ffi.NULL,) * 4


class record_function:
    """Names what runs inside the ``with`` block, or in each call of the decorated function. Follows
    ``torch.profiler.record_function``. Without an open profiler it does next to nothing."""

    def __init__(self, name: str, args: str | None = None):
        if not isinstance(name, str):
            raise TypeError(f"record_function(): argument 'name' must be str, not {type(name).__name__}")
        self.name, self.args = name, args
        self._starts: list[tuple[int, int]] = []

    def __enter__(self):
        self._starts.append((threading.get_ident(), time.perf_counter_ns()))
        _inside.setdefault(threading.get_ident(), []).append(self)
        return self

    def __exit__(self, *exc_info):
        thread, start = self._starts.pop()
        opened = _inside.get(thread, [])
        if self in opened:
            opened.remove(self)
        if not opened:
            _inside.pop(thread, None)
        self._tell(start)

    def _tell(self, start: int) -> None:
        lib.tt_profile_span(names.number(self.name, "user", self.args), start, 0, 0, *_NULL)

    def __call__(self, fn):
        name, args = self.name, self.args

        @functools.wraps(fn)
        def inside(*a, **k):
            with record_function(name, args):
                return fn(*a, **k)

        return inside


def close_scopes() -> None:
    """What is open in this thread is told as if it ended now: the profiler ends before it does."""
    for scope in _inside.get(threading.get_ident(), ()):
        scope._tell(scope._starts[-1][1])
