"""Elementwise activations, with their derivatives' own kernels for when no higher derivative is asked."""

from __future__ import annotations

import math

from ..tensor import Tensor
from .declare import binary, ternary, unary, without_history
from .pointwise import _where as where
from .select import clamp

_tanh_backward = binary("tanh_backward", public=False, doc="g (1 - out^2).")
_sigmoid_backward = binary("sigmoid_backward", public=False, doc="g out (1 - out).")
_relu_backward = binary("relu_backward", lambda g, b: g * (b > 0), lambda g: None, public=False, doc="g where out > 0.")
_silu_backward = binary("silu_backward", public=False, doc="silu's.")
_gelu_backward = binary("gelu_backward", public=False, doc="gelu's.")
_gelu_tanh_backward = binary("gelu_tanh_backward", public=False, doc="gelu's in the tanh form.")
binary("softplus_backward", public=False, doc="g sigmoid(x).")
binary("logsigmoid_backward", public=False, doc="g sigmoid(-x).")
binary("mish_backward", public=False, doc="mish's.")
binary("selu_backward", public=False, doc="selu's.")


def _silu_formula(g, input):
    s = input.sigmoid()
    return g * (s * (1 + input * (1 - s)))


def _gelu_formula(g, input):
    cdf = 0.5 * (1 + (input * math.sqrt(0.5)).erf())
    pdf = (input * input * -0.5).exp() * (1 / math.sqrt(2 * math.pi))
    return g * (cdf + input * pdf)


def _gelu_tanh_formula(g, input):
    k, c = math.sqrt(2 / math.pi), 0.044715
    t = (k * (input + c * input * input * input)).tanh()
    slope = k * (1 + 3 * c * input * input)
    return g * (0.5 * (1 + t) + 0.5 * input * (1 - t * t) * slope)


relu = unary(
    "relu",
    lambda g, out: _relu_backward(g, out),
    first_order=without_history("relu_backward", "g", "out"),
    doc="x where it is positive, else 0.",
)
sigmoid = unary(
    "sigmoid",
    lambda g, out: g * (out * (1 - out)),
    first_order=without_history("sigmoid_backward", "g", "out"),
    doc="1 / (1 + exp(-x)).",
)
_logsigmoid = unary(
    "logsigmoid",
    lambda g, input: g * (-input).sigmoid(),
    first_order=without_history("logsigmoid_backward", "g", "input"),
    title="LogSigmoidBackward0",
    public=False,
    doc="log(sigmoid(x)).",
)
_softplus = unary(
    "softplus",
    lambda g, input: g * input.sigmoid(),
    first_order=without_history("softplus_backward", "g", "input"),
    public=False,
    doc="log(1 + exp(x)).",
)
_silu = unary(
    "silu", _silu_formula, first_order=without_history("silu_backward", "g", "input"), public=False, doc="x sigmoid(x)."
)
_gelu = unary(
    "gelu", _gelu_formula, first_order=without_history("gelu_backward", "g", "input"), public=False, doc="x Phi(x)."
)
_gelu_tanh = unary(
    "gelu_tanh",
    _gelu_tanh_formula,
    first_order=without_history("gelu_tanh_backward", "g", "input"),
    title="GeluBackward0",
    public=False,
    doc="gelu by its tanh approximation.",
)


def _mish_formula(g, input):
    t = _softplus(input).tanh()
    return g * (t + input * input.sigmoid() * (1 - t * t))


_mish = unary(
    "mish",
    _mish_formula,
    first_order=without_history("mish_backward", "g", "input"),
    public=False,
    doc="x tanh(log(1 + exp(x))).",
)


# Those of a number, the second operand; of prelu it is a tensor.


def _leaky_formula(g, a, b):
    return where(a > 0, g, g * b)


def _elu_formula(g, a, b):
    return g * where(a > 0, 1.0, clamp(a, None, 0).exp() * b)


def _shrink_formula(g, a, b):
    return g.masked_fill((a >= -b) & (a <= b), 0)


ternary("leaky_relu_backward", params=("g", "a", "b"), doc="g where a > 0, else g b.")
ternary("elu_backward", params=("g", "a", "b"), doc="g where a > 0, else g b exp(a).")
ternary("celu_backward", params=("g", "a", "b"), doc="g where a > 0, else g exp(a / b).")
ternary("shrink_backward", params=("g", "a", "b"), doc="0 where |a| <= b, else g.")
_leaky_relu = binary(
    "leaky_relu",
    _leaky_formula,
    title="LeakyReluBackward0",
    first_order={"a": without_history("leaky_relu_backward", "g", "a", "b")},
    public=False,
    told_when=lambda a, b: not isinstance(b, Tensor) and b >= 0,
    doc="a where it is positive, else a b.",
)
_prelu = binary(
    "prelu",
    _leaky_formula,
    lambda g, a: (g * a).masked_fill(a > 0, 0),
    title="PreluKernelBackward0",
    first_order={"a": without_history("leaky_relu_backward", "g", "a", "b")},
    public=False,
    kernel="leaky_relu",
    doc="leaky_relu, differentiable in b.",
)
_elu = binary(
    "elu",
    _elu_formula,
    title="EluBackward0",
    first_order={"a": without_history("elu_backward", "g", "a", "b")},
    public=False,
    doc="a where it is positive, else b (exp(a) - 1).",
)
_celu = binary(
    "celu",
    lambda g, a, b: g * where(a > 0, 1.0, (clamp(a, None, 0) / b).exp()),
    title="CeluBackward0",
    first_order={"a": without_history("celu_backward", "g", "a", "b")},
    public=False,
    doc="a where it is positive, else b (exp(a / b) - 1).",
)
# Klambauer et al. 2017, "Self-normalizing neural networks", equation 14.
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
_selu = unary(
    "selu",
    lambda g, input: _elu_formula(g, input, _SELU_ALPHA) * _SELU_SCALE,
    title="EluBackward0",
    first_order=without_history("selu_backward", "g", "input"),
    public=False,
    doc="elu of the alpha and times the scale that keep mean 0 and variance 1.",
)


def _shrink(name: str, doc: str):
    """An operator whose derivative is 0 up to the bound and 1 beyond it."""
    first = {"a": without_history("shrink_backward", "g", "a", "b")}
    return binary(name, _shrink_formula, first_order=first, public=False, doc=doc)


_hardshrink = _shrink("hardshrink", "0 where |a| <= b, else a.")
_softshrink = _shrink("softshrink", "a moved towards 0 by b.")

# Piecewise polynomials.

_hardswish_backward = binary("hardswish_backward", public=False, doc="hardswish's.")
_hardsigmoid_backward = binary("hardsigmoid_backward", public=False, doc="hardsigmoid's.")
_hardswish = unary(
    "hardswish",
    lambda g, input: where(input.abs() < 3, g * (input / 3 + 0.5), g.masked_fill(input < 3, 0)),
    first_order=without_history("hardswish_backward", "g", "input"),
    public=False,
    doc="x relu6(x + 3) / 6.",
)
_hardsigmoid = unary(
    "hardsigmoid",
    lambda g, input: (g / 6).masked_fill((input.abs() < 3).logical_not(), 0),
    first_order=without_history("hardsigmoid_backward", "g", "input"),
    public=False,
    doc="relu6(x + 3) / 6.",
)

# Those of two numbers. Kernels have three operands, so of derivatives those of one number take one pass.

ternary("hardtanh_backward", params=("g", "a", "b"), doc="g where -b < a < b, else 0.")
ternary("relu6_backward", params=("g", "a", "b"), doc="g where 0 < a < b, else 0.")
_of_hardtanh = without_history("hardtanh_backward", "g", "a", "b")
_of_relu6 = without_history("relu6_backward", "g", "a", "b")
ternary("threshold_backward", params=("g", "a", "b"), doc="0 where a <= b, else g.")


def _keeps(input):
    """Does a result compare with a bound as before it was rounded to its dtype? Half types are computed in float32."""
    return input.element_size() > 2


def _hardtanh_formula(g, input, lo, hi):
    return g.masked_fill(((input > lo) & (input < hi)).logical_not(), 0)


def _hardtanh_first(g, input, lo, hi):
    # Most bounds are one number: 6 and 0, or 1 and -1.
    if isinstance(hi, Tensor) or isinstance(lo, Tensor) or lo not in (-hi, 0):
        return _hardtanh_formula(g, input, lo, hi)
    return (_of_relu6 if lo == 0 else _of_hardtanh)(g, input, hi)


_hardtanh = ternary(
    "hardtanh",
    _hardtanh_formula,
    params=("input", "lo", "hi"),
    title="HardtanhBackward0",
    first_order={"input": _hardtanh_first},
    kernel="clamp",
    told_when=lambda input, lo, hi: _keeps(input),
    doc="input, but not below lo nor above hi; no gradient at either.",
)
_softplus_slope = ternary(
    "softplus_below_slope", params=("a", "b", "c"), doc="sigmoid(a b) where a b is not above c, else 1."
)
_softplus_below = ternary(
    "softplus_below",
    lambda g, input, beta, threshold: where(input * beta > threshold, g, g * (input * beta).sigmoid()),
    params=("input", "beta", "threshold"),
    title="SoftplusBackward0",
    first_order={"input": lambda g, input, beta, threshold: g * _softplus_slope(input, beta, threshold)},
    doc="log(1 + exp(beta input)) / beta where beta input is not above threshold, else input.",
)
_threshold = ternary(
    "threshold",
    lambda g, input, threshold: g.masked_fill(input <= threshold, 0),
    params=("input", "threshold", "value"),
    title="ThresholdBackward0",
    first_order={"input": without_history("threshold_backward", "g", "input", "threshold")},
    told_when=lambda input, threshold, value: _keeps(input) and value <= threshold,
    doc="value where input <= threshold, else input.",
)

# What glu is made of.

_gated = binary("gated", public=False, doc="a sigmoid(b).")
_gated_backward = ternary("gated_backward", params=("g", "a", "b"), doc="g times the derivative of a sigmoid(b) for b.")
