"""Arguments of operators: numbers and tensors, dimensions by PyTorch's names and NumPy's, sizes, results into
``out``."""

from __future__ import annotations

import struct
import sys

import numpy as np

from ...autograd.modes import current, modes
from ...autograd.views import FLAG_VIEW, check_inplace, refresh, writer_number, wrote
from ...backends.cpu import error, ffi, lib
from ...backends.native import copy_into, edges_of, has_views
from ...tensor import Tensor, owned
from .op import operator_above

_KINDS = {bool: lib.TT_KIND_BOOL, int: lib.TT_KIND_INT, float: lib.TT_KIND_FLOAT, complex: lib.TT_KIND_COMPLEX}
_PART = struct.Struct("d")


def castable(result: Tensor, out: Tensor) -> bool:
    """May ``out`` take what has the dtype of ``result``? Its category (bool, integer, floating, complex) must not be
    lower."""
    return result.dtype.kind <= out.dtype.kind


def _check_out(op: str, result: Tensor, out: Tensor, same_dtype: bool) -> None:
    if not isinstance(out, Tensor):
        raise TypeError(f"{op}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if (result._node is not None or out._node is not None) and not (modes and not current().grad):
        raise RuntimeError(
            f"{op}(): functions with out=... arguments don't support automatic differentiation, but one "
            "of the arguments requires grad."
        )
    if same_dtype and out.dtype is not result.dtype:
        raise RuntimeError(f"{op}(): Expected out tensor to have dtype {result.dtype!r}, but got {out.dtype!r} instead")
    if not castable(result, out):
        raise (NotImplementedError if op == "nansum" else RuntimeError)(  # whose kernel is that of the dtype of out
            f"{op}: result type {result.dtype.name} can't be cast to the desired output type {out.dtype.name}"
        )


def write_out(op: str, result: Tensor, out: Tensor | None, same_dtype: bool = False) -> Tensor:
    """The result of ``op``, written into ``out`` if given, which takes the result's shape."""
    if out is None:
        return result
    written = copy_into(out, result, writer_number(op))
    if written is not None:
        return written
    _check_out(op, result, out, same_dtype)
    check_inplace(out, op)
    if out.shape != result.shape:
        out.resize_(result.shape)
    if lib.tt_copy(out._h, result._h, writer_number(op)) < 0:
        raise error(op)
    wrote(out)
    return out


def write_all_out(op: str, results: tuple, out: tuple | None) -> tuple:
    """The results of ``op``, written into the tensors ``out``, of the same dtypes, if given; all are checked before the
    first is written."""
    if out is None:
        return results
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"{op}(): argument 'out' must be tuple of Tensors, not {type(out).__name__}")
    if len(out) != len(results):
        raise TypeError(f"{op}(): expected out tuple of {len(results)} elements but got {len(out)}")
    for result, to in zip(results, out):
        _check_out(op, result, to, True)
    return tuple([write_out(op, result, to, True) for result, to in zip(results, out)])


def requires(*args) -> bool:
    """Will an operation on these arguments be recorded?"""
    if modes and not current().grad:
        return False
    if has_views(args):
        refresh(*[a for a in args if isinstance(a, Tensor)])
    return edges_of(args) is not None


def scalar_kind(x) -> int:
    """The category, ``lib.TT_KIND_...``, of a Python number (NumPy's scalars among them); TypeError for anything
    else."""
    kind = _KINDS.get(type(x))
    if kind is None:
        if isinstance(x, bool) or type(x).__name__ == "bool":
            kind = lib.TT_KIND_BOOL
        elif hasattr(x, "__len__"):  # arrays offer __index__ and __float__ too
            raise TypeError(type(x).__name__)
        elif isinstance(x, (complex, np.complexfloating)):
            kind = lib.TT_KIND_COMPLEX
        elif hasattr(x, "__index__"):
            kind = lib.TT_KIND_INT
        elif hasattr(x, "__float__"):
            kind = lib.TT_KIND_FLOAT
        else:
            raise TypeError(type(x).__name__)
    return kind


_HALF = 1 << 63  # integers from here up are those of uint64 alone


def number(x) -> Tensor:
    """A Python number as an operand: 0-d, and weak in promotion."""
    return owned.tt_scalar(*number_parts(scalar_kind(x), x))


def number_parts(kind: int, x) -> tuple[int, float, int]:
    """A number of that category as the C side takes it: kernels/api/core.h. OverflowError for an integer that neither
    int64 nor uint64 has."""
    if kind == lib.TT_KIND_FLOAT:
        return kind, float(x), 0
    if kind == lib.TT_KIND_COMPLEX:
        return kind, float(x.real), int.from_bytes(_PART.pack(x.imag), sys.byteorder, signed=True)
    integer = int(x)
    if -_HALF <= integer < _HALF:
        return kind, 0.0, integer
    if not _HALF <= integer < 2 * _HALF:
        raise OverflowError(f"int too big to convert: {x} is neither an int64 nor a uint64")
    return kind, 1.0, integer - 2 * _HALF


def broadcast_shape(op: str, handles: list) -> tuple:
    """The shape that operands broadcast to. RuntimeError when they do not."""
    shape = ffi.new("int64_t[64]")
    ndim = lib.tt_broadcast(len(handles), handles, shape)
    if ndim < 0:
        raise error(op)
    return tuple(shape[0:ndim])


def operand(x, op: str, name: str) -> Tensor:
    """An argument as a tensor whose history is up to date; TypeError naming operator and argument."""
    if isinstance(x, Tensor):
        if x._h.flags & FLAG_VIEW:
            refresh(x)
        return x
    try:
        return number(x)
    except TypeError:
        raise TypeError(f"{op}(): argument '{name}' must be Tensor or a number, not {type(x).__name__}") from None


def is_number(x) -> bool:
    """Is ``x`` a Python or NumPy number?"""
    try:
        scalar_kind(x)
    except TypeError:
        return False
    return True


def ints(values) -> tuple[int, ...]:
    """``f(2, 3)`` and ``f((2, 3))`` alike: the arguments of a variadic shape as a tuple of Python integers, of which
    the first must be no bool, as in PyTorch."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        values = values[0]
    for v in values:
        if type(v) is not int:
            break
    else:
        return tuple(values)
    for at, v in enumerate(values):
        if type(v) is not int and (isinstance(v, str if at else (str, bool)) or not hasattr(v, "__index__")):
            raise TypeError(f"{operator_above()}expected sizes as integers, got {type(v).__name__}")
    return tuple([int(v) for v in values])
