"""What CUDA devices did, by events of the driver's around each launch: for where CUPTI is not to be had.

An event's time is when the stream came to it. So a kernel's time has in it what the device needs to begin, some
microseconds where the stream was idle, and the kernels of a captured graph are not told apart. Times are those of the
device, in single precision milliseconds from one event to another, put on the CPU's clock by an event that was waited
for."""

from __future__ import annotations

import contextlib
import time
from threading import Lock
from typing import NamedTuple

from ..backends.cuda import runtime
from .events import Event
from .launches import Launch, recording

_MOST = 4096  # pairs of events that have not been looked at


class _Pair(NamedTuple):
    number: int
    device: int
    before: object
    after: object


class _Clock:
    """A device's clock on the CPU's: an event that came at a known time."""

    def __init__(self, device: int):
        self.device = device
        self.event, self.time = _mark(device)

    def nanoseconds(self, event) -> int:
        """When the event came."""
        return self.time + round(runtime.driver().milliseconds(self.event, event) * 1e6)

    def renew(self) -> None:
        """Counts from now: a float holds milliseconds to 60 ns within the first second, and less later."""
        old = self.event
        self.event, self.time = _mark(self.device)
        runtime.driver().drop_event(old)


def _mark(device: int):
    """An event, and when it came."""
    driver = runtime.driver()
    runtime.open_device(device)
    event = driver.new_event(timing=True)
    driver.record(event, None)  # the first takes longer
    driver.synchronize(device)
    start = time.perf_counter_ns()
    driver.record(event, None)
    driver.wait_for_event(event)
    return event, (start + time.perf_counter_ns()) // 2


class CudaEvents:
    """The timeline of all devices from start() to stop()."""

    name = "events"

    def __init__(self, why: str = ""):
        self.why = why  # not CUPTI
        self._launches: list[Launch] = []
        self._pairs: list[_Pair] = []
        self._found: dict[int, tuple[int, int]] = {}  # by number: start and end
        self._clocks: dict[int, _Clock] = {}
        self._idle: list = []
        self._lock = Lock()
        self._callbacks = contextlib.ExitStack()

    def start(self) -> None:
        """Begins. The devices that are in use are waited for."""
        for device in runtime.open_devices():
            self._clocks[device] = _Clock(device)
        self._callbacks.enter_context(recording(self._launches, self._begin, self._end))

    def _begin(self, number: int, device: int, stream: int):
        if runtime.is_capturing(device):
            return None
        driver = runtime.driver()
        driver.open(device)
        if device not in self._clocks:
            self._clocks[device] = _Clock(device)
        before, after = self._new(), self._new()
        place = runtime.current_stream(device)
        driver.record(before, place)
        return number, device, before, after, place

    def _end(self, token) -> None:
        if token is None:
            return
        number, device, before, after, place = token
        runtime.driver().record(after, place)
        with self._lock:
            self._pairs.append(_Pair(number, device, before, after))
            full = len(self._pairs) >= _MOST
        if full:
            self._look()

    def _new(self):
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return runtime.driver().new_event(timing=True)

    def _look(self) -> None:
        """Waits for the pairs there are, and notes their times."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        driver = runtime.driver()
        for pair in pairs:
            driver.open(pair.device)
            driver.wait_for_event(pair.after)
            clock = self._clocks[pair.device]
            self._found[pair.number] = clock.nanoseconds(pair.before), clock.nanoseconds(pair.after)
        for device in {pair.device for pair in pairs}:
            self._clocks[device].renew()
        with self._lock:
            for pair in pairs:
                self._idle += (pair.before, pair.after)

    def abandon(self) -> None:
        """Ends without asking the devices."""
        self._callbacks.close()

    def stop(self) -> tuple[list[Event], dict]:
        """Ends, and waits for the devices. The events of the devices and of the calls that launched them; figures."""
        self._callbacks.close()
        self._look()
        driver = runtime.driver()
        for event in (*self._idle, *(c.event for c in self._clocks.values())):
            driver.drop_event(event)
        self._idle, self._clocks = [], {}
        return events_of(self._launches, self._found), {"timeline": self.name, "why": self.why, "dropped": 0}


def events_of(launches: list[Launch], found: dict[int, tuple[int, int]]) -> list[Event]:
    """Of each launch the call, and what the device did where that is known."""
    events = []
    for launch in launches:
        events.append(
            Event(
                "launch" if launch.kind != "copy" else "copy",
                "runtime",
                launch.start,
                launch.end,
                launch.thread,
                correlation=launch.number,
            )
        )
        if launch.number in found:
            start, end = found[launch.number]
            events.append(
                Event(
                    launch.name,
                    "copy" if launch.kind == "copy" else "kernel",
                    start,
                    max(start, end),
                    0,
                    device=f"cuda:{launch.device}",
                    stream=launch.stream,
                    correlation=launch.number,
                    bytes=launch.bytes or None,
                )
            )
    return events
