"""``torch.accelerator``: the CUDA devices."""

from __future__ import annotations

from tinytorch import cuda, device
from tinytorch.cuda import current_stream, set_stream

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "is_available",
    "max_memory_allocated",
    "memory_allocated",
    "memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]


def is_available() -> bool:
    """Is there a CUDA device?"""
    return cuda.is_available()


def device_count() -> int:
    """How many CUDA devices there are."""
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> device | None:
    """``device("cuda")``, or None where there is none."""
    return device("cuda") if cuda.is_available() else None


def current_device_index() -> int:
    """The number of the current device."""
    return cuda.current_device()


def set_device_index(device, /) -> None:
    """Makes it the current one."""
    cuda.set_device(device)


current_device_idx, set_device_idx = current_device_index, set_device_index
device_index = cuda.device


def synchronize(device=None, /) -> None:
    """Waits for the device, if there is one."""
    if cuda.is_available():
        cuda.synchronize(device)


empty_cache, memory_stats = cuda.empty_cache, cuda.memory_stats
memory_allocated, max_memory_allocated = cuda.memory_allocated, cuda.max_memory_allocated
reset_peak_memory_stats = cuda.reset_peak_memory_stats
