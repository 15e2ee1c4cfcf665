"""CUDA devices: the callbacks by which the C side launches kernels, allocates and copies. See Note [Launching] in
kernels/cuda/cuda.h. Nothing here runs before the first tensor of a device is made."""

from __future__ import annotations

from _thread import get_ident

from ..cpu import check, ffi, keep_exception, lib
from . import kernels
from .driver import PyCuda

_driver = None   # of this process
_devices = {}    # by index: what is open
_current = {}    # by thread: the current device, where it is not the first
streams = {}     # by thread and device: the current stream, where it is not the default one


class Device:
    """A device in use: its loaded kernels."""

    def __init__(self, index: int):
        self.index = index
        self.functions = {}  # by key: what launches it
        self.shared = {}     # by key: the most dynamic shared memory it was allowed
        self.arch = driver().arch(index)
        check(lib.tt_fault_record(index, *driver().mapped(index, lib.tt_fault_bytes())))


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


def current_device() -> int:
    """The index of this thread's current device: what "cuda" means."""
    return _current.get(get_ident(), 0)


def set_current_device(index: int) -> int:
    """Makes a device this thread's current one; the one before."""
    before = current_device()
    _current[get_ident()] = open_device(index).index
    return before


def device_count() -> int:
    """How many devices there are; 0 without PyCUDA, driver or GPU."""
    try:
        return driver().count
    except RuntimeError:
        return 0


def open_device(index: int) -> Device:
    """The device, its context current in this thread. RuntimeError for a wrong index."""
    count = driver().count
    if not 0 <= index < count:
        raise RuntimeError(f"CUDA error: invalid device ordinal {index}: there are {count} devices" if count else
                           "no CUDA GPUs are available")
    driver().open(index)
    device = _devices.get(index)
    if device is None:
        device = _devices[index] = Device(index)
    return device


_LARGE = 48 << 10  # bytes of dynamic shared memory that a kernel must be allowed


@ffi.def_extern(error=-1, onerror=keep_exception)
def tt_cuda_launch(index, key, x, y, threads, shared, args, nbytes):
    driver = _driver
    driver.open(index)
    device = _devices[index]
    function = device.functions.get(key)
    if function is None:
        function = device.functions[key] = kernels.load(driver, device, key)
    if shared > _LARGE and device.shared.get(key, 0) < shared:
        driver.allow_shared(function, shared)
        device.shared[key] = shared
    function((x, y, 1), (threads, 1, 1), ffi.buffer(args, nbytes), shared, streams.get((get_ident(), index)))
    return 0


@ffi.def_extern(error=-1, onerror=keep_exception)
def tt_cuda_copy(kind, index, to, source, nbytes):
    driver = _driver
    driver.open(index)
    stream = streams.get((get_ident(), index))
    if kind == lib.TT_COPY_TO_DEVICE:
        driver.to_device(int(ffi.cast("intptr_t", to)), source, nbytes, stream)
    elif kind == lib.TT_COPY_TO_HOST:
        driver.to_host(to, int(ffi.cast("intptr_t", source)), nbytes, stream)
    else:
        driver.on_device(int(ffi.cast("intptr_t", to)), int(ffi.cast("intptr_t", source)), nbytes, stream)
    return 0


@ffi.def_extern(error=0, onerror=keep_exception)
def tt_cuda_segment(index, nbytes):
    _driver.open(index)
    return _driver.allocate(index, nbytes)


@ffi.def_extern(error=-1, onerror=keep_exception)
def tt_cuda_segment_free(index, address):
    _driver.open(index)
    _driver.free(index, address)
    return 0
