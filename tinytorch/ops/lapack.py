"""One call for all decompositions of the C side (kernels/api/decompose.h)."""

from __future__ import annotations

from ..backends.cpu import error, ffi, lib
from ..tensor import wrap
from .declare import wrong_type

_OPERANDS, _MOST_RESULTS = 3, 4


def lapack(name: str, *operands, option: int = 0, check: bool = True, op: str | None = None) -> tuple:
    """The results of the decomposition ``name`` of every matrix, then LAPACK's ``info``, int32. ``operands`` are A,
    perhaps B, and pivots. ``option`` chooses a variant: kernels/backend/decompose.h. Errors name the operator ``op``."""
    op = f"linalg.{op or name}"
    results = ffi.new("tt_array *[]", _MOST_RESULTS)
    try:
        handles = [x._h for x in operands]
    except AttributeError:
        raise wrong_type(op, ("A", "B"), operands, ()) from None
    handles += [ffi.NULL] * (_OPERANDS - len(handles))
    n = lib.tt_decompose(lib.tt_decomposition(name.encode()), *handles, option, check, results)
    if n < 0:
        raise error(op)
    return tuple([wrap(results[i]) for i in range(n)])
