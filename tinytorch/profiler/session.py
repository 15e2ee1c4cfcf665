"""``profile``: what is collected, when, and what is done with it. The names of ``torch.profiler``."""

from __future__ import annotations

import enum
import json
import threading
import time
from collections.abc import Callable, Iterable

from .events import Event, Trace, nest


class ProfilerActivity(enum.Enum):
    """What is looked at."""

    CPU = 0
    CUDA = 2


class ProfilerAction(enum.Enum):
    """What the profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """What can be looked at here."""
    return set(ProfilerActivity)


class profile:
    """Collects what runs inside the ``with`` block, in all threads. Follows ``torch.profiler.profile``.

    What was collected is ``trace`` (a Trace: events, allocations, threads), once the block has ended.
    """

    def __init__(self, *, activities: Iterable[ProfilerActivity] | None = None,
                 schedule: Callable[[int], ProfilerAction] | None = None,
                 on_trace_ready: Callable[[profile], object] | None = None, record_shapes: bool = False,
                 profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False,
                 with_modules: bool = False):
        self.activities = set(activities) if activities else supported_activities()
        self.schedule, self.on_trace_ready = schedule, on_trace_ready
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.with_stack, self.with_flops, self.with_modules = with_stack, with_flops, with_modules
        self.trace = Trace()
        self.step_num = 0

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc_info):
        self.stop()

    def start(self) -> None:
        """Begins to collect."""
        self.trace = Trace(start=time.perf_counter_ns(), wall=time.time_ns())

    def stop(self) -> None:
        """Ends."""
        self.trace.end = time.perf_counter_ns()
        self.trace.events = nest(self.trace.events)

    def step(self) -> None:
        """A step of the program's has ended."""
        self.step_num += 1

    def events(self) -> list[Event]:
        """The events, in order of start."""
        return self.trace.events

    def add_metadata(self, key: str, value: str) -> None:
        """Puts a text into the trace."""
        self.trace.metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Puts a value, given as JSON, into the trace."""
        self.trace.metadata[key] = json.loads(value)


class record_function:
    """Names what runs inside the ``with`` block. Follows ``torch.profiler.record_function``."""

    def __init__(self, name: str, args: str | None = None):
        self.name, self.args = name, args

    def __enter__(self):
        self.start = time.perf_counter_ns()
        return self

    def __exit__(self, *exc_info):
        Event(self.name, "user", self.start, time.perf_counter_ns(), threading.get_native_id())
