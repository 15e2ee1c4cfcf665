"""The cross entropy of a linear layer's outputs, whose logits need not all be there at once."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

from ..dtypes import bfloat16, dtype, float16, float32, float64
from ..dtypes import int64 as _int64
from .softmax import softmax
from .class_loss import cross_entropy
from .declare import primitive
from .join import cat
from .linear import linear

_HALVES = (float16, bfloat16)


@dataclass
class LinearCrossEntropyOptions:
    """How ``linear_cross_entropy`` splits a batch into chunks. Follows ``torch.nn.LinearCrossEntropyOptions``.

    Args:
        allow_retain_graph: taken as in PyTorch; a graph can always be retained
        batch_chunk_size: the number of rows of a chunk
        chunking_method: how that is found where it is not given: ``'aspect_ratio'``, so that a chunk's logits take the
            memory of the input, or ``'aspect_ratio:N'``, an N-th of it; ``'auto'`` is ``'aspect_ratio:2'``
        acc_policy: ``'auto'``, ``'accurate'``, ``'balanced'`` or ``'compact'``: taken as in PyTorch
        acc_dtype: the dtype in which gradients of the weights are summed; float32 for half types unless given
    Raises:
        ValueError: a value is none of these
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: dtype | None = None

    def __post_init__(self):
        if self.acc_policy not in ("auto", "accurate", "balanced", "compact"):
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, "auto"):
            name, colon, factor = self.chunking_method.partition(":")
            if name != "aspect_ratio" or (colon and not (factor.isdigit() and int(factor))):
                raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if self.acc_dtype not in (None, float16, bfloat16, float32, float64):
            raise ValueError(f"acc_dtype must be a floating dtype or None, got {self.acc_dtype!r}")

    def rows(self, batch: int, features: int, classes: int) -> int:
        """How many rows a chunk has."""
        size, method = self.batch_chunk_size, self.chunking_method
        if method == "auto":
            method = "aspect_ratio:2" if size is None else None
        if method is None:
            return max(min(size or batch, batch), 1)
        factor = int(method.partition(":")[2] or 1)
        wanted = -(-batch // max(-(-classes // max(features, 1)), 1))
        found = min((1 << max(wanted - 1, 0).bit_length()) // factor, batch)
        if size not in (None, found):
            raise ValueError(
                f"batch_chunk_size (={size}) and chunking_method ('{method}') give different chunk sizes "
                f"({size} vs {found}); pass only one."
            )
        return max(found, 1)


def _chunks(n: int, step: int, *tensors):
    for k in range(0, n, step):
        yield [t.narrow(0, k, min(step, n - k)) for t in tensors]


def _gradients(g, input, linear_weight, linear_bias, target, weight, ignore, step, total):
    """The gradients of ``_row_losses``, chunk by chunk: the logits are computed again."""
    classes = linear_weight.shape[0]
    counted = target != ignore
    places = target.masked_fill(~counted, 0)
    scales = g if weight is None else g * weight.index_select(0, places)
    scales = scales.masked_fill(~counted, 0)
    of_input, of_weight, of_bias = [], None, None
    for x, t, c in _chunks(len(target), step, input, places, scales):
        slopes = softmax(linear(x, linear_weight, linear_bias), 1) * c.unsqueeze(1)
        slopes = slopes.scatter_add(1, t.unsqueeze(1), -c.unsqueeze(1))
        of_input.append(slopes @ linear_weight)
        share = (slopes.t() @ x).to(total)
        of_weight = share if of_weight is None else of_weight + share
        share = slopes.sum(0, dtype=total)
        of_bias = share if of_bias is None else of_bias + share
    if not of_input:
        zeros = [input * 0, linear_weight * 0, linear_weight.new_zeros((classes,))]
        return tuple(zeros[: 2 if linear_bias is None else 3])
    of_weight = of_weight.to(linear_weight.dtype)
    found = (cat(of_input) if len(of_input) > 1 else of_input[0], of_weight)
    return found if linear_bias is None else (*found, of_bias.to(linear_bias.dtype))


@primitive(
    title="LinearCrossEntropyBackward0",
    inputs=("input", "linear_weight", "linear_bias"),
    vjp=lambda g, input, linear_weight, linear_bias, target, weight, ignore, step, total: _gradients(
        g, input, linear_weight, linear_bias, target, weight, ignore, step, total
    ),
)
def _row_losses(input, linear_weight, linear_bias, target, weight, ignore, step, total):
    """The loss of each row; only the logits of ``step`` rows are there at once."""
    w, b = linear_weight.detach(), None if linear_bias is None else linear_bias.detach()
    losses = [
        cross_entropy(linear(x, w, b), t, weight, ignore_index=ignore, reduction="none")
        for x, t in _chunks(len(target), step, input.detach(), target)
    ]
    return cat(losses) if len(losses) > 1 else losses[0] if losses else input.new_empty((0,))


def _chunked(input, linear_weight, target, linear_bias, weight, reduction, ignore, options):
    single = input._h.ndim == 1
    if single:
        input, target = input.unsqueeze(0), target.unsqueeze(0)
    n, features = input.shape
    step = options.rows(n, features, linear_weight.shape[0])
    total = options.acc_dtype or (float32 if linear_weight.dtype in _HALVES else linear_weight.dtype)
    losses = _row_losses(input, linear_weight, linear_bias, target, weight, ignore, step, total)
    if reduction == "none":
        return losses.squeeze(0) if single else losses
    if reduction == "sum":
        return losses.sum()
    counted = target != ignore
    if weight is None:
        return losses.sum() / counted.sum()
    return losses.sum() / weight.index_select(0, target.masked_fill(~counted, 0)).masked_fill(~counted, 0).sum()


def linear_cross_entropy(
    input,
    linear_weight,
    target,
    *,
    linear_bias=None,
    weight=None,
    reduction="mean",
    ignore_index=None,
    label_smoothing=0.0,
    options=None,
):
    """``cross_entropy(linear(input, linear_weight, linear_bias), target)``; with ``options``, chunk by chunk, so that
    the logits are never all in memory. Follows ``torch.nn.functional.linear_cross_entropy``.

    Args:
        input: a tensor (M) or (N, M)
        linear_weight: a tensor (C, M), or (C, d1, ..., M) for losses of several dimensions
        target: classes (), (N) or (N, d1, ...), or probabilities of the logits' shape
        linear_bias: a tensor of the shape of ``linear_weight`` without its last dimension, or None
        weight: a weight for each class (C), or None
        ignore_index: a class whose rows do not count; -100 unless given
        label_smoothing: how much of the target's probability all classes share
        options: a ``LinearCrossEntropyOptions``, or None
    Returns:
        A 0-d tensor, or losses of the shape of the classes.
    Raises:
        RuntimeError: shapes do not match
    """
    if not 1 <= input._h.ndim <= 2:
        raise RuntimeError(f"linear_cross_entropy: expected input with dimensionality 1 or 2, got {input._h.ndim}")
    if linear_weight._h.ndim < 2:
        raise RuntimeError(
            f"linear_cross_entropy: expected linear_weight with dimensionality at least 2, got {linear_weight._h.ndim}"
        )
    classes, *inner, features = linear_weight.shape
    if input.shape[-1] != features:
        raise RuntimeError(
            "linear_cross_entropy: expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {features}, respectively"
        )
    if linear_bias is not None and tuple(linear_bias.shape) != (classes, *inner):
        raise RuntimeError(
            f"linear_cross_entropy: expected linear_bias shape {(classes, *inner)}, got {tuple(linear_bias.shape)}"
        )
    if inner and input._h.ndim == 1:
        raise RuntimeError(
            f"linear_cross_entropy: a loss of several dimensions requires batched input (N, {features}), got shape "
            f"{tuple(input.shape)}"
        )
    shape = (*input.shape[:-1], classes, *inner)
    if tuple(target.shape) == shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignore = -100 if ignore_index is None else ignore_index
    if options is not None:
        if inner or reduction not in ("mean", "sum", "none") or label_smoothing or target.dtype is not _int64:
            warnings.warn(
                "linear_cross_entropy: ``options`` ignored: chunks need a loss of one dimension, label_smoothing == 0, "
                "and classes in int64",
                stacklevel=2,
            )
        else:
            return _chunked(input, linear_weight, target, linear_bias, weight, reduction, ignore, options)
    rows = math.prod((classes, *inner))
    bias = None if linear_bias is None else linear_bias.reshape(rows)
    logits = linear(input, linear_weight.reshape(rows, features), bias).reshape(shape)
    return cross_entropy(
        logits, target, weight, ignore_index=ignore, reduction=reduction, label_smoothing=label_smoothing
    )
