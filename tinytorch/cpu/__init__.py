"""The CPU under the names that ``tinytorch.cuda`` has for a CUDA device: its memory, and the one stream."""

from __future__ import annotations

from ..backends.cpu import check, ffi, lib
from .streams import (
    Event,
    Stream,
    StreamContext,
    current_device,
    current_stream,
    device_count,
    is_available,
    is_initialized,
    set_device,
    stream,
    synchronize,
)

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "device_count",
    "empty_cache",
    "is_available",
    "is_initialized",
    "max_memory_allocated",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_peak_memory_stats",
    "set_device",
    "stream",
    "synchronize",
]

_STATS = (
    "allocated_bytes.all.current",
    "allocated_bytes.all.peak",
    "reserved_bytes.all.current",
    "reserved_bytes.all.peak",
    "allocation.all.allocated",
    "allocation.all.freed",
    "num_ooms",
)


def memory_stats() -> dict[str, int]:
    """Figures of the CPU's memory caches, under the names of ``torch.cuda.memory_stats``.

    Allocated bytes are those of live tensors, in whole blocks; reserved bytes are held from the system. What this
    thread has recorded in fused mode is run first: it may hold tensors that nobody else does.
    """
    check(lib.tt_fuse_flush())
    out = ffi.new("int64_t[]", len(_STATS))
    lib.tt_memory_stats(out)
    stats = dict(zip(_STATS, out))
    stats["allocation.all.current"] = stats["allocation.all.allocated"] - stats["allocation.all.freed"]
    return stats


def memory_allocated() -> int:
    """Bytes of live tensors."""
    return memory_stats()["allocated_bytes.all.current"]


def max_memory_allocated() -> int:
    """The most bytes of live tensors since the start or ``reset_peak_memory_stats``."""
    return memory_stats()["allocated_bytes.all.peak"]


def memory_reserved() -> int:
    """Bytes held from the system, free blocks in the caches among them."""
    return memory_stats()["reserved_bytes.all.current"]


def reset_peak_memory_stats() -> None:
    """Peaks start again from the present figures."""
    lib.tt_reset_peak()


def empty_cache() -> None:
    """Gives free blocks back to the system: the shared ones and this thread's."""
    lib.tt_empty_cache()
