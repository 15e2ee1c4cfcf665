"""The decompositions of the C side (kernels/api/decompose.h) as functions of tensors."""

from __future__ import annotations

from ..backends.cpu import error, ffi, lib
from ..tensor import gives_array

_RESULTS = ffi.typeof("tt_array *[4]")
NULL = ffi.NULL
_decompose = gives_array(lib.tt_decompose)


def _routine(name: str):
    """The decomposition ``name`` of every matrix: a function of A, or A and B, that gives its results and
    then LAPACK's ``info``, int32. ``option`` chooses a variant: backend/decompose.h. With ``check`` a failure is an
    error; errors name the operator ``op``."""
    which = lib.tt_decomposition(name.encode())
    if which < 0:
        raise error()

    def decompose(*operands, pivots=None, option=0, rcond=0.0, check=True, op=name):
        handles = [x._h for x in operands]
        if len(handles) == 1:
            handles.append(NULL)
        pivots = NULL if pivots is None else pivots._h
        results = _decompose(which, *handles, pivots, option, rcond, check, ffi.new(_RESULTS))
        if results is None:
            raise error(f"linalg.{op}")
        return results

    return decompose


# By LAPACK's names of what does the work.
geev = _routine("eig")
geev_values = _routine("eigvals")
gels = _routine("gels")
gelsd = _routine("gelsd")
gelss = _routine("gelss")
gelsy = _routine("gelsy")
geqrf = _routine("geqrf")
geqrf_orgqr = _routine("qr")
geqrf_r = _routine("qr_r")
gesdd = _routine("svd")
gesdd_values = _routine("svdvals")
getrf = _routine("lu_factor")
getrf_permutation = _routine("lu_permutation")
getrs = _routine("lu_solve")
gesv = _routine("solve")
getrs_inverse = _routine("inv")
heevd = _routine("eigh")
heevd_values = _routine("eigvalsh")
potrf = _routine("cholesky")
potri = _routine("cholesky_inverse")
sytrf = _routine("ldl_factor")
sytrs = _routine("ldl_solve")
trsm = _routine("solve_triangular")
