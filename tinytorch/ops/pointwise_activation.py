"""Elementwise activations, with their derivatives' own kernels for when no higher derivative is asked."""

from __future__ import annotations

import math

from .declare import binary, ternary, unary, without_history
from .pointwise import _where as where
from .select import clamp

_tanh_backward = binary("tanh_backward", public=False, doc="g (1 - out^2).")
_sigmoid_backward = binary("sigmoid_backward", public=False, doc="g out (1 - out).")
_relu_backward = binary("relu_backward", lambda g, b: g * (b > 0), lambda g: None, public=False, doc="g where out > 0.")
_silu_backward = binary("silu_backward", public=False, doc="silu's.")
_gelu_backward = binary("gelu_backward", public=False, doc="gelu's.")
_gelu_tanh_backward = binary("gelu_tanh_backward", public=False, doc="gelu's in the tanh form.")


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
    title="LogSigmoidBackward0",
    public=False,
    doc="log(sigmoid(x)).",
)
_softplus = unary("softplus", lambda g, input: g * input.sigmoid(), public=False, doc="log(1 + exp(x)).")
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


# Those of a number, the second operand.


def elu_formula(g, a, b):
    """elu's gradient."""
    return g * where(a > 0, 1.0, clamp(a, None, 0).exp() * b)


ternary("leaky_relu_backward", params=("g", "a", "b"), doc="g where a > 0, else g b.")
_elu_backward = ternary("elu_backward", params=("g", "a", "b"), doc="g where a > 0, else g b exp(a).")
_leaky_relu = binary(
    "leaky_relu",
    lambda g, a, b: where(a > 0, g, g * b),
    title="LeakyReluBackward0",
    first_order={"a": without_history("leaky_relu_backward", "g", "a", "b")},
    public=False,
    doc="a where it is positive, else a b.",
)
_elu = binary(
    "elu",
    elu_formula,
    title="EluBackward0",
    first_order={"a": without_history("elu_backward", "g", "a", "b")},
    public=False,
    doc="a where it is positive, else b (exp(a) - 1).",
)

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
