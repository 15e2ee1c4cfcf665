"""Channels and pixels put in other places."""

from __future__ import annotations

import operator

from ..layouts import contiguous_format
from ..tensor import Tensor
from .declare import alias, function


def _blocks(op: str, input: Tensor, factor: int, name: str) -> None:
    if input._h.ndim < 3:
        raise RuntimeError(f"{op}: expects input to have at least 3 dimensions, but got input with {input._h.ndim}")
    if factor <= 0:
        raise RuntimeError(f"{op}: expects a positive {name}, but got {factor}")


@function
def pixel_shuffle(input, upscale_factor):
    """Every r^2 channels become r times as many rows and columns, with r = ``upscale_factor``: from (*, C r^2, H, W) to
    (*, C, H r, W r). Follows ``torch.nn.functional.pixel_shuffle``.

    Args:
        upscale_factor: r
    Returns:
        A tensor (*, C, H r, W r).
    Raises:
        RuntimeError: the number of channels is no multiple of r^2
        ValueError: r^2 is beyond 64 bits
    """
    r = operator.index(upscale_factor)
    if r * r >= 1 << 63:
        raise ValueError(f"pixel_shuffle: upscale factor is too large, its square overflows: upscale_factor={r}")
    _blocks("pixel_shuffle", input, r, "upscale_factor")
    *lead, c, h, w = input.shape
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle: expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={c} is not divisible by {r * r}"
        )
    parts = input.reshape(*lead, c // (r * r), r, r, h, w)
    n = len(lead)
    order = (*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return parts.permute(order).clone(memory_format=contiguous_format).reshape(*lead, c // (r * r), h * r, w * r)


@function
def pixel_unshuffle(input, downscale_factor):
    """The inverse of ``pixel_shuffle``: from (*, C, H r, W r) to (*, C r^2, H, W), with r = ``downscale_factor``.
    Follows ``torch.nn.functional.pixel_unshuffle``.

    Args:
        downscale_factor: r
    Returns:
        A tensor (*, C r^2, H, W).
    Raises:
        RuntimeError: the number of rows or columns is no multiple of r
    """
    r = operator.index(downscale_factor)
    _blocks("pixel_unshuffle", input, r, "downscale_factor")
    *lead, c, h, w = input.shape
    for name, n in (("height", h), ("width", w)):
        if n % r:
            raise RuntimeError(
                f"pixel_unshuffle: expects {name} to be divisible by downscale_factor, but {n} is not divisible by {r}"
            )
    parts = input.reshape(*lead, c, h // r, r, w // r, r)
    n = len(lead)
    order = (*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    return parts.permute(order).clone(memory_format=contiguous_format).reshape(*lead, c * r * r, h // r, w // r)


@function
def channel_shuffle(input, groups):
    """The channels of ``groups`` groups in turn: one of the first, one of the second, and so on. Follows
    ``torch.nn.functional.channel_shuffle``.

    Args:
        input: a tensor (*, C, H, W)
        groups: how many groups
    Returns:
        A tensor of the shape of ``input``.
    Raises:
        RuntimeError: ``groups`` does not divide the number of channels
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"channel_shuffle(): argument 'input' must be Tensor, not {type(input).__name__}")
    shape, groups = input.shape, operator.index(groups)
    if len(shape) < 3:
        raise RuntimeError(f"channel_shuffle: expects input with > 2 dims, but got input with sizes {list(shape)}")
    if groups <= 0:
        raise RuntimeError(f"channel_shuffle: Number of groups to divide channels in must be positive. Value: {groups}")
    if shape[1] % groups:
        raise RuntimeError(
            "channel_shuffle: Number of channels must be divisible by groups. Got "
            f"{shape[1]} channels and {groups} groups."
        )
    parts = input.reshape(shape[0], groups, shape[1] // groups, *shape[2:])
    return parts.transpose(1, 2).clone(memory_format=contiguous_format).reshape(shape)


alias("channel_shuffle", "native_channel_shuffle")
