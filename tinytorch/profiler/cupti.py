"""What CUDA devices did and when, from NVIDIA's CUPTI: kernels, copies, fills, and the calls that asked for them.

CUPTI writes records into buffers (kernels/cuda/host/activity.c). A record of a device's work and that of the call that
asked for it have a correlation number in common; around each of our launches a number of ours is pushed, and CUPTI
notes which of its own came under it. Layouts of records: cupti_activity.h of CUDA 12 and 13, whose records only grew at
their ends.

Why not NVIDIA's ``cupti-python``: it is 34 MB, its wheels are for one version of CPython and follow one of CUDA, and it
makes a Python object of every record in a callback. The six layouts that are read here take six lines; the rest of the
file, clocks, correlation and names, would stay.
"""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import time
import warnings
from typing import NamedTuple

from cffi import FFI

from ..backends.cpu import ffi as core
from ..backends.cpu import lib as core_lib
from ..backends.cuda import runtime
from ..backends.cuda.binding import Library
from .events import Event, Trace
from .launches import Launch, recording

_DECLARATIONS = """
    int cuptiGetVersion(uint32_t *);
    int cuptiGetTimestamp(uint64_t *);
    int cuptiGetResultString(int, const char **);
    int cuptiGetCallbackName(int domain, uint32_t number, const char **);
    int cuptiActivityRegisterCallbacks(void *requested, void *completed);
    int cuptiActivityEnable(int kind);
    int cuptiActivityDisable(int kind);
    int cuptiActivityFlushAll(uint32_t flags);
    int cuptiActivityGetNextRecord(void *buffer, size_t valid, void **record);
    int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *);
    int cuptiActivityPushExternalCorrelationId(int kind, uint64_t id);
    int cuptiActivityPopExternalCorrelationId(int kind, uint64_t *last);
"""

# Kinds of records.
MEMCPY, MEMSET, DRIVER, RUNTIME, KERNEL, OVERHEAD, EXTERNAL = 1, 2, 4, 5, 10, 17, 39
KINDS = (MEMCPY, MEMSET, KERNEL, DRIVER, RUNTIME, OVERHEAD, EXTERNAL)
_OURS = 3  # the kind of external numbers that are the user's own
_FORCED = 1  # of a flush: buffers with records that are not complete too
_DOMAIN = {DRIVER: 1, RUNTIME: 2}
_UNRELATED = 1 << 40  # correlations of what was not launched by us: CUPTI's number and this

# start, end, device, context, stream, grid, block, shared memory, CUPTI's number, name
_KERNEL = struct.Struct("<16x QQ 8x III iii iii ii 8x I 8x Q")
_MEMCPY = struct.Struct("<4x B 3x Q QQ IIII")  # direction, bytes, start, end, device, context, stream, CUPTI's number
_MEMSET = struct.Struct("<8x Q QQ IIII")  # bytes, ...
_CALL = struct.Struct("<4x I QQ 4x II")  # function, start, end, thread, CUPTI's number
_EXTERNAL = struct.Struct("<4x I Q I")  # kind, our number, CUPTI's
_OVERHEAD = struct.Struct("<4x I 16x QQ")  # kind, start, end

_DIRECTIONS = {1: "Memcpy HtoD", 2: "Memcpy DtoH", 8: "Memcpy DtoD", 9: "Memcpy HtoH", 10: "Memcpy PtoP"}
_OVERHEADS = {
    1: "compiler",
    1 << 16: "buffer flush",
    2 << 16: "instrumentation",
    3 << 16: "resources",
    4 << 16: "module loading",
    5 << 16: "function loading",
}


class Failure(RuntimeError):
    """CUPTI refused; the text says why."""


class _Library(Library):
    """CUPTI's functions."""

    def __init__(self):
        super().__init__("cupti", _DECLARATIONS, "cuptiGetResultString")

    def error(self, function: str, status: int) -> RuntimeError:
        text = self.ffi.new("const char **")
        known = self.lib.cuptiGetResultString(status, text) == 0 and text[0] != self.ffi.NULL
        name = self.ffi.string(text[0]).decode() if known else f"status {status}"
        return Failure(f"CUPTI error: {name} when calling `{function}`")


class Clock(NamedTuple):
    """CUPTI's clock on ours, by two points in time."""

    before: tuple[int, int]  # CUPTI's time and ours
    after: tuple[int, int]

    def __call__(self, time_: int) -> int:
        (theirs, ours), (theirs2, ours2) = self
        if theirs2 <= theirs:
            return ours + time_ - theirs
        return ours + (time_ - theirs) * (ours2 - ours) // (theirs2 - theirs)


class Cupti:
    """The timeline of all devices from start() to stop(). One at a time in a process."""

    name = "cupti"

    def __init__(self, library: Library):
        self.cupti = library
        self._launches: list[Launch] = []
        self._callbacks = contextlib.ExitStack()
        self._enabled: set[int] = set()
        self._begin_clock = (0, 0)

    def start(self) -> None:
        """Begins. Failure, or OSError where the library is not installed."""
        callbacks = [
            self.cupti.ffi.cast("void *", int(core.cast("intptr_t", core.addressof(core_lib, name))))
            for name in ("tt_activity_requested", "tt_activity_completed")
        ]
        self.cupti.call("cuptiActivityRegisterCallbacks", *callbacks)
        for buffer, _ in _take_buffers():  # of an earlier session, not read
            core_lib.tt_activity_free(buffer)
        lib, nothing = self.cupti.lib, self.cupti.ffi.NULL
        push, pop = lib.cuptiActivityPushExternalCorrelationId, lib.cuptiActivityPopExternalCorrelationId
        try:
            for kind in KINDS:
                self.cupti.call("cuptiActivityEnable", kind)
                self._enabled.add(kind)
            self._begin_clock = self._clock()
        except Failure:
            self._disable()
            raise
        self._callbacks.enter_context(
            recording(
                self._launches, lambda number, device, stream: push(_OURS, number), lambda token: pop(_OURS, nothing)
            )
        )

    def stop(self) -> tuple[list[Event], dict]:
        """Ends, and waits for the devices. The events of the devices and of the calls that launched them; figures."""
        self._callbacks.close()
        self._disable(DRIVER, RUNTIME)  # the program's calls end here: the wait that follows is the profiler's own
        try:
            for device in runtime.open_devices():
                if not runtime.is_capturing(device):
                    runtime.driver().synchronize(device)
            clock = Clock(self._begin_clock, self._clock())
        except RuntimeError:
            self._disable()
            self.cupti.lib.cuptiActivityFlushAll(_FORCED)  # the next session frees the buffers, unread
            raise
        self._disable()
        self.cupti.call("cuptiActivityFlushAll", _FORCED)
        dropped = self.cupti.ffi.new("size_t *")
        self.cupti.call("cuptiActivityGetNumDroppedRecords", self.cupti.ffi.NULL, 0, dropped)
        records = Records(self.cupti)
        for buffer, size in _take_buffers():
            try:
                records.read(self.cupti.ffi.cast("uint8_t *", int(core.cast("intptr_t", buffer))), size)
            finally:
                core_lib.tt_activity_free(buffer)
        events = records.events(self._launches, clock)
        figures = {
            "timeline": f"{self.name} {self.version()}",
            "dropped": dropped[0] + records.incomplete,
            "overhead": dict(sorted(records.overhead.items())),
        }
        return events, figures

    def abandon(self) -> None:
        """Ends without asking CUPTI or the devices."""
        self._callbacks.close()

    def version(self) -> int:
        """CUPTI's own number."""
        out = self.cupti.ffi.new("uint32_t *")
        self.cupti.call("cuptiGetVersion", out)
        return out[0]

    def _disable(self, *kinds: int) -> None:
        """Ends the records of these kinds; of all, if none is named."""
        for kind in self._enabled.intersection(kinds or KINDS):
            self.cupti.lib.cuptiActivityDisable(kind)
            self._enabled.remove(kind)

    def _clock(self) -> tuple[int, int]:
        """CUPTI's time and ours: of some tries, the one that took least."""
        out, best = self.cupti.ffi.new("uint64_t *"), None
        for _ in range(8):
            start = time.perf_counter_ns()
            self.cupti.call("cuptiGetTimestamp", out)
            took = time.perf_counter_ns() - start
            if best is None or took < best[0]:
                best = took, out[0], start + took // 2
        return best[1:]


def _take_buffers():
    """The filled buffers and the bytes in them, each to be freed."""
    size = core.new("int64_t *")
    while (buffer := core_lib.tt_activity_next(size)) != core.NULL:
        yield buffer, size[0]


class Records:
    """CUPTI's records, and what they become together."""

    def __init__(self, cupti: Library):
        self.cupti = cupti
        self.work: list[tuple] = []  # kind, name, start, end, device, stream, CUPTI's number, bytes, extra
        self.calls: dict[int, tuple] = {}  # by CUPTI's number: domain, function, start, end, thread
        self.ours: dict[int, int] = {}  # CUPTI's number: ours
        self.overhead: dict[str, int] = {}  # nanoseconds
        self.incomplete = 0  # records without times
        self._names: dict[int, str] = {}

    def read(self, buffer, size: int) -> None:
        """Reads a buffer of ``size`` valid bytes."""
        ffi, following = self.cupti.ffi, self.cupti.lib.cuptiActivityGetNextRecord
        record, view = ffi.new("void **"), ffi.buffer(buffer, size)
        base = int(ffi.cast("intptr_t", buffer))
        while following(buffer, size, record) == 0:  # else the end, or a record that is not complete
            at = int(ffi.cast("intptr_t", record[0])) - base
            self._one(struct.unpack_from("<I", view, at)[0], view, at)

    def _one(self, kind: int, view, at: int) -> None:
        if kind == KERNEL:
            start, end, device, _, stream, *sizes, static, dynamic, number, name = _KERNEL.unpack_from(view, at)
            extra = {"grid": tuple(sizes[:3]), "block": tuple(sizes[3:]), "shared memory": static + dynamic}
            self._add("kernel", self._text(name), start, end, device, stream, number, None, extra)
        elif kind == MEMCPY:
            direction, nbytes, start, end, device, _, stream, number = _MEMCPY.unpack_from(view, at)
            self._add("copy", _DIRECTIONS.get(direction, "Memcpy"), start, end, device, stream, number, nbytes, None)
        elif kind == MEMSET:
            nbytes, start, end, device, _, stream, number = _MEMSET.unpack_from(view, at)
            self._add("copy", "Memset", start, end, device, stream, number, nbytes, None)
        elif kind in _DOMAIN:
            function, start, end, thread, number = _CALL.unpack_from(view, at)
            self.calls[number] = kind, function, start, end, thread
        elif kind == EXTERNAL:
            whose, ours, number = _EXTERNAL.unpack_from(view, at)
            if whose == _OURS:
                self.ours[number] = ours
        elif kind == OVERHEAD:
            what, start, end = _OVERHEAD.unpack_from(view, at)
            name = _OVERHEADS.get(what, "other")
            self.overhead[name] = self.overhead.get(name, 0) + max(0, end - start)

    def _add(self, kind, name, start, end, device, stream, number, nbytes, extra) -> None:
        if start and end:
            self.work.append((kind, name, start, end, device, stream, number, nbytes, extra))
        else:
            self.incomplete += 1

    def _text(self, address: int) -> str:
        """A kernel's name, which CUPTI keeps."""
        name = self._names.get(address)
        if name is None:
            ffi = self.cupti.ffi
            name = ffi.string(ffi.cast("const char *", address)).decode(errors="replace") if address else "kernel"
            self._names[address] = name = demangled(name)
        return name

    def events(self, launches: list[Launch], clock: Clock) -> list[Event]:
        """The events. Our kernels get the names that people know; streams have our numbers where those are known."""
        by_number = {launch.number: launch for launch in launches}
        streams: dict[tuple[int, int], int] = {}
        for _, _, _, _, device, stream, number, _, _ in self.work:
            if launch := by_number.get(self.ours.get(number)):
                streams[device, stream] = launch.stream
        events, used = [], set()
        for kind, name, start, end, device, stream, number, nbytes, extra in self.work:
            launch = by_number.get(self.ours.get(number))
            if launch and kind == "kernel" and name == "tt_kernel":
                name = launch.name if launch.kind == "kernel" else f"{launch.kind}'s kernel"
            used.add(number)
            events.append(
                Event(
                    name,
                    kind,
                    clock(start),
                    clock(end),
                    0,
                    device=f"cuda:{device}",
                    stream=streams.get((device, stream), stream),
                    correlation=self._correlation(number),
                    bytes=nbytes,
                    extra=extra,
                )
            )
        threads = self._threads(by_number)
        for number, (kind, function, start, end, thread) in self.calls.items():
            name = self._call_name(kind, function)
            if number in used or "Synchronize" in name:
                launch = by_number.get(self.ours.get(number))  # a thread's number may be used again by another
                thread = launch.thread if launch else threads.get(thread, thread)
                events.append(
                    Event(
                        name,
                        "runtime",
                        clock(start),
                        clock(end),
                        thread,
                        correlation=self._correlation(number) if number in used else None,
                    )
                )
        return events

    def _correlation(self, number: int) -> int:
        return self.ours.get(number, number + _UNRELATED)

    def _threads(self, by_number: dict[int, Launch]) -> dict[int, int]:
        """CUPTI's numbers of threads (half of what pthread_self() gives, or the system's) and the system's."""
        known = {t.ident & 0xFFFFFFFF: t.native_id for t in threading.enumerate() if t.ident and t.native_id}
        for number, ours in self.ours.items():
            if number in self.calls and ours in by_number:
                known[self.calls[number][4]] = by_number[ours].thread
        return known

    def _call_name(self, kind: int, function: int) -> str:
        text = self.cupti.ffi.new("const char **")
        if self.cupti.lib.cuptiGetCallbackName(_DOMAIN[kind], function, text) or text[0] == self.cupti.ffi.NULL:
            return f"call {function}"
        return self.cupti.ffi.string(text[0]).decode().partition("_v")[0]


_demangler = FFI()
_demangler.cdef("char *__cxa_demangle(const char *, char *, size_t *, int *); void free(void *);")


def demangled(name: str) -> str:
    """A C++ function's name for people; as it is where it is none, or there is no C++ library."""
    if not name.startswith("_Z"):
        return name
    try:
        lib = _demangler.dlopen("libstdc++.so.6")
    except OSError:
        return name
    text = lib.__cxa_demangle(name.encode(), _demangler.NULL, _demangler.NULL, _demangler.NULL)
    if text == _demangler.NULL:
        return name
    try:
        return _demangler.string(text).decode()
    finally:
        lib.free(text)


_library = _Library()


class Devices:
    """The timeline of the devices as a part of a profile: see SOURCES in collect.py."""

    def __init__(self, options):
        self.on = options.cuda
        self.pid = os.getpid()
        self.timeline: Cupti | None = None
        self.figures: dict | None = None  # of a profile without the devices

    def start(self) -> None:
        """Begins. Without CUPTI, or where it refuses, warns that the profile will not show the devices. A forked
        process cannot use those of its parent, and CUPTI may never answer there."""
        if not self.on or not runtime.device_count() or runtime.driver().is_inherited():
            return
        found = Cupti(_library)
        try:
            found.start()
        except (OSError, Failure, AttributeError) as exc:  # not installed, refused, too old
            why = str(exc).partition("\n")[0]
            self.figures = {"error": why}
            with contextlib.suppress(Warning):  # where warnings are errors: the rest is collected already
                text = f"the profile will not show what CUDA devices do: {why}"
                warnings.warn(text, RuntimeWarning, stacklevel=6)  # at the with statement
        else:
            self.timeline = found

    def stop(self, trace: Trace) -> None:
        """Puts what the devices did among the events. In a forked child the devices cannot be asked."""
        if self.figures is not None:
            trace.metadata["devices"] = self.figures
        if self.timeline is None:
            return
        if self.pid != os.getpid():
            self.timeline.abandon()
            return
        try:
            events, figures = self.timeline.stop()
        except RuntimeError as exc:  # a kernel failed, say: what else was collected is kept
            self.timeline.abandon()
            trace.metadata["devices"] = {"timeline": self.timeline.name, "error": str(exc)}
            return
        trace.events += events
        trace.dropped += figures["dropped"]
        trace.metadata["devices"] = figures
