"""The public functions of pooling. Kernels and arguments: pool.py."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Iterable
from types import FunctionType

from ..dtypes import int64
from ..tensor import Tensor
from .activation import relu
from .create import zeros
from .declare import function
from .declare.public import outermost
from .pool import (
    adaptive_max,
    adaptive_mean,
    check_dtype,
    check_tensor,
    fractional,
    max_windows,
    mean_windows,
    per_dim,
    spatial,
)

# What docstrings say of one, two and three dimensions.
_WORDS = {
    1: {"shape": "(N, C, L) or (C, L)", "each": "a number", "as_many": "", "last": "the last dimension"},
    2: {"shape": "(N, C, H, W) or (C, H, W)", "each": "a number, or two"},
    3: {"shape": "(N, C, D, H, W) or (C, D, H, W)", "each": "a number, or three"},
}
for _n in (2, 3):
    _WORDS[_n] |= {"as_many": "; None for as many as there are elements"}
    _WORDS[_n] |= {"last": f"the last {_n} dimensions, taken as one"}
_WITH_INDICES = "``{of}`` that always gives the indices too. Follows\n    ``torch.nn.functional.{name}``."


def _of_each(compute, dims=(1, 2, 3), with_indices: bool = False, top_level=()):
    """Decorator: publishes the functions ``<name>1d`` to ``<name>3d``, each of which is ``compute(<its name>, <its
    number of dimensions>, *arguments)``, with the parameters and the docstring of what is decorated. ``with_indices``:
    also ``<name>1d_with_indices`` and so on. ``top_level``: which of them are no functions of ``nn.functional``."""

    def publish(like):
        parameters = list(inspect.signature(like).parameters)
        always = ["True" if p == "return_indices" else p for p in parameters]
        for n in dims:
            of, space = f"{like.__name__}{n}d", "" if n in top_level else "nn.functional"
            variants = [(of, like.__doc__, parameters)]
            if with_indices:
                variants.append((f"{of}_with_indices", _WITH_INDICES, always))
            for name, doc, arguments in variants:
                shown = FunctionType(like.__code__, like.__globals__, name, like.__defaults__)
                shown.__doc__ = doc.format(name=name, of=of, n=n, **_WORDS[n])
                call = outermost(shown, f"compute(NAME, {n}, {', '.join(arguments)})", compute=compute)
                globals()[name] = function(call, namespace=space)

    return publish


@_of_each(max_windows, with_indices=True)
def max_pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element of each window of ``input``, of shape {shape}. Follows
    ``torch.nn.functional.{name}``.

    Args:
        kernel_size: the elements of a window along each dimension: {each}
        stride: from one window to the next; the window's size unless given
        padding: how many elements before and behind each dimension are taken for -inf, at most half a window
        dilation: from one element of a window to the next
        ceil_mode: whether a last window may reach beyond the end
        return_indices: whether to give also where the elements are
    Returns:
        A tensor {shape}; with ``return_indices`` also their places in {last}, int64.
    Raises:
        RuntimeError: the windows are larger than what they go over, or a size is not positive
        NotImplementedError: bools and complex numbers
    """


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
    return mean_windows("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


@_of_each(mean_windows, (2, 3))
def avg_pool(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    """The mean of each window of ``input``, of shape {shape}. Follows
    ``torch.nn.functional.{name}``.

    Args:
        kernel_size: the elements of a window along each dimension: {each}
        stride: from one window to the next; the window's size unless given
        padding: how many zeros lie before and behind each dimension, at most half a window
        ceil_mode: whether a last window may reach beyond the end
        count_include_pad: whether these zeros count
        divisor_override: a number to divide sums by in the place of that of elements, or None
    Returns:
        A tensor {shape}.
    Raises:
        RuntimeError: the windows are larger than what they go over, or a size is not positive
        NotImplementedError: dtypes that are neither floating nor int64
    """


@_of_each(adaptive_mean, top_level=(1,))
def adaptive_avg_pool(input, output_size):
    """The means of ``output_size`` windows that share ``input``, of shape {shape}, out. Follows
    ``torch.nn.functional.{name}``.

    Args:
        output_size: how many windows along each dimension: {each}{as_many}
    Returns:
        A tensor {shape}.
    Raises:
        RuntimeError: the tensor has other dimensions, or none of its elements
        NotImplementedError: dtypes that are not floating
    """


@_of_each(adaptive_max, with_indices=True)
def adaptive_max_pool(input, output_size, return_indices=False):
    """The largest elements of ``output_size`` windows that share ``input``, of shape {shape}, out. Follows
    ``torch.nn.functional.{name}``.

    Args:
        output_size: how many windows along each dimension: {each}{as_many}
        return_indices: whether to give also where the elements are
    Returns:
        A tensor {shape}; with ``return_indices`` also where the elements are, int64.
    Raises:
        RuntimeError: the tensor has other dimensions, or none of its elements
        NotImplementedError: dtypes that are not floating
    """


@_of_each(fractional, (2, 3), with_indices=True)
def fractional_max_pool(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """The largest element of each of ``output_size`` windows of ``input``, of shape {shape},
    at random distances (Graham 2014, arXiv:1412.6071). Follows ``torch.nn.functional.{name}``.

    Args:
        kernel_size: the elements of a window along each dimension: {each}
        output_size: how many windows along each dimension: {each}; or
        output_ratio: as a part of the input's sizes, between 0 and 1
        return_indices: whether to give also where the elements are
        _random_samples: numbers in [0, 1), of shape (N, C, {n}), in the place of random ones
    Returns:
        A tensor {shape}; with ``return_indices`` also where the elements are, int64.
    Raises:
        ValueError: neither size nor ratio is given
        RuntimeError: the windows are larger than what they go over
    """


def _power_mean(op: str, dims: int, input, norm_type, kernel_size, stride, ceil_mode) -> Tensor:
    """The root of the sum of powers, of the mean of powers."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{op}(): argument 'input' must be Tensor, not {type(input).__name__}")
    taps = _each(kernel_size, dims) if dims > 1 else per_dim(op, "kernel_size", kernel_size, 1)
    if len(taps) != dims:
        raise ValueError(f"{op}: kernel_size must have {dims} numbers, got {len(taps)}")
    count = math.prod(taps)
    means = mean_windows(f"avg_pool{dims}d", dims, input.pow(norm_type), kernel_size, stride, 0, ceil_mode, True)
    return (means.sign() * relu(means.abs())).mul(count).pow(1.0 / norm_type)


@_of_each(_power_mean)
def lp_pool(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The ``norm_type``-norm of each window of ``input``, of shape {shape}. Follows
    ``torch.nn.functional.{name}``.

    Args:
        norm_type: the order of the norm
        kernel_size: the elements of a window along each dimension: {each}
        stride: from one window to the next; the window's size unless given
        ceil_mode: whether a last window may reach beyond the end
    Returns:
        A tensor {shape}.
    Raises:
        RuntimeError: the windows are larger than what they go over, or a size is not positive
    """


def _each(value, dims: int) -> tuple:
    """A number for each dimension, from one number or any sequence."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * dims


def _unpool(op: str, dims: int, input, indices, kernel_size, stride, padding, output_size) -> Tensor:
    check_tensor(op, input)
    taps, padding = _each(kernel_size, dims), _each(padding, dims)
    stride = taps if stride is None else _each(stride, dims)
    given = range(-len(taps), 0)
    least = [(input.shape[d] - 1) * stride[d] + taps[d] - 2 * padding[d] for d in given]
    sizes = least if output_size is None else output_size
    if output_size is not None:
        if len(sizes) == len(taps) + 2:
            sizes = sizes[2:]
        if len(sizes) != len(taps):
            raise ValueError(
                f"{op}: output_size should be a sequence containing {len(taps)} or {len(taps) + 2} elements, but it "
                f"has a length of '{len(sizes)}'"
            )
        for n, s, size in zip(least, stride, sizes):
            if not n - s < size < n + s:
                raise ValueError(
                    f'{op}: invalid output_size "{sizes}" (each size must differ by less than the stride from {least})'
                )
    if not all(size >= 0 for size in sizes):
        raise ValueError(f"{op}: output_size must contain non-negative spatial dimensions, but got {list(sizes)}")
    sizes = tuple([operator.index(size) for size in sizes])
    if len(sizes) != dims:
        raise RuntimeError(f"{op}: there should be {dims} elements in output_size, but got {len(sizes)}")
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
    check_dtype(op, input, "floating")
    lead = input.shape[:-dims]
    flat = zeros((*lead, math.prod(sizes)), dtype=input.dtype, device=input.device)
    return flat.scatter(-1, indices.flatten(-dims), input.flatten(-dims)).reshape(*lead, *sizes)


@_of_each(_unpool)
def max_unpool(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Zeros, and the elements of ``input``, of shape {shape}, where ``max_pool{n}d`` has found
    them. Follows ``torch.nn.functional.{name}``.

    Args:
        indices: where, in {last}: an int64 tensor of the shape of ``input``
        kernel_size: the elements of a window along each dimension: {each}
        stride: from one window to the next; the window's size unless given
        padding: the padding of ``max_pool{n}d``
        output_size: the sizes of the result, where several would do
    Returns:
        A tensor {shape}.
    Raises:
        ValueError: ``output_size`` does not go with the windows
        RuntimeError: shapes do not match
    """
