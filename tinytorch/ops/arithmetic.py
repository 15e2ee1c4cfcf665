"""Elementwise operators with arguments of their own (alpha, rounding_mode, decimals, weight), and other names of those
in pointwise.py."""

from __future__ import annotations

import math
import operator

from ..backends.cpu import lib
from ..dtypes import ALL
from ..dtypes import bool as _bool
from ..dtypes import complex128 as _complex128
from ..dtypes import float64 as _float64
from ..dtypes import get_default_dtype
from ..tensor import Tensor
from .declare import (
    alias,
    both,
    composite,
    method,
    old_order,
    operand,
    primitive,
    real_only,
    refuse,
    shown,
    write_out,
)
from .fitting import fitted
from .pointwise import (
    _add,
    _addcmul,
    _div,
    _div_floor,
    _div_trunc,
    _heaviside,
    _lerp,
    _pow,
    _round,
    _square,
    _sub,
    zeta,
)


def _scaled(op, input, other, alpha):
    if alpha == 1 and alpha is not True:
        return other
    if type(alpha) is float and isinstance(input, Tensor) and isinstance(other, Tensor):  # the commonest case
        dtype = input.dtype
        if dtype is other.dtype and dtype.is_floating_point:
            return other * (fitted(alpha, dtype.code) if op.startswith("add") else -fitted(-alpha, dtype.code))
    given = (input, other)
    if isinstance(alpha, bool) and not all(
        x.dtype is _bool if isinstance(x, Tensor) else isinstance(x, bool) for x in given
    ):
        raise RuntimeError(f"{op}: Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, complex) and not any(is_complex_number(x) for x in given):
        raise RuntimeError(f"{op}: For non-complex input tensors, argument alpha must not be a complex number.")
    if isinstance(alpha, (float, complex)) and not any(
        x.dtype.is_differentiable if isinstance(x, Tensor) else isinstance(x, (float, complex)) for x in given
    ):
        raise RuntimeError(f"{op}: For integral input tensors, argument alpha must not be a floating point number")
    if isinstance(other, Tensor):
        if op in ("add", "add_"):  # the others refuse bool themselves
            other = in_common_dtype(other, input)
        if other._h.dtype == lib.TT_BOOL:
            return other & bool(alpha)
        other = in_common_dtype(other, input)
        code = other._h.dtype
    else:
        code = lib.tt_result_type(operand(input, op, "input")._h, operand(other, op, "other")._h)
    factor = fitted(alpha, code) if op.startswith("add") else -fitted(-alpha, code)  # it is added
    if isinstance(other, int) and ALL[code].is_differentiable:
        other = float(other)  # the product of two integers might be none of int64
    return other and factor if code == lib.TT_BOOL else other * factor


def in_common_dtype(x: Tensor, *others) -> Tensor:
    """``x`` in the dtype of arithmetic with ``others``: what scales it must not be rounded to a narrower one."""
    dtype = x.dtype
    for t in others:
        if not isinstance(t, Tensor) or t.dtype is not dtype:
            break
    else:
        return x
    handles = [operand(t, "add", "other")._h for t in (x, *others)]
    code = lib.tt_result_type(*handles) if len(handles) == 2 else lib.tt_op_result_type(_addcmul.op.code, *handles)
    return x.to(ALL[code])


def _with_alpha(name, plain, doc):
    def public(input, other, *rest, alpha=1, out=None):
        try:
            if rest:
                input, other, alpha = old_order(name, 2, {"alpha": alpha}, input, other, *rest)
            return plain(input, _scaled(name, input, other, alpha), out=out)
        except Exception as exc:
            refuse(exc)
            raise

    op, quick, written = plain.op, plain.op.quick, name + "_"

    def inplace(self, other, *rest, alpha=1):
        try:
            if rest:
                self, other, alpha = old_order(written, 2, {"alpha": alpha}, self, other, *rest)
            if alpha != 1 or alpha is True:
                other = _scaled(name, self, other, alpha)
            result = quick(self, self, other)
            return op.into(self, (self, other), written) if result is None else result
        except Exception as exc:
            refuse(exc)
            raise

    public.__name__ = public.__qualname__ = name
    inplace.__name__ = inplace.__qualname__ = name + "_"
    public.__doc__ = doc
    inplace.__doc__ = f"{doc} In place."
    method(inplace)
    return both(public)


add = _with_alpha("add", _add, "``input + alpha * other``, broadcast. Follows ``torch.add``.")
sub = _with_alpha("sub", _sub, "``input - alpha * other``, broadcast. Follows ``torch.sub``.")


@both
@shown(lambda input, other, alpha=1: None)
def rsub(input, other, *rest, alpha=1):
    """``other - alpha * input``; by place ``alpha`` goes with a number alone."""
    if rest:
        if len(rest) > 1 or (isinstance(other, Tensor) and other._h.ndim):
            raise TypeError(f"rsub(): 'alpha' is a keyword argument, got {1 + len(rest)} positional ones after 'input'")
        (alpha,) = rest
    if not isinstance(input, Tensor):
        raise TypeError(f"rsub(): argument 'input' must be Tensor, not {type(input).__name__}")
    return _sub(other, _scaled("rsub", other, input, alpha))


_ROUNDINGS = {None: _div, "trunc": _div_trunc, "floor": _div_floor}


def _rounding(op, mode):
    if mode not in _ROUNDINGS:
        raise RuntimeError(f"{op}: expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{mode}'")
    return _ROUNDINGS[mode]


@both
def div(input, other, *, rounding_mode=None, out=None):
    """``input / other``, broadcast; with ``rounding_mode`` "floor" or "trunc" the quotient is rounded so and keeps an
    integer dtype. Follows ``torch.div``.

    Args:
        rounding_mode: None, ``'floor'`` or ``'trunc'``
    Returns:
        A tensor of the shape that the inputs broadcast to; floating unless rounded.
    Raises:
        RuntimeError: the shapes do not broadcast, or ``rounding_mode`` is unknown
    """
    try:
        fn = _rounding("div", rounding_mode)
        return fn(input, other) if out is None else fn.op.write(out, (input, other), "div")
    except Exception as exc:
        refuse(exc)
        raise


@method
def div_(self, other, *, rounding_mode=None):
    """``div`` in place."""
    try:
        return _rounding("div_", rounding_mode).op.write(self, (self, other), "div_")
    except Exception as exc:
        refuse(exc)
        raise


@both
def round(input, *, decimals=0, out=None):
    """The nearest integer, halves to even; with ``decimals``, the nearest multiple of 10^-decimals.

    Args:
        decimals: how many places after the point; negative ones before it
    Returns:
        A tensor of the shape and dtype of ``input``.
    Raises:
        RuntimeError: ``input`` is a bool
    """
    if decimals == 0:
        return _round(input, out=out)
    decimals = operator.index(decimals)
    if not input.is_floating_point():
        raise NotImplementedError(f"round: not implemented for '{input.dtype.name}'")
    scale = 10.0**decimals if decimals < 309 else math.inf
    return write_out("round", _round(input * scale) / scale, out, True)


@both(kind="update")
def round_(input, *, decimals=0):
    """``round`` in place."""
    if decimals == 0:
        return _round.op.write(input, (input,), "round_")
    return input.copy_(round(input, decimals=decimals))


@both
def pow(input, exponent, *, out=None):
    """``input`` to the power ``exponent``; either may be a number. Integers to negative integer powers are refused.

    Args:
        input: a tensor, or a number
        exponent: a tensor, or a number
    Returns:
        A tensor of the shape that the inputs broadcast to and the dtype that they promote to.
    Raises:
        RuntimeError: the shapes do not broadcast, or an integer has a negative integer exponent
    """
    try:
        return _pow(input, exponent, out=out)
    except Exception as exc:
        refuse(exc)
        raise


def is_complex_number(x) -> bool:
    """Is it a complex tensor, or number?"""
    return x.is_complex() if isinstance(x, Tensor) else isinstance(x, complex)


def _widened(op, out, input, exponent):
    """The operands of ``float_power`` in float64 or complex128, the dtype that ``out`` must have."""
    wide = _complex128 if any(is_complex_number(x) for x in (input, exponent)) else _float64
    if out is not None and isinstance(out, Tensor) and out.dtype is not wide:
        raise RuntimeError(f"{op}: the output has dtype {out.dtype!r} but the operation's result requires {wide!r}")
    return [x.to(wide) if isinstance(x, Tensor) else x for x in (input, exponent)]


@both
def float_power(input, exponent, *, out=None):
    """``pow`` computed in float64, or complex128.

    Args:
        input: a tensor, or a number
        exponent: a tensor, or a number
    Returns:
        A float64 or complex128 tensor of the shape that the inputs broadcast to.
    Raises:
        RuntimeError: the shapes do not broadcast, or ``out`` has another dtype
    """
    return pow(*_widened("float_power", out, input, exponent), out=out)


@method
def float_power_(self, exponent):
    """``float_power`` in place: of float64 or complex128 tensors."""
    return self.pow_(_widened("float_power_", self, self, exponent)[1])


@both
def positive(input):
    """``input`` itself. RuntimeError for bool."""
    if not isinstance(input, Tensor):
        raise TypeError(f"positive(): argument 'input' must be Tensor, not {type(input).__name__}")
    if input._h.dtype == lib.TT_BOOL:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


Tensor.__pos__ = Tensor.positive


@method
def __rdiv__(self, other):
    """``other / self``: the name in Python 2."""
    if not isinstance(self, Tensor):
        raise TypeError(f"__rdiv__(): argument 'self' must be Tensor, not {type(self).__name__}")
    return _div(other, self)


@composite
def deg2rad(input):
    """Degrees as radians."""
    real_only("deg2rad", input=input)
    return input * (math.pi / 180)


@composite
def rad2deg(input):
    """Radians as degrees."""
    real_only("rad2deg", input=input)
    return input * (180 / math.pi)


def _logit_formula(g, input, eps):
    low, high, beyond = (0, 1, math.nan) if eps is None else (eps, 1 - eps, 0)
    return (g / (input * (1 - input))).masked_fill((input < low) | (input > high), beyond)


@primitive(name="logit", input=_logit_formula)
def _logit(input, eps):
    x = input.detach()
    x = x if eps is None else x.clamp(eps, 1 - eps)
    return (x / (1 - x)).log()


@composite
def logit(input, eps=None):
    """log(x / (1 - x)); with ``eps``, x is clamped to [eps, 1 - eps] first.

    Args:
        eps: a number below 1/2, or None
    Returns:
        A floating tensor of the shape of ``input``.
    """
    real_only("logit", input=input)
    return _logit(input if input.dtype.is_differentiable else input.to(get_default_dtype()), eps)


@both
def square(input, *, out=None):
    """x * x.

    Returns:
        A tensor of the shape and dtype of ``input``; int64 for bools.
    Raises:
        TypeError: ``input`` is neither a tensor nor a number
    """
    try:
        try:
            x = input.long() if input.dtype is _bool else input
        except AttributeError:
            x = input  # a number
        return _square(x, out=out)
    except Exception as exc:
        refuse(exc)
        raise


@both(kind="update")
def square_(input):
    """``square`` in place."""
    if isinstance(input, Tensor) and input.dtype is _bool:
        raise RuntimeError("square_: result type int64 can't be cast to the desired output type bool")
    return _square.op.write(input, (input,), "square_")


# Other names of the same operators.
for _name, *_others in (
    ("abs", "absolute"),
    ("sub", "subtract"),
    ("mul", "multiply"),
    ("div", "divide", "true_divide"),
    ("neg", "negative"),
    ("gt", "greater"),
    ("ge", "greater_equal"),
    ("lt", "less"),
    ("le", "less_equal"),
    ("ne", "not_equal"),
    ("asin", "arcsin"),
    ("acos", "arccos"),
    ("atan", "arctan"),
    ("asinh", "arcsinh"),
    ("acosh", "arccosh"),
    ("atanh", "arctanh"),
    ("atan2", "arctan2"),
    ("trunc", "fix"),
    ("clamp", "clip"),
):
    alias(_name, *_others)


@composite
def polygamma(n, input):
    """The ``n``-th derivative of digamma; ``n`` is a number not below 0 (for the method, the argument)."""
    if isinstance(n, Tensor) and not (isinstance(input, Tensor) and n.ndim == 0 and n.dtype.kind == lib.TT_KIND_INT):
        n, input = input, n  # the method: self.polygamma(n)
    if isinstance(n, Tensor):
        n = int(n)
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n, got {n}")
    if n == 0:
        return input.digamma()
    factorial = math.factorial(n) if n <= 170 else math.inf  # the largest that a float holds
    return (-1.0) ** (n % 2 + 1) * factorial * zeta(n + 1.0, input)


@both
def lerp(input, end, weight, *, out=None):
    """``input + weight (end - input)``; ``weight`` is a number or a tensor.

    Args:
        end: a tensor
        weight: a number, or a tensor
    Returns:
        A tensor of the shape that the inputs broadcast to.
    Raises:
        RuntimeError: the shapes do not broadcast, or an input is not floating
    """
    try:
        return _lerp(input, end, _check_lerp(input, end, weight), out=out)
    except Exception as exc:
        refuse(exc)
        raise


def _check_lerp(input, end, weight):
    """The weight. RuntimeError unless tensors have the dtype of ``input``; a weight without dimensions is as good as a
    number."""
    if not isinstance(input, Tensor):
        raise TypeError(f"lerp(): argument 'input' must be Tensor, not {type(input).__name__}")
    dtype = input.dtype
    for name, t in (("end", end), ("weight", weight)):
        if isinstance(t, Tensor) and t.dtype is not dtype and (name == "end" or t._h.ndim):
            raise RuntimeError(f"lerp: expected dtype {dtype!r} for `{name}` but got dtype {t.dtype!r}")
    return weight if isinstance(weight, Tensor) else fitted(weight, dtype.code, True)


@method
def lerp_(self, end, weight):
    """``lerp`` in place."""
    try:
        return _lerp.op.write(self, (self, end, _check_lerp(self, end, weight)), "lerp_")
    except Exception as exc:
        refuse(exc)
        raise


def _check_heaviside(input, values):
    if isinstance(values, Tensor) and values._h.dtype != input._h.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")


@both
def heaviside(input, values, *, out=None):
    """0 below 0, 1 above, and `values` at 0.

    Args:
        values: a tensor of the dtype of ``input``
    Returns:
        A tensor of the shape that the inputs broadcast to.
    Raises:
        RuntimeError: the dtypes differ, or the shapes do not broadcast
    """
    _check_heaviside(input, values)
    return _heaviside(input, values) if out is None else _heaviside.op.write(out, (input, values), "heaviside")


@method
def heaviside_(self, values):
    """``heaviside`` in place."""
    _check_heaviside(self, values)
    return _heaviside.op.write(self, (self, values), "heaviside_")
