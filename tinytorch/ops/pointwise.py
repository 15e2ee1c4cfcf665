"""Elementwise operators: a kernel in kernels/scalar, a derivative, a sentence.

In formulas ``g`` is the gradient of the result ``out``, and the inputs are ``input``, or ``a`` and ``b``. The
derivatives are those of any table of calculus (for instance Abramowitz and Stegun, chapters 4 and 7).
"""

from __future__ import annotations

import math

from ..autograd.formulas import not_implemented
from ..tensor import Tensor
from .declare import binary, mul_vjp, ternary, unary, without_history

# Arithmetic.

_add = binary("add", lambda g: g, lambda g: g, dunder="add", doc="a + b, broadcast.")
_sub = binary(
    "sub",
    lambda g: g,
    lambda g: -g,
    title={"RsubBackward1": "not isinstance(a, Tensor)", "SubBackward0": ""},
    dunder="sub",
    doc="a - b, broadcast.",
)
mul = binary(
    "mul",
    lambda g, b: g * b,
    lambda g, a: g * a,
    dunder="mul",
    doc="a * b, broadcast.",
    first_order={"a": without_history("mul", "g", "b"), "b": without_history("mul", "g", "a")},
    joint=mul_vjp,
)
_div = binary(
    "div",
    lambda g, b: g / b,
    lambda g, a, b: -g * (a / b) / b,
    dunder="truediv",
    doc="a / b, broadcast; integers give floats.",
)
remainder = binary(
    "remainder",
    lambda g: g,
    lambda g, a, b: -g * _div_floor(a, b),
    title={"RemainderBackward0": "not isinstance(b, Tensor)", "RemainderBackward1": ""},
    dunder="mod",
    doc="a modulo b, with the sign of b.",
)
fmod = binary(
    "fmod",
    lambda g: g,
    lambda g, a, b: -g * (a / b).trunc(),
    title={"FmodBackward0": "not isinstance(b, Tensor)", "FmodBackward1": ""},
    doc="a modulo b, with the sign of a.",
)
floor_divide = binary(
    "floor_divide",
    *[not_implemented("floor_divide")] * 2,
    title="NotImplemented",
    dunder="floordiv",
    doc="The floor of a / b, broadcast.",
)
_div_floor = binary(
    "floor_divide", lambda g: g * 0, lambda g: g * 0, title="DivBackward2", public=False, doc="a / b rounded down."
)
_div_trunc = binary(
    "trunc_divide", lambda g: g * 0, lambda g: g * 0, title="DivBackward2", public=False, doc="a / b rounded to zero."
)


def _pow_a(g, a, b):
    if not isinstance(b, Tensor):
        if b == 0:
            return a.new_zeros(()).expand(a.shape)
        return g * (b * (a if b == 2 else a ** (b - 1)))
    return g * (b * a ** (b - 1)).masked_fill(b == 0, 0)


def _pow_b(g, a, b, out):
    # d/db a^b = a^b log a, taken as 0 where a is 0 and b is not negative.
    base = a if isinstance(a, Tensor) else g.new_full((), a)
    return g * (out * base.log()).masked_fill((base == 0) & ((b.real if b.is_complex() else b) >= 0), 0)


_pow = binary(
    "pow",
    _pow_a,
    _pow_b,
    title={"PowBackward2": "not isinstance(a, Tensor)", "PowBackward1": "isinstance(b, Tensor)", "PowBackward0": ""},
    second="exponent",
    dunder="pow",
    doc="a to the power b, broadcast.",
)
neg = unary("neg", lambda g: -g, doc="-x.")
unary("positive", public=False, doc="A copy, which is x ** 1.")
abs = unary("abs", lambda g, input: g * sgn(input), doc="|x|.")
sign = unary("sign", lambda g: g * 0, doc="-1, 0 or 1.")


def _angle_formula(g, input):
    # d angle / dz, as a gradient: i z / |z|^2; of a real number the angle jumps, from 0 to pi.
    if not input.is_complex():
        return g * 0
    size = abs(input)
    return (g / size).masked_fill(size == 0, 0) * (sgn(input) * 1j)


def _sgn_formula(g, input):
    # z / |z| turns with what of g is across to z: (g - sgn(z) Re(conj(sgn(z)) g)) / |z|
    if not input.is_complex():
        return g * 0
    direction, size = sgn(input), abs(input)
    across = g - direction * (_conj_physical(direction) * g).real
    return (across / size).masked_fill(size == 0, 0)


angle = unary("angle", _angle_formula, inplace=False, doc="The angle of a complex number; 0 or pi for a real one.")
sgn = unary("sgn", _sgn_formula, holomorphic=False, doc="x / |x|, and 0 at 0.")
_conj_physical = unary(
    "conj_physical", lambda g: _conj_physical(g), holomorphic=False, public=False, doc="The complex conjugate."
)
_square = unary("square", lambda g, input: g * (2 * input), title="PowBackward0", inplace=False, doc="x * x.")
sqrt = unary("sqrt", lambda g, out: g / (2 * out), doc="The square root.")
rsqrt = unary("rsqrt", lambda g, out: g * (-0.5 * (out * out * out)), doc="1 / sqrt(x).")
reciprocal = unary("reciprocal", lambda g, out: -g * (out * out), doc="1 / x.")

# Rounding.

floor = unary("floor", lambda g: g * 0, doc="The largest integer not above x.")
ceil = unary("ceil", lambda g: g * 0, doc="The smallest integer not below x.")
_round = unary("round", lambda g: g * 0, doc="The nearest integer, halves to even.")
trunc = unary("trunc", lambda g: g * 0, doc="x without its fraction.")
frac = unary("frac", lambda g: g, doc="The fraction of x, with its sign.")

# Exponentials and logarithms.

_LN2, _LN10 = math.log(2), math.log(10)
exp = unary("exp", lambda g, out: g * out, doc="e to the power x.")
exp2 = unary("exp2", lambda g, out: g * (out * _LN2), doc="2 to the power x.")
expm1 = unary("expm1", lambda g, out: g * (out + 1), doc="exp(x) - 1, accurate near 0.")
log = unary("log", lambda g, input: g / input, doc="The natural logarithm.")
log2 = unary("log2", lambda g, input: g / (input * _LN2), doc="The logarithm of base 2.")
log10 = unary("log10", lambda g, input: g / (input * _LN10), doc="The logarithm of base 10.")
log1p = unary("log1p", lambda g, input: g / (input + 1), title="Log1PBackward0", doc="log(1 + x), accurate near 0.")
logaddexp = binary(
    "logaddexp",
    lambda g, a, b: g / (1 + (b - a).exp()),
    lambda g, a, b: g / (1 + (a - b).exp()),
    doc="log(exp(a) + exp(b)).",
    inplace=False,
)
ldexp = binary("ldexp", lambda g, b: ldexp(g, b), lambda g, out: g * (out * _LN2), doc="input * 2 ** other.")
logaddexp2 = binary(
    "logaddexp2",
    lambda g, a, b: g / (1 + (b - a).exp2()),
    lambda g, a, b: g / (1 + (a - b).exp2()),
    doc="log2(2 ** a + 2 ** b).",
    inplace=False,
)
xlogy = binary(
    "xlogy",
    lambda g, a, b: (g * b.log() if isinstance(b, Tensor) else g * math.log(b)).masked_fill((a == 0) & (b <= 0), 0),
    lambda g, a, b: g * a / b,
    doc="a log b, and 0 where a is 0.",
)

# Trigonometric and hyperbolic functions.

sin = unary("sin", lambda g, input: g * input.cos(), doc="The sine.")
cos = unary("cos", lambda g, input: -g * input.sin(), doc="The cosine.")
tan = unary("tan", lambda g, out: g * (1 + out * out), doc="The tangent.")
asin = unary("asin", lambda g, input: g * (1 - input * input).rsqrt(), doc="The inverse sine.")
acos = unary("acos", lambda g, input: -g * (1 - input * input).rsqrt(), doc="The inverse cosine.")
atan = unary("atan", lambda g, input: g / (input * input + 1), doc="The inverse tangent.")
sinh = unary("sinh", lambda g, input: g * input.cosh(), doc="The hyperbolic sine.")
cosh = unary("cosh", lambda g, input: g * input.sinh(), doc="The hyperbolic cosine.")
tanh = unary(
    "tanh",
    lambda g, out: g * (1 - out * out),
    first_order=without_history("tanh_backward", "g", "out"),
    doc="The hyperbolic tangent.",
)
asinh = unary("asinh", lambda g, input: g * (input * input + 1).rsqrt(), doc="The inverse hyperbolic sine.")


def _acosh_formula(g, input):
    if input.is_complex():  # the root of a product has another branch
        return g * ((input - 1).rsqrt() * (input + 1).rsqrt())
    return g * ((input - 1) * (input + 1)).rsqrt()


acosh = unary("acosh", _acosh_formula, doc="The inverse hyperbolic cosine.")
atanh = unary("atanh", lambda g, input: g / (1 - input * input), doc="The inverse hyperbolic tangent.")


def _square_of_distance(a, b):
    square = a * a + b * b
    return square.masked_fill(square == 0, 1)  # at the origin, where the gradient is taken as 0


atan2 = binary(
    "atan2",
    lambda g, a, b: g * (b / _square_of_distance(a, b)),
    lambda g, a, b: g * (-a / _square_of_distance(a, b)),
    doc="The angle of the point (b, a).",
)
hypot = binary("hypot", lambda g, a, out: g * (a / out), lambda g, b, out: g * (b / out), doc="sqrt(a^2 + b^2).")

_PI_SQUARED = math.pi**2


def _sinc_slope_formula(g, input):
    # sinc'' = -pi^2 sinc - 2 sinc' / x, and -pi^2 / 3 at 0; the third derivative is right there too.
    x = input.masked_fill(input == 0, 1)
    return g * (-_PI_SQUARED * sinc(input) - 2 * _sinc_slope(input) / x).masked_fill(input == 0, -_PI_SQUARED / 3)


_sinc_slope = unary("sinc_slope", _sinc_slope_formula, public=False, doc="The derivative of sinc.")


def _sinc_formula(g, input):
    if input.is_complex():
        x = input.masked_fill(input == 0, 1)
        return g * (((x * math.pi).cos() - sinc(x)) / x).masked_fill(input == 0, 0)
    return g * _sinc_slope(input)


sinc = unary("sinc", _sinc_formula, doc="sin(pi x) / (pi x), and 1 at 0.")

# Special functions. d erf / dx = 2 / sqrt(pi) exp(-x^2).

_TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)
erf = unary("erf", lambda g, input: g * (_TWO_OVER_SQRT_PI * (-(input * input)).exp()), doc="The error function.")
erfc = unary("erfc", lambda g, input: g * (-_TWO_OVER_SQRT_PI * (-(input * input)).exp()), doc="1 - erf(x).")
erfinv = unary(
    "erfinv", lambda g, input: g * (erfinv(input).square().exp() / _TWO_OVER_SQRT_PI), doc="The inverse error function."
)
lgamma = unary("lgamma", lambda g, input: g * input.digamma(), doc="log |gamma(x)|.")
digamma = unary("digamma", lambda g, input: g * zeta(2, input), doc="The derivative of lgamma.")
zeta = binary(
    "zeta",
    not_implemented("zeta"),
    lambda g, a, b: g * (-a * zeta(a + 1, b)),
    title={
        "SpecialZetaBackward1": "not isinstance(a, Tensor)",
        "SpecialZetaBackward0": "isinstance(b, Tensor)",
        "SpecialZetaBackward2": "",
    },
    namespace="special",
    doc="Hurwitz's zeta of input > 1 at other: the sum over k of (other + k) ^ -input.",
)

# Selection. Where two values are equal, maximum and minimum share the gradient.


def _winner(g, wins, ties):
    """``g`` where this argument was chosen, half of it where both are equal."""
    return g.masked_fill(~(wins | ties), 0) * (1 - 0.5 * ties.to(g.dtype))


maximum = binary(
    "maximum",
    lambda g, a, b: _winner(g, a > b, a == b),
    lambda g, a, b: _winner(g, b > a, a == b),
    inplace=False,
    doc="The larger; NaN if either is.",
)
minimum = binary(
    "minimum",
    lambda g, a, b: _winner(g, a < b, a == b),
    lambda g, a, b: _winner(g, b < a, a == b),
    inplace=False,
    doc="The smaller; NaN if either is.",
)
fmax = binary(
    "fmax",
    lambda g, a, b: g.masked_fill(~((a >= b) | b.isnan()), 0),
    lambda g, a, b: g.masked_fill((a >= b) | b.isnan(), 0),
    inplace=False,
    doc="The larger; a number rather than NaN.",
)
fmin = binary(
    "fmin",
    lambda g, a, b: g.masked_fill(~((a <= b) | b.isnan()), 0),
    lambda g, a, b: g.masked_fill((a <= b) | b.isnan(), 0),
    inplace=False,
    doc="The smaller; a number rather than NaN.",
)
copysign = binary(
    "copysign",
    lambda g, a, out: g * (a.sign() * out.sign()),
    lambda g: g * 0,
    title={"CopysignBackward1": "not isinstance(b, Tensor)", "CopysignBackward0": ""},
    doc="The magnitude of a with the sign of b.",
)
nextafter = binary("nextafter", lambda g: g, lambda g: g * 0, doc="The float after a, towards b.")
_heaviside = binary(
    "heaviside",
    *[not_implemented("heaviside")] * 2,
    title="NotImplemented",
    second="values",
    public=False,
    tensors=("input", "values"),
    doc="0 below 0, 1 above, and `values` at 0.",
)

gcd = binary("gcd", doc="The greatest common divisor of integers, not negative.")
lcm = binary("lcm", doc="The least common multiple of integers, not negative.")

# Comparisons and logic.

for _name, _dunder, _doc in (
    ("eq", "eq", "a == b"),
    ("ne", "ne", "a != b"),
    ("lt", "lt", "a < b"),
    ("le", "le", "a <= b"),
    ("gt", "gt", "a > b"),
    ("ge", "ge", "a >= b"),
):
    binary(_name, dunder=_dunder, doc=f"{_doc}, broadcast; bool.")
for _name, _dunder in (
    ("bitwise_and", "and"),
    ("bitwise_or", "or"),
    ("bitwise_xor", "xor"),
    ("bitwise_left_shift", "lshift"),
    ("bitwise_right_shift", "rshift"),
):
    binary(_name, dunder=_dunder, doc=f"{_name.replace('_', ' ')} of integers or bools.")
for _name in ("logical_and", "logical_or", "logical_xor"):
    binary(_name, doc=f"{_name.replace('_', ' ')} of truth values; bool.")
logical_not = unary("logical_not", doc="Is x zero? bool.")
bitwise_not = unary("bitwise_not", doc="The bits of an integer, or a bool, inverted.")


def _invert(self):
    """The bits of integers, or bools, inverted. TypeError for a floating dtype."""
    try:
        return bitwise_not(self)
    except NotImplementedError:
        raise TypeError(f"~ takes integers and bools, not {self.dtype!r}") from None


Tensor.__invert__ = _invert
Tensor.__neg__ = Tensor.neg
Tensor.__abs__ = Tensor.abs
isnan = unary("isnan", doc="Is x not a number? bool.", inplace=False)
isinf = unary("isinf", doc="Is x infinite? bool.", inplace=False)
isfinite = unary("isfinite", doc="Is x neither infinite nor NaN? bool.", inplace=False)
signbit = unary("signbit", doc="Is the sign bit set? bool.", inplace=False)

# Three inputs.

_where = ternary(
    "where",
    None,
    lambda g, condition: g.masked_fill(~condition, 0),
    lambda g, condition: g.masked_fill(condition, 0),
    params=("condition", "a", "b"),
    doc="a where the condition holds, else b.",
)
_masked_fill = ternary(
    "masked_fill",
    None,
    lambda g, mask: g.masked_fill(~mask, 0),
    lambda g, mask: g.masked_fill(mask, 0),
    params=("mask", "value", "input"),
    title={"MaskedFillBackward1": "isinstance(value, Tensor)", "MaskedFillBackward0": ""},
    kernel="where",
    doc="The value where the mask holds, else input.",
)
_clamp = ternary(
    "clamp",
    lambda g, input, lo, hi: _where((input >= lo) & (input <= hi), g, 0),  # a product with 0 would keep an infinite g
    lambda g, input, lo, hi: _where((input < lo) & (lo < hi), g, 0),
    lambda g, input, lo, hi: _where((input > hi) | (hi < lo), g, 0),
    params=("input", "lo", "hi"),
    tensors=("input", None, None),
    title={"ClampBackward0": "isinstance(lo, Tensor) or isinstance(hi, Tensor)", "ClampBackward1": ""},
    doc="input, but not below lo nor above hi.",
)
_lerp = ternary(
    "lerp",
    lambda g, weight: g * (1 - weight),
    lambda g, weight: g * weight,
    lambda g, input, end: g * (end - input),
    params=("input", "end", "weight"),
    title={"LerpBackward0": "not isinstance(weight, Tensor)", "LerpBackward1": ""},
    doc="input + weight (end - input).",
)
_addcmul = ternary(
    "addcmul", lambda g: g, lambda g, b: g * b, lambda g, a: g * a, params=("input", "a", "b"), doc="input + a b."
)
_addcdiv = ternary(
    "addcdiv",
    lambda g: g,
    lambda g, b: g / b,
    lambda g, a, b: -g * a / (b * b),
    params=("input", "a", "b"),
    doc="input + a / b.",
)
_clamp_min = binary(
    "maximum",
    lambda g, a, b: _where(a >= b, g, 0),
    lambda g, a, b: _where(a < b, g, 0),
    public=False,
    tensors=("input", None),
    title={"ClampMinBackward1": "isinstance(b, Tensor)", "ClampMinBackward0": ""},
    doc="clamp from below.",
)
_clamp_max = binary(
    "minimum",
    lambda g, a, b: _where(a <= b, g, 0),
    lambda g, a, b: _where(a > b, g, 0),
    public=False,
    tensors=("input", None),
    title={"ClampMaxBackward1": "isinstance(b, Tensor)", "ClampMaxBackward0": ""},
    doc="clamp from above.",
)


for _fn in (
    neg,
    abs,
    sign,
    sgn,
    floor,
    ceil,
    _round,
    trunc,
    frac,
    bitwise_not,
    signbit,
    _heaviside,
    _clamp,
    _clamp_min,
    _clamp_max,
):
    _fn.op.exact_out = True
