"""Histograms of one dimension and of several."""

from __future__ import annotations

import math
import operator

import numpy as np

from .. import return_types
from ..dtypes import float32, float64, int64
from ..tensor import FUNCTIONS, Tensor
from .declare import both, function, write_all_out
from .search import bucketize


def _edges(points: Tensor, bins: int, bounds, dim: int) -> Tensor:
    """The edges of equal intervals over ``bounds``, or over the points' own range."""
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension {dim}")
    if bounds is not None:
        low, high = bounds
    elif points._h.numel:
        low, high = points.min().item(), points.max().item()
    else:
        low, high = 0.0, 1.0
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histogramdd: dimension {dim}'s range [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(
            f"torch.histogramdd: min should not exceed max, but got min {low} max {high} for dimension {dim}"
        )
    if low == high:
        low, high = low - 0.5, high + 0.5
    return FUNCTIONS["linspace"](low, high, bins + 1, dtype=points.dtype, device=points.device)


def _check_edges(points: Tensor, edges: Tensor, dim: int) -> Tensor:
    if edges._h.ndim != 1:
        raise RuntimeError(
            f"torch.histogramdd: bins tensor should have one dimension, but got {edges._h.ndim} dimensions in the bins "
            f"tensor for dimension {dim}"
        )
    if edges.dtype is not points.dtype:
        raise RuntimeError(
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
            f"{points.dtype.name} and bins for dimension {dim} with dtype {edges.dtype.name}"
        )
    if edges._h.numel < 2:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got 0 for dimension {dim}")
    return edges.detach()


def _place(x: Tensor, edges: Tensor, search: bool):
    """The number of the interval for each element of a vector, and which are in one. ``search``: not by arithmetic,
    though the intervals are equal, which rounds near their ends."""
    n = len(edges) - 1
    low, high = edges[0], edges[-1]
    at = bucketize(x.contiguous(), edges, right=True) - 1 if search else ((x - low) * n / (high - low)).to(int64)
    return at.clamp(max=n - 1), (x >= low) & (x <= high)  # the last interval has its end


def _counted(points: Tensor, bins, bounds, weight, density: bool, search: bool = True):
    """The histogram of points (*, D), and its edges."""
    if points.dtype not in (float32, float64):
        raise NotImplementedError(f"histogramdd: not implemented for '{points.dtype.name}'")
    points = points.detach()
    d = points.shape[-1]
    if weight is not None:
        if weight.shape != points.shape[:-1]:
            raise RuntimeError(
                "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
                f"excluding its innermost dimension, but got input with shape {list(points.shape)} and weight with "
                f"shape {list(weight.shape)}"
            )
        if weight.dtype is not points.dtype:
            raise RuntimeError(
                "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
                f"dtype, but got input({points.dtype.name}), and weight({weight.dtype.name})"
            )
        weight = weight.detach().reshape(-1).to(float64)
    points = points.reshape(-1, d)
    if bounds is not None and any(isinstance(bound, Tensor) for bound in bounds):
        raise TypeError("argument 'range' must be tuple of floats, but found element of type Tensor")
    if bounds is not None and len(bounds) != 2 * d:
        raise RuntimeError(
            f"torch.histogramdd: for a {d}-dimensional histogram range should have {2 * d} elements, but got "
            f"{len(bounds)}"
        )
    columns = points.unbind(1)
    edges = [
        _check_edges(x, b, k)
        if isinstance(b, Tensor)
        else _edges(x, b, None if bounds is None else bounds[2 * k : 2 * k + 2], k)
        for k, (x, b) in enumerate(zip(columns, bins))
    ]
    sizes = [len(e) - 1 for e in edges]
    place, inside = None, None
    for x, e, n in zip(columns, edges, sizes):
        at, here = _place(x, e, search)
        place = at if place is None else place * n + at
        inside = here if inside is None else inside & here
    place = place[inside]
    hist = place.bincount(None if weight is None else weight[inside], minlength=math.prod(sizes))
    hist = hist.to(points.dtype).reshape(sizes)
    if density:
        hist = hist / hist.sum()
        for k, e in enumerate(edges):
            hist = hist / (e[1:] - e[:-1]).reshape([-1] + [1] * (d - 1 - k))
    return hist, edges


@both
def histogram(input, bins=100, *, range=None, weight=None, density=False, out=None):
    """How many elements, or how much of their ``weight``, fall into each interval: each has its left end, the last one
    both. Follows ``torch.histogram``.

    Args:
        bins: how many equal intervals, or a vector of their ends
        range: from where to where; the elements' own range unless given
        weight: what an element counts, a tensor of the shape of ``input``
        density: whether to give the density, whose integral is 1
    Returns:
        ``(hist, bin_edges)``.
    Raises:
        RuntimeError: ``bins`` is not positive, the range not finite, or dtypes differ
    """
    if isinstance(bins, Tensor) and not bins._h.ndim and range is not None:
        bins = operator.index(bins)
    if isinstance(bins, Tensor) and range is not None:
        raise TypeError("histogram(): got values for 'range' and for the ends of intervals, which exclude each other")
    if not isinstance(bins, Tensor):
        bins = _one_count("histogram", bins)
    points = input.reshape(-1, 1)
    hist, (edges,) = _counted(points, [bins], range, None if weight is None else _flat(input, weight), density)
    return return_types.histogram(*write_all_out("histogram", (hist, edges.clone()), out))


def _one_count(op: str, bins) -> int:
    """One number of intervals. TypeError for what is no integer: PyTorch takes ``__index__`` in a list alone."""
    if not isinstance(bins, (int, np.integer)) or isinstance(bins, bool):
        raise TypeError(f"{op}(): argument 'bins' must be int, a Tensor or a list of them, not {type(bins).__name__}")
    return int(bins)


def _flat(input: Tensor, weight: Tensor) -> Tensor:
    return weight.reshape(-1) if weight.shape == input.shape else weight


@function
def histogramdd(input, bins, range=None, weight=None, density=False):
    """The histogram of points, the rows of ``input``, over boxes. Follows ``torch.histogramdd``.

    Args:
        input: points (*, D)
        bins: how many equal intervals, for all dimensions or for each; or vectors of their ends
        range: two numbers for each dimension, from where to where; the points' own range unless given
        weight: what a point counts, a tensor (*)
        density: whether to give the density, whose integral is 1
    Returns:
        ``(hist, bin_edges)``: a tensor of D dimensions, and a tuple of D vectors.
    Raises:
        RuntimeError: a number of ``bins`` is not positive, a range not finite, or dtypes differ
    """
    if isinstance(bins, Tensor) and not bins._h.ndim:
        bins = operator.index(bins)
    if not hasattr(bins, "__iter__"):
        bins = [_one_count("histogramdd", bins)] * input.size(-1)
    if input._h.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    bins = [b if isinstance(b, Tensor) else operator.index(b) for b in bins]
    if len(bins) != input.shape[-1]:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    hist, edges = _counted(input, bins, range, weight, density, any(isinstance(b, Tensor) for b in bins))
    return return_types.histogramdd(hist, tuple(edges))
