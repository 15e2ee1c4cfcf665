"""Records launches on CUDA devices: wrappers around the callbacks by which the C side launches.

They are installed only inside ``recording``; otherwise C calls those of backends/cuda/runtime.py itself."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from itertools import count
from threading import get_native_id
from typing import NamedTuple

from ..backends.cpu import lib
from ..backends.cuda import runtime
from ..backends.cuda.source import name_of, parts_of

_number = count(1).__next__
_COPIES = {lib.TT_COPY_TO_DEVICE: "copy to device", lib.TT_COPY_TO_HOST: "copy to host"}
# What hands work to NVIDIA's libraries, and the kinds of these launches.
_LIBRARIES = {
    "tt_cuda_gemm": "gemm",
    "tt_cuda_transform": "fft",
    "tt_cuda_solver": "linalg",
    "tt_cuda_convolve": "conv",
    "tt_cuda_attend": "attention",
}


class Launch(NamedTuple):
    """A call that queued work on a device."""

    number: int  # by which a device's records name it
    kind: str  # "kernel", "gemm", "fft", "linalg", "conv", "attention", "copy", "graph"
    what: int  # of a kernel: its key; of a copy: its direction
    device: int
    stream: int
    start: int  # ns
    end: int
    thread: int
    bytes: int  # of a copy

    @property
    def name(self) -> str:
        """What people call what was launched."""
        if self.kind == "copy":
            return _COPIES[self.what]
        return kernel_name(self.what) if self.kind == "kernel" else self.kind


def kernel_name(key: int) -> str:
    """Of one of our kernels."""
    return f"fused_{key >> 8}" if parts_of(key)[0] == "fused" else name_of(key)


Begin = Callable[[int, int, int], object]  # number, device, stream: a token
End = Callable[[object], None]  # with the token


@contextlib.contextmanager
def recording(noted: list[Launch], begin: Begin, end: End) -> Iterator[None]:
    """Inside, appends each call to ``noted``, and calls ``begin`` and ``end`` around it, in its thread."""
    clock = time.perf_counter_ns
    do_run = runtime.Capture.run

    def around(call, args, kind, what, index, stream, nbytes=0):
        number = _number()
        token = begin(number, index, stream)
        start = clock()
        try:
            return call(*args)
        finally:
            stop = clock()
            end(token)
            noted.append(Launch(number, kind, what, index, stream, start, stop, get_native_id(), nbytes))

    def launch(*args):
        return around(runtime.WORK["tt_cuda_launch"], args, "kernel", args[3], args[1], args[2])

    def copy(*args):
        return around(runtime.WORK["tt_cuda_copy"], args, "copy", args[0], args[1], args[2], args[5])

    def library(call, kind):
        return lambda *args: around(call, args, kind, 0, args[0], args[1])

    def run_graph(capture):
        return around(do_run, (capture,), "graph", 0, capture.index, lib.tt_cuda_stream(capture.index))

    libraries = {name: library(runtime.WORK[name], kind) for name, kind in _LIBRARIES.items()}
    runtime.let_work({"tt_cuda_launch": launch, "tt_cuda_copy": copy, **libraries})
    runtime.Capture.run = run_graph
    try:
        yield
    finally:
        runtime.let_work(runtime.WORK)
        runtime.Capture.run = do_run
