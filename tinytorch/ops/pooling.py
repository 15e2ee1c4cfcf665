"""The public functions of pooling. Kernels and arguments: pool.py."""

from __future__ import annotations

import math

from ..dtypes import int64
from ..tensor import Tensor
from .activation import relu
from .create import zeros
from .declare import function
from .pool import (
    adaptive_max,
    adaptive_mean,
    check_dtype,
    fractional,
    max_windows,
    mean_windows,
    per_dim,
    spatial,
)

# Of (N, C, L), (N, C, H, W) and (N, C, D, H, W), or without N.


@function(namespace="nn.functional")
def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element of each window of ``input``, of shape (N, C, L) or (C, L). Follows
    ``torch.nn.functional.max_pool1d``.

    Args:
        kernel_size: the elements of a window along each dimension: a number
        stride: from one window to the next; the window's size unless given
        padding: how many elements before and behind each dimension are taken for -inf, at most half a window
        dilation: from one element of a window to the next
        ceil_mode: whether a last window may reach beyond the end
        return_indices: whether to give also where the elements are
    Returns:
        A tensor (N, C, L) or (C, L); with ``return_indices`` also their places in the last dimension, int64.
    Raises:
        RuntimeError: the windows are larger than what they go over, or a size is not positive
        NotImplementedError: bools and complex numbers
    """
    return max_windows("max_pool1d", input, 1, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@function(namespace="nn.functional")
def max_pool1d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """``max_pool1d`` that always gives the indices too. Follows
    ``torch.nn.functional.max_pool1d_with_indices``."""
    return max_windows("max_pool1d_with_indices", input, 1, kernel_size, stride, padding, dilation, ceil_mode, True)


@function(namespace="nn.functional")
def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element of each window of ``input``, of shape (N, C, H, W) or (C, H, W). Follows
    ``torch.nn.functional.max_pool2d``.

    Args:
        kernel_size: the elements of a window along each dimension: a number, or two
        stride: from one window to the next; the window's size unless given
        padding: how many elements before and behind each dimension are taken for -inf, at most half a window
        dilation: from one element of a window to the next
        ceil_mode: whether a last window may reach beyond the end
        return_indices: whether to give also where the elements are
    Returns:
        A tensor (N, C, H, W) or (C, H, W); with ``return_indices`` also their places in the last 2
        dimensions, taken as one, int64.
    Raises:
        RuntimeError: the windows are larger than what they go over, or a size is not positive
        NotImplementedError: bools and complex numbers
    """
    return max_windows("max_pool2d", input, 2, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@function(namespace="nn.functional")
def max_pool2d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """``max_pool2d`` that always gives the indices too. Follows
    ``torch.nn.functional.max_pool2d_with_indices``."""
    return max_windows("max_pool2d_with_indices", input, 2, kernel_size, stride, padding, dilation, ceil_mode, True)


@function(namespace="nn.functional")
def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element of each window of ``input``, of shape (N, C, D, H, W) or (C, D, H, W). Follows
    ``torch.nn.functional.max_pool3d``.

    Args:
        kernel_size: the elements of a window along each dimension: a number, or three
        stride: from one window to the next; the window's size unless given
        padding: how many elements before and behind each dimension are taken for -inf, at most half a window
        dilation: from one element of a window to the next
        ceil_mode: whether a last window may reach beyond the end
        return_indices: whether to give also where the elements are
    Returns:
        A tensor (N, C, D, H, W) or (C, D, H, W); with ``return_indices`` also their places in the last
        3 dimensions, taken as one, int64.
    Raises:
        RuntimeError: the windows are larger than what they go over, or a size is not positive
        NotImplementedError: bools and complex numbers
    """
    return max_windows("max_pool3d", input, 3, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@function(namespace="nn.functional")
def max_pool3d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """``max_pool3d`` that always gives the indices too. Follows
    ``torch.nn.functional.max_pool3d_with_indices``."""
    return max_windows("max_pool3d_with_indices", input, 3, kernel_size, stride, padding, dilation, ceil_mode, True)


@function
def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """The mean of each window of ``input``, of shape (N, C, L) or (C, L). Follows
    ``torch.nn.functional.avg_pool1d``.

    Args:
        kernel_size: the elements of a window along each dimension: a number
        stride: from one window to the next; the window's size unless given
        padding: how many zeros lie before and behind each dimension, at most half a window
        ceil_mode: whether a last window may reach beyond the end
        count_include_pad: whether these zeros count
    Returns:
        A tensor (N, C, L) or (C, L).
    Raises:
        RuntimeError: the windows are larger than what they go over, or a size is not positive
        NotImplementedError: dtypes that are neither floating nor int64
    """
    return mean_windows("avg_pool1d", input, 1, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@function(namespace="nn.functional")
def avg_pool2d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    """The mean of each window of ``input``, of shape (N, C, H, W) or (C, H, W). Follows
    ``torch.nn.functional.avg_pool2d``.

    Args:
        kernel_size: the elements of a window along each dimension: a number, or two
        stride: from one window to the next; the window's size unless given
        padding: how many zeros lie before and behind each dimension, at most half a window
        ceil_mode: whether a last window may reach beyond the end
        count_include_pad: whether these zeros count
        divisor_override: a number to divide sums by in the place of that of elements, or None
    Returns:
        A tensor (N, C, H, W) or (C, H, W).
    Raises:
        RuntimeError: the windows are larger than what they go over, or a size is not positive
        NotImplementedError: dtypes that are neither floating nor int64
    """
    return mean_windows(
        "avg_pool2d", input, 2, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@function(namespace="nn.functional")
def avg_pool3d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    """The mean of each window of ``input``, of shape (N, C, D, H, W) or (C, D, H, W). Follows
    ``torch.nn.functional.avg_pool3d``.

    Args:
        kernel_size: the elements of a window along each dimension: a number, or three
        stride: from one window to the next; the window's size unless given
        padding: how many zeros lie before and behind each dimension, at most half a window
        ceil_mode: whether a last window may reach beyond the end
        count_include_pad: whether these zeros count
        divisor_override: a number to divide sums by in the place of that of elements, or None
    Returns:
        A tensor (N, C, D, H, W) or (C, D, H, W).
    Raises:
        RuntimeError: the windows are larger than what they go over, or a size is not positive
        NotImplementedError: dtypes that are neither floating nor int64
    """
    return mean_windows(
        "avg_pool3d", input, 3, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@function
def adaptive_avg_pool1d(input, output_size):
    """The means of ``output_size`` windows that share ``input``, of shape (N, C, L) or (C, L), out. Follows
    ``torch.nn.functional.adaptive_avg_pool1d``.

    Args:
        output_size: how many windows along each dimension: a number
    Returns:
        A tensor (N, C, L) or (C, L).
    Raises:
        RuntimeError: the tensor has other dimensions, or none of its elements
        NotImplementedError: dtypes that are not floating
    """
    return adaptive_mean("adaptive_avg_pool1d", input, 1, output_size)


@function(namespace="nn.functional")
def adaptive_avg_pool2d(input, output_size):
    """The means of ``output_size`` windows that share ``input``, of shape (N, C, H, W) or (C, H, W), out. Follows
    ``torch.nn.functional.adaptive_avg_pool2d``.

    Args:
        output_size: how many windows along each dimension: a number, or two; None for as many as there are elements
    Returns:
        A tensor (N, C, H, W) or (C, H, W).
    Raises:
        RuntimeError: the tensor has other dimensions, or none of its elements
        NotImplementedError: dtypes that are not floating
    """
    return adaptive_mean("adaptive_avg_pool2d", input, 2, output_size)


@function(namespace="nn.functional")
def adaptive_avg_pool3d(input, output_size):
    """The means of ``output_size`` windows that share ``input``, of shape (N, C, D, H, W) or (C, D, H, W), out. Follows
    ``torch.nn.functional.adaptive_avg_pool3d``.

    Args:
        output_size: how many windows along each dimension: a number, or three; None for as many as there are elements
    Returns:
        A tensor (N, C, D, H, W) or (C, D, H, W).
    Raises:
        RuntimeError: the tensor has other dimensions, or none of its elements
        NotImplementedError: dtypes that are not floating
    """
    return adaptive_mean("adaptive_avg_pool3d", input, 3, output_size)


@function(namespace="nn.functional")
def adaptive_max_pool1d(input, output_size, return_indices=False):
    """The largest elements of ``output_size`` windows that share ``input``, of shape (N, C, L) or (C, L), out.
    Follows ``torch.nn.functional.adaptive_max_pool1d``.

    Args:
        output_size: how many windows along each dimension: a number
        return_indices: whether to give also where the elements are
    Returns:
        A tensor (N, C, L) or (C, L); with ``return_indices`` also where the elements are, int64.
    Raises:
        RuntimeError: the tensor has other dimensions, or none of its elements
        NotImplementedError: dtypes that are not floating
    """
    return adaptive_max("adaptive_max_pool1d", input, 1, output_size, return_indices)


@function(namespace="nn.functional")
def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False):
    """``adaptive_max_pool1d`` that always gives the indices too. Follows
    ``torch.nn.functional.adaptive_max_pool1d_with_indices``."""
    return adaptive_max("adaptive_max_pool1d_with_indices", input, 1, output_size, True)


@function(namespace="nn.functional")
def adaptive_max_pool2d(input, output_size, return_indices=False):
    """The largest elements of ``output_size`` windows that share ``input``, of shape (N, C, H, W) or (C, H, W), out.
    Follows ``torch.nn.functional.adaptive_max_pool2d``.

    Args:
        output_size: how many windows along each dimension: a number, or two; None for as many as there are elements
        return_indices: whether to give also where the elements are
    Returns:
        A tensor (N, C, H, W) or (C, H, W); with ``return_indices`` also where the elements are, int64.
    Raises:
        RuntimeError: the tensor has other dimensions, or none of its elements
        NotImplementedError: dtypes that are not floating
    """
    return adaptive_max("adaptive_max_pool2d", input, 2, output_size, return_indices)


@function(namespace="nn.functional")
def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False):
    """``adaptive_max_pool2d`` that always gives the indices too. Follows
    ``torch.nn.functional.adaptive_max_pool2d_with_indices``."""
    return adaptive_max("adaptive_max_pool2d_with_indices", input, 2, output_size, True)


@function(namespace="nn.functional")
def adaptive_max_pool3d(input, output_size, return_indices=False):
    """The largest elements of ``output_size`` windows that share ``input``, of shape (N, C, D, H, W) or (C, D, H, W),
    out. Follows ``torch.nn.functional.adaptive_max_pool3d``.

    Args:
        output_size: how many windows along each dimension: a number, or three; None for as many as there are elements
        return_indices: whether to give also where the elements are
    Returns:
        A tensor (N, C, D, H, W) or (C, D, H, W); with ``return_indices`` also where the elements are, int64.
    Raises:
        RuntimeError: the tensor has other dimensions, or none of its elements
        NotImplementedError: dtypes that are not floating
    """
    return adaptive_max("adaptive_max_pool3d", input, 3, output_size, return_indices)


@function(namespace="nn.functional")
def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False):
    """``adaptive_max_pool3d`` that always gives the indices too. Follows
    ``torch.nn.functional.adaptive_max_pool3d_with_indices``."""
    return adaptive_max("adaptive_max_pool3d_with_indices", input, 3, output_size, True)


@function(namespace="nn.functional")
def fractional_max_pool2d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """The largest element of each of ``output_size`` windows of ``input``, of shape (N, C, H, W) or (C, H, W),
    at random distances (Graham 2014, arXiv:1412.6071). Follows ``torch.nn.functional.fractional_max_pool2d``.

    Args:
        kernel_size: the elements of a window along each dimension: a number, or two
        output_size: how many windows along each dimension: a number, or two; or
        output_ratio: as a part of the input's sizes, between 0 and 1
        return_indices: whether to give also where the elements are
        _random_samples: numbers in [0, 1), of shape (N, C, 2), in the place of random ones
    Returns:
        A tensor (N, C, H, W) or (C, H, W); with ``return_indices`` also where the elements are, int64.
    Raises:
        ValueError: neither size nor ratio is given
        RuntimeError: the windows are larger than what they go over
    """
    return fractional(
        "fractional_max_pool2d", input, 2, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )


@function(namespace="nn.functional")
def fractional_max_pool2d_with_indices(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """``fractional_max_pool2d`` that always gives the indices too. Follows
    ``torch.nn.functional.fractional_max_pool2d_with_indices``."""
    return fractional(
        "fractional_max_pool2d_with_indices", input, 2, kernel_size, output_size, output_ratio, True, _random_samples
    )


@function(namespace="nn.functional")
def fractional_max_pool3d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """The largest element of each of ``output_size`` windows of ``input``, of shape (N, C, D, H, W) or (C, D, H, W),
    at random distances (Graham 2014, arXiv:1412.6071). Follows ``torch.nn.functional.fractional_max_pool3d``.

    Args:
        kernel_size: the elements of a window along each dimension: a number, or three
        output_size: how many windows along each dimension: a number, or three; or
        output_ratio: as a part of the input's sizes, between 0 and 1
        return_indices: whether to give also where the elements are
        _random_samples: numbers in [0, 1), of shape (N, C, 3), in the place of random ones
    Returns:
        A tensor (N, C, D, H, W) or (C, D, H, W); with ``return_indices`` also where the elements are, int64.
    Raises:
        ValueError: neither size nor ratio is given
        RuntimeError: the windows are larger than what they go over
    """
    return fractional(
        "fractional_max_pool3d", input, 3, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )


@function(namespace="nn.functional")
def fractional_max_pool3d_with_indices(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """``fractional_max_pool3d`` that always gives the indices too. Follows
    ``torch.nn.functional.fractional_max_pool3d_with_indices``."""
    return fractional(
        "fractional_max_pool3d_with_indices", input, 3, kernel_size, output_size, output_ratio, True, _random_samples
    )


def _power_mean(input: Tensor, dims: int, norm_type, kernel_size, means) -> Tensor:
    """The root of the sum of powers, of the mean of powers."""
    if not isinstance(input, Tensor):
        raise TypeError(f"lp_pool{dims}d(): argument 'input' must be Tensor, not {type(input).__name__}")
    means = means(input.pow(norm_type))
    return (
        (means.sign() * relu(means.abs()))
        .mul(math.prod(per_dim("lp_pool", "kernel_size", kernel_size, dims)))
        .pow(1.0 / norm_type)
    )


@function(namespace="nn.functional")
def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The ``norm_type``-norm of each window of ``input``, of shape (N, C, L) or (C, L). Follows
    ``torch.nn.functional.lp_pool1d``.

    Args:
        norm_type: the order of the norm
        kernel_size: the elements of a window along each dimension: a number
        stride: from one window to the next; the window's size unless given
        ceil_mode: whether a last window may reach beyond the end
    Returns:
        A tensor (N, C, L) or (C, L).
    Raises:
        RuntimeError: the windows are larger than what they go over, or a size is not positive
    """
    return _power_mean(input, 1, norm_type, kernel_size, lambda x: avg_pool1d(x, kernel_size, stride, 0, ceil_mode))


@function(namespace="nn.functional")
def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The ``norm_type``-norm of each window of ``input``, of shape (N, C, H, W) or (C, H, W). Follows
    ``torch.nn.functional.lp_pool2d``.

    Args:
        norm_type: the order of the norm
        kernel_size: the elements of a window along each dimension: a number, or two
        stride: from one window to the next; the window's size unless given
        ceil_mode: whether a last window may reach beyond the end
    Returns:
        A tensor (N, C, H, W) or (C, H, W).
    Raises:
        RuntimeError: the windows are larger than what they go over, or a size is not positive
    """
    return _power_mean(input, 2, norm_type, kernel_size, lambda x: avg_pool2d(x, kernel_size, stride, 0, ceil_mode))


@function(namespace="nn.functional")
def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The ``norm_type``-norm of each window of ``input``, of shape (N, C, D, H, W) or (C, D, H, W). Follows
    ``torch.nn.functional.lp_pool3d``.

    Args:
        norm_type: the order of the norm
        kernel_size: the elements of a window along each dimension: a number, or three
        stride: from one window to the next; the window's size unless given
        ceil_mode: whether a last window may reach beyond the end
    Returns:
        A tensor (N, C, D, H, W) or (C, D, H, W).
    Raises:
        RuntimeError: the windows are larger than what they go over, or a size is not positive
    """
    return _power_mean(input, 3, norm_type, kernel_size, lambda x: avg_pool3d(x, kernel_size, stride, 0, ceil_mode))


def _unpool(op: str, input: Tensor, indices: Tensor, dims: int, kernel_size, stride, padding, output_size) -> Tensor:
    check_dtype(op, input, "floating")
    taps = per_dim(op, "kernel_size", kernel_size, dims)
    stride = taps if stride is None else per_dim(op, "stride", stride, dims)
    padding = per_dim(op, "padding", padding, dims)
    least = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(input.shape[-dims:], stride, taps, padding)]
    sizes = tuple(least if output_size is None else output_size)
    if output_size is not None:
        if len(sizes) == dims + 2:
            sizes = sizes[2:]
        if len(sizes) != dims:
            raise ValueError(
                f"{op}: output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a length "
                f"of '{len(sizes)}'"
            )
        for n, s, size in zip(least, stride, sizes):
            if not n - s < size < n + s:
                raise ValueError(
                    f'{op}: invalid output_size "{sizes}" (each size must differ by less than the stride from {least})'
                )
    if min(sizes) < 0:
        raise ValueError(f"{op}: output_size must contain non-negative spatial dimensions, but got {list(sizes)}")
    spatial(op, input, dims)
    if not isinstance(indices, Tensor):
        raise TypeError(f"{op}(): argument 'indices' must be Tensor, not {type(indices).__name__}")
    if indices.dtype is not int64:
        raise RuntimeError(f"{op}: elements in indices should be type int64 but got: {indices.dtype.name}")
    if indices.shape != input.shape:
        raise RuntimeError(
            f"{op}: Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but got "
            f"indices tensor with shape: {list(indices.shape)}"
        )
    lead = input.shape[:-dims]
    flat = zeros((*lead, math.prod(sizes)), dtype=input.dtype, device=input.device)
    return flat.scatter(-1, indices.flatten(-dims), input.flatten(-dims)).reshape(*lead, *sizes)


@function(namespace="nn.functional")
def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Zeros, and the elements of ``input``, of shape (N, C, L) or (C, L), where ``max_pool1d`` has found
    them. Follows ``torch.nn.functional.max_unpool1d``.

    Args:
        indices: where, in the last dimension: an int64 tensor of the shape of ``input``
        kernel_size: the elements of a window along each dimension: a number
        stride: from one window to the next; the window's size unless given
        padding: the padding of ``max_pool1d``
        output_size: the sizes of the result, where several would do
    Returns:
        A tensor (N, C, L) or (C, L).
    Raises:
        ValueError: ``output_size`` does not go with the windows
        RuntimeError: shapes do not match
    """
    return _unpool("max_unpool1d", input, indices, 1, kernel_size, stride, padding, output_size)


@function(namespace="nn.functional")
def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Zeros, and the elements of ``input``, of shape (N, C, H, W) or (C, H, W), where ``max_pool2d`` has found
    them. Follows ``torch.nn.functional.max_unpool2d``.

    Args:
        indices: where, in the last 2 dimensions taken as one: an int64 tensor of the shape of ``input``
        kernel_size: the elements of a window along each dimension: a number, or two
        stride: from one window to the next; the window's size unless given
        padding: the padding of ``max_pool2d``
        output_size: the sizes of the result, where several would do
    Returns:
        A tensor (N, C, H, W) or (C, H, W).
    Raises:
        ValueError: ``output_size`` does not go with the windows
        RuntimeError: shapes do not match
    """
    return _unpool("max_unpool2d", input, indices, 2, kernel_size, stride, padding, output_size)


@function(namespace="nn.functional")
def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Zeros, and the elements of ``input``, of shape (N, C, D, H, W) or (C, D, H, W), where ``max_pool3d`` has found
    them. Follows ``torch.nn.functional.max_unpool3d``.

    Args:
        indices: where, in the last 3 dimensions taken as one: an int64 tensor of the shape of ``input``
        kernel_size: the elements of a window along each dimension: a number, or three
        stride: from one window to the next; the window's size unless given
        padding: the padding of ``max_pool3d``
        output_size: the sizes of the result, where several would do
    Returns:
        A tensor (N, C, D, H, W) or (C, D, H, W).
    Raises:
        ValueError: ``output_size`` does not go with the windows
        RuntimeError: shapes do not match
    """
    return _unpool("max_unpool3d", input, indices, 3, kernel_size, stride, padding, output_size)
