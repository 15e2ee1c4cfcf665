"""The most that this machine can do: how fast it copies memory and multiplies matrices.

What a kernel reaches is to be compared with that: see ``share``. The figures are kept on disk, beside the compiled
kernels, by processor and number of threads, or by GPU and driver. They are the best of some measurements, well apart:
the machine may have been busy during one. ``force`` measures again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import NamedTuple

from .. import cache, ops
from ..autograd.modes import no_grad
from ..backends.cpu import ffi, get_num_threads, lib
from ..backends.cuda import runtime
from ..devices import device as device_of
from ..dtypes import bfloat16, float16, float32

_SUFFIX = ".ceilings.json"
_PATIENCE = 0.5  # seconds for each figure, about
_FORMAT = 2  # of the file
_RUNS = 3  # measurements that the figures are the best of
_APART = 600  # seconds between them, at least


class Ceilings(NamedTuple):
    """Of a device. ``bandwidth`` in bytes a second, read and written together; ``flops``, operations a second in
    products of float32 matrices; ``products``, those by dtype."""

    device: str
    name: str
    bandwidth: float
    flops: float
    products: dict[str, float]

    def __str__(self):
        rates = ", ".join(f"{dtype} {rate / 1e9:.4g} GFLOP/s" for dtype, rate in self.products.items())
        return f"{self.device} ({self.name}): copies {self.bandwidth / 1e9:.4g} GB/s; products {rates}"

    def share(self, nbytes: float | None, flops: float | None, seconds: float, dtype: str = "float32") -> float | None:
        """The larger of what was reached of the bandwidth and of the rate of products, 1 at the ceiling; None where
        nothing is known. Halves on the CPU are computed in float32."""
        if seconds <= 0 or nbytes is None and flops is None:
            return None
        rate = self.products.get(dtype, self.flops)
        return max((nbytes or 0) / seconds / self.bandwidth, (flops or 0) / seconds / rate)


class _Kept(NamedTuple):
    """Ceilings, of how many measurements they are the best, and when the last was made (seconds since the epoch)."""

    found: Ceilings
    runs: int
    last: float


_known: dict[str, _Kept] = {}  # by key, of this process


def ceilings(device=None, force: bool = False) -> Ceilings:
    """The ceilings of a device (by default the CPU): those kept from before, or measured now, which takes about a
    second: at the first call, and at two more that come ten minutes later or more, the best of which is kept. ``force``
    forgets what was kept. RuntimeError for a device that there is not."""
    where = device_of("cpu" if device is None else device)
    index = None
    if where.type == "cuda":
        index = runtime.current_device() if where.index is None else where.index
        runtime.open_device(index)
    name = f"cuda:{index}" if index is not None else "cpu"
    about = _about(index)
    key = hashlib.sha256(json.dumps([_FORMAT, about], sort_keys=True).encode()).hexdigest()
    kept = None if force else _known.get(key) or _read(key)
    if kept is None or kept.runs < _RUNS and abs(time.time() - kept.last) >= _APART:
        found = _measure(name, about["name"], index)
        if kept is not None:
            found = _best(kept.found, found)
        kept = _Kept(found, kept.runs + 1 if kept else 1, time.time())
        _write(key, kept)
    _known[key] = kept
    return kept.found._replace(device=name)


def known_ceilings(device: str = "cpu") -> Ceilings | None:
    """The ceilings of a device if they have been measured here; nothing is measured now."""
    index = int(device.rpartition(":")[2]) if device != "cpu" else None
    try:
        about = _about(index)
    except RuntimeError:  # a trace of another machine's device
        return None
    key = hashlib.sha256(json.dumps([_FORMAT, about], sort_keys=True).encode()).hexdigest()
    kept = _known.get(key) or _read(key)
    return kept and kept.found._replace(device=device)


def _best(a: Ceilings, b: Ceilings) -> Ceilings:
    """The higher of each figure."""
    return b._replace(
        bandwidth=max(a.bandwidth, b.bandwidth),
        flops=max(a.flops, b.flops),
        products={dtype: max(rate, a.products.get(dtype, 0)) for dtype, rate in b.products.items()},
    )


def _about(index: int | None) -> dict:
    """What decides the figures."""
    if index is None:
        return {
            "name": _processor(),
            "threads": get_num_threads(),
            "cores": os.cpu_count(),
            "instructions": ffi.string(lib.tt_isa_name()).decode(),
            "machine": platform.node(),
        }
    properties = runtime.driver().properties(index)
    return {
        "name": properties["name"],
        "memory": properties["total_memory"],
        "processors": properties["multi_processor_count"],
        "machine": platform.node(),
    }


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _path(key: str) -> str:
    return os.path.join(cache.default_folder(), key + _SUFFIX)


def _read(key: str) -> _Kept | None:
    """What was kept; a file that is not whole is as good as none."""
    with contextlib.suppress(OSError, ValueError, TypeError), open(_path(key)) as file:
        found, runs, last = json.load(file)
        kept = _Kept(Ceilings(**found), int(runs), float(last))
        if kept.found.bandwidth > 0 and kept.found.flops > 0:
            return kept
    return None


def _write(key: str, kept: _Kept) -> None:
    """Keeps the figures, whole or not at all; where no file can be written, for this process only."""
    with contextlib.suppress(OSError):
        folder = cache.default_folder()
        os.makedirs(folder, mode=0o700, exist_ok=True)
        handle, work = tempfile.mkstemp(prefix="work-", dir=folder)
        with os.fdopen(handle, "w") as file:
            json.dump([kept.found._asdict(), kept.runs, kept.last], file)
        os.replace(work, _path(key))


def _measure(device: str, name: str, index: int | None) -> Ceilings:
    large, size = (1 << 28, 8192) if index is not None else (1 << 26, 1024)
    if index is not None:  # not more than an eighth of the memory that is free
        large = min(large, runtime.driver().memory_info(index)[0] // 16 // 4)
        size = min(size, 1 << max(4, (large // 2).bit_length() // 2))
    with no_grad():
        source = ops.FUNCTIONS["ones"](large, device=device)
        target = ops.FUNCTIONS["empty"](large, device=device)
        bandwidth = 2 * 4 * large / _seconds(functools.partial(target.copy_, source), index)
        del source, target
        rates = {}
        for dtype in (float32, float16, bfloat16) if index is not None else (float32,):
            a = ops.FUNCTIONS["rand"](size, size, device=device).to(dtype)
            b = ops.FUNCTIONS["rand"](size, size, device=device).to(dtype)
            rates[dtype.name] = 2 * size**3 / _seconds(functools.partial(a.matmul, b), index)
    return Ceilings(device, name, bandwidth, rates["float32"], rates)


def _seconds(work: Callable[[], object], index: int | None) -> float:
    """Of one call: the least of some, or on a device of several at a time, between waits."""
    work()  # what happens once
    _wait(index)
    start = time.perf_counter()
    work()
    _wait(index)
    once = max(time.perf_counter() - start, 1e-6)
    repeats = 1 if index is None else max(1, min(50, int(_PATIENCE / 5 / once)))
    times = []
    for _ in range(max(3, min(50, int(_PATIENCE / (once * repeats))))):
        start = time.perf_counter()
        for _ in range(repeats):
            work()
        _wait(index)
        times.append((time.perf_counter() - start) / repeats)
    return min(times) if index is None else statistics.median(times)


def _wait(index: int | None) -> None:
    if index is not None:
        runtime.synchronize(index)
