"""The mode itself: entering and leaving it."""

from __future__ import annotations

import functools

from ..backends.cpu import check, error, ffi, lib
from ..config import setting
from .pure import Pure
from .worker import worker

_STATS = ("recorded", "programs", "hits", "misses", "interpreted", "compiled")


class Fused:
    """The context manager that ``fuse()`` gives; usable again and again, nested, from any thread."""

    def __enter__(self):
        worker.start()
        check(lib.tt_fuse_enter(), "fuse")
        return self

    def __exit__(self, kind, value, traceback):
        if lib.tt_fuse_leave() < 0 and kind is None:
            raise error("fuse")

    def __call__(self, fn):
        @functools.wraps(fn)
        def fused(*args, **kwargs):
            with self:
                return fn(*args, **kwargs)

        return fused


def fuse(fn=None, *, pure: bool = False, step: bool = False):
    """A context manager in which operators are recorded and run fused, or ``fn`` made to run so.

    ``pure`` is a promise about ``fn``: what it does depends on its arguments' shapes and dtypes alone, and it has no
    effect but its results; tensors it reads from outside may be written, but not replaced. It is then not called any more once two calls in a row have shown the same program: see
    pure.py."""
    made = Fused()
    if fn is None:
        if pure:
            raise TypeError("fuse: pure=True is for a function: fuse(fn, pure=True)")
        return made
    return Pure(fn, made) if pure else made(fn)


def stats() -> dict[str, int]:
    """Counters of the process."""
    out = ffi.new("int64_t[]", len(_STATS))
    lib.tt_fuse_stats(out)
    return dict(zip(_STATS, out))


def wait(timeout: float | None = None) -> bool:
    """Blocks until every kernel that has run often enough is compiled, or was refused; False when that took longer than
    ``timeout`` seconds. For measurements and tests."""
    return worker.wait(timeout)


def _everywhere(value: int) -> None:
    lib.tt_fuse_everywhere = value != 0
    if value:
        worker.start()


setting("fuse_hot", 3, lambda runs: lib.tt_fuse_set(lib.TT_FUSE_HOT_RUNS, runs) and None)
setting("fuse", 0, _everywhere)
