"""What fused mode writes to stderr: TINYTORCH_DEBUG, or ``tinytorch.config(debug=N)``.

1  what becomes of kernels that are to be compiled; operators that are not fused, once for each line of the user's
2  and a line for each run of a kernel: its operators, shape, dtype, pattern, tier, whether its program was known (hit)
   or planned (miss), bytes of memory read and written, time, bytes and operators on elements per second; and why each
   program ended
3  and the trace of each program, when it is run for the first time
4  and the generated source of each kernel, when it is wanted compiled
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable

from ..config import config, setting
from .codegen import source
from .describe import Kernel, Program, bytes_text, count_text, name_of, program_of
from .listeners import LINES, Lines, Place, Run, lines_of, subscribe
from .worker import Event, worker

_COMPILED = {"hit": "found on the disk", "compiled": "compiled", "refused": "refused"}


class _Debug:
    """What has been written already, and how to stop."""

    def __init__(self):
        self.end: Callable[[], None] | None = None
        self.reported: set[tuple[str, Place | None]] = set()
        self.listed: set[int] = set()  # numbers of programs
        self.lock = threading.Lock()

    def changed(self, level: int) -> None:
        """Of the setting."""
        with self.lock:
            if level > 0 and self.end is None:
                self.reported.clear()
                self.listed.clear()
                self.end = subscribe(LINES, ran)
                worker.on_event = served
            elif level <= 0 and self.end is not None:
                self.end()
                self.end = worker.on_event = None

    def after_fork(self) -> None:
        """In a forked child: a thread of the parent's may have held the lock."""
        self.lock = threading.Lock()


_debug = _Debug()
os.register_at_fork(after_in_child=_debug.after_fork)


def _write(*lines: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write("".join(f"tinytorch.fuse: {line}\n" for line in lines))


def ran(run: Run) -> None:
    """After a run of a program."""
    p, level = program_of(run), config.get("debug")
    lines = []
    if p.operator and (p.operator, p.place) not in _debug.reported:
        _debug.reported.add((p.operator, p.place))
        lines.append(f"{p.place}: {p.reason}")
    if level >= 3 and p.number not in _debug.listed:
        _debug.listed.add(p.number)
        lines.append("\n".join([f"program {p.number}:", *p.trace.listing(run.lines or Lines(0, []))]))
    if level >= 2:
        lines += [kernel_line(p, k) for k in p.kernels]
        size = f"{count_text(p.operators, 'operator')}, {count_text(len(p.kernels), 'kernel')}"
        lines.append(f"program {p.number}: {size}; ended{f' at {p.place}' if p.place else ''}: {p.reason}")
    _write(*lines)


def kernel_line(p: Program, k: Kernel) -> str:
    """What one run of a kernel did and took."""
    seconds = max(k.nanoseconds, 1) * 1e-9
    return (
        f"{k.name}  {k.shape} {k.dtype}  {k.pattern}  {'compiled' if k.compiled else 'interpreted'}  "
        f"{'hit' if p.known else 'miss'}  read {bytes_text(k.reads)}, wrote {bytes_text(k.writes)}  "
        f"{seconds * 1e6:.1f} us  {(k.reads + k.writes) / seconds * 1e-9:.1f} GB/s  "
        f"{k.operations / seconds * 1e-9:.1f} GFLOP/s"
    )


def served(event: Event) -> None:
    """After a kernel was compiled, or was not."""
    name = name_of(event.kernel)
    lines = [
        f"{name} {_COMPILED[event.what]} in {event.seconds * 1e3:.0f} ms"
        f"{f', {event.key[:12]}' if event.key else ''}{f': {event.reason}' if event.reason else ''}"
    ]
    if config.get("debug") >= 4:
        lines.append(f"source of {name}:\n{source(event.kernel, lines_of(event.kernel))}")
    _write(*lines)


setting("debug", 0, _debug.changed)
