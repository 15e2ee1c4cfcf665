"""Products of matrices by cuBLASLt.

The library's matrices are column-major, ours row-major: a row-major matrix is the transpose of the column-major one in
the same memory, so C = A B is computed as C^T = B^T A^T, operands exchanged. The algorithm is chosen once for each kind
of problem (shapes, dtypes, layouts, alignments) and kept: equal calls give equal bits."""

from __future__ import annotations

import contextlib
import threading

from ..cpu import error, ffi, lib
from . import libcuda
from .binding import Library
from .flags import matmul as flags

DECLARATIONS = """
    typedef struct { uint64_t data[8]; } cublasLtMatmulAlgo_t;
    typedef struct { cublasLtMatmulAlgo_t algo; size_t workspaceSize; int state; float wavesCount; int reserved[4]; }
        cublasLtMatmulHeuristicResult_t;
    const char *cublasLtGetStatusString(int status);
    size_t cublasLtGetVersion(void);
    int cublasLtCreate(void **handle);
    int cublasLtMatmulDescCreate(void **desc, int compute, int scale);
    int cublasLtMatmulDescDestroy(void *desc);
    int cublasLtMatmulDescSetAttribute(void *desc, int attribute, const void *value, size_t size);
    int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t cols, int64_t ld);
    int cublasLtMatrixLayoutDestroy(void *layout);
    int cublasLtMatrixLayoutSetAttribute(void *layout, int attribute, const void *value, size_t size);
    int cublasLtMatmulPreferenceCreate(void **preference);
    int cublasLtMatmulPreferenceDestroy(void *preference);
    int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *value, size_t size);
    int cublasLtMatmulAlgoGetHeuristic(void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference,
                                       int requested, cublasLtMatmulHeuristicResult_t *results, int *found);
    int cublasLtMatmul(void *handle, void *desc, const void *alpha, const void *a, void *a_layout, const void *b,
                       void *b_layout, const void *beta, const void *c, void *c_layout, void *d, void *d_layout,
                       const cublasLtMatmulAlgo_t *algo, intptr_t workspace, size_t workspace_size, intptr_t stream);
"""
_blas = Library("cublasLt", DECLARATIONS, "cublasLtGetStatusString")

_TYPES = {lib.TT_F16: 2, lib.TT_BF16: 14, lib.TT_F32: 0, lib.TT_F64: 1, lib.TT_C64: 4, lib.TT_C128: 5}  # cudaDataType_t
_SCALED_IN_THEMSELVES = (lib.TT_F64, lib.TT_C64, lib.TT_C128)
_COMPUTE_32F, _COMPUTE_32F_FAST_TF32, _COMPUTE_64F = 68, 77, 70
# Attributes of descriptors, layouts and preferences.
_TRANSA, _TRANSB, _EPILOGUE, _BIAS_POINTER = 3, 4, 7, 8
_BATCH_COUNT, _BATCH_STEP = 5, 6
_MAX_WORKSPACE, _REDUCTIONS, _ALIGN_A, _ALIGN_B, _ALIGN_C, _ALIGN_D = 1, 3, 5, 6, 7, 8
_EPILOGUE_BIAS = 4
_NO_LOW_PRECISION_SUMS = 2  # partial sums are added in the dtype computed in, not in that of the result

_KEY_BYTES = ffi.sizeof("tt_gemm")
_PLANS = 4096  # kinds of problems remembered for a device
_WORKSPACE, _LEAST_WORKSPACE = 32 << 20, 1 << 20

_handles = {}  # by device
_plans = {}  # by device and what _choices gives: by the problem's bytes
_workspaces = {}  # by device and stream: memory that algorithms may use
_working = threading.RLock()  # held while somebody uses some, which others may replace


class Plan:
    """How one kind of problem is solved: descriptors, layouts, algorithm. ``found`` is false where there is none."""

    __slots__ = ("desc", "a", "b", "c", "result", "algo", "workspace", "bias", "lock", "found")

    def __init__(self, handle, p, bias, compute: int, full_sums: bool):
        kind = _TYPES[p.dtype]
        scale = kind if p.dtype in _SCALED_IN_THEMSELVES else _TYPES[lib.TT_F32]
        self.lock = threading.Lock()
        self.bias = None
        self.desc = _blas.made("cublasLtMatmulDescCreate", "cublasLtMatmulDescDestroy", "void *", compute, scale)
        for attribute, transposed in ((_TRANSA, p.trans & 2), (_TRANSB, p.trans & 1)):
            _blas.set("cublasLtMatmulDescSetAttribute", self.desc, attribute, "int32_t", 1 if transposed else 0)
        if p.bias:
            _blas.set("cublasLtMatmulDescSetAttribute", self.desc, _EPILOGUE, "uint32_t", _EPILOGUE_BIAS)
            self.point_at(bias)
        # Exchanged: the library's first operand is our b.
        self.a = self._layout(kind, p.n, p.k, p.ldb, p.trans & 2, p.count, p.step_b)
        self.b = self._layout(kind, p.k, p.m, p.lda, p.trans & 1, p.count, p.step_a)
        self.c = self._layout(kind, p.n, p.m, p.n, False, p.count, p.m * p.n)
        preference = _blas.made("cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceDestroy", "void *")
        set_ = "cublasLtMatmulPreferenceSetAttribute"
        _blas.set(set_, preference, _MAX_WORKSPACE, "uint64_t", _WORKSPACE)
        if full_sums:
            _blas.set(set_, preference, _REDUCTIONS, "uint32_t", _NO_LOW_PRECISION_SUMS)
        for attribute, shift in ((_ALIGN_A, 4), (_ALIGN_B, 0), (_ALIGN_C, 8), (_ALIGN_D, 8)):
            _blas.set(set_, preference, attribute, "uint32_t", 1 << (p.align >> shift & 15))
        self.result = _blas.ffi.new("cublasLtMatmulHeuristicResult_t *")
        count = _blas.ffi.new("int *")
        status = _blas.lib.cublasLtMatmulAlgoGetHeuristic(
            handle, self.desc, self.a, self.b, self.c, self.c, preference, 1, self.result, count
        )
        self.found = status == 0 and count[0] > 0 and self.result.state == 0
        if not self.found and not p.bias:
            raise _blas.error("cublasLtMatmulAlgoGetHeuristic", status or self.result.state)
        self.algo = _blas.ffi.addressof(self.result, "algo")
        self.workspace = self.result.workspaceSize

    @staticmethod
    def _layout(kind: int, rows: int, cols: int, ld: int, transposed: bool, count: int, step: int):
        """A column-major matrix, or a stack; ``rows`` by ``cols`` is its shape once transposed, if it is to be."""
        if transposed:
            rows, cols = cols, rows
        layout = _blas.made("cublasLtMatrixLayoutCreate", "cublasLtMatrixLayoutDestroy", "void *", kind, rows, cols, ld)
        if count > 1:
            _blas.set("cublasLtMatrixLayoutSetAttribute", layout, _BATCH_COUNT, "int32_t", count)
            _blas.set("cublasLtMatrixLayoutSetAttribute", layout, _BATCH_STEP, "int64_t", step)
        return layout

    def point_at(self, bias) -> None:
        """Makes the descriptor's bias the one at that address."""
        address = int(ffi.cast("intptr_t", bias))
        if address != self.bias:
            _blas.set("cublasLtMatmulDescSetAttribute", self.desc, _BIAS_POINTER, "intptr_t", address)
            self.bias = address


def _choices(dtype: int) -> tuple[int, bool]:
    """How sums are computed, as the flags have it now; and must all of them be in full precision?"""
    if dtype in (lib.TT_F32, lib.TT_C64):
        return (_COMPUTE_32F_FAST_TF32 if flags.allow_tf32 else _COMPUTE_32F), False
    if dtype in (lib.TT_F64, lib.TT_C128):
        return _COMPUTE_64F, False
    return _COMPUTE_32F, not (
        flags.allow_fp16_reduced_precision_reduction
        if dtype == lib.TT_F16
        else flags.allow_bf16_reduced_precision_reduction
    )


def _workspace(device: int, stream: int, size: int) -> int:
    """The address of as much memory for the algorithms on a stream, kept until one wants more."""
    h = _workspaces.get((device, stream))
    if h is None or h.numel < size:
        before = lib.tt_device_set(device + 1)
        try:
            if h is not None:
                lib.tt_free(_workspaces.pop((device, stream)))  # the stream's next work may have it
            h = lib.tt_empty(lib.TT_U8, 1, (max(_LEAST_WORKSPACE, 1 << (size - 1).bit_length()),))
        finally:
            lib.tt_device_set(before)
        if not h:
            raise error("matmul")
        _workspaces[device, stream] = h
    return int(ffi.cast("intptr_t", h.data))


def leave_workspace(stream: int) -> None:
    """The next call on a stream takes other memory for its algorithms. A graph has its own: graphs that were recorded
    on one stream may run at the same time on several."""
    for key in [key for key in _workspaces if key[1] == stream]:
        lib.tt_free(_workspaces.pop(key))


def _run(handle, plan: Plan, alpha, a, b, beta, c, out, bias, device: int, stream: int) -> int:
    """The library's status."""
    size = plan.workspace
    space = _workspace(device, stream, size) if size else 0
    operands = alpha, b, plan.a, a, plan.b, beta, c, plan.c, out, plan.c
    if plan.bias is None:
        return _blas.lib.cublasLtMatmul(handle, plan.desc, *operands, plan.algo, space, size, stream)
    with plan.lock:  # the descriptor holds the bias's address
        plan.point_at(bias)
        return _blas.lib.cublasLtMatmul(handle, plan.desc, *operands, plan.algo, space, size, stream)


def _handle(device: int):
    """The library's state for the device, whose context is current."""
    if device not in _handles:
        _handles.setdefault(device, _blas.made("cublasLtCreate", None, "void *"))  # for as long as the process runs
    return _handles[device]


def prepare(device: int) -> None:
    """Makes the library guess, in a thread, for a product that nobody asked for: its first guess takes a tenth of a
    second, in which who calls this has something else to do. Does nothing if the library has been used."""
    if device in _handles:
        return
    try:
        driver = libcuda.library()
        context = libcuda.made(driver.cuCtxGetCurrent, "looking for the context")
    except RuntimeError:
        return  # an emulated device

    def guess():
        with contextlib.suppress(Exception):  # who needs the library is told
            libcuda.check(driver.cuCtxSetCurrent(context), "opening the device")
            n = 64
            product = {"m": n, "n": n, "k": n, "lda": n, "ldb": n, "count": 1, "dtype": lib.TT_F32, "align": 0x4444}
            Plan(_handle(device), ffi.new("tt_gemm *", product), None, *_choices(lib.TT_F32))

    threading.Thread(target=guess, name="tinytorch: cuBLAS").start()


def multiply(device: int, problem, a, b, c, out, bias, alpha, beta, stream: int) -> int:
    """out = alpha a b + beta c + bias, as tt_gemm in kernels/api/cuda.h describes it, on the device whose context
    is current. 1: the library has no algorithm with a bias for this, and nothing was done."""
    choices = _choices(problem.dtype)
    try:
        handle, plans = _handles[device], _plans[device, choices]
    except KeyError:
        handle, plans = _handle(device), _plans.setdefault((device, choices), {})
    key = ffi.buffer(problem, _KEY_BYTES)[:]
    plan = plans.get(key)
    if plan is None:
        if len(plans) >= _PLANS:
            plans.clear()
        plan = plans[key] = Plan(handle, problem, bias, *choices)
    if not plan.found:
        return 1
    work = handle, plan, alpha, a, b, beta, c, out, bias, device, stream
    if plan.workspace:
        with _working:
            status = _run(*work)
    else:
        status = _run(*work)
    if status:
        raise _blas.error("cublasLtMatmul", status)
    return 0


def version() -> str:
    """As in "13.0.2"."""
    number = _blas.lib.cublasLtGetVersion()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
