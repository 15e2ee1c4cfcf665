"""The decompositions of the C side (kernels/api/decompose.h) as functions of tensors."""

from __future__ import annotations

from ..backends.cpu import error, ffi, lib
from ..tensor import gives_array

_RESULTS = ffi.typeof("tt_array *[4]")
_NO_OPERANDS = [ffi.NULL] * 3
_decompose = gives_array(lib.tt_decompose)


def _routine(name: str):
    """The decomposition ``name`` of every matrix: a function of A, perhaps B, and pivots, that gives its results and
    then LAPACK's ``info``, int32. ``option`` chooses a variant: backend/decompose.h. With ``check`` a failure is an
    error; errors name the operator ``op``."""
    which = lib.tt_decomposition(name.encode())
    if which < 0:
        raise error()

    def decompose(*operands, option=0, check=True, op=name):
        handles = [x._h for x in operands]
        results = _decompose(which, *handles, *_NO_OPERANDS[len(handles) :], option, check, ffi.new(_RESULTS))
        if results is None:
            raise error(f"linalg.{op}")
        return results

    return decompose


# By LAPACK's names of what does the work.
geqrf = _routine("qr")
geqrf_r = _routine("qr_r")
gesdd = _routine("svd")
gesdd_values = _routine("svdvals")
getrs_inverse = _routine("inv")
getrf = _routine("lu_factor")
getrs = _routine("lu_solve")
potrf = _routine("cholesky")
syevd = _routine("eigh")
syevd_values = _routine("eigvalsh")
trsm = _routine("solve_triangular")
