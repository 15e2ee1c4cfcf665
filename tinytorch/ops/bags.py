"""Rows of a table, and bags of them."""

from __future__ import annotations

import math
import operator
import warnings

from ..tensor import Tensor
from .create import zeros
from .declare import function
from .gather import embedding as _rows
from .pointwise import _where as where
from .ranges import arange
from .search import searchsorted


def shorten(weight: Tensor, input: Tensor, max_norm, norm_type) -> None:
    """Scales the rows that are used to a norm of at most ``max_norm``, in place."""
    if not isinstance(input, Tensor):
        raise TypeError(f"embedding_renorm_(): argument 'indices' must be Tensor, not {type(input).__name__}")
    used = input.reshape(-1).unique()
    rows = weight.index_select(0, used)
    norms = rows.norm(norm_type, 1, True)
    weight.index_copy_(0, used, where(norms > max_norm, rows * (max_norm / (norms + 1e-7)), rows))


def _largest(rows: Tensor, index: Tensor, bag: Tensor, bags: int) -> tuple[Tensor, Tensor]:
    """The largest element of each bag and column, the first of several, and the number of its row; 0 of an empty
    bag."""
    if not rows._h.numel:
        return rows.new_zeros((bags, rows.shape[1])), index.new_zeros((bags, rows.shape[1]))
    values = rows.detach()
    top = values.new_full((bags, rows.shape[1]), -math.inf).index_reduce(0, bag, values, "amax")
    place = arange(len(rows), device=rows.device).unsqueeze(1).expand(rows.shape)
    place = where((values == top[bag]) | (values != values), place, place.new_full((), len(rows)))
    first = place.new_full((bags, rows.shape[1]), len(rows)).index_reduce(0, bag, place, "amin")
    empty = first == len(rows)
    first = first.masked_fill(empty, 0)
    return rows.gather(0, first).masked_fill(empty, 0), index[first].masked_fill(empty, 0)


def _bags(input: Tensor, offsets, per_sample_weights):
    """The numbers of rows as a vector, where each bag begins, and the weights as a vector."""
    if input._h.ndim == 2:
        n, length = input.shape
        weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
        return input.reshape(-1), arange(n, device=input.device) * length, weights
    return input, offsets, per_sample_weights


def _check_words(input, weight, offsets, mode, scale_grad_by_freq, sparse, per_sample_weights) -> None:
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({tuple(per_sample_weights.shape)}) is not None, then it must have "
            f"the same shape as the input ({tuple(input.shape)})"
        )
    if weight._h.ndim != 2:
        raise ValueError(f"embedding_bag: weight has to be a 2D Tensor, but got Tensor of dimension {weight._h.ndim}")
    if input._h.ndim == 2 and offsets is not None:
        raise ValueError("embedding_bag: if input is 2D, then offsets has to be None")
    if input._h.ndim not in (1, 2):
        raise ValueError(f"embedding_bag: input has to be 1D or 2D Tensor, but got {input._h.ndim}D")
    if input._h.ndim == 1 and (offsets is None or offsets._h.ndim != 1):
        raise ValueError("embedding_bag: offsets has to be a 1D Tensor")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("embedding_bag: mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("embedding_bag: max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("embedding_bag: max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            f"embedding_bag: per_sample_weights is only supported for mode='sum' (got mode='{mode}')"
        )
    if input._h.ndim == 2 and input.dtype.name == "bool":  # whose bags' beginnings PyTorch counts in its dtype
        raise NotImplementedError("embedding_bag: not implemented for input of 'bool'")


def _check_dtypes(input, weight, offsets, per_sample_weights) -> None:
    for name, t in (("input", input), ("offsets", offsets)):
        if t is not None and t.dtype.name not in ("int32", "int64"):
            raise RuntimeError(f"embedding_bag: expected {name} of int32 or int64, got {t.dtype.name}")
    if not weight.is_floating_point():
        raise RuntimeError(f"embedding_bag: expected weight of a floating dtype, got {weight.dtype.name}")
    if per_sample_weights is not None and per_sample_weights.dtype is not weight.dtype:
        raise RuntimeError("embedding_bag: expected weight and per_sample_weights to have the same dtype")


@function(namespace="nn.functional")
def embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """Sums, means or maxima of bags of rows of ``weight`` (n, d). Follows ``torch.nn.functional.embedding_bag``.

    Args:
        input: numbers of rows: (B, L), a bag in each row, or a vector of all bags, one after the other
        weight: a matrix (n, d)
        offsets: where each bag begins in the vector
        max_norm: the largest norm that a row may have: longer ones are shortened in place
        norm_type: the order of that norm
        scale_grad_by_freq: whether to divide a row's gradient by how often it occurs
        mode: ``"sum"``, ``"mean"`` or ``"max"``
        sparse: taken as in PyTorch; gradients are dense
        per_sample_weights: a factor for each row, with ``"sum"``
        include_last_offset: whether ``offsets`` ends with the length of the vector
        padding_idx: a row that does not count
    Returns:
        A tensor (B, d).
    Raises:
        ValueError: arguments that do not go together
        RuntimeError: an offset, a number of a row or a dtype is wrong
        NotImplementedError: ``per_sample_weights`` with another mode
    """
    for name, t in (("input", input), ("weight", weight)):
        if not isinstance(t, Tensor):
            raise TypeError(f"embedding_bag(): argument '{name}' must be Tensor, not {type(t).__name__}")
    if weight.dtype.name in ("int32", "int64") and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        input, weight = weight, input
    _check_words(input, weight, offsets, mode, scale_grad_by_freq, sparse, per_sample_weights)
    options = (max_norm, norm_type, scale_grad_by_freq, mode, per_sample_weights, include_last_offset, padding_idx)
    return bags_of(input, weight, offsets, *options)[0]


def bags_of(input, weight, offsets, max_norm, norm_type, scale_grad_by_freq, mode, weights, include_last, padding):
    """``embedding_bag``: its result, the bag of each row, that of each row that counts, and for "max" the rows that
    were taken."""
    _check_dtypes(input, weight, offsets, weights)
    index, starts, factors = _bags(input, offsets, weights)
    count, bags, n = len(index), len(starts) - bool(include_last), len(weight)
    if include_last and not len(starts):
        raise RuntimeError("embedding_bag: include_last_offset: number of offsets should be at least 1")
    if input._h.ndim == 1 and len(starts) and (int(starts[0]) != 0 or int(starts[-1]) > count):
        raise RuntimeError(
            f"embedding_bag: offsets[0] has to be 0 and offsets[-1] at most the input's length ({count}), but got "
            f"{int(starts[0])} and {int(starts[-1])}"
        )
    if padding is not None:
        padding = operator.index(padding)
        if not -n <= padding < n:
            raise RuntimeError(f"embedding_bag: padding_idx must be within the number of embeddings, got {padding}")
        padding %= n
    if count and not bool(((index >= 0) & (index < n)).all()):
        raise RuntimeError(f"embedding_bag: a number of a row is out of range: there are {n}")
    if max_norm is not None:
        shorten(weight.detach(), index, max_norm, norm_type)
    bag = searchsorted(starts.long(), arange(count, device=index.device), right=True) - 1 if len(starts) else index
    kept = (bag < bags) & (bag >= 0)
    if padding is not None:
        kept = kept & (index != padding)
    row, to = index, bag
    if count and not bool(kept.all()):
        at = kept.nonzero().squeeze(1)
        row, to = index[at], bag[at]
        factors = None if factors is None else factors[at]
    to = to.long()
    rows = _rows(weight, row, None, scale_grad_by_freq)
    if mode == "max":
        out, taken = _largest(rows, row, to, bags)
        return out, bag, to, taken
    rows = rows if factors is None else rows * factors.unsqueeze(1)
    sums = zeros((bags, weight.shape[1]), dtype=weight.dtype, device=weight.device).index_add(0, to, rows)
    if mode == "sum":
        return sums, bag, to, None
    return sums / to.bincount(minlength=bags)[:bags].clamp(min=1).to(sums.dtype).unsqueeze(1), bag, to, None
