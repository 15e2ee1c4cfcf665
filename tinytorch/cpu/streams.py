"""The CPU as a device among others: there is one, and what it is told happens in order. Follows ``torch.cpu``."""

from __future__ import annotations

import contextlib
import time

__all__ = ["Event", "Stream", "StreamContext", "current_device", "current_stream", "device_count", "is_available",
           "is_initialized", "set_device", "stream", "synchronize"]  # fmt: skip


class Stream:
    """The order of the CPU's work, of which there is one. Follows ``torch.cpu.Stream``."""

    def __init__(self, priority: int = -1):
        self.priority = priority

    def wait_stream(self, stream) -> None:
        """Nothing is waited for."""

    def record_event(self, event: Event | None = None) -> Event:
        """An event of this moment."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event) -> None:
        """Nothing is waited for."""


class Event:
    """A moment. Follows ``torch.cpu.Event``."""

    def __init__(self, enable_timing: bool = True):
        self.enable_timing, self.at = enable_timing, None

    def query(self) -> bool:
        """True: what was told before has happened."""
        return True

    def record(self, stream=None) -> None:
        """Makes it this moment."""
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        """Nothing is waited for."""

    def wait(self, stream=None) -> None:
        """Nothing is waited for."""

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this moment to the other. RuntimeError where one was not recorded."""
        if self.at is None or end_event.at is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end_event.at - self.at) * 1000


_current = Stream()


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """ "cpu"."""
    return "cpu"


def set_device(device) -> None:
    """Changes nothing: there is one."""


def synchronize(device=None) -> None:
    """Nothing is waited for: whoever reads a result waits for it."""


def current_stream(device=None) -> Stream:
    """The stream that ``stream`` chose, or the first one."""
    return _current


class StreamContext(contextlib.AbstractContextManager):
    """What ``stream`` gives: within, it is the current stream, which changes nothing else; None leaves the other."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self) -> None:
        self._set(self.stream)

    def __exit__(self, *exc) -> None:
        self._set(self._before)

    def _set(self, stream: Stream | None) -> None:
        global _current
        self._before, _current = _current, _current if stream is None else stream


def stream(stream: Stream | None) -> StreamContext:
    """A context in which that is ``current_stream()``."""
    return StreamContext(stream)
