"""Comparisons of whole tensors, with and without tolerance."""

from __future__ import annotations

import math

from ..backends.cpu import lib
from ..dtypes import finfo
from ..tensor import FUNCTIONS, owned
from .declare import both, composite, function, number, real_only, write_out
from .pointwise import _where as where


@both
def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Where ``|input - other| <= atol + rtol |other|``; equal infinities are close, NaN only with ``equal_nan``. bool.
    RuntimeError for different dtypes. Follows ``torch.isclose``.

    Args:
        rtol: the relative tolerance
        atol: the absolute tolerance
        equal_nan: whether NaN is close to NaN
    Returns:
        A bool tensor of the shape that the inputs broadcast to.
    Raises:
        RuntimeError: dtypes differ, or a tolerance is negative
    """
    if input.dtype is not other.dtype:
        raise RuntimeError(f"isclose: {input.dtype.name} did not match {other.dtype.name}")
    if not (rtol >= 0 and atol >= 0):
        raise RuntimeError(f"isclose: rtol and atol must not be negative, got {rtol} and {atol}")
    rtol, atol = float(rtol), float(atol)
    close = input == other
    if equal_nan and input.dtype.is_differentiable:
        close = close | (input.isnan() & other.isnan())
    if rtol or atol:
        a, b = (x if x.dtype.is_differentiable else x.double() for x in (input.detach(), other.detach()))
        error, allowed = (a - b).abs(), atol + (rtol * b).abs()
        close = close | (error.isfinite() & (error <= allowed))
    return close


@both
def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False) -> bool:
    """Is every element close? See ``isclose``. Otherwise like ``isclose``.

    Returns:
        A bool of Python's.
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


@both
def equal(input, other) -> bool:
    """Have both the same shape and the same elements? Follows ``torch.equal``.

    Args:
        other: a tensor
    Returns:
        A bool of Python's.
    """
    return lib.tt_same_shape(input._h, other._h) != 0 and bool((input == other).all())


@function(kind="query")
def is_floating_point(input) -> bool:
    """Has ``input`` a floating dtype?"""
    return input.is_floating_point()


@function(kind="query")
def numel(input) -> int:
    """The number of elements."""
    return input.numel()


@both
def isposinf(input, *, out=None):
    """Where ``input`` is +inf; bool."""
    real_only("isposinf", input=input)
    return write_out("isposinf", input == math.inf, out, True)


@both
def isneginf(input, *, out=None):
    """Where ``input`` is -inf; bool."""
    real_only("isneginf", input=input)
    return write_out("isneginf", input == -math.inf, out, True)


@composite
def nan_to_num(input, nan=0.0, posinf=None, neginf=None):
    """``input`` with NaN and infinities replaced: by ``nan``, and by the dtype's largest and smallest numbers unless
    given. Follows ``torch.nan_to_num``.

    Args:
        nan: what replaces NaN
        posinf: what replaces inf; the largest number of the dtype unless given
        neginf: what replaces -inf; the smallest unless given
    Returns:
        A tensor of the shape and dtype of ``input``.
    """
    if input.is_complex():
        return FUNCTIONS["complex"](*[nan_to_num(x, nan, posinf, neginf) for x in (input.real, input.imag)])
    if not input.is_floating_point():
        return input.clone()
    largest = finfo(input.dtype).max

    def one(value, default):  # of the dtype, in which it may be infinite
        return owned.tt_cast(number(default if value is None else float(value))._h, input._h.dtype)

    out = where(input.isnan(), one(nan, 0.0), input)
    out = where(input == math.inf, one(posinf, largest), out)
    return where(input == -math.inf, one(neginf, -largest), out)
