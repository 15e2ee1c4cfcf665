"""The CUDA devices of this machine, and which one "cuda" means in this thread."""

from __future__ import annotations

from ..backends.cpu import lib
from ..backends.cuda import runtime
from ..devices import device as _device
from ..tensor import Tensor


def index_of(where) -> int:
    """The index of a CUDA device given as a number, a string or a device; None: the current one. ValueError for another
    kind of device."""
    if where is None:
        return runtime.current_device()
    if isinstance(where, int) and not isinstance(where, bool):
        return where
    chosen = _device(where)
    if chosen.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {chosen}")
    return runtime.current_device() if chosen.index is None else chosen.index


def known_index(device) -> int:
    """The index of ``device``, which need not be open; how many there are is not asked before one is."""
    index = index_of(device)
    if not 0 <= index < (runtime.device_count() if runtime.is_open() else lib.TT_CUDA_DEVICES):
        raise runtime.no_device(index)
    return index


def is_available() -> bool:
    """Is there a CUDA device, with a driver and PyCUDA? ``init`` tells what is missing."""
    return runtime.device_count() > 0


def is_initialized() -> bool:
    """Has a device been used by this process?"""
    return runtime.is_open()


def init() -> None:
    """Opens the current device. RuntimeError saying what is missing."""
    runtime.open_device(runtime.current_device())


def device_count() -> int:
    """How many CUDA devices can be used; 0 without PyCUDA, driver or GPU."""
    return runtime.device_count()


def current_device() -> int:
    """The index of this thread's current device. RuntimeError when there is none."""
    runtime.open_device(runtime.current_device())
    return runtime.current_device()


def set_device(device) -> None:
    """Makes ``device`` this thread's current one; a negative index does nothing. RuntimeError for a wrong index."""
    index = index_of(device)
    if index >= 0:
        runtime.set_current_device(index)


class device:
    """A context in which ``device`` is this thread's current one. None and negative indices change nothing."""

    __slots__ = ("idx", "_before")

    def __init__(self, device):
        self.idx = -1 if device is None else index_of(device)

    def __enter__(self):
        self._before = runtime.set_current_device(self.idx) if self.idx >= 0 else -1
        return self

    def __exit__(self, *_):
        if self._before >= 0:
            runtime.set_current_device(self._before)


class device_of(device):
    """A context in which the device of the tensor ``obj`` is this thread's current one; a tensor of the CPU changes
    nothing."""

    __slots__ = ()

    def __init__(self, obj: Tensor):
        super().__init__(obj.get_device() if obj.is_cuda else None)


def synchronize(device=None) -> None:
    """Waits for all that ``device`` has to do. RuntimeError if something of it failed."""
    runtime.run_pending("synchronize")
    runtime.synchronize(index_of(device))


class DeviceProperties:
    """What a device is: ``name, major, minor, total_memory, multi_processor_count, warp_size, L2_cache_size, ...``."""

    def __init__(self, values: dict):
        self.__dict__.update(values)

    def __repr__(self):
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, multi_processor_count={self.multi_processor_count})"
        )


def get_device_properties(device=None) -> DeviceProperties:
    """What ``device`` is. RuntimeError for a wrong index."""
    index = runtime.open_device(index_of(device)).index
    return DeviceProperties(runtime.driver().properties(index))


def get_device_name(device=None) -> str:
    """The name of ``device``."""
    return get_device_properties(device).name


def get_device_capability(device=None) -> tuple[int, int]:
    """The compute capability of ``device``: (9, 0)."""
    return runtime.driver().capability(runtime.open_device(index_of(device)).index)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Does the current device multiply matrices of bfloat16?"""
    return is_available() and get_device_capability() >= (8, 0)


def can_device_access_peer(device, peer_device) -> bool:
    """Can ``device`` read the memory of ``peer_device``?"""
    one, other = (runtime.open_device(index_of(d)).index for d in (device, peer_device))
    return runtime.driver().can_access(one, other)
