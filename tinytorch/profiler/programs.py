"""What fused mode does while a profiler is open: runs of programs, and what becomes of kernels to be compiled."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

from ..fuse import worker as worker_module
from ..fuse.describe import Program, joined, name_of, program_of, why
from ..fuse.listeners import LINES, RUNS, Lines, Place, Run, place_of, subscribe
from ..fuse.worker import worker
from .events import Event, Trace


class _Ran(NamedTuple):
    """A run, in short: the rest is the same for all runs of a program."""

    program: Program
    thread: int
    cause: str
    operator: str
    reason: str
    place: Place | None
    known: bool
    kernels: list[tuple[int, int, bool]]  # start, nanoseconds, compiled?
    lines: Lines | None
    noted: tuple[int, int]  # when this was noted


class Programs:
    """Runs of fused programs, with the operators inside. ``with_stack`` asks for the lines of each operator too."""

    def __init__(self, options):
        self.options = options
        self.ran: list[_Ran] = []
        self.programs: dict[int, Program] = {}

    def start(self) -> None:
        """Begins to listen."""
        self.end = subscribe(LINES if self.options.with_stack else RUNS, self._ran)

    def _ran(self, run: Run) -> None:
        begin = time.perf_counter_ns()
        p = run.program
        number = p.number
        if number not in self.programs:
            self.programs[number] = program_of(run)
        kernels = [(k.started, k.nanoseconds, k.was_compiled == 1) for k in p.kernels[0 : p.num_kernels]]
        self.ran.append(
            _Ran(
                self.programs[number],
                threading.get_native_id(),
                *why(run),
                place_of(run.frame),
                bool(run.record.known),
                kernels,
                run.lines,
                (begin, time.perf_counter_ns()),
            )
        )

    def stop(self, trace: Trace) -> None:
        """Puts the runs among the events."""
        self.end()
        for ran in self.ran:
            trace.events += _events(ran)
        self.ran = []


def _events(ran: _Ran) -> list[Event]:
    """A run, its kernels, and the time that the profiler took to note them."""
    p = ran.program
    places = ran.lines.places if ran.lines else ()
    noted = Event("profiler", "gap", *ran.noted, ran.thread)
    if not ran.kernels:
        return [noted]
    operators = [node.name for node in p.trace.nodes]
    compiled = sum(c for _, _, c in ran.kernels)
    tier = "compiled" if compiled == len(ran.kernels) else "mixed" if compiled else "interpreted"
    stack = (f"{ran.place.file}:{ran.place.line} {ran.cause}",) if ran.place else ()
    program = Event(
        "fused " + joined(tuple(operators)),
        "program",
        ran.kernels[0][0],
        max(s + n for s, n, _ in ran.kernels),
        ran.thread,
        stack=stack,
        bytes=p.reads + p.writes,
        flops=sum(k.operations for k in p.kernels),
    )
    program.extra = {
        "number": p.number,
        "operators": operators,
        "tier": tier,
        "known": ran.known,
        "reason": ran.reason,
        "cause": ran.cause,
        "ended_by": ran.operator,
        "place": str(ran.place) if ran.place else "",
        "kernels": len(ran.kernels),
        "reads": p.reads,
        "writes": p.writes,
        "eager_bytes": p.eager_reads + p.eager_writes,
        "temporaries": p.temporaries,
    }
    events = [program]
    for (start, nanoseconds, was_compiled), k in zip(ran.kernels, p.kernels):
        lines = tuple(
            dict.fromkeys(
                f"{places[n].file}:{places[n].line} {operators[n]}" for n in k.nodes if n < len(places) and places[n]
            )
        )
        events.append(
            Event(
                k.name or k.pattern,
                "kernel",
                start,
                start + nanoseconds,
                ran.thread,
                shapes=(k.shape,),
                dtypes=(k.dtype,),
                stack=lines,
                bytes=k.reads + k.writes,
                flops=k.operations,
                extra={
                    "program": p.number,
                    "operators": list(k.operators),
                    "pattern": k.pattern,
                    "tier": "compiled" if was_compiled else "interpreted",
                    "reads": k.reads,
                    "writes": k.writes,
                    "stages": k.stages,
                },
            )
        )
    return [*events, noted]


_NAMES = {"compiled": ("compile", "compile"), "hit": ("load", "cache"), "refused": ("refuse", "compile")}


class Compilations:
    """What the thread that compiles kernels did."""

    def __init__(self, options):
        self.events: list[Event] = []

    def start(self) -> None:
        """Begins to listen, beside a listener that is there already."""
        self.before, self.mine = worker.on_event, self._served
        worker.on_event = self.mine

    def _served(self, event: worker_module.Event) -> None:
        end = time.perf_counter_ns()
        verb, kind = _NAMES[event.what]
        self.events.append(
            Event(
                f"{verb} {name_of(event.kernel)}",
                kind,
                end - int(event.seconds * 1e9),
                end,
                threading.get_native_id(),
                extra={"what": event.what, "key": event.key, "reason": event.reason},
            )
        )
        if self.before:
            self.before(event)

    def stop(self, trace: Trace) -> None:
        """Puts them among the events."""
        if worker.on_event is self.mine:  # else another listener came later
            worker.on_event = self.before
        trace.events += self.events
        self.events = []
