"""What the allocator holds of the devices' memory. See Note [Memory of devices] in kernels/cuda/host/pool.h."""

from __future__ import annotations

from ..backends.cpu import check, ffi, lib
from ..backends.cuda import runtime
from .devices import index_of, known_index

_FIGURES = (
    "allocation",
    "segment",
    "active",
    "inactive_split",
    "allocated_bytes",
    "reserved_bytes",
    "active_bytes",
    "inactive_split_bytes",
    "requested_bytes",
)  # in the order of pool.h
_POOLS = ("all", "small_pool", "large_pool")
_VALUES = ("current", "peak", "allocated", "freed")
_STATES = ("inactive", "active_allocated", "active_pending_free")


def memory_stats(device=None) -> dict[str, int]:
    """The figures of ``torch.cuda.memory_stats`` for ``device``; none before a device is used. RuntimeError for a wrong
    index, as of all functions here."""
    index = known_index(device)
    if not runtime.is_open():
        return {}
    out = ffi.new("int64_t[]", lib.TT_CUDA_STATS)
    check(lib.tt_cuda_memory_stats(index, out), "memory_stats")
    names = [f"{figure}.{pool}.{value}" for figure in _FIGURES for pool in _POOLS for value in _VALUES]
    stats = dict(sorted(zip(names, out)))
    stats["num_alloc_retries"], stats["num_ooms"] = out[len(names)], out[len(names) + 1]
    stats["num_device_alloc"], stats["num_device_free"] = stats["segment.all.allocated"], stats["segment.all.freed"]
    return stats


def memory_allocated(device=None) -> int:
    """Bytes of the blocks that tensors hold."""
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device=None) -> int:
    """The most bytes that tensors held since the start or ``reset_peak_memory_stats``."""
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device=None) -> int:
    """Bytes held from the device, free blocks among them."""
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device=None) -> int:
    """The most bytes held from the device since the start or ``reset_peak_memory_stats``."""
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


def reset_peak_memory_stats(device=None) -> None:
    """Peaks start again from the present figures."""
    check(lib.tt_cuda_reset_stats(known_index(device), 1))


def reset_accumulated_memory_stats(device=None) -> None:
    """The sums of what was allocated and freed, and the counts of failures, start again from 0."""
    check(lib.tt_cuda_reset_stats(known_index(device), 0))


def empty_cache() -> None:
    """Gives free segments back: those of all devices, and page-locked memory."""
    if runtime.is_open():
        for index in (*range(runtime.device_count()), lib.TT_HOST_MEMORY):
            check(lib.tt_cuda_empty_cache(index), "empty_cache")


def set_per_process_memory_fraction(fraction: float, device=None) -> None:
    """Lets the allocator hold at most this share of the device's memory; more is out of memory. ValueError outside of
    [0, 1]."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    index = runtime.open_device(index_of(device)).index
    total = mem_get_info(index)[1]
    check(lib.tt_cuda_memory_limit(index, 0 if fraction == 1 else max(int(total * fraction), 1)))


def mem_get_info(device=None) -> tuple[int, int]:
    """The device's free bytes and all its bytes, other processes counted."""
    return runtime.driver().memory_info(runtime.open_device(index_of(device)).index)


def memory_snapshot(device=None) -> list[dict]:
    """The segments with their blocks, as ``torch.cuda.memory_snapshot`` has them, for one device or (None) for all."""
    indices = range(runtime.device_count() if runtime.is_open() else 0) if device is None else (known_index(device),)
    return [segment for index in indices for segment in _segments(index)]


def _segments(index: int) -> list[dict]:
    room = 256
    while True:
        rows = ffi.new("int64_t[]", 8 * room)
        n = check(lib.tt_cuda_snapshot(index, rows, room), "memory_snapshot")
        if n <= room:
            break
        room = 2 * n
    segments: list[dict] = []
    for k in range(n):
        address, size, small, stream, pool, block, length, state = rows[8 * k : 8 * k + 8]
        if not segments or segments[-1]["address"] != address:
            segments.append(
                {
                    "device": index,
                    "address": address,
                    "total_size": size,
                    "allocated_size": 0,
                    "stream": stream,
                    "segment_type": "small" if small else "large",
                    "segment_pool_id": (0, pool),
                    "blocks": [],
                }
            )
        segments[-1]["blocks"].append({"address": block, "size": length, "state": _STATES[state]})
        segments[-1]["allocated_size"] += length if state == 1 else 0
    return segments


def _amount(n: int, bytes_: bool) -> str:
    if not bytes_:
        return str(n)
    for unit, size in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if n >= 10 << size:
            return f"{n >> size} {unit}"
    return f"{n} B"


def memory_summary(device=None, abbreviated: bool = False) -> str:
    """The figures of the allocator as a table; ``abbreviated``: without small and large pools."""
    index = index_of(device)
    stats = memory_stats(index)
    lines = [
        f"tinytorch's memory of cuda:{index}; {stats.get('num_ooms', 0)} times there was none, "
        f"{stats.get('num_alloc_retries', 0)} times the cache was emptied",
        f"{'':24}{'now':>12}{'peak':>12}{'allocated':>12}{'freed':>12}",
    ]
    for figure in _FIGURES:
        for pool in _POOLS[:1] if abbreviated else _POOLS:
            name = figure.replace("_", " ") if pool == "all" else "  " + pool.replace("_", " ")
            values = (stats.get(f"{figure}.{pool}.{value}", 0) for value in _VALUES)
            lines.append(f"{name:24}" + "".join(f"{_amount(n, figure.endswith('bytes')):>12}" for n in values))
    return "\n".join(lines)
