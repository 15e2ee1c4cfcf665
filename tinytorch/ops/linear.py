"""linear and bilinear: products over the last dimension."""

from __future__ import annotations

from ..backends.cpu import lib
from ..tensor import Tensor, attempted
from .declare import c_op, computed, refuse

_column_sums = attempted.tt_column_sums


def _linear_x(g, weight):
    return g @ weight


def _rows(x):
    return x.flatten(0, -2) if x._h.ndim > 1 else x.unsqueeze(0)


def _linear_w(g, x):
    return _rows(g).mT @ _rows(x)


def _linear_b(g, bias_shape):
    return g.sum_to_size(bias_shape)


def _declare(call, product, weight_product):
    """The operator, and the C functions that compute it and the gradients of x and of the weight."""
    return c_op(
        "linear",
        call,
        params=("x", "weight", "bias"),
        optional=("bias",),
        doc="x @ weight.T + bias.",
        x=_linear_x,
        weight=_linear_w,
        bias=_linear_b,
        first_order={
            "x": lambda g, weight: computed(product(g._h, weight._h, 0, 0), _linear_x, g, weight),
            "weight": lambda g, x: computed(weight_product(g._h, x._h), _linear_w, g, x),
            "bias": lambda g, bias_shape: (
                computed(_column_sums(g._h, 1), _linear_b, g, bias_shape) if bias_shape else g.sum()
            ),
        },
    )


_linear = _declare(lib.tt_linear, attempted.tt_matmul, attempted.tt_linear_weight)
# In recurrent layers: kernels/api/blas.h says in what it differs. A profiler sees the same operator.
layer_linear = _declare(lib.tt_layer_linear, attempted.tt_layer_matmul, attempted.tt_layer_weight)


def linear(input, weight, bias=None):
    """``input @ weight.T + bias`` over the last dimension: input (*, in), weight (out, in), bias (out) or None; result
    (*, out). Follows ``torch.nn.functional.linear``.

    Args:
        input: a tensor (*, in)
        weight: a matrix (out, in), or a vector (in)
        bias: a vector (out), or what broadcasts to the result, or None
    Returns:
        A tensor (*, out).
    Raises:
        RuntimeError: sizes or dtypes do not match
    """
    try:
        if weight._h.ndim == 1:
            return _vector_weight(input, weight, bias)
        return _linear(input, weight, bias)
    except Exception as exc:
        if isinstance(bias, Tensor) and isinstance(weight, Tensor) and bias.shape == (1,) != weight.shape[:1]:
            return linear(input, weight, bias.expand(weight.shape[0]))
        if isinstance(bias, Tensor) and bias._h.ndim > 1:
            out = linear(input, weight)
            if _broadcasts_to(bias.shape, out.shape):
                return out + bias
        refuse(exc)
        raise


def _broadcasts_to(shape, wider) -> bool:
    """Does a tensor of ``shape`` broadcast to ``wider``, and not beyond?"""
    return len(shape) <= len(wider) and all(n in (1, w) for n, w in zip(shape[::-1], wider[::-1]))


def _vector_weight(input, weight, bias):
    out = input @ weight
    return out if bias is None else out + bias


def bilinear(input1, input2, weight, bias=None):
    """x1^T W_k x2 + b_k for each output k: inputs (*, n) and (*, m), weight (out, n, m). Follows
    ``torch.nn.functional.bilinear``."""
    given = [input1, input2, weight] + ([] if bias is None else [bias])
    if len({t._h.dtype for t in given}) > 1:
        raise RuntimeError(f"bilinear(): All tensors must have the same dtype, got {[t.dtype.name for t in given]}")
    if input1._h.ndim != input2._h.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1._h.ndim} and {input2._h.ndim}")
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            f"bilinear(): input batch dimensions do not match: got {tuple(input1.shape)} and {tuple(input2.shape)}"
        )
    if not input1._h.ndim or weight._h.ndim < 2 or (weight._h.ndim < 3 and weight.shape[1] == input1.shape[-1]):
        raise IndexError(
            f"bilinear(): inputs must have a dimension and weight three, got {input1._h.ndim} and {weight._h.ndim}"
        )
    if weight._h.ndim != 3 or (input1.shape[-1], input2.shape[-1]) != weight.shape[1:]:
        raise RuntimeError(
            f"bilinear(): input sizes do not match weight of shape {tuple(weight.shape)}: got "
            f"{tuple(input1.shape)} and {tuple(input2.shape)}"
        )
    rows = (input1.unsqueeze(-1) * input2.unsqueeze(-2)).flatten(-2)
    return linear(rows, weight.flatten(1), bias)
