"""Products of matrices by cuBLASLt.

The library's matrices are column-major, ours row-major: a row-major matrix is the transpose of the column-major one in
the same memory, so C = A B is computed as C^T = B^T A^T, operands exchanged. The algorithm is chosen once for each kind
of problem (shapes, dtypes, layouts, alignments) and kept: equal calls give equal bits."""

from __future__ import annotations

import contextlib
import threading

from .. import cudnn as settings
from ..cpu import ffi, lib
from . import libcuda
from .binding import Library
from .flags import matmul as flags
from .scratch import memory

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
_WORKSPACE = 32 << 20

_handles = {}  # by device
_plans = {}  # by device and what _choices gives: by the problem's bytes
_retired = []  # plans that were too many: another thread may be carrying one out
_keeping = threading.RLock()  # held while plans come and go


class Plan:
    """How one kind of problem is solved: descriptors, layouts, algorithm. ``found`` is false where there is none."""

    __slots__ = ("_keeps", "found", "workspace", "told")

    def __init__(self, handle, p, bias, compute: int, full_sums: bool):
        kind = _TYPES[p.dtype]
        scale = kind if p.dtype in _SCALED_IN_THEMSELVES else _TYPES[lib.TT_F32]
        desc = _blas.made("cublasLtMatmulDescCreate", "cublasLtMatmulDescDestroy", "void *", compute, scale)
        for attribute, transposed in ((_TRANSA, p.trans & 2), (_TRANSB, p.trans & 1)):
            _blas.set("cublasLtMatmulDescSetAttribute", desc, attribute, "int32_t", 1 if transposed else 0)
        if p.bias:
            _blas.set("cublasLtMatmulDescSetAttribute", desc, _EPILOGUE, "uint32_t", _EPILOGUE_BIAS)
            address = int(ffi.cast("intptr_t", bias))  # any will do for the choice
            _blas.set("cublasLtMatmulDescSetAttribute", desc, _BIAS_POINTER, "intptr_t", address)
        # Exchanged: the library's first operand is our b.
        left = self._layout(kind, p.n, p.k, p.ldb, p.trans & 2, p.count, p.step_b)
        right = self._layout(kind, p.k, p.m, p.lda, p.trans & 1, p.count, p.step_a)
        made = self._layout(kind, p.n, p.m, p.n, False, p.count, p.m * p.n)
        preference = _blas.made("cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceDestroy", "void *")
        set_ = "cublasLtMatmulPreferenceSetAttribute"
        _blas.set(set_, preference, _MAX_WORKSPACE, "uint64_t", _WORKSPACE)
        if full_sums:
            _blas.set(set_, preference, _REDUCTIONS, "uint32_t", _NO_LOW_PRECISION_SUMS)
        for attribute, shift in ((_ALIGN_A, 4), (_ALIGN_B, 0), (_ALIGN_C, 8), (_ALIGN_D, 8)):
            _blas.set(set_, preference, attribute, "uint32_t", 1 << (p.align >> shift & 15))
        result = _blas.ffi.new("cublasLtMatmulHeuristicResult_t *")
        count = _blas.ffi.new("int *")
        status = _blas.lib.cublasLtMatmulAlgoGetHeuristic(
            handle, desc, left, right, made, made, preference, 1, result, count
        )
        self.found = status == 0 and count[0] > 0 and result.state == 0
        if not self.found and not p.bias:
            raise _blas.error("cublasLtMatmulAlgoGetHeuristic", status or result.state)
        self.workspace = result.workspaceSize
        functions = map(_blas.address, ("cublasLtMatmul", "cublasLtMatmulDescSetAttribute"))
        parts = handle, desc, left, right, made, _blas.ffi.addressof(result, "algo")
        pointers = [ffi.cast("void *", int(_blas.ffi.cast("intptr_t", part))) for part in parts]
        self.told = ffi.new("tt_product_plan *", [*functions, *pointers, self.workspace])
        self._keeps = desc, left, right, made, result

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


def _choices(dtype: int, layer: bool = False) -> tuple[int, bool]:
    """How sums are computed, as the flags have it now; and must all of them be in full precision? ``layer``: the
    product belongs to a recurrent layer."""
    if dtype in (lib.TT_F32, lib.TT_C64):
        rounds = flags.allow_tf32 or layer and settings.allow_tf32
        return (_COMPUTE_32F_FAST_TF32 if rounds else _COMPUTE_32F), False
    if dtype in (lib.TT_F64, lib.TT_C128):
        return _COMPUTE_64F, False
    return _COMPUTE_32F, not (
        flags.allow_fp16_reduced_precision_reduction
        if dtype == lib.TT_F16
        else flags.allow_bf16_reduced_precision_reduction
    )


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


def multiply(device: int, problem, a, b, c, out, bias, alpha, beta, stream: int, keep: bool = False) -> int:
    """out = alpha a b + beta c + bias, as tt_gemm in kernels/api/cuda.h describes it, on the device whose context
    is current. 1: the library has no algorithm with a bias for this, and nothing was done. ``keep``: in this thread C
    does the next one itself."""
    age, choices = lib.tt_cuda_plans_age(), _choices(problem.dtype, bool(problem.layer))
    try:
        handle, plans = _handles[device], _plans[device, choices]
    except KeyError:
        handle, plans = _handle(device), _plans.setdefault((device, choices), {})
    key = ffi.buffer(problem, _KEY_BYTES)[:]
    plan = plans.get(key)
    if plan is None:
        plan = _kept(plans, key, Plan(handle, problem, bias, *choices))
    if not plan.found:
        return 1
    stream = ffi.cast("void *", stream)
    space = memory(device, plan.workspace, "matmul") if plan.workspace else None
    try:
        at = space.data if space else ffi.NULL
        status = lib.tt_cublas_multiply(plan.told, alpha, a, b, beta, c, out, bias, at, stream)
    finally:
        if space:
            lib.tt_free(space)
    if status:
        raise _blas.error("cublasLtMatmul", status)
    if keep:
        lib.tt_cuda_keep_plan(age, device, problem, _KEY_BYTES, plan.told, stream)
    return 0


def _kept(plans: dict, key: bytes, plan: Plan) -> Plan:
    """The problem's plan from now on: that of the thread that was first, since C may have been told of it."""
    with _keeping:
        if len(plans) >= _PLANS and key not in plans:
            lib.tt_cuda_forget_plans()
            _retired[:] = plans.values()
            plans.clear()
        return plans.setdefault(key, plan)


def version() -> str:
    """As in "13.0.2"."""
    number = _blas.lib.cublasLtGetVersion()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
