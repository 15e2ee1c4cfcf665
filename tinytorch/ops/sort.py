"""Sorting, selection, unique elements and histograms. Equal elements keep their order; NaN is larger than all.

Values that were selected send their gradient back to where they came from (``selection`` in reduce.py).
"""

from __future__ import annotations

import operator

import math

from .. import return_types
from ..autograd.views import refresh
from ..backends.cpu import ffi, lib
from ..devices import on_device
from ..dtypes import INTEGRAL
from ..tensor import gives_tensors, owned
from ..autograd.formulas import not_implemented
from .declare import both, primitive, write_all_out, write_out
from .fitting import fitted
from .extremes import selection, shared

_KTH, _MEDIAN, _NANMEDIAN, _MODE = range(4)


def _pair(values, indices, out, op, result):
    if out is None:
        return result(values, indices)
    return result(*write_all_out(op, (values, indices), out))


_sorting, _topping, _picking = [gives_tensors(call) for call in (lib.tt_sort, lib.tt_topk, lib.tt_pick)]


def _sort_forward(input, descending, dim, keepdim):
    return _sorting(input._h, dim, descending, ffi.new("tt_array *[1]"))


def _topk_forward(input, k, largest, dim, keepdim):
    return _topping(input._h, k, dim, largest, ffi.new("tt_array *[1]"))


_sort, _topk = selection("sort", _sort_forward), selection("topk", _topk_forward)


@both
def sort(input, dim=-1, descending=False, stable=False, *, out=None):
    """The elements in order along ``dim``, and their indices: a named tuple (values, indices). The order is always
    stable. Follows ``torch.sort``.

    Args:
        descending: whether the largest comes first
        stable: taken as in PyTorch; equal elements keep their order in any case
        out: a pair of tensors
    Returns:
        A named tuple (values, indices) of the shape of ``input``; indices are int64.
    Raises:
        IndexError: ``dim`` is out of range
    """
    return _pair(*_sort(input, descending, input._dim(dim), True), out, "sort", return_types.sort)


@both
def argsort(input, dim=-1, descending=False, stable=False):
    """The indices that sort ``input`` along ``dim``; int64. Follows ``torch.argsort``.

    Args:
        descending: whether the largest comes first
        stable: taken as in PyTorch
    Returns:
        An int64 tensor of the shape of ``input``.
    Raises:
        IndexError: ``dim`` is out of range
    """
    return _sort(input, descending, input._dim(dim), True)[1]


@both
def msort(input, *, out=None):
    """``input`` sorted along its first dimension. Follows ``torch.msort``."""
    return write_out("msort", sort(input, 0).values, out, True)


@both
def topk(input, k, dim=-1, largest=True, sorted=True, *, out=None):
    """The ``k`` largest (or smallest) elements along ``dim``, in order, and their indices: a named tuple (values,
    indices). RuntimeError when there are fewer. Follows ``torch.topk``.

    Args:
        k: how many
        largest: whether the largest, or the smallest
        sorted: whether in order
        out: a pair of tensors
    Returns:
        A named tuple (values, indices) with ``k`` entries along ``dim``; indices are int64.
    Raises:
        RuntimeError: there are fewer than ``k`` elements
    """
    if isinstance(k, bool):
        raise TypeError("topk(): argument 'k' must be int, not bool")
    return _pair(*_topk(input, operator.index(k), largest, input._dim(dim), True), out, "topk", return_types.topk)


def _pick(name: str, what: int, result, title: str | None = None):
    def forward(input, k, dim, keepdim):
        return _picking(what, input._h, k, dim, keepdim, ffi.new("tt_array *[1]"))

    select = selection(name, forward, title)

    def pick(input, k, dim, keepdim, out):
        return _pair(*select(input, operator.index(k), input._dim(dim), keepdim), out, name, result)

    return pick


_kthvalue = _pick("kthvalue", _KTH, return_types.kthvalue)
_median = _pick("median", _MEDIAN, return_types.median, "MedianBackward1")
_nanmedian = _pick("nanmedian", _NANMEDIAN, return_types.nanmedian, "NanmedianBackward1")
_mode = _pick("mode", _MODE, return_types.mode)


@primitive(
    name="median",
    title={"NanmedianBackward0": f"what == {_NANMEDIAN}", "MedianBackward0": ""},
    input=lambda g, input, out: shared(g, input, out, 0, 0, False),
)
def _middle_of_all(input, what):
    if not input._h.numel:  # NaN, or what an integer makes of it, as in PyTorch
        return on_device(input.device, owned.tt_full, input._h.dtype, 0, ffi.NULL, lib.TT_KIND_FLOAT, math.nan, 0)
    flat = input.detach().reshape((-1,))
    return _picking(what, flat._h, 0, 0, False, ffi.new("tt_array *[1]"))[0]


@both
def kthvalue(input, k, dim=-1, keepdim=False, *, out=None):
    """The ``k``-th smallest element (from 1) along ``dim``: a named tuple (values, indices). Follows
    ``torch.kthvalue``.

    Args:
        k: which, from 1
        out: a pair of tensors
    Returns:
        A named tuple (values, indices) without dimension ``dim``.
    Raises:
        RuntimeError: ``k`` is out of range
    """
    return _kthvalue(input, k, dim, keepdim, out)


@both
def median(input, dim=None, keepdim=False, *, out=None):
    """The median, the lower of two; NaN where there is one. Over ``dim``, a named tuple (values, indices). Follows
    ``torch.median``.

    Returns:
        A 0-d tensor, or over one dimension a named tuple (values, indices).
    Raises:
        IndexError: ``dim`` is out of range
    """
    return _middle_of_all(input, _MEDIAN) if dim is None else _median(input, 0, dim, keepdim, out)


@both
def nanmedian(input, dim=None, keepdim=False, *, out=None):
    """``median`` of the elements that are not NaN. Follows ``torch.nanmedian``. Otherwise like ``median``."""
    return _middle_of_all(input, _NANMEDIAN) if dim is None else _nanmedian(input, 0, dim, keepdim, out)


@both
def mode(input, dim=-1, keepdim=False, *, out=None):
    """The most frequent element along ``dim``, the smallest of several, and the index of its last occurrence: a named
    tuple (values, indices). Follows ``torch.mode``.

    Args:
        out: a pair of tensors
    Returns:
        A named tuple (values, indices) without dimension ``dim``.
    Raises:
        IndexError: ``dim`` is out of range
    """
    return _mode(input, 0, dim, keepdim, out)


# The unique elements.


_grouped, _grouped_rows = gives_tensors(lib.tt_unique), gives_tensors(lib.tt_unique_rows)


def _uniques(op, consecutive):
    @primitive(title=f"{op}Backward0", extra=("inverse", "counts"), input=not_implemented(op))
    def unique(input, dim, alone):
        if alone and dim is None:
            return owned.tt_distinct(input._h, consecutive), None, None
        return _unique_of(op, input, consecutive, dim)

    return unique


def _unique_of(op, input, consecutive, dim):
    if dim is None:
        values, inverse, counts = _grouped(input._h, consecutive, ffi.new("tt_array *[2]"))
        inverse = inverse.reshape(input.shape)
    else:
        dim = input._dim(dim)
        rows = input.detach().movedim(dim, 0)
        if not rows._h.ndim:
            rows = rows.reshape((1,))
        if not rows._h.numel and rows.shape[0]:
            raise RuntimeError(
                f"{op}: There are 0 sized dimensions, and they aren't selected by 'dim', so unique cannot be applied"
            )
        refresh(rows)
        first, inverse, counts = _grouped_rows(rows._h, consecutive, ffi.new("tt_array *[2]"))
        values = input.detach().index_select(dim, first)
    return values, inverse, counts


_unique, _unique_consecutive = _uniques("Unique2", 0), _uniques("UniqueConsecutive", 1)


def _asked_for(unique, input, dim, return_inverse, return_counts):
    values, inverse, counts = unique(input, dim, not (return_inverse or return_counts))
    asked = (values, *((inverse,) if return_inverse else ()), *((counts,) if return_counts else ()))
    return asked if len(asked) > 1 else values


@both
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different elements in order, or the different slices along ``dim``; on request also which of them each
    element is, and how many are each. Follows ``torch.unique``.

    Args:
        sorted: taken as in PyTorch; the result is sorted in any case
        return_inverse: whether to give where each element went
        return_counts: whether to give how often each occurs
        dim: along which slices are compared; None: elements
    Returns:
        A tensor, or a tuple with the int64 tensors that were asked for.
    Raises:
        IndexError: ``dim`` is out of range
    """
    return _asked_for(_unique, input, dim, return_inverse, return_counts)


@both
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The elements without those equal to the one before; else as ``unique``. Follows
    ``torch.unique_consecutive``."""
    return _asked_for(_unique_consecutive, input, dim, return_inverse, return_counts)


# Histograms.


@both
def bincount(input, weights=None, minlength=0):
    """How often each number from 0 on occurs in the 1-d integer tensor, or the sums of its ``weights``. Follows
    ``torch.bincount``.

    Args:
        input: a vector of integers, none negative
        weights: a vector of the same size, or None
        minlength: the least size of the result
    Returns:
        An int64 vector, or with weights a floating one.
    Raises:
        RuntimeError: ``input`` is no vector of integers, or a number is negative
    """
    refresh(input, weights)
    if not INTEGRAL[input._h.dtype] or input._h.dtype == lib.TT_BOOL:
        raise NotImplementedError(f"bincount: not implemented for '{input.dtype.name}'")
    minlength = operator.index(minlength)
    return owned.tt_bincount(input._h, ffi.NULL if weights is None else weights._h, minlength)


@both
def histc(input, bins=100, min=0, max=0, *, out=None):
    """How many elements fall in each of ``bins`` equal intervals between ``min`` and ``max`` (the elements' own if both
    are equal); others are ignored. Floating dtypes. Follows ``torch.histc``.

    Args:
        bins: how many intervals
        min: where the first begins
        max: where the last ends; where both are equal, the range of the elements
    Returns:
        A vector of ``bins`` counts, in the dtype of ``input``.
    Raises:
        RuntimeError: ``bins`` is not positive, or ``max`` is below ``min``
    """
    min, max = fitted(min, input._h.dtype), fitted(max, input._h.dtype)
    if input.dtype.is_floating_point and input.dtype.compute != input._h.dtype:
        return write_out("histc", histc(input.float(), bins, min, max).to(input.dtype), out)
    refresh(input)
    return write_out("histc", owned.tt_histc(input._h, bins, float(min), float(max)), out)
