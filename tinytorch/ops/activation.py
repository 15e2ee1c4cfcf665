"""Activations: the functions between a network's layers. Those with kernels of their own are declared in
pointwise_activation.py and softmax.py, the others are compositions."""

from __future__ import annotations

import math

from ..autograd.node import alias
from ..backends.cpu import lib
from ..dtypes import FLOATING, float64, uint8
from ..dtypes import bool as _bool
from ..tensor import FUNCTIONS, Tensor
from .declare import both, function, primitive, refuse
from .fitting import fitted
from .pointwise_activation import (
    _celu,
    _elu,
    _gated,
    _gated_backward,
    _gelu,
    _gelu_tanh,
    _hardshrink,
    _hardsigmoid,
    _hardswish,
    _hardtanh,
    _leaky_relu,
    _logsigmoid,
    _mish,
    _prelu,
    _selu,
    _silu,
    _softplus,
    _softplus_below,
    _softshrink,
    _threshold,
)

# Those with kernels of their own.


def floating(op: str, *tensors) -> None:
    """NotImplementedError unless all are of floating dtypes."""
    for t in tensors:
        if not FLOATING[t._h.dtype]:
            raise NotImplementedError(f"{op}: not implemented for '{t.dtype.name}'")


def gelu(input, *, approximate="none"):
    """x Phi(x), Phi the normal distribution function; with approximate="tanh", its tanh form. Follows
    ``torch.nn.functional.gelu``.

    Args:
        approximate: ``'none'`` or ``'tanh'``
    Returns:
        A tensor of the shape and dtype of ``input``.
    Raises:
        RuntimeError: ``input`` is not floating
    """
    try:
        floating("gelu", input)
        if approximate == "none":
            return _gelu(input)
        if approximate == "tanh":
            return _gelu_tanh(input)
        raise RuntimeError(f"gelu: approximate argument must be either none or tanh, got {approximate!r}")
    except Exception as exc:
        refuse(exc)
        raise


def overwrite(inplace, fn, *args):
    """``fn(*args)`` of the elementwise operator ``fn``, written over the first if ``inplace``."""
    if not inplace:
        return fn(*args)
    op, name = fn.op, f"{fn.op.name}_"
    return op.write(args[0], args, name)


def silu(input, inplace=False):
    """x sigmoid(x). Follows ``torch.nn.functional.silu``.

    Returns:
        A tensor of the shape and dtype of ``input``.
    Raises:
        RuntimeError: ``input`` is not floating
    """
    try:
        if not (isinstance(input, Tensor) and input.is_complex()):
            floating("silu", input)
        return overwrite(inplace, _silu, input)
    except Exception as exc:
        refuse(exc)
        raise


def logsigmoid(input):
    """log(sigmoid(x)). Follows ``torch.nn.functional.logsigmoid``. Otherwise like ``silu``."""
    floating("logsigmoid", input)
    return _logsigmoid(input)


def softplus(input, beta=1.0, threshold=20.0):
    """log(1 + exp(beta x)) / beta, and x where beta x is above ``threshold``. Follows
    ``torch.nn.functional.softplus``. Otherwise like ``gelu``.

    Args:
        beta: a number
        threshold: a number
    """
    floating("softplus", input)
    beta, threshold = fitted(beta, input._h.dtype, True), fitted(threshold, input._h.dtype, True)
    if beta == 1 and threshold >= 20 and input.dtype is not float64:
        return _softplus(input)  # the correction is below half a unit in the last place there
    return _softplus_below(input, beta, threshold)


# Piecewise linear ones.


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """x, but not below ``min_val`` nor above ``max_val``; no gradient at either. Follows
    ``torch.nn.functional.hardtanh``.

    Args:
        min_val: the least value
        max_val: the largest
    Returns:
        A tensor of the shape and dtype of ``input``.
    Raises:
        ValueError: ``min_val`` is above ``max_val``
    """
    if min_val > max_val:
        raise ValueError(f"hardtanh: min_val cannot be greater than max_val, got {min_val} and {max_val}")
    if not input.dtype.is_differentiable:
        if input.dtype is _bool:
            raise RuntimeError("hardtanh: Bool inputs not supported for hardtanh")
        min_val, max_val = fitted(min_val, lib.TT_I64), fitted(max_val, lib.TT_I64)  # bounds do not promote
        if input.dtype is uint8 and (min_val < 0 or max_val < 0):
            raise RuntimeError("hardtanh: cannot do hardtanh on an unsigned type with negative limits")
    return overwrite(inplace, _hardtanh, input, min_val, max_val)


def relu(input, inplace=False):
    """x where it is positive, else 0. Follows ``torch.nn.functional.relu``.

    Returns:
        A tensor of the shape and dtype of ``input``.
    Raises:
        RuntimeError: ``input`` is a bool
    """
    try:
        return input.relu_() if inplace else input.relu()
    except Exception as exc:
        refuse(exc)
        raise


def relu6(input, inplace=False):
    """min(max(x, 0), 6). Follows ``torch.nn.functional.relu6``.

    Returns:
        A tensor of the shape and dtype of ``input``.
    """
    return hardtanh(input, 0, 6, inplace)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """x where it is positive, else ``negative_slope`` x. Follows ``torch.nn.functional.leaky_relu``. Otherwise like
    ``gelu``.

    Args:
        negative_slope: a number
    """
    try:
        floating("leaky_relu", input)
        slope = fitted(negative_slope, input._h.dtype, True)
        return overwrite(inplace, _leaky_relu, input, slope)
    except Exception as exc:
        refuse(exc)
        raise


@both
def prelu(input, weight):
    """x where it is positive, else ``weight`` x: one weight, or one for each channel (dimension 1). Follows
    ``torch.prelu``."""
    floating("prelu", input, weight)
    if weight._h.numel != 1:
        channels = input.shape[1] if input._h.ndim > 1 else 1
        if weight._h.ndim != 1 or weight._h.numel != channels:
            raise RuntimeError(
                f"prelu: Mismatch of parameter numbers and input channel size. Found parameter numbers "
                f"= {weight._h.numel} and channel size = {channels}."
            )
        weight = weight.reshape([-1] + [1] * (input._h.ndim - 2))
    elif weight._h.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight._h.ndim}")
    else:
        weight = weight.reshape(())
    return _prelu(input, weight)


def threshold(input, threshold, value, inplace=False):
    """x where it is above ``threshold``, else ``value``. Follows ``torch.nn.functional.threshold``."""
    if input._h.dtype == lib.TT_BOOL:
        raise NotImplementedError("threshold: not implemented for 'bool'")
    limit, value = fitted(threshold, input._h.dtype, True), fitted(value, input._h.dtype)
    return overwrite(inplace, _threshold, input, limit, value)


@both
def hardshrink(input, lambd=0.5):
    """x where \\|x\\| is above ``lambd``, else 0. Follows ``torch.nn.functional.hardshrink``. Otherwise like ``gelu``.

    Args:
        lambd: a number
    """
    floating("hardshrink", input)
    return _hardshrink(input, fitted(lambd, input._h.dtype))


def softshrink(input, lambd=0.5):
    """x moved towards 0 by ``lambd``. Follows ``torch.nn.functional.softshrink``."""
    floating("softshrink", input)
    lambd = fitted(lambd, input._h.dtype)
    if not 0 <= lambd < math.inf:
        raise RuntimeError(f"softshrink: lambda must be finite and not below 0, but found to be {lambd}.")
    return _softshrink(input, lambd)


def hardsigmoid(input, inplace=False):
    """relu6(x + 3) / 6. Follows ``torch.nn.functional.hardsigmoid``."""
    floating("hardsigmoid", input)
    return overwrite(inplace, _hardsigmoid, input)


def hardswish(input, inplace=False):
    """x relu6(x + 3) / 6. Follows ``torch.nn.functional.hardswish``. Otherwise like ``silu``."""
    floating("hardswish", input)
    return overwrite(inplace, _hardswish, input)


# Exponential ones. exp and expm1 see no positive number, so nothing overflows.


def elu(input, alpha=1.0, inplace=False):
    """x where it is positive, else alpha (exp(x) - 1). Follows ``torch.nn.functional.elu``. Otherwise like ``gelu``.

    Args:
        alpha: a number
    """
    try:
        floating("elu", input)
        return overwrite(inplace, _elu, input, fitted(alpha, input._h.dtype, True))
    except Exception as exc:
        refuse(exc)
        raise


@function
def celu(input, alpha=1.0, inplace=False):
    """x where it is positive, else alpha (exp(x / alpha) - 1). Follows ``torch.nn.functional.celu``. Otherwise like
    ``gelu``.

    Args:
        alpha: a number other than 0
    """
    floating("celu", input)
    if alpha == 0:
        raise RuntimeError("celu: ZeroDivisionError: alpha cannot be 0 for CELU")
    return overwrite(inplace, _celu, input, fitted(alpha, input._h.dtype, True))


@function
def selu(input, inplace=False):
    """A scaled elu whose outputs keep mean 0 and variance 1. Follows ``torch.nn.functional.selu``. Otherwise like
    ``silu``."""
    floating("selu", input)
    return overwrite(inplace, _selu, input)


def mish(input, inplace=False):
    """x tanh(log(1 + exp(x))). Follows ``torch.nn.functional.mish``. Otherwise like ``silu``."""
    floating("mish", input)
    return overwrite(inplace, _mish, input)


def tanhshrink(input):
    """x - tanh(x). Follows ``torch.nn.functional.tanhshrink``."""
    return input - input.tanh()


def softsign(input):
    """x / (1 + \\|x\\|). Follows ``torch.nn.functional.softsign``."""
    return input / (input.abs() + 1)


def glu(input, dim=-1):
    """The first half along ``dim`` times the sigmoid of the second. Follows ``torch.nn.functional.glu``.

    Args:
        dim: the dimension to halve
    Returns:
        A tensor of half the size along ``dim``.
    Raises:
        RuntimeError: the size along ``dim`` is odd, or ``input`` is not floating
    """
    if input._h.ndim == 0:
        raise RuntimeError("glu: does not support 0-dimensional tensors")
    n = input.size(dim)
    if n % 2:
        raise RuntimeError(f"glu: Halving dimension must be even, but dimension {dim} is size {n}")
    floating("glu", input)
    return _glu(input, input._dim(dim))


def _glu_formula(g, input, dim):
    a, b = input.chunk(2, dim)
    b = b.sigmoid()
    return FUNCTIONS["cat"]((g * b, g * a * (b * (1 - b))), dim)


def _glu_first(g, input, dim):
    out = input.new_empty(input.shape)
    (a, b), (to_a, to_b) = input.chunk(2, dim), out.chunk(2, dim)
    _gated(g, b, out=to_a)
    _gated_backward(g, a, b, out=to_b)
    return out


@primitive(title="GluBackward0", input=_glu_formula, first_order={"input": _glu_first})
def _glu(input, dim):
    return _gated(*alias(input).chunk(2, dim))
