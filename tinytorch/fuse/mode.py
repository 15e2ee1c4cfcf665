"""The mode itself: entering and leaving it."""

from __future__ import annotations

import functools

from ..backends.cpu import check, error, ffi, lib
from ..backends.native import FusedBase
from ..config import setting
from .pure import Pure
from .worker import worker

_STATS = ("recorded", "programs", "hits", "misses", "interpreted", "compiled", "jobs", "replayed", "left")


class Fused(FusedBase):
    """The context manager that ``fuse()`` gives; usable again and again, nested, from any thread. No signal's handler
    interrupts entering and leaving: Note [Interrupts] in kernels/python/contexts.c."""

    def __init__(self, step: bool = False):
        self.step = bool(step)

    prepare = staticmethod(worker.start)

    def failure(self) -> Exception:
        """What entering or leaving raises after the C side has refused."""
        return error("fuse")

    def __call__(self, fn):
        pure = Pure(fn, self, promised=False)
        call = pure.__call__

        @functools.wraps(fn)
        def fused(*args, **kwargs):
            if pure.hopeful:
                return call(*args, **kwargs)
            with self:
                return fn(*args, **kwargs)

        pure.code = fused.__code__
        fused.purity = pure
        return fused


def fuse(fn=None, *, pure: bool = False, step: bool = False):
    """A context manager in which operators are recorded and run fused, or ``fn`` made to run so: ``with fuse():``,
    ``@fuse``, ``fast = fuse(fn)``. Results are eager mode's, bit by bit.

    A pure ``fn`` is not called any more once two calls in a row have shown the same program. It is pure where what it
    does depends on its arguments' shapes and dtypes alone, and it has no effect but its results. The source of ``fn``
    may show that; ``fuse.explain(fast, ...)`` tells why it does not. ``pure=True`` promises it, for what cannot be
    seen: tensors read from outside may then be written, but not replaced. See pure.py.

    ``step``: every operator is recorded and planned as ever, but runs at once, alone, so that a debugger finds its
    value there after the line, and what looks for NaN looks at the right place. It goes before ``pure``.
    """
    made = Fused(step)
    if fn is None:
        if pure:
            raise TypeError("fuse: pure=True is for a function: fuse(fn, pure=True)")
        return made
    return Pure(fn, made, promised=True) if pure and not step else made(fn)


def stats() -> dict[str, int]:
    """Counters of this process.

    ``recorded``     operators recorded and run
    ``programs``     runs of programs
    ``hits``         of these, such as had been planned before
    ``misses``       and such as were planned then
    ``interpreted``  runs of kernels, a program's one by one, in the interpreter
    ``compiled``     and in compiled code
    ``jobs``         asynchronous jobs: gradients of weights and steps of optimizers done by a thread of the pool
    ``replayed``     calls of pure functions that were replayed
    ``left``         operators left to eager mode, as there was too little to fuse
    """
    out = ffi.new("int64_t[]", len(_STATS))
    lib.tt_fuse_stats(out)
    return dict(zip(_STATS, out))


def wait(timeout: float | None = None) -> bool:
    """Blocks until every kernel that has run often enough is compiled, or was refused; False when that took longer than
    ``timeout`` seconds. For measurements and tests."""
    return worker.wait(timeout)


def _everywhere(value: int) -> None:
    if value:
        worker.start()
    check(lib.tt_fuse_set_everywhere(value != 0), "fuse")


setting("fuse_hot", 3, lambda runs: lib.tt_fuse_set(lib.TT_FUSE_HOT_RUNS, runs) and None)
setting("fuse_worth", 32768, lambda nbytes: lib.tt_fuse_set(lib.TT_FUSE_WORTH, nbytes) and None)
setting("fuse", 0, _everywhere)
