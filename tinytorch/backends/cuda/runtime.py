"""CUDA devices: the callbacks by which the C side launches kernels, allocates and copies. See Note [Launching] in
kernels/cuda/host/launch.h and Note [Memory of devices] in kernels/cuda/host/pool.h. Nothing here runs before the first
tensor of a device is made."""

from __future__ import annotations

import atexit
import os
import threading
from itertools import count
from typing import NamedTuple

from ...config import setting
from ..cpu import check, ffi, keep_exception, lib
from . import kernels
from .driver import Kernel, PyCuda
from .libcuda import LATER
from .source import EXACT, approximate, name_of, parts_of, source_of

_LEGACY = 1  # CU_STREAM_LEGACY: another handle of the default stream
# Streams of a device besides the default one, handed out in turn: of priority 0, and of each other priority, of which
# there are so many at most. All together no more than lib.TT_CUDA_STREAMS.
MAX_STREAMS, MAX_OF_PRIORITY, MAX_PRIORITIES = 32, 6, 5

_driver = None  # of this process
_devices = {}  # by index: what is open
_captures = {}  # by device and number of the stream: what is being recorded
_opening = threading.RLock()  # what holds it may run a finalizer, which may use a device
_launch_blocking = os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0")


class _Thread(threading.local):
    """What a thread has chosen."""

    device = 0


_thread = _Thread()


class Loaded(NamedTuple):
    """A device's kernels under one value of the setting "approximate". Who needs one asks once which these are: another
    thread may change the setting meanwhile."""

    approximate: bool
    functions: dict  # by key: what launches it
    shared: dict  # by key: the most dynamic shared memory it was allowed


class Device:
    """A device in use: its loaded kernels and its streams."""

    def __init__(self, index: int):
        self.index = index
        self.fused = {}  # by source: the number of a kernel of fused mode
        self.next_fused = count(1).__next__
        self.sources = {}  # by key: their sources
        self.loaded = Loaded(False, {}, {}), Loaded(True, {}, {})
        self.streams = [None]  # by number; None: the default one
        self.numbers = {}  # by priority: of the streams that new_stream() gives; the first is the next
        self.priorities = driver().priorities(index)
        self.arch = driver().arch(index)
        facts = driver().properties(index)
        lib.tt_cuda_processor(index, 10 * facts["major"] + facts["minor"], facts["shared_memory_per_block_optin"])
        check(lib.tt_fault_record(index, *driver().mapped(index, lib.tt_fault_bytes())))

    def load(self, key: int, into: Loaded):
        """What launches a kernel, which is loaded from now on."""
        source = self.sources.get(key) or source_of(key)
        if into.approximate and parts_of(key)[0] not in EXACT:
            source = approximate(source)
        launch = into.functions[key] = kernels.load(_driver, self, source, name_of(key))
        return launch

    def new_stream(self, priority: int = 0) -> int:
        """The number of a stream, of the nearest priority that there is, that others may have got before, if there are
        many."""
        least, greatest = self.priorities
        priority = min(least, max(greatest, -MAX_PRIORITIES, priority))
        with _opening:
            numbers = self.numbers.setdefault(priority, [])
            if len(numbers) < (MAX_OF_PRIORITY if priority else MAX_STREAMS):
                self.streams.append(driver().new_stream(self.index, priority))
                numbers.append(len(self.streams) - 1)
            else:
                numbers.append(numbers.pop(0))
            return numbers[-1]


class Capture:
    """Work of a stream that is being recorded as a graph, and the graph it became. It keeps the CPU's memory that the
    graph reads each time it runs.

    Note [Random numbers of graphs]
    A recorded kernel is told its seed and its draw once and for all, so those of a graph count from 0: their draws are
    the graph's first, second, and so on. What they add to that lies in memory of the device: each run first takes as
    many draws from the generator as the graph has, and writes there the generator's seed and the first of them. So a
    graph draws what the same work would draw without one. ``place`` in tt_generator and tt_stream is that memory."""

    def __init__(self, index: int, stream: int):
        """From now on what the stream is told is recorded."""
        if (index, stream) in _captures:
            raise RuntimeError("CUDA graphs: this stream is being captured already")
        self.index, self.stream = index, stream
        self.graph = None
        self._memory: list[int] = []
        self._generators: dict = {}  # what is drawn from: the graph's counter, and its address on the device
        open_device(index)
        _driver.begin_capture(self._driver_stream())
        _captures[index, stream] = self

    def _driver_stream(self):
        return _devices[self.index].streams[self.stream]

    def keep(self, memory, nbytes: int):
        """A copy of the CPU's memory that lives as long as the graph."""
        address = _driver.allocate_host(nbytes)
        if not address:
            raise MemoryError(f"CUDA graphs: no page-locked memory for {nbytes} bytes that the graph copies")
        self._memory.append(address)
        copy = ffi.cast("void *", address)
        ffi.memmove(copy, memory, nbytes)
        return copy

    def counter(self, generator):
        """What the kernels of this graph are given for the generator: a tt_generator of the graph's own."""
        if generator not in self._generators:
            place = _driver.allocate(self.index, 16)  # not from the graph's pool, where earlier parts of it write
            if not place:
                raise MemoryError("CUDA graphs: no memory for the place in a random stream")
            counter = ffi.new("tt_generator *", (0, 0, ffi.cast("uint64_t *", place)))
            self._generators[generator] = counter, place
        return self._generators[generator][0]

    def end(self) -> None:
        """The recording becomes a graph. RuntimeError if something of it could not be recorded."""
        del _captures[self.index, self.stream]
        self.graph = _driver.end_capture(self._driver_stream())

    def run(self) -> None:
        """Runs the graph on the current stream."""
        stream = current_stream(self.index)
        if self._generators and is_capturing(self.index):
            raise RuntimeError("CUDA graphs: a graph that draws random numbers cannot become part of another")
        _driver.open(self.index)
        for generator, (counter, place) in self._generators.items():
            first = lib.tt_take_draws(generator._g, counter.draw)
            begin = ffi.new("uint64_t[]", (generator._g.seed, first))
            _driver.to_device(place, begin, 16, stream)
        _driver.run_graph(self.graph, stream)

    def drop(self) -> None:
        """Lets go of the graph and its memory."""
        if self.graph is not None:
            _driver.drop_graph(self.graph)
            self.graph = None
        if self._generators:
            _driver.open(self.index)
        while self._generators:
            _driver.free(self.index, self._generators.popitem()[1][1])
        while self._memory:
            _driver.free_host(self._memory.pop())


def capture_of(index: int) -> Capture | None:
    """The capture of this thread's current stream of the device, if there is one."""
    return _captures.get((index, lib.tt_cuda_stream(index))) if _captures else None


def is_capturing(index: int) -> bool:
    """Is this thread's current stream of the device being captured?"""
    return capture_of(index) is not None


def driver():
    """The driver; RuntimeError saying what is missing."""
    global _driver
    if _driver is None:
        _driver = PyCuda()
    return _driver


def use_driver(other) -> None:
    """Puts another driver in the place of PyCUDA's, before any device is used."""
    global _driver
    if _devices:
        raise RuntimeError("a driver can only be chosen before a device is used")
    _driver = other


def device_count() -> int:
    """How many devices there are; 0 without PyCUDA, driver or GPU."""
    try:
        return driver().count
    except RuntimeError:
        return 0


def is_open() -> bool:
    """Has a device been used?"""
    return bool(_devices)


def open_devices() -> list[int]:
    """The devices that have been used."""
    return list(_devices)


def no_device(index: int) -> RuntimeError:
    """Says that there is no device of this index."""
    available = driver().count
    return RuntimeError(
        f"CUDA error: invalid device ordinal {index}: "
        + ("there is 1 device" if available == 1 else f"there are {available} devices")
        if available
        else "no CUDA GPUs are available"
    )


def open_device(index: int) -> Device:
    """The device, its context current in this thread. RuntimeError for a wrong index."""
    if not 0 <= index < driver().count:
        raise no_device(index)
    driver().open(index)
    device = _devices.get(index)
    if device is None:
        with _opening:
            if index not in _devices:
                _devices.setdefault(index, Device(index))
                _keep_launches()
        device = _devices[index]
    return device


def current_device() -> int:
    """The index of this thread's current device: what "cuda" means."""
    return _thread.device


def set_current_device(index: int) -> int:
    """Makes a device this thread's current one; the one before."""
    before = _thread.device
    _thread.device = open_device(index).index
    return before


def run_pending(op: str) -> None:
    """Runs what fused mode has put off in this thread.

    Note [Fused mode and streams]
    What is put off runs on the stream that is current when it runs, and others wait only for what a stream was told.
    So before another stream becomes current, before an event is recorded, a stream waited for or a graph run, what is
    pending runs: its operands may rely on the order of the stream where it was recorded, whose memory its results
    have."""
    if lib.tt_fuse_pending():
        check(lib.tt_fuse_flush(), op)


def synchronize(index: int) -> None:
    """Waits for all that the device has to do; raises what a kernel found."""
    open_device(index)
    _driver.synchronize(index)
    check(lib.tt_device_check(index))


def wait_for_stream(index: int, stream) -> None:
    """Waits for what a stream of the device has to do; raises what a kernel found."""
    _driver.open(index)
    _driver.wait_for_stream(stream)
    check(lib.tt_device_check(index))


def current_stream(index: int):
    """This thread's current stream of the device, as the driver has it: PyCUDA's object, None for the default one."""
    return _devices[index].streams[lib.tt_cuda_stream(index)]


def current_handle(index: int) -> int:
    """The CUstream of this thread's current stream, as libraries take it."""
    return _driver.handle(current_stream(index))


def let_wait(index: int, stream: int, other: int) -> None:
    """What the one stream of the device is told from now on waits for what the other has to do by now; both by their
    handles, which may be another library's."""
    if (stream or _LEGACY) != (other or _LEGACY):
        open_device(index)
        event = _driver.new_event()
        try:
            _driver.record(event, other)
            _driver.let_wait(stream, event)
        finally:
            _driver.drop_event(event)


def _keep(kind, exception, traceback) -> None:
    """An exception of a callback waits until the C call returns; the driver's own become RuntimeErrors."""
    if isinstance(exception, getattr(_driver, "failures", ())):
        text = str(exception)
        exception = RuntimeError(f"CUDA error: {text}." + LATER).with_traceback(traceback)
    keep_exception(kind, exception, traceback)


_LARGE = 40 << 10  # bytes of dynamic shared memory, beside a kernel's own, that it must be allowed


_kept = {}  # by number: launches that C may ask for again. Note [Launching again] in kernels/cuda/host/launch.c


@ffi.def_extern(error=-1, onerror=_keep)
def tt_cuda_launch(number, index, stream, key, x, y, threads, shared, args, nbytes):
    _driver.open(index)
    device = _devices[index]
    loaded = device.loaded[lib.tt_cuda_approximate]
    launch = loaded.functions.get(key)
    if launch is None:
        launch = device.load(key, loaded)
    if shared > _LARGE and loaded.shared.get(key, 0) < shared:
        _driver.allow_shared(launch, shared)
        loaded.shared[key] = shared
    kept = index, launch, (x, y, 1), (threads, 1, 1), ffi.buffer(args, nbytes), shared, device.streams[stream]
    if number >= 0:
        _kept[number] = kept
        if isinstance(launch, Kernel):
            _keep_handles(number, launch, kept[-1])
    launch(*kept[2:])
    if _launch_blocking and (index, stream) not in _captures:
        _driver.wait_for_stream(device.streams[stream])
    return 0


def _keep_handles(number: int, kernel: Kernel, stream) -> None:
    """Lets C launch it itself from now on."""
    lib.tt_cuda_keep_handles(number, kernel.function, ffi.cast("void *", _driver.handle(stream)))


@ffi.def_extern(error=-1, onerror=_keep)
def tt_cuda_launch_again(number):
    index, launch, grid, block, args, shared, stream = _kept[number]
    if _several:
        return _launch_on(index, launch, grid, block, args, shared, stream)
    launch(grid, block, args, shared, stream)
    return 0


def _launch_on(index: int, launch, *how) -> int:
    """Where there are several devices, another library may have changed which one is current in this thread. A kernel
    is its device's: on another it does not start."""
    _driver.turn_to(index)
    try:
        launch(*how)
    except _driver.failures:
        if _driver.is_current(index):
            raise
        _driver.open(index)
        launch(*how)
    return 0


def install_fused(index: int, source: str) -> tuple[int, bool]:
    """A kernel of fused mode, compiled and loaded on the device: the number under which the C side launches it, and
    whether it was there before. Where the setting "approximate" changes later, the first launch compiles it anew."""
    device = open_device(index)
    number = device.fused.get(source)
    if number is not None:
        return number, True
    number = device.next_fused()
    device.sources[lib.tt_fused_key(number)] = source
    device.load(lib.tt_fused_key(number), device.loaded[lib.tt_cuda_approximate])
    device.fused[source] = number
    return number, False


@ffi.def_extern(error=-1, onerror=_keep)
def tt_cuda_copy(kind, index, stream, to, source, nbytes, wait):
    _driver.open(index)
    capture = _captures.get((index, stream))
    stream = _devices[index].streams[stream]
    if capture is not None:
        if wait == lib.TT_WAIT:
            raise RuntimeError(
                "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU "
                "tensor is pinned and the copy is non_blocking; nor can values be read"
            )
        if wait == lib.TT_TAKEN and kind == lib.TT_COPY_TO_DEVICE:
            source = capture.keep(source, nbytes)
    if kind == lib.TT_COPY_TO_DEVICE:
        _driver.to_device(int(ffi.cast("intptr_t", to)), source, nbytes, stream)
    else:
        _driver.to_host(to, int(ffi.cast("intptr_t", source)), nbytes, stream)
    if wait == lib.TT_WAIT or _launch_blocking and capture is None:
        _driver.wait_for_stream(stream)
    return 0


@ffi.def_extern(error=-1, onerror=_keep)
def tt_cuda_gemm(index, stream, problem, a, b, c, out, bias, alpha, beta):
    _driver.open(index)
    stream = _devices[index].streams[stream]
    status = _driver.multiply(index, problem, a, b, c, out, bias, alpha, beta, stream)
    if _launch_blocking and not _captures:
        _driver.wait_for_stream(stream)
    return status


@ffi.def_extern(error=-1, onerror=_keep)
def tt_cuda_transform(index, stream, problem, a, out):
    _driver.open(index)
    stream = _devices[index].streams[stream]
    status = _driver.transform(index, problem, a, out, stream)
    if _launch_blocking and not _captures:
        _driver.wait_for_stream(stream)
    return status


@ffi.def_extern(error=-1, onerror=_keep)
def tt_cuda_solver(index, stream, problem):
    _driver.open(index)
    stream = _devices[index].streams[stream]
    status = _driver.solve(index, problem, stream)
    if _launch_blocking and not _captures:
        _driver.wait_for_stream(stream)
    return status


@ffi.def_extern(error=-1, onerror=_keep)
def tt_cuda_convolve(index, stream, problem, input, weight, result):
    _driver.open(index)
    stream = _devices[index].streams[stream]
    status = _driver.convolve(index, problem, input, weight, result, stream)
    if _launch_blocking and not _captures:
        _driver.wait_for_stream(stream)
    return status


@ffi.def_extern(error=-1, onerror=_keep)
def tt_cuda_attend(index, stream, problem, tensors):
    _driver.open(index)
    stream = _devices[index].streams[stream]
    status = _driver.attend(index, problem, tensors, stream)
    if _launch_blocking and not _captures:
        _driver.wait_for_stream(stream)
    return status


_profiled = False  # a profiler records each launch
_several = False  # there is more than one device


def _keep_launches() -> None:
    """Lets the C side keep launches from now on, or forget them: where each must be looked at."""
    global _several
    _several = driver().count > 1
    lib.tt_cuda_keep_launches(not _profiled and not _launch_blocking)


def _choose(value: int) -> None:
    """What this thread has recorded already is computed as the setting was."""
    if lib.tt_cuda_approximate != bool(value):
        try:
            check(lib.tt_fuse_flush(), "config")
        finally:
            lib.tt_cuda_approximate = bool(value)
            if _devices:
                _keep_launches()


setting("approximate", 0, _choose)


def _cache(value: int) -> None:
    lib.tt_cuda_caching = bool(value)


setting("cuda_caching", 1, _cache)

WORK = {
    "tt_cuda_launch": tt_cuda_launch,
    "tt_cuda_copy": tt_cuda_copy,
    "tt_cuda_gemm": tt_cuda_gemm,
    "tt_cuda_transform": tt_cuda_transform,
    "tt_cuda_solver": tt_cuda_solver,
    "tt_cuda_convolve": tt_cuda_convolve,
    "tt_cuda_attend": tt_cuda_attend,
}


def let_work(callbacks: dict) -> None:
    """The C side calls these from now on for what a device is to do: those of WORK, or what a profiler puts around
    them."""
    global _profiled
    _profiled = callbacks is not WORK
    _keep_launches()
    for name, callback in callbacks.items():
        ffi.def_extern(name, error=-1, onerror=_keep)(callback)


atexit.register(lib.tt_cuda_stop)
