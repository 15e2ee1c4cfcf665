"""Python numbers that must be ones of a dtype."""

from __future__ import annotations

import math

from ..backends.cpu import lib
from ..dtypes import ALL, finfo, float16, float32, iinfo
from ..tensor import Tensor
from .declare import number_parts, scalar_kind

# Beyond these, a number is no finite one of the dtype.
LARGEST = [finfo(d).max if d.is_differentiable else math.inf for d in ALL]
_SMALL = finfo(float16).max


def check_fits(code: int, kind: int, value) -> None:
    """RuntimeError unless a number fits dtype ``code``: an integer one's range, where negative integers wrap in an
    unsigned dtype, the finite numbers of a floating one, and for an imaginary part a complex dtype. OverflowError for
    an integer that neither int64 nor uint64 has."""
    if kind == lib.TT_KIND_INT:
        number_parts(kind, value)
    if not _fits(code, kind, value):
        raise RuntimeError(f"value cannot be converted to type {ALL[code].name} without overflow: {value}")


def _fits(code: int, kind: int, value) -> bool:
    to = ALL[code].kind
    if to == lib.TT_KIND_BOOL or kind == lib.TT_KIND_BOOL:
        return True
    if kind == lib.TT_KIND_COMPLEX:
        if to == kind:
            return all(_fits(code, lib.TT_KIND_FLOAT, part) for part in (value.real, value.imag))
        if value.imag != 0:
            return False
        kind, value = lib.TT_KIND_FLOAT, value.real
    if to == lib.TT_KIND_INT:
        limits = iinfo(ALL[code])
        least = limits.min or (0 if kind == lib.TT_KIND_FLOAT else -limits.max)
        return least <= value <= limits.max
    return not LARGEST[code] < abs(value) != math.inf


def fitted(value, code: int, computing: bool = False):
    """A Python number, or a 0-d tensor's, as one of dtype ``code``: without its fraction in an integer one, and
    in an unsigned one from 0 on. As ``computing`` of half types it is one of float32. RuntimeError unless it fits."""
    if type(value) is float and -_SMALL <= value <= _SMALL and ALL[code].is_differentiable:
        return value
    if isinstance(value, Tensor):
        value = value.item()
    if computing and ALL[code].itemsize == 2 and ALL[code].is_floating_point:
        code = float32.code
    kind, to = scalar_kind(value), ALL[code].kind
    check_fits(code, kind, value)
    if to == lib.TT_KIND_BOOL:
        return bool(value)
    value = value.real if kind > to and kind == lib.TT_KIND_COMPLEX else value
    if to != lib.TT_KIND_INT:
        return value
    value = int(value)
    return value if value >= 0 or ALL[code].is_signed else value % (1 << 8 * ALL[code].itemsize)
