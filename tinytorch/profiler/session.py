"""``profile``: what is collected, when, and what is done with it. The names of ``torch.profiler``."""

from __future__ import annotations

import atexit
import enum
import json
import os
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable

from .. import cuda
from .averages import EventList
from .chrome import export_chrome_trace, export_stacks
from .collect import Collection, Options
from .events import Event, Trace, nest
from .memory import MemoryView
from .schedules import ProfilerAction, always
from .scopes import close_scopes


class ProfilerActivity(enum.Enum):
    """What is looked at."""

    CPU = 0
    CUDA = 2


def supported_activities() -> set[ProfilerActivity]:
    """What can be looked at here."""
    return set(ProfilerActivity) if cuda.is_available() else {ProfilerActivity.CPU}


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile:
    """Collects what runs inside the ``with`` block, in all threads. Follows ``torch.profiler.profile``.

    ``activities``      ProfilerActivity.CPU, .CUDA; by default what there is
    ``schedule``        a function from the number of a step to a ProfilerAction: see ``schedule``. Without one all is
                        recorded. ``step()`` ends a step
    ``on_trace_ready``  called with this object when what was recorded is complete: at the end of each cycle
    ``record_shapes``   shapes and dtypes of operands (they are kept anyhow; this shows them in what is exported)
    ``profile_memory``  every allocation, and what is given back
    ``with_stack``      the user's lines that called each operator
    ``with_flops``      as PyTorch's: operations on numbers are counted anyhow

    What was collected is ``trace`` (a Trace: events, allocations, threads), once it is complete; an exception inside
    ends it early, and leaves it there. Only one profiler is open at a time: RuntimeError for a second one, which does
    not disturb the first. One that is left open is ended when the interpreter exits.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], object] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        acc_events: bool = False,
    ):
        self.activities = set(activities) if activities is not None else supported_activities()
        for activity in self.activities:
            if not isinstance(activity, ProfilerActivity):
                raise TypeError(
                    f"profile(): activities must be ProfilerActivity members, got {type(activity).__name__}"
                )
        if not self.activities:
            raise ValueError("profile(): activities must name at least one ProfilerActivity, got none")
        self.schedule, self.on_trace_ready = schedule or always, on_trace_ready
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.with_stack, self.with_flops, self.with_modules = with_stack, with_flops, with_modules
        self.acc_events = acc_events
        self.trace = Trace()
        self.step_num = 0
        self.current_action = ProfilerAction.NONE
        self._metadata: dict = {}
        self._collection: Collection | None = None
        self._recording = False
        self._completed = False  # has a cycle ended, since start()?
        self._steps: list[Event] = []
        self._step_began = 0

    # When.

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc_info):
        self.stop()

    def start(self) -> None:
        """Begins, as the schedule says for step 0. RuntimeError when a profiler is open."""
        with _lock:
            if _open:
                other = _open[0]
                raise RuntimeError(
                    "profile: this profiler is open already"
                    if other is self
                    else "profile: another profiler is open, in thread "
                    f"'{other._opened_by}', since {other._opened_at}; only one can be open at a time. "
                    "Name what is inside with record_function instead"
                )
            _open.append(self)
        self._completed = False
        self._opened_by = threading.current_thread().name
        self._opened_at = _users_line()
        options = Options(self.profile_memory, self.with_stack, ProfilerActivity.CUDA in self.activities)
        try:
            self._collection = Collection(options)
            self._turn(self.schedule(self.step_num))
        except BaseException:
            self._collection.finish()
            _open.remove(self)
            raise

    def stop(self) -> None:
        """Ends; what was recorded and not handed over yet is handed to ``on_trace_ready``."""
        with _lock:
            if self not in _open:
                return
        try:
            if self.current_action in _RECORDING:
                self._complete()
        finally:
            if self._recording:
                self._drop()
            self._collection.finish()
            self._collection, self.current_action = None, ProfilerAction.NONE
            _open.remove(self)
        if self.on_trace_ready and self._fresh:
            self._fresh = False
            self.on_trace_ready(self)

    _fresh = False  # is there a trace that was not handed over?

    def step(self) -> None:
        """A step of the program's has ended, and the next begins. RuntimeError when the profiler is not open."""
        if self not in _open:
            raise RuntimeError("profile.step: the profiler is not open; call it inside the with block")
        before, now = self.current_action, time.perf_counter_ns()
        if self._recording:
            self._end_step(now)
        self.step_num += 1
        after = self.schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE or (before is ProfilerAction.RECORD and after not in _RECORDING):
            if before is ProfilerAction.RECORD:
                warnings.warn(
                    f"Incorrect schedule: {before.name} followed by {after.name}; what was recorded is kept",
                    RuntimeWarning,
                    stacklevel=2,
                )
            self._complete(step_ended=True)
            self.current_action = ProfilerAction.NONE
            try:
                if self.on_trace_ready:
                    self._fresh = False
                    self.on_trace_ready(self)
            finally:
                self._turn(after)
        else:
            self._turn(after)
        self._step_began = time.perf_counter_ns()

    def _turn(self, action: ProfilerAction) -> None:
        """Does what the next step wants."""
        before, self.current_action = self.current_action, action
        if action is ProfilerAction.NONE:
            if before is ProfilerAction.WARMUP:
                self._drop()
            if not self._recording:
                self._collection.finish()
            return
        if not self._recording or before is ProfilerAction.WARMUP and action in _RECORDING:
            self._drop()
            self._collection.start()
            self._recording = True
            self._steps, self._step_began = [], time.perf_counter_ns()

    def _drop(self) -> None:
        """Ends what runs, and forgets it."""
        if self._recording:
            self._recording = False
            self._collection.stop()

    def _end_step(self, now: int) -> None:
        self._steps.append(
            Event(
                f"ProfilerStep#{self.step_num}",
                "step",
                self._step_began,
                now,
                threading.get_native_id(),
                extra={"number": self.step_num},
            )
        )

    def _complete(self, step_ended: bool = False) -> None:
        """What was recorded becomes the trace."""
        now = time.perf_counter_ns()
        close_scopes()
        self._recording = False
        trace = self._collection.stop()
        stepping = self._steps or self.schedule is not always
        if not step_ended and stepping and any(e.start >= self._step_began for e in trace.events):
            self._end_step(now)  # one that has begun; nothing of it is seen after the last step()
        if not step_ended and self._completed and not trace.events:
            return  # a cycle that began with the last step(), and had none: what there is stays
        self._completed = True
        earlier = self.trace if self.acc_events else Trace()
        trace.events = nest(earlier.events + trace.events + self._steps)
        trace.allocations = earlier.allocations + trace.allocations
        trace.threads = earlier.threads | trace.threads
        trace.start, trace.wall = (earlier.start, earlier.wall) if earlier.events else (trace.start, trace.wall)
        trace.metadata = {
            **trace.metadata,
            **self._metadata,
            "record_shapes": self.record_shapes,
            "with_stack": self.with_stack,
            "profile_memory": self.profile_memory,
            "with_flops": self.with_flops,
        }
        self._steps = []
        self.trace = trace
        self._fresh = True

    # What.

    def events(self) -> EventList:
        """The events, in order of start."""
        return EventList(self.trace.events, self.trace)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """The events summed by name, and by the shapes of their operands and the first lines of their stack if asked.
        ``print(p.key_averages().table(sort_by="self_cpu_time_total"))``."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def export_chrome_trace(self, path: str) -> None:
        """Writes the trace for chrome://tracing, Perfetto or TensorBoard: JSON, compressed for a name in ``.gz``.
        OSError when it cannot be written; the trace is still there then."""
        export_chrome_trace(self.trace, path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes stacks and their times (or another ``metric``: "self_cpu_time_total", "self_cuda_time_total") as
        flame graph tools read them. ValueError without ``with_stack``."""
        if not self.with_stack:
            raise ValueError("export_stacks: there are no stacks; open the profiler with with_stack=True")
        export_stacks(self.trace, path, metric)

    def memory(self) -> MemoryView:
        """Memory over time by what it was for, and who had asked for what was in use at the peak."""
        return MemoryView(self.trace)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Writes memory over time by category as JSON, compressed for a name in ``.gz``: of one device, or of all.
        ValueError without ``profile_memory``, for another name, for a device of which nothing was recorded."""
        if not self.profile_memory:
            raise ValueError(
                "export_memory_timeline: no memory was recorded; open the profiler with profile_memory=True"
            )
        self.memory().export(path, device)

    def add_metadata(self, key: str, value: str) -> None:
        """Puts a text into the trace."""
        self._metadata[key] = self.trace.metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Puts a value, given as JSON, into the trace."""
        self.add_metadata(key, json.loads(value))

    preset_metadata_json = add_metadata_json


_lock = threading.Lock()
_open: list[profile] = []  # one at most


def _users_line() -> str:
    """Where the profiler was opened."""
    frame = sys._getframe(2)
    here = os.path.dirname(__file__)
    while frame is not None and os.path.dirname(frame.f_code.co_filename) == here:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "?"


@atexit.register
def _end_open() -> None:
    """At the interpreter's exit: a profiler that was left open is ended. Its trace goes to its handler, and without
    one, or when that fails, to a file."""
    for p in list(_open):
        try:
            handler, p.on_trace_ready = p.on_trace_ready, None
            p.stop()
            if not p.trace.events:
                continue
            if handler:
                try:
                    handler(p)
                    continue
                except Exception:
                    traceback.print_exc()
            path = os.path.join(tempfile.gettempdir(), f"tinytorch-profile-{os.getpid()}.json")
            p.export_chrome_trace(path)
            print(
                f"tinytorch.profiler: a profiler, opened at {p._opened_at}, was left open at exit; its trace is in "
                f"{path}",
                file=sys.stderr,
            )
        except Exception:
            traceback.print_exc()


def _after_fork() -> None:
    """In a forked child no profiler is open."""
    global _lock
    _lock = threading.Lock()
    for p in _open:
        p._recording, p.current_action = False, ProfilerAction.NONE
    _open.clear()


os.register_at_fork(after_in_child=_after_fork)
