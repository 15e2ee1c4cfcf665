"""From the records of C and Python to events: what is collected between start and stop."""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from ..autograd.node import count
from ..backends.cpu import ffi, lib
from ..dtypes import ALL
from .costs import attach
from .cupti import Devices
from .events import Allocation, Event, Trace, nest
from .instrument import Instrumentation, names, stacks
from .memory import Memory
from .programs import Compilations, Programs
from .threads import Threads

MOST_BYTES = 1 << 30  # of records; what comes after is counted, and lost

# Who else has something to tell, besides operators: made with the options, asked to start(), then to stop(trace).
SOURCES = [Programs, Compilations, Memory, Devices]

_OUT, _PENDING, _GIVEN_BACK = 1 << 32, 2 << 32, 4 << 32


class Options(NamedTuple):
    """What is to be collected."""

    memory: bool = False
    with_stack: bool = False
    cuda: bool = True


class Collection:
    """Collects from ``start`` to ``stop``, which gives the Trace. One at a time."""

    def __init__(self, options: Options):
        self.options = options
        self.instrumentation: Instrumentation | None = None
        self.sources: list = []
        self.threads = Threads()

    def prepare(self) -> None:
        """Puts the wrappers in place, so that what follows is not slowed down by that."""
        if self.instrumentation is None:
            self.instrumentation = Instrumentation(self.options.with_stack)

    def start(self) -> None:
        """Begins."""
        self.prepare()
        _open.append(self)
        self.sources = [source(self.options) for source in SOURCES]
        lib.tt_profile_start(self.options.memory, MOST_BYTES)
        for source in self.sources:
            source.start()
        self.threads.start()
        self.first_node = count()
        self.wall, self.begin = time.time_ns(), time.perf_counter_ns()

    def stop(self) -> Trace:
        """Ends; what was collected."""
        end = time.perf_counter_ns()
        lib.tt_profile_stop()
        _open.remove(self)
        trace = Trace(start=self.begin, end=end, wall=self.wall, dropped=lib.tt_profile_dropped())
        for source in self.sources:
            source.stop(trace)
        _read(trace, self.first_node, self.threads.stop())
        for source in self.sources:
            if isinstance(source, Memory):
                source.categorize(trace)
        self.sources = []
        attach(trace)
        return trace

    def finish(self) -> None:
        """Takes the wrappers away."""
        if self.instrumentation is not None:
            self.instrumentation.remove()
            self.instrumentation = None
            stacks.clear()

    def abandon(self) -> None:
        """In a forked child, which records nothing."""
        for source in self.sources:
            source.stop(Trace())
        self.threads.stop()
        self.finish()


def _read(trace: Trace, first_node: int, named: dict[int, str]) -> None:
    """Reads the records into the trace."""
    n, thread = ffi.new("int64_t *"), ffi.new("int64_t *")
    jobs: list[Event] = []
    shares: list[Event] = []
    texts = stacks.read()
    while True:
        words = lib.tt_profile_take(n, thread)
        if words == ffi.NULL:
            break
        _read_piece(ffi.unpack(words, n[0]), thread[0], trace, jobs, shares, texts)
    trace.allocations.sort(key=lambda a: a.time)
    nest(trace.events)
    _merge(trace)
    _number(trace.events, first_node)
    _share_out(trace, jobs, shares)
    trace.threads |= {
        e.thread: named.get(e.thread, f"thread {e.thread}") for e in trace.events if e.thread not in trace.threads
    }


def _read_piece(words: list[int], thread: int, trace: Trace, jobs: list, shares: list, texts: dict) -> None:
    """Note [Records] in kernels/core/records.h."""
    at, end, events = 0, len(words), trace.events
    while at < end:
        head = words[at]
        kind = head & 255
        if kind == lib.TT_PROFILE_SPAN:
            name, what, args = names.known[head >> 32]
            event = Event(
                name, what, max(words[at + 1], trace.start), words[at + 2], thread, stack=texts.get(words[at + 4], ())
            )
            sequence, operands = words[at + 3], head >> 8 & 255
            event.sequence = sequence if sequence > 0 else None
            at += 5
            inputs, outputs, marks, device = [], [], 0, 0
            for _ in range(operands):
                head = words[at]
                ndim = head >> 8 & 255
                item = tuple(words[at + 1 : at + 1 + ndim]), ALL[head & 255].name
                (outputs if head & _OUT else inputs).append(item)
                marks |= head if head & _OUT else 0
                device = max(device, head >> 16 & 0xFFFF)
                at += 1 + ndim
            event.shapes, event.dtypes = tuple(s for s, _ in inputs), tuple(d for _, d in inputs)
            event.outputs = tuple(outputs)
            extra = {"recorded": True} if marks & _PENDING else {}
            if marks & _GIVEN_BACK:
                extra["given_back"] = True
            if args:
                extra["args"] = args
            if sequence < 0:
                extra["raised"] = True
            if device:  # of the operands; the event itself is the CPU's
                extra["on"] = f"cuda:{device - 1}"
            event.extra = extra or None
            if event.end >= event.start:  # else it was over before the trace began
                events.append(event)
        elif kind == lib.TT_PROFILE_MEMORY:
            trace.allocations.append(
                Allocation(words[at + 1], words[at + 2], words[at + 3], words[at + 4], thread=thread)
            )
            at += 5
        else:
            many = jobs if kind == lib.TT_PROFILE_JOB else shares
            many.append(Event("", "kernel", words[at + 1], words[at + 2], thread, correlation=words[at + 3]))
            at += 4


def _merge(trace: Trace) -> None:
    """An operator directly inside of one of the same name is that operator, on its way from a function to a method."""
    gone = set()
    for event in trace.events:
        above = event.parent
        if above is None or event.kind != "op" or above.kind != "op" or event.name != above.name:
            continue
        gone.add(id(event))
        above.shapes, above.dtypes = (above.shapes, above.dtypes) if above.shapes else (event.shapes, event.dtypes)
        above.outputs = above.outputs or event.outputs
        above.extra = above.extra or event.extra
    if gone:
        trace.events = nest([e for e in trace.events if id(e) not in gone])


def _number(events: list[Event], first_node: int) -> None:
    """An operator's sequence is that of a Node it made. An operator that gives a tensor back that others have made, or
    one that works inside of it, is not its maker: who ends first is. Derivatives get their operator's stack."""
    newest: dict[int, int] = {}
    makers: dict[int, Event] = {}
    for event in sorted(events, key=lambda e: e.end):
        if event.kind == "backward":
            continue
        number, event.sequence = event.sequence, None
        if event.kind == "op" and number is not None and number > newest.get(event.thread, first_node):
            newest[event.thread] = event.sequence = number
            makers[number] = event
    for event in events:
        maker = makers.get(event.sequence) if event.kind == "backward" else None
        if maker is not None and not event.stack:
            event.stack = maker.stack


def _share_out(trace: Trace, jobs: list[Event], shares: list[Event]) -> None:
    """The shares of the pool's threads, named after what had the work to do."""
    if not jobs:
        return
    nest(trace.events + jobs)
    by_number = {}
    for job in jobs:
        by_number[job.correlation] = job
        above = job.parent
        job.name = above.name if above is not None else "job"
        if above is not None:
            above.children.remove(job)
            above.extra = {**(above.extra or {}), "threads": 1}
    workers: dict[int, int] = {}
    for share in shares:
        job = by_number.get(share.correlation)
        share.name = f"{job.name if job else 'job'} (pool)"
        if job is not None:
            share.extra = {"launched_at": job.start, "launched_by": job.thread}
            if job.parent is not None:
                job.parent.extra["threads"] += 1
        if share.thread not in workers:
            workers[share.thread] = len(workers) + 1
            trace.threads[share.thread] = f"tinytorch pool {len(workers)}"
    nest(shares)
    trace.events += shares
    trace.events.sort(key=lambda e: (e.start, -e.end))


def after_fork() -> None:
    """In a forked child: see Collection.abandon."""
    for collection in list(_open):
        collection.abandon()
    _open.clear()


_open: list[Collection] = []
os.register_at_fork(after_in_child=after_fork)
