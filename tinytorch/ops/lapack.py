"""One call for all decompositions of the C side (kernels/api/decompose.h)."""

from __future__ import annotations

from ..backends.cpu import error, ffi, lib
from ..tensor import wrap
from .declare import wrong_type


def lapack(name: str, operands: tuple, option: int = 0, check: bool = True, op: str | None = None) -> tuple:
    """The results of the decomposition ``name`` of every matrix, then LAPACK's ``info``, int32. ``option`` chooses a
    variant, see kernels/ops/decompose.h; errors name the operator ``op``."""
    op = f"linalg.{op or name}"
    results = ffi.new("tt_array *[4]")
    try:
        handles = [x._h for x in operands]
    except AttributeError:
        raise wrong_type(op, "AB", operands, ()) from None
    n = lib.tt_decompose(lib.tt_decomposition(name.encode()), handles[0], handles[1] if len(handles) > 1 else ffi.NULL,
                         option, check, results)
    if n < 0:
        raise error(op)
    return tuple([wrap(results[i]) for i in range(n)])
