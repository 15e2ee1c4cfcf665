"""Fourier transforms by cuFFT. A plan is made once for each kind of transform, and kept; the memory that it works in
is taken for each call."""

from __future__ import annotations

import threading
import weakref

from ..cpu import ffi, lib
from .binding import Library
from .scratch import memory

DECLARATIONS = """
    int cufftCreate(int *plan);
    int cufftDestroy(int plan);
    int cufftSetAutoAllocation(int plan, int on);
    int cufftMakePlanMany64(int plan, int rank, long long *n, long long *in_sizes, long long in_stride,
                            long long in_step, long long *out_sizes, long long out_stride, long long out_step,
                            int type, long long batch, size_t *work_size);
    int cufftSetWorkArea(int plan, intptr_t work);
    int cufftSetStream(int plan, intptr_t stream);
    int cufftExecC2C(int plan, void *in, void *out, int direction);
    int cufftExecZ2Z(int plan, void *in, void *out, int direction);
    int cufftExecR2C(int plan, void *in, void *out);
    int cufftExecD2Z(int plan, void *in, void *out);
    int cufftExecC2R(int plan, void *in, void *out);
    int cufftExecZ2D(int plan, void *in, void *out);
"""
_STATUS = {
    1: "CUFFT_INVALID_PLAN",
    2: "CUFFT_ALLOC_FAILED",
    4: "CUFFT_INVALID_VALUE",
    5: "CUFFT_INTERNAL_ERROR",
    6: "CUFFT_EXEC_FAILED",
    7: "CUFFT_SETUP_FAILED",
    8: "CUFFT_INVALID_SIZE",
    16: "CUFFT_NOT_SUPPORTED",
}


class _Transforms(Library):
    def error(self, function: str, status: int) -> RuntimeError:
        return RuntimeError(f"CUDA error: {_STATUS.get(status, status)} when calling `{function}`")


_fft = _Transforms("cufft", DECLARATIONS, "")

# By the dtypes read and written: cufftType, the function that runs the plan, and whether it takes a direction.
_KINDS = {
    (lib.TT_C64, lib.TT_C64): (0x29, "cufftExecC2C", True),
    (lib.TT_F32, lib.TT_C64): (0x2A, "cufftExecR2C", False),
    (lib.TT_C64, lib.TT_F32): (0x2C, "cufftExecC2R", False),
    (lib.TT_C128, lib.TT_C128): (0x69, "cufftExecZ2Z", True),
    (lib.TT_F64, lib.TT_C128): (0x6A, "cufftExecD2Z", False),
    (lib.TT_C128, lib.TT_F64): (0x6C, "cufftExecZ2D", False),
}
_FORWARD, _INVERSE = -1, 1
_KEY_BYTES = ffi.sizeof("tt_transform")
_PLANS = 256  # kinds of transforms remembered for a device

_plans: dict[int, dict[bytes, Plan]] = {}  # by device and the problem's bytes


class Plan:
    """How one kind of transform is done. One call at a time: a plan has one stream and one place to work in."""

    def __init__(self, p):
        self.lock = threading.Lock()
        kind, run, self.has_direction = _KINDS[p.in_dtype, p.out_dtype]
        place, size = _fft.ffi.new("int *"), _fft.ffi.new("size_t *")
        _fft.call("cufftCreate", place)
        self.number = place[0]
        weakref.finalize(self, _fft.lib.cufftDestroy, self.number).atexit = False
        _fft.call("cufftSetAutoAllocation", self.number, 0)
        sizes = _fft.ffi.new("long long[1]", [p.size])  # any: with one dimension only strides and steps count
        layout = (sizes, p.in_stride or 1, p.in_step or 1, sizes, p.out_stride or 1, p.out_step or 1)  # 0: of one
        _fft.call("cufftMakePlanMany64", self.number, 1, sizes, *layout, kind, p.rows, size)
        self.work_size = size[0]
        self.run = getattr(_fft.lib, run)
        self.name = run

    def execute(self, device: int, p, a, out, stream: int) -> None:
        """Tells the stream to do it."""
        work = memory(device, self.work_size, "fft") if self.work_size else None
        try:
            with self.lock:
                _fft.call("cufftSetStream", self.number, stream)
                if work:
                    _fft.call("cufftSetWorkArea", self.number, int(ffi.cast("intptr_t", work.data)))
                direction = (_FORWARD if p.forward else _INVERSE,) if self.has_direction else ()
                status = self.run(self.number, a, out, *direction)
        finally:
            if work:
                lib.tt_free(work)  # the stream's next work may have it
        if status:
            raise _fft.error(self.name, status)


def transform(device: int, problem, a, out, stream: int) -> int:
    """The transform of each row of ``a``, without a scale, as tt_transform in kernels/api/cuda.h describes it, on the
    device whose context is current."""
    plans = _plans.setdefault(device, {})
    key = ffi.buffer(problem, _KEY_BYTES)[:]
    plan = plans.get(key)
    if plan is None:
        if len(plans) >= _PLANS:
            plans.clear()
        plan = plans[key] = Plan(problem)
    plan.execute(device, problem, a, out, stream)
    return 0
