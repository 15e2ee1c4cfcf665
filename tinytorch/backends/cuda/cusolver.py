"""Decompositions of matrices and systems of equations by cuSOLVER and, of triangles, cuBLAS. Both take column-major
matrices; what belongs to a stack is done one after the other."""

from __future__ import annotations

import threading

from ..cpu import ffi, lib
from .binding import Library
from .scratch import address, memory

# {x}: the letter of the dtype; {o}: "or" of real numbers, "un" of complex ones; {s}: "sy" or "he".
_TYPED = """
    int cusolverDn{x}potrf_bufferSize(void *handle, int upper, int n, intptr_t a, int lda, int *size);
    int cusolverDn{x}potrf(void *handle, int upper, int n, intptr_t a, int lda, intptr_t work, int size, intptr_t info);
    int cusolverDn{x}getrf_bufferSize(void *handle, int m, int n, intptr_t a, int lda, int *size);
    int cusolverDn{x}getrf(void *handle, int m, int n, intptr_t a, int lda, intptr_t work, intptr_t pivots,
                           intptr_t info);
    int cusolverDn{x}getrs(void *handle, int trans, int n, int k, intptr_t a, int lda, intptr_t pivots, intptr_t b,
                           int ldb, intptr_t info);
    int cusolverDn{x}geqrf_bufferSize(void *handle, int m, int n, intptr_t a, int lda, int *size);
    int cusolverDn{x}geqrf(void *handle, int m, int n, intptr_t a, int lda, intptr_t tau, intptr_t work, int size,
                           intptr_t info);
    int cusolverDn{x}{o}gqr_bufferSize(void *handle, int m, int n, int k, intptr_t a, int lda, intptr_t tau, int *size);
    int cusolverDn{x}{o}gqr(void *handle, int m, int n, int k, intptr_t a, int lda, intptr_t tau, intptr_t work,
                            int size, intptr_t info);
    int cusolverDn{x}{o}mqr_bufferSize(void *handle, int right, int trans, int m, int n, int k, intptr_t a, int lda,
                                       intptr_t tau, intptr_t b, int ldb, int *size);
    int cusolverDn{x}{o}mqr(void *handle, int right, int trans, int m, int n, int k, intptr_t a, int lda,
                            intptr_t tau, intptr_t b, int ldb, intptr_t work, int size, intptr_t info);
    int cusolverDn{x}{s}evd_bufferSize(void *handle, int vectors, int upper, int n, intptr_t a, int lda,
                                       intptr_t values, int *size);
    int cusolverDn{x}{s}evd(void *handle, int vectors, int upper, int n, intptr_t a, int lda, intptr_t values,
                            intptr_t work, int size, intptr_t info);
    int cusolverDn{x}gesvdj_bufferSize(void *handle, int vectors, int thin, int m, int n, intptr_t a, int lda,
                                       intptr_t s, intptr_t u, int ldu, intptr_t v, int ldv, int *size, void *params);
    int cusolverDn{x}gesvdj(void *handle, int vectors, int thin, int m, int n, intptr_t a, int lda, intptr_t s,
                            intptr_t u, int ldu, intptr_t v, int ldv, intptr_t work, int size, intptr_t info,
                            void *params);
    int cusolverDn{x}gesvd_bufferSize(void *handle, int m, int n, int *size);
    int cusolverDn{x}gesvd(void *handle, signed char u_job, signed char v_job, int m, int n, intptr_t a, int lda,
                           intptr_t s, intptr_t u, int ldu, intptr_t vh, int ldv, intptr_t work, int size,
                           intptr_t rwork, intptr_t info);
"""
_LETTERS = {lib.TT_F32: "S", lib.TT_F64: "D", lib.TT_C64: "C", lib.TT_C128: "Z"}
DECLARATIONS = """
    int cusolverDnCreate(void **handle);
    int cusolverDnSetStream(void *handle, intptr_t stream);
    int cusolverDnCreateParams(void **params);
    int cusolverDnCreateGesvdjInfo(void **params);
    int cusolverDnXgeev_bufferSize(void *handle, void *params, int left, int right, int64_t n, int type_a, intptr_t a,
                                   int64_t lda, int type_w, intptr_t w, int type_l, intptr_t vl, int64_t ldl,
                                   int type_r, intptr_t vr, int64_t ldr, int compute, size_t *size, size_t *host_size);
    int cusolverDnXgeev(void *handle, void *params, int left, int right, int64_t n, int type_a, intptr_t a,
                        int64_t lda, int type_w, intptr_t w, int type_l, intptr_t vl, int64_t ldl, int type_r,
                        intptr_t vr, int64_t ldr, int compute, intptr_t work, size_t size, void *host_work,
                        size_t host_size, intptr_t info);
""" + "".join(
    _TYPED.format(x=x, o="un" if x in "CZ" else "or", s="he" if x in "CZ" else "sy") for x in _LETTERS.values()
)
BLAS_DECLARATIONS = """
    const char *cublasGetStatusString(int status);
    int cublasCreate_v2(void **handle);
    int cublasSetStream_v2(void *handle, intptr_t stream);
""" + "".join(
    f"""
    int cublas{x}trsm_v2(void *handle, int right, int upper, int trans, int unit, int m, int n, const void *alpha,
                         intptr_t a, int lda, intptr_t b, int ldb);
"""
    for x in _LETTERS.values()
)
_STATUS = {
    1: "CUSOLVER_STATUS_NOT_INITIALIZED",
    2: "CUSOLVER_STATUS_ALLOC_FAILED",
    3: "CUSOLVER_STATUS_INVALID_VALUE",
    4: "CUSOLVER_STATUS_ARCH_MISMATCH",
    5: "CUSOLVER_STATUS_MAPPING_ERROR",
    6: "CUSOLVER_STATUS_EXECUTION_FAILED",
    7: "CUSOLVER_STATUS_INTERNAL_ERROR",
    8: "CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED",
    9: "CUSOLVER_STATUS_NOT_SUPPORTED",
}


class _Solvers(Library):
    def error(self, function: str, status: int) -> RuntimeError:
        return RuntimeError(f"CUDA error: {_STATUS.get(status, status)} when calling `{function}`")


_solver = _Solvers("cusolver", DECLARATIONS, "")
_blas = Library("cublas", BLAS_DECLARATIONS, "cublasGetStatusString")

_TYPES = {lib.TT_F32: 0, lib.TT_F64: 1, lib.TT_C64: 4, lib.TT_C128: 5}  # cudaDataType_t
_COMPLEX = {lib.TT_F32: lib.TT_C64, lib.TT_F64: lib.TT_C128}
_SIZES = {lib.TT_F32: 4, lib.TT_F64: 8, lib.TT_C64: 8, lib.TT_C128: 16}
_ONES = {
    lib.TT_F32: ffi.new("float[2]", (1,)),
    lib.TT_F64: ffi.new("double[2]", (1,)),
    lib.TT_C64: ffi.new("float[2]", (1,)),
    lib.TT_C128: ffi.new("double[2]", (1,)),
}


class _Handles:
    """A device's handles. One call at a time: they have one stream."""

    def __init__(self):
        self.lock = threading.Lock()
        self.solver = _solver.made("cusolverDnCreate", None, "void *")  # for as long as the process runs
        self.params = _solver.made("cusolverDnCreateParams", None, "void *")
        self.jacobi = _solver.made("cusolverDnCreateGesvdjInfo", None, "void *")
        self.blas = _blas.made("cublasCreate_v2", None, "void *")
        self.streams = {}  # of each handle, by its library

    def use(self, stream: int, library, function: str, handle) -> None:
        if self.streams.get(library) != stream:
            library.call(function, handle, stream)
            self.streams[library] = stream


_handles: dict[int, _Handles] = {}
_ADDRESS = ffi.typeof("intptr_t")


class _Work:
    """Memory of the current stream's for a call."""

    def __init__(self, device: int, nbytes: int):
        self._h = memory(device, max(nbytes, 16), "linalg")

    def __enter__(self) -> int:
        return address(self._h)

    def __exit__(self, *_):
        lib.tt_free(self._h)  # the stream's next work may have it


class _Problem:
    """A tt_solver (kernels/api/cuda.h) with its addresses as numbers."""

    def __init__(self, device: int, handles: _Handles, p):
        self.device, self.handles, self.p = device, handles, p
        self.dtype, self.letter = p.dtype, _LETTERS[p.dtype]

    def __getattr__(self, name: str) -> int:
        """The address a, b, c, d, pivots or info: a routine asks for few of them."""
        place = int(ffi.cast(_ADDRESS, getattr(self.p, name)))
        setattr(self, name, place)
        return place

    @property
    def trans(self) -> int:
        adjoint = 2 if self.letter in "CZ" else 1
        return 1 if self.has(lib.TT_TRANSPOSED) else adjoint if self.has(lib.TT_ADJOINT) else 0

    def has(self, option: int) -> int:
        return 1 if self.p.options & option else 0

    def routine(self, name: str):
        """The library's function for the dtype, from its name for real numbers."""
        if self.letter in "CZ":
            name = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd"}.get(name, name)
        return f"cusolverDn{self.letter}{name}"

    def room(self, name: str, operands: tuple, *params) -> int:
        """How many elements of work memory the routine wants."""
        size = _solver.ffi.new("int *")
        _solver.call(f"{self.routine(name)}_bufferSize", self.handles.solver, *operands, size, *params)
        return size[0]

    def run(self, name: str, *args) -> None:
        _solver.call(self.routine(name), self.handles.solver, *args)

    def work(self, elements: int):
        return _Work(self.device, elements * _SIZES[self.dtype])

    def each(self, *names):
        """The addresses of those operands, and of the state, of one problem after the other. ``a``: which belongs to
        it."""
        p, info = self.p, self.info
        steps = [4 * min(p.m or p.n, p.n) if x == "pivots" else getattr(p, f"step_{x}") for x in names]
        operands = [(getattr(self, x), step, x in ("a", "pivots")) for x, step in zip(names, steps)]
        for i in range(p.count):
            at = p.at[i] if p.at else i
            yield (*[first + (at if shared else i) * step for first, step, shared in operands], info + 4 * i)


def _potrf(q, p):
    upper = q.has(lib.TT_UPPER)
    size = q.room("potrf", (upper, p.n, q.a, p.lda))
    with q.work(size) as work:
        for a, info in q.each("a"):
            q.run("potrf", upper, p.n, a, p.lda, work, size, info)


def _getrf(q, p):
    with q.work(q.room("getrf", (p.m, p.n, q.a, p.lda))) as work:
        for a, pivots, info in q.each("a", "pivots"):
            q.run("getrf", p.m, p.n, a, p.lda, work, pivots if p.pivots else 0, info)


def _getrs(q, p):
    for a, pivots, b, info in q.each("a", "pivots", "b"):
        q.run("getrs", q.trans, p.n, p.k, a, p.lda, pivots, b, p.ldb, info)


def _trsm(q, p):
    how = q.has(lib.TT_RIGHT), q.has(lib.TT_UPPER), q.trans, q.has(lib.TT_UNIT)
    for a, b, _ in q.each("a", "b"):
        _blas.call(f"cublas{q.letter}trsm_v2", q.handles.blas, *how, p.m, p.k, _ONES[q.dtype], a, p.lda, b, p.ldb)


def _geqrf(q, p):
    size = q.room("geqrf", (p.m, p.n, q.a, p.lda))
    with q.work(size) as work:
        for a, c, info in q.each("a", "c"):
            q.run("geqrf", p.m, p.n, a, p.lda, c, work, size, info)


def _orgqr(q, p):
    size = q.room("orgqr", (p.m, p.n, p.k, q.a, p.lda, q.c))
    with q.work(size) as work:
        for a, c, info in q.each("a", "c"):
            q.run("orgqr", p.m, p.n, p.k, a, p.lda, c, work, size, info)


def _ormqr(q, p):
    how = q.has(lib.TT_RIGHT), q.trans, p.m, p.n, p.k
    size = q.room("ormqr", (*how, q.a, p.lda, q.c, q.b, p.ldb))
    with q.work(size) as work:
        for a, b, c, info in q.each("a", "b", "c"):
            q.run("ormqr", *how, a, p.lda, c, b, p.ldb, work, size, info)


def _syevd(q, p):
    how = q.has(lib.TT_VECTORS), q.has(lib.TT_UPPER), p.n
    size = q.room("syevd", (*how, q.a, p.lda, q.c))
    with q.work(size) as work:
        for a, c, info in q.each("a", "c"):
            q.run("syevd", *how, a, p.lda, c, work, size, info)


def _gesvdj(q, p):
    how = q.has(lib.TT_VECTORS), 1 - q.has(lib.TT_FULL), p.m, p.n
    params = q.handles.jacobi
    size = q.room("gesvdj", (*how, q.a, p.lda, q.c, q.b, p.m, q.d, p.n), params)
    with q.work(size) as work:
        for a, b, c, d, info in q.each("a", "b", "c", "d"):
            q.run("gesvdj", *how, a, p.lda, c, b, p.m, d, p.n, work, size, info, params)


def _gesvd(q, p):
    job = ord("N" if not q.has(lib.TT_VECTORS) else "A" if q.has(lib.TT_FULL) else "S")
    size = q.room("gesvd", (p.m, p.n))
    with q.work(size) as work, _Work(q.device, 8 * p.n) as rwork:
        for a, b, c, d, info in q.each("a", "b", "c", "d"):
            q.run("gesvd", job, job, p.m, p.n, a, p.lda, c, b, p.m, d, p.n, work, size, rwork, info)


def _geev(q, p):
    kind, values = _TYPES[q.dtype], _TYPES[_COMPLEX.get(q.dtype, q.dtype)]
    size, host_size = _solver.ffi.new("size_t *"), _solver.ffi.new("size_t *")

    def operands(a, b, c):
        vectors = (kind, 0, p.n, kind, b, p.n)
        return q.handles.solver, q.handles.params, 0, q.has(lib.TT_VECTORS), p.n, kind, a, p.lda, values, c, *vectors

    _solver.call("cusolverDnXgeev_bufferSize", *operands(q.a, q.b, q.c), kind, size, host_size)
    host = _solver.ffi.new("char[]", max(host_size[0], 1))
    with _Work(q.device, size[0]) as work:
        for a, b, c, info in q.each("a", "b", "c"):
            _solver.call("cusolverDnXgeev", *operands(a, b, c), kind, work, size[0], host, host_size[0], info)


_ROUTINES = {
    lib.TT_POTRF: _potrf,
    lib.TT_GETRF: _getrf,
    lib.TT_GETRS: _getrs,
    lib.TT_TRSM: _trsm,
    lib.TT_GEQRF: _geqrf,
    lib.TT_ORGQR: _orgqr,
    lib.TT_ORMQR: _ormqr,
    lib.TT_SYEVD: _syevd,
    lib.TT_GESVDJ: _gesvdj,
    lib.TT_GESVD: _gesvd,
    lib.TT_GEEV: _geev,
}


def solve(device: int, problem, stream: int) -> int:
    """The routine on every matrix, as tt_solver in kernels/api/cuda.h describes it, on the device whose context is
    current."""
    handles = _handles.get(device)
    if handles is None:
        handles = _handles.setdefault(device, _Handles())
    with handles.lock:
        if problem.routine == lib.TT_TRSM:
            handles.use(stream, _blas, "cublasSetStream_v2", handles.blas)
        else:
            handles.use(stream, _solver, "cusolverDnSetStream", handles.solver)
        _ROUTINES[problem.routine](_Problem(device, handles, problem), problem)
    return 0
