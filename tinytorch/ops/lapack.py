"""One call for all decompositions of the C side (kernels/api/decompose.h)."""

from __future__ import annotations

from ..backends.cpu import error, ffi, lib
from ..tensor import wrap
from .declare import wrong_type

_MOST_RESULTS = 4


def lapack(name: str, A, B=None, pivots=None, *, option: int = 0, check: bool = True, op: str | None = None) -> tuple:
    """The results of the decomposition ``name`` of every matrix A, then LAPACK's ``info``, int32. ``option`` chooses a
    variant, see kernels/ops/decompose.h; errors name the operator ``op``."""
    op = f"linalg.{op or name}"
    results = ffi.new("tt_array *[]", _MOST_RESULTS)
    try:
        handles = [A._h, *(ffi.NULL if x is None else x._h for x in (B, pivots))]
    except AttributeError:
        raise wrong_type(op, ("A", "B"), (A, B), ()) from None
    n = lib.tt_decompose(lib.tt_decomposition(name.encode()), *handles, option, check, results)
    if n < 0:
        raise error(op)
    return tuple([wrap(results[i]) for i in range(n)])
