"""Further functions that PyTorch has in its top namespace alone: kernels of layers, and methods as functions."""

from __future__ import annotations

import operator

from ..ops.bags import bags_of, shorten
from ..ops.declare import flags_only, function
from ..ops.random import bernoulli
from ..dtypes import bfloat16, float16
from ..dtypes import bool as _bool
from ..dtypes import float32 as _float32
from ..tensor import Tensor
from . import functional as F
from .top_level import grid_sampler

_ACCUMULATED = {float16: _float32, bfloat16: _float32}


@function
def grid_sampler_2d(input, grid, interpolation_mode: int, padding_mode: int, align_corners: bool):
    """``grid_sampler`` of images. Follows ``torch.grid_sampler_2d``.

    Args:
        grid: places from -1 to 1, (N, H, W, 2)
        interpolation_mode: 0 is "bilinear", 1 is "nearest", 2 is "bicubic"
        padding_mode: 0 is "zeros", 1 is "border", 2 is "reflection"
        align_corners: whether -1 and 1 are the centers of the elements at the corners
    Returns:
        A tensor of the places of ``grid``.
    Raises:
        RuntimeError: ``input`` has not four dimensions
    """
    if input.ndim != 4:
        raise RuntimeError(f"grid_sampler_2d(): expected 4D input, but got input of shape {list(input.shape)}")
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@function
def grid_sampler_3d(input, grid, interpolation_mode: int, padding_mode: int, align_corners: bool):
    """``grid_sampler`` of volumes. Follows ``torch.grid_sampler_3d``. Otherwise like ``grid_sampler_2d``.

    Args:
        grid: places from -1 to 1, (N, D, H, W, 3)
        interpolation_mode: 0 is "bilinear", 1 is "nearest"
    Raises:
        RuntimeError: ``input`` has not five dimensions
    """
    if input.ndim != 5:
        raise RuntimeError(f"grid_sampler_3d(): expected 5D input, but got input of shape {list(input.shape)}")
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@function
def conv_tbc(input, weight, bias, pad: int = 0):
    """``conv1d`` of sequences (time, batch, channels), with a weight (taps, channels, out). Follows
    ``torch.conv_tbc``.

    Args:
        weight: a filter for each channel of the result
        bias: a number for each channel of the result (out)
        pad: how many zeros are put before and behind
    Returns:
        A tensor (time, batch, out).
    Raises:
        RuntimeError: shapes do not match
    """
    if not input.ndim == weight.ndim == 3:
        raise RuntimeError(
            "conv_tbc: Input and weight must have 3 dims: time, batch, in_channel; taps, in_channel, out"
        )
    if input.shape[2] != weight.shape[1]:
        raise RuntimeError("conv_tbc: Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if bias.shape != weight.shape[2:]:
        raise RuntimeError("conv_tbc: Bias size must equal dim 2 in the weight tensor (output channels).")
    return F.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)


@function(pure=False)
def embedding_renorm_(input, indices, max_norm: float, norm_type: float):
    """Shortens the rows ``indices`` of a matrix to a norm of at most ``max_norm``, in place. Follows
    ``torch.embedding_renorm_``.

    Args:
        indices: the numbers of rows
        max_norm: the longest that a row may be
        norm_type: of which norm
    Returns:
        ``input``.
    """
    shorten(input, indices, max_norm, norm_type)
    return input


@function
def embedding_bag(
    weight,
    indices,
    offsets,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights=None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
):
    """``nn.functional.embedding_bag`` with what it is computed from. Follows ``torch.embedding_bag``.

    Args:
        weight: a matrix (n, d)
        indices: numbers of rows, a vector
        offsets: where each bag begins in it
        scale_grad_by_freq: whether to divide a row's gradient by how often it occurs
        mode: 0 is "sum", 1 is "mean", 2 is "max"
        sparse: taken as in PyTorch; gradients are dense
        per_sample_weights: a factor for each row, with a sum
        include_last_offset: whether ``offsets`` ends with the length of the vector
        padding_idx: a row that does not count
    Returns:
        The result (B, d); the bag of each index; the number of indices that count in each bag; and of maxima the rows
        that they are from (B, d), else the numbers again. PyTorch leaves out what a sum does not need: the second is
        empty, the others are 0.
    Raises:
        RuntimeError: an offset, a number of a row, a mode or a dtype is wrong
    """
    if isinstance(mode, bool) or not hasattr(mode, "__index__"):
        raise TypeError(f"embedding_bag(): argument 'mode' must be int, not {type(mode).__name__}")
    mode = operator.index(mode)
    if mode not in (0, 1, 2):
        raise RuntimeError("embedding_bag: `mode` must be sum, mean, or max.")
    if weight.ndim != 2 or indices.ndim != 1 or offsets.ndim != 1:
        raise RuntimeError("embedding_bag: weight has to be a matrix, indices and offsets vectors")
    if per_sample_weights is not None and mode:
        raise RuntimeError("embedding_bag: per_sample_weights only supported with mode='sum'")
    word = ("sum", "mean", "max")[mode]
    weights = (per_sample_weights, include_last_offset, padding_idx)
    out, bag, counted, taken = bags_of(indices, weight, offsets, None, 2, scale_grad_by_freq, word, *weights)
    if mode == 0:
        none = offsets.new_zeros(offsets.shape)
        return out, bag.to(indices.dtype) if padding_idx is not None else indices.new_empty(0), none, none.clone()
    sizes = counted.bincount(minlength=len(out)).to(indices.dtype)
    return out, bag.to(indices.dtype), sizes, sizes.clone() if taken is None else taken


def _statistics(rows, eps, dtype):
    """The mean of each row, and one over its standard deviation."""
    values = rows.detach().to(_ACCUMULATED.get(rows.dtype, rows.dtype))
    mean = values.mean(-1)
    return mean.to(dtype), (values.var(-1, correction=0) + eps).rsqrt().to(dtype)


@function
def native_layer_norm(input, normalized_shape, weight, bias, eps: float):
    """``layer_norm`` with its statistics. Follows ``torch.native_layer_norm``.

    Args:
        normalized_shape: the last sizes
        weight: a tensor of these sizes, or None
        bias: a tensor of these sizes, or None
        eps: a number added to the variance
    Returns:
        The result, the means and one over the standard deviations: of size 1 in the last dimensions.
    Raises:
        RuntimeError: the last sizes are others
    """
    out = F.layer_norm(input, normalized_shape, weight, bias, eps)
    kept = input.ndim - len(normalized_shape)
    shape = [*input.shape[:kept], *[1] * len(normalized_shape)]
    mean, deviation = _statistics(input.flatten(kept), eps, input.dtype if weight is None else weight.dtype)
    return out, mean.reshape(shape), deviation.reshape(shape)


@function
def native_group_norm(input, weight, bias, N: int, C: int, HxW: int, group: int, eps: float):
    """``group_norm`` with its statistics. Follows ``torch.native_group_norm``.

    Args:
        weight: a number for each channel (C), or None
        bias: a number for each channel (C), or None
        N: the first size of ``input``
        C: its second size
        HxW: the product of the others
        group: how many groups of channels
        eps: a number added to the variance
    Returns:
        The result, the means (N, group) and one over the standard deviations (N, group).
    Raises:
        RuntimeError: ``input`` has not N * C * HxW elements, or the channels do not divide
    """
    if input.numel() != N * C * HxW:
        raise RuntimeError(f"native_group_norm: expected {N} * {C} * {HxW} elements, got {list(input.shape)}")
    out = F.group_norm(input, group, weight, bias, eps)
    rows = input.reshape(N, group, C // group * HxW)
    return out, *_statistics(rows, eps, input.dtype if weight is None else weight.dtype)


@function
def native_dropout(input, p: float, train: bool | None):
    """``dropout`` with its mask. Follows ``torch.native_dropout``.

    Args:
        p: how many elements become 0
        train: whether any do; None is True
    Returns:
        The result, and a bool tensor: which elements are left.
    """
    kept = 1 - p
    if train is not None:
        flags_only("native_dropout", train=train)
    if train is False:
        return input.clone(), input.new_ones(input.shape, dtype=_bool)
    mask = bernoulli(input.new_full(input.shape, kept, dtype=_float32)).bool()
    return (input * mask).mul_(0.0 if p == 1 else 1 / (1 - p)), mask


def _channels(input, p) -> Tensor:
    if input.ndim < 2:
        raise RuntimeError("feature_dropout: Feature dropout requires at least 2 dimensions in the input")
    return F.dropout(input.new_ones((*input.shape[:2], *[1] * (input.ndim - 2))), p)


@function(pure=False)
def feature_dropout(input, p: float, train: bool):
    """Dropout of whole channels: ``input`` is (batch, channels, ...). Follows ``torch.feature_dropout``.

    Args:
        p: the probability of a channel to become 0
        train: whether to drop
    Returns:
        A tensor of the shape of ``input``.
    Raises:
        RuntimeError: ``input`` has fewer than two dimensions
    """
    return input * _channels(input, p) if train and p else input.clone()


@function(pure=False)
def feature_dropout_(input, p: float, train: bool):
    """``feature_dropout`` in place. Follows ``torch.feature_dropout_``.

    Args:
        p: the probability of a channel to become 0
        train: whether to drop
    Returns:
        ``input``.
    """
    return input.mul_(_channels(input, p)) if train and p else input


@function
def vander(x, N: int | None = None, increasing: bool = False):
    """The powers of each element in a row, the highest first unless ``increasing``. Follows ``torch.vander``.

    Args:
        x: a vector (n)
        N: how many powers; n unless given
        increasing: from the 0th on?
    Returns:
        A matrix (n, N).
    Raises:
        RuntimeError: ``x`` is no vector, or ``N`` negative
    """
    if x.ndim != 1:
        raise RuntimeError("vander: x must be a one-dimensional tensor.")
    N = x.shape[0] if N is None else N
    if N < 0:
        raise RuntimeError("vander: N must be non-negative.")
    if not N:
        return x.new_empty((x.shape[0], 0))
    x = x.long() if not x.dtype.is_differentiable else x
    powers = x.unsqueeze(1).expand(-1, N).cumprod(1)
    powers = F.pad(powers[:, : N - 1], (1, 0), value=1) if N > 1 else x.new_ones((x.shape[0], 1))
    return powers if increasing else powers.flip(1)


@function(pure=False)
def detach_(input):
    """``Tensor.detach_``. Follows ``torch.detach_``."""
    return Tensor.detach_(input)


@function(pure=False)
def addmv_(input, mat, vec, *, beta=1, alpha=1):
    """``Tensor.addmv_``. Follows ``torch.addmv_``.

    Args:
        mat: a matrix (n, m)
        vec: a vector (m)
        beta: a number
        alpha: a number
    Returns:
        ``input``.
    """
    return input.addmv_(mat, vec, beta=beta, alpha=alpha)
