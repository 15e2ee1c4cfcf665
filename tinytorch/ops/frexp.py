"""Mantissa and exponent, from the bits of floating-point numbers."""

from __future__ import annotations

from .. import return_types
from ..autograd.node import alias
from ..dtypes import bfloat16, float16, float32, float64, int16, int32, int64
from .declare import both, primitive, write_all_out
from .pointwise import _where as where

# Of each dtype: the integers of its size, the bits of the fraction, the largest exponent's bits.
_LAYOUTS = {
    bfloat16: (int16, 7, 0xFF),
    float16: (int16, 10, 0x1F),
    float32: (int32, 23, 0xFF),
    float64: (int64, 52, 0x7FF),
}


@primitive(extra=("exponent",), input=lambda g, exponent: g / exponent.to(g.dtype).exp2())
def _frexp(input):
    x = alias(input).contiguous()
    integers, fraction, most = _LAYOUTS[x.dtype]
    bias, more = most // 2, fraction + 1
    tiny = x.abs() < 2.0 ** (1 - bias)  # a denormal has no leading 1: with a factor it has
    bits = where(tiny, x * 2.0**more, x).view(integers)
    biased = (bits >> fraction) & most
    special = (biased == most) | (x == 0)  # what is infinite, NaN or 0 stays as it is
    mantissa = ((bits & ~(most << fraction)) | ((bias - 1) << fraction)).view(x.dtype)
    exponent = biased.to(int32) - (bias - 1) - tiny.to(int32) * more
    return where(special, x, mantissa), exponent.masked_fill(special, 0)


@both
def frexp(input, *, out=None):
    """The mantissa, from 0.5 to 1 in magnitude, and the exponent, int32: ``input = mantissa * 2 ** exponent``; a
    named tuple (mantissa, exponent). What is 0, infinite or NaN is its own mantissa, with exponent 0. Follows
    ``torch.frexp``.

    Args:
        out: a pair of tensors
    Returns:
        A named tuple (mantissa, exponent) of the shape of ``input``.
    Raises:
        RuntimeError: ``input`` is not floating
    """
    if not input.dtype.is_floating_point:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    return return_types.frexp(*write_all_out("frexp", _frexp(input), out))
