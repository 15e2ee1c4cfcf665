"""Listeners for program execution. C calls them only while at least one is subscribed.

``subscribe`` asks for runs, and for the user's lines with them. Without it, only the lines of a program that is about
to be compiled are taken, for its source: Note [Lines in generated code].
"""

import contextlib
import os
import pathlib
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import NamedTuple

from ..backends.cpu import ffi, lib
from ..backends.native import raise_after_call
from ..config import config
from ..autograd import formulas

RUNS, LINES, HOT, DATA = (lib.TT_OBSERVE_RUNS, lib.TT_OBSERVE_LINES, lib.TT_OBSERVE_HOT, lib.TT_OBSERVE_DATA)

_PACKAGE = str(pathlib.Path(__file__).resolve().parent.parent) + os.sep
_MOST = 64  # traces whose lines are kept until they are run, and programs until they are compiled


class Place(NamedTuple):
    """A line of the user's."""

    file: str
    line: int

    def __str__(self):
        with contextlib.suppress(OSError):  # the current folder was removed
            here = os.getcwd() + os.sep
            return f"{self.file.removeprefix(here)}:{self.line}"
        return f"{self.file}:{self.line}"


class _Inside(dict):
    """By file name: is it code of this package?"""

    def __missing__(self, name: str) -> bool:
        self[name] = name.startswith((_PACKAGE, "<eager", "<derivative"))
        return self[name]


_inside = _Inside()


def users_frame(frame: FrameType | None) -> FrameType | None:
    """The first frame outside of this package, from ``frame`` on."""
    while frame is not None and _inside[frame.f_code.co_filename]:
        frame = frame.f_back
    return frame


def place_of(frame: FrameType | None) -> Place | None:
    """The user's line."""
    frame = users_frame(frame)
    return Place(frame.f_code.co_filename, frame.f_lineno) if frame else None


def operator_of(frame: FrameType | None) -> str:
    """The operator that was at work in ``frame``: the innermost; "" if none was."""
    return formulas.operator_of(frame, _inside)


def call_of(frame: FrameType | None) -> str:
    """What the user called: the name of the outermost frame of this package."""
    name = ""
    while frame is not None and _inside[frame.f_code.co_filename]:
        name = frame.f_code.co_name
        frame = frame.f_back
    return name


class Lines(NamedTuple):
    """Where the nodes of a trace were recorded."""

    thread: int
    noted: list[tuple[str, int] | None]  # file and line of each node

    @property
    def places(self) -> tuple[Place | None, ...]:
        """The line of each node, where it is known."""
        return tuple(Place(*p) if p else None for p in self.noted)

    def __call__(self, node: int) -> str:
        """The line of a node as text; "" where it is not known."""
        place = self.noted[node] if node < len(self.noted) else None
        return str(Place(*place)) if place else ""


def _keep(lines_by: dict[int, Lines], number: int, lines: Lines) -> None:
    """Keeps the lines, and forgets the oldest if there are too many."""
    lines_by[number] = lines
    if len(lines_by) > _MOST:
        lines_by.pop(next(iter(lines_by)), None)


class Run(NamedTuple):
    """A run of a program. ``record`` (a ``tt_run_record *``) is freed when the callback returns."""

    record: object
    lines: Lines | None
    frame: FrameType

    @property
    def program(self):
        """The ``tt_program *``."""
        return self.record.program


Callback = Callable[[Run], None]


class _Listeners:
    """The subscribed callbacks, and the lines taken for them."""

    def __init__(self):
        self.lock = threading.RLock()  # reentrant: a finalizer may run a program, and so notify, at any time
        self.callbacks: tuple[tuple[int, Callback], ...] = ()
        self.traces: dict[int, Lines] = {}
        self.notifying: set[int] = set()  # threads inside a callback: programs that it runs itself are not reported
        self.hot = HotLines()

    def update(self) -> None:
        """Sets the union of the subscribed bits in C. The lock is held."""
        bits = 0
        for wanted, _ in self.callbacks:
            bits |= wanted
        if not bits & LINES:
            bits |= self.hot.wanted()
        lib.tt_fuse_set(lib.TT_FUSE_OBSERVE, bits)

    def after_fork(self) -> None:
        """In a forked child: another thread of the parent may have held the lock, or been in a callback."""
        self.lock, self.notifying = threading.RLock(), set()


class HotLines:
    """Note [Lines in generated code]
    To know the line of every operator costs about a microsecond each, so they are taken only when they are useful: from
    the end of the last run but one before a program is compiled to the end of the last. Should it not come again soon,
    or should that happen often, they are given up: generated code then lacks its lines, and nothing else."""

    PATIENCE = 20_000  # operators
    MOST_FAILURES = 4

    def __init__(self):
        self.waiting: set[int] = set()  # numbers of programs
        self.kept: dict[int, Lines] = {}
        self.patience = 0
        self.failures = 0

    def wanted(self) -> int:
        """The bits that C shall report."""
        if self.failures >= self.MOST_FAILURES:
            return 0
        return HOT | LINES if self.waiting else HOT

    def ran(self, program, lines: Lines | None) -> bool:
        """After a run of a program: is something else wanted now?"""
        left = config.get("fuse_hot") - program.runs
        if left in (0, -1) and lines is not None:  # with a setting of 0 the first run is one too late
            _keep(self.kept, program.number, lines)
        before = len(self.waiting)
        if left == 1:
            self.waiting.add(program.number)
            self.patience = self.PATIENCE
        else:
            self.waiting.discard(program.number)
        return (before > 0) != (len(self.waiting) > 0)

    def tire(self) -> bool:
        """After an operator whose line was taken: was it one too many?"""
        self.patience -= 1
        if self.patience > 0:
            return False
        self.waiting.clear()
        self.failures += 1
        return True


_listeners = _Listeners()
_listeners.update()
os.register_at_fork(after_in_child=_listeners.after_fork)


def subscribe(bits: int, callback: Callback) -> Callable[[], None]:
    """Calls ``callback`` after every run of a program, in the thread that ran it; what it raises is reported and
    forgotten. ``bits``: RUNS, with LINES or DATA. Returns what ends it."""
    entry = (bits | RUNS, callback)
    with _listeners.lock:
        _listeners.callbacks += (entry,)
        _listeners.update()

    def end() -> None:
        with _listeners.lock:
            _listeners.callbacks = tuple(e for e in _listeners.callbacks if e is not entry)
            _listeners.update()

    return end


def lines_of(kernel) -> Lines | None:
    """Where the operators of a ``tt_kernel *`` that waits for the compiler were recorded, if that is known."""
    return _listeners.hot.kept.get(kernel.program)


def _report(error: Exception) -> None:
    """Reports an exception of a listener."""
    if sys.stderr is not None:
        print(f"tinytorch.fuse: ignored in a listener: {type(error).__name__}: {error}", file=sys.stderr)


@ffi.def_extern(onerror=raise_after_call)
def tt_fuse_notify(record):
    program, frame = record.program, sys._getframe(1)
    lines = _listeners.traces.pop(record.trace, None)
    with _listeners.lock:
        if _listeners.hot.ran(program, lines):
            _listeners.update()
    thread = threading.get_ident()
    if _listeners.callbacks and thread not in _listeners.notifying:
        try:
            _listeners.notifying.add(thread)
            for _, callback in _listeners.callbacks:
                callback(Run(record, lines, frame))
        except Exception as error:
            _report(error)
        finally:
            _listeners.notifying.discard(thread)


@ffi.def_extern(onerror=raise_after_call)
def tt_fuse_where(node, trace):
    lines = _listeners.traces.get(trace)
    if lines is None:
        lines = Lines(threading.get_ident(), [])
        with _listeners.lock:
            _keep(_listeners.traces, trace, lines)
    noted, frame = lines.noted, sys._getframe(1)
    while len(noted) < node:  # recorded before the subscription
        noted.append(None)
    while frame is not None and _inside[frame.f_code.co_filename]:
        frame = frame.f_back
    noted.append(frame and (frame.f_code.co_filename, frame.f_lineno))
    if _listeners.hot.waiting and _listeners.hot.tire():
        with _listeners.lock:
            _listeners.update()
