"""Streams and events: what a device does in order, and what waits for what. In fused mode they end the program that is
being recorded: Note [Fused mode and streams] in backends/cuda/runtime.py."""

from __future__ import annotations

from ..autograd import engine
from ..backends.cpu import check, lib
from ..backends.cuda import runtime
from ..devices import device as _device
from ..ops.declare import method
from .devices import index_of


class Stream:
    """A queue of work on a device; what different queues hold may run at the same time. ``priority``: the smaller the
    number, the earlier; one that the device does not know becomes the nearest. A device has 32 queues besides the
    default one, and six of each other priority, which are given out in turn: after so many, two Streams are the same
    queue. Follows ``torch.cuda.Stream``."""

    __slots__ = ("device_index", "stream_id", "_entered")

    def __init__(self, device=None, priority: int = 0):
        self.device_index = index_of(device)
        self.stream_id = runtime.open_device(self.device_index).new_stream(priority)
        self._entered = []

    @property
    def device(self) -> _device:
        """The device whose work this is."""
        return _device("cuda", self.device_index)

    @property
    def _stream(self):
        """As the driver has it."""
        return runtime.open_device(self.device_index).streams[self.stream_id]

    @property
    def priority(self) -> int:
        """The priority it has."""
        runtime.open_device(self.device_index)
        return runtime.driver().priority(self._stream)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The least and the greatest priority of the current device's streams; the greatest is the smaller number."""
        return runtime.open_device(runtime.current_device()).priorities

    @property
    def cuda_stream(self) -> int:
        """The driver's handle, a CUstream."""
        return runtime.driver().handle(self._stream)

    def synchronize(self) -> None:
        """Waits for all work of this stream. RuntimeError if something of it failed."""
        runtime.run_pending("synchronize")
        runtime.wait_for_stream(self.device_index, self._stream)

    def query(self) -> bool:
        """Is all work of this stream done?"""
        runtime.open_device(self.device_index)
        runtime.run_pending("query")
        return runtime.driver().is_done(self._stream)

    def wait_event(self, event: Event) -> None:
        """Work given to this stream from now on starts when the event has come."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Work given to this stream from now on starts when what ``stream`` has to do by now is done."""
        self.wait_event(_checked(stream, "wait_stream").record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """An event, a new one if None, that comes when what this stream has to do by now is done."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __enter__(self):
        context = StreamContext(self)
        context.__enter__()
        self._entered.append(context)
        return self

    def __exit__(self, *exc):
        self._entered.pop().__exit__(*exc)

    def __eq__(self, other):
        return isinstance(other, Stream) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def _key(self) -> tuple[int, int]:
        return self.device_index, self.stream_id

    def __repr__(self):
        return f"<tinytorch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


def _numbered(index: int, number: int) -> Stream:
    """A device's stream by its number; 0 is the default one."""
    s = Stream.__new__(Stream)
    s.device_index, s.stream_id, s._entered = index, number, []
    return s


def _checked(stream, op: str) -> Stream:
    """``stream``. TypeError if it is none."""
    if not isinstance(stream, Stream):
        raise TypeError(f"{op}(): argument 'stream' must be Stream, not {type(stream).__name__}")
    return stream


class StreamContext:
    """A context in which ``stream`` is its device's current one, and its device the current one, in this thread. None
    changes nothing."""

    __slots__ = ("stream", "_before")

    def __init__(self, stream: Stream | None):
        self.stream = stream if stream is None else _checked(stream, "stream")

    def __enter__(self):
        if self.stream is not None:
            index = self.stream.device_index
            runtime.run_pending("stream")
            self._before = runtime.set_current_device(index), lib.tt_cuda_stream(index)
            lib.tt_cuda_set_stream(index, self.stream.stream_id)

    def __exit__(self, *_):
        if self.stream is not None:
            try:
                runtime.run_pending("stream")
            finally:
                lib.tt_cuda_set_stream(self.stream.device_index, self._before[1])
                runtime.set_current_device(self._before[0])


def stream(stream: Stream | None) -> StreamContext:
    """A context in which ``stream`` is the current one. Follows ``torch.cuda.stream``."""
    return StreamContext(stream)


def set_stream(stream: Stream | None) -> None:
    """Makes ``stream`` this thread's current one, and its device the current one."""
    if stream is not None:
        StreamContext(stream).__enter__()


def _this_threads():
    """A function that gives another thread this one's current device and streams, for backwards that go on there."""
    device, streams = runtime.current_device(), [(k, lib.tt_cuda_stream(k)) for k in runtime.open_devices()]

    def take():
        if streams:
            runtime.set_current_device(device)
        for k, number in streams:
            lib.tt_cuda_set_stream(k, number)

    return take


engine.carried.append(_this_threads)


def current_stream(device=None) -> Stream:
    """This thread's current stream of ``device``."""
    index = runtime.open_device(index_of(device)).index
    return _numbered(index, lib.tt_cuda_stream(index))


def default_stream(device=None) -> Stream:
    """The stream that is current unless another is chosen."""
    return _numbered(runtime.open_device(index_of(device)).index, 0)


class Event:
    """A mark in the work of a stream. It is made on the device of the stream that first records it; ``blocking``: who
    waits for it sleeps. RuntimeError where one that was not recorded is measured. Follows ``torch.cuda.Event``."""

    __slots__ = ("_event", "_timing", "_blocking", "_index")

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False):
        self._event, self._timing, self._blocking = None, enable_timing, blocking
        self._index = -1
        if interprocess:
            raise NotImplementedError("cuda.Event: events for several processes are not implemented")

    @property
    def device(self) -> _device | None:
        """The device of the stream that recorded it; None before."""
        return None if self._index < 0 else _device("cuda", self._index)

    @property
    def cuda_event(self) -> int:
        """The driver's handle, a CUevent; 0 before it is recorded."""
        return 0 if self._event is None else runtime.driver().event_handle(self._event)

    def record(self, stream: Stream | None = None) -> None:
        """The event comes when what ``stream`` (the current one) has to do by now is done. RuntimeError for a stream of
        another device than before."""
        s = current_stream() if stream is None else _checked(stream, "record")
        if self._event is None:
            runtime.open_device(s.device_index)
            self._event, self._index = runtime.driver().new_event(self._timing, self._blocking), s.device_index
        elif self._index != s.device_index:
            raise RuntimeError(f"Event device {self._index} does not match recording stream's device {s.device_index}.")
        runtime.run_pending("record")
        runtime.driver().open(self._index)
        runtime.driver().record(self._event, s._stream)

    def wait(self, stream: Stream | None = None) -> None:
        """Work given to ``stream`` (the current one) from now on starts when the event has come."""
        if self._event is not None:
            s = current_stream() if stream is None else _checked(stream, "wait")
            runtime.driver().let_wait(s._stream, self._event)

    def query(self) -> bool:
        """Has it come? True before it is recorded."""
        return self._event is None or runtime.driver().has_come(self._event)

    def synchronize(self) -> None:
        """Waits until it has come."""
        if self._event is not None:
            runtime.driver().wait_for_event(self._event)
            check(lib.tt_device_check(self._index))

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to ``end_event``. RuntimeError unless both measure time, and have come."""
        if not (self._timing and end_event._timing):
            raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
        if self._event is None or end_event._event is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end_event.query()):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        return runtime.driver().milliseconds(self._event, end_event._event)

    def __repr__(self):
        return (
            f"<tinytorch.cuda.Event {self.cuda_event:#x}>"
            if self._event is not None
            else "<tinytorch.cuda.Event uninitialized>"
        )


@method
def record_stream(self, s: Stream) -> None:
    """Marks the tensor as used by ``s``, which did not allocate it: once the tensor is freed, its memory is reused
    only after the work queued on ``s`` at that time is done. Follows ``torch.Tensor.record_stream``."""
    _checked(s, "record_stream")
    if self.is_cuda and s.device_index != self.get_device():
        raise RuntimeError(f"record_stream: the tensor is on {self.device}, the stream on {s.device}")
    check(lib.tt_record_stream(self._h, s.stream_id), "record_stream")
