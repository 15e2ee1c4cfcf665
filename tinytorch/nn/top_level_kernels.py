"""Further functions that PyTorch has in its top namespace alone: kernels of layers, and methods as functions."""

from __future__ import annotations

from ..ops.bags import shorten
from ..ops.declare import function
from ..tensor import Tensor
from . import functional as F
from .top_level import grid_sampler


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
    """``grid_sampler`` of volumes. Follows ``torch.grid_sampler_3d``.

    Args:
        grid: places from -1 to 1, (N, D, H, W, 3)
        interpolation_mode: 0 is "bilinear", 1 is "nearest"
        padding_mode: 0 is "zeros", 1 is "border", 2 is "reflection"
        align_corners: whether -1 and 1 are the centers of the elements at the corners
    Returns:
        A tensor of the places of ``grid``.
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
