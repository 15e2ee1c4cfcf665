"""Searches: in sorted values, and among given ones."""

from __future__ import annotations

from ..backends.cpu import error, ffi, lib
from ..tensor import Tensor, attempted, owned
from .declare import both, function, number, write_out
from .rearrange import _ready


def _need_numbers(op, *tensors):
    for t in tensors:
        if t._h.dtype == lib.TT_BOOL:
            raise NotImplementedError(f"{op}(): Unsupported input type encountered: not implemented for 'bool'")


def _search(op, sorted, values, order, right, out_int32, out):
    _need_numbers(op, sorted, values)
    order = ffi.NULL if order is None else _ready(order)._h
    found = attempted.tt_searchsorted(_ready(sorted)._h, _ready(values)._h, order, right, 4 if out_int32 else 5)
    if found is None:
        raise error(f"{op}()")
    return write_out(op, found, out)


def _as_values(x, like) -> Tensor:
    """A number as a tensor of the dtype that it and the other operand promote to."""
    if isinstance(x, Tensor):
        return x
    given = number(x)
    return owned.tt_cast(given._h, lib.tt_result_type(like._h, given._h)).to(like.device)


@both
def bucketize(input, boundaries, *, out_int32=False, right=False, out=None):
    """For each value, the place in the sorted vector ``boundaries`` before which it belongs: the first boundary not
    below it, or with ``right`` the first above it. Follows ``torch.bucketize``.

    Args:
        boundaries: a sorted vector
        out_int32: int32 instead of int64
        right: where a value equals a boundary, the place after it
    Returns:
        An integer tensor of the shape of ``input``.
    Raises:
        RuntimeError: ``boundaries`` is no vector
    """
    if boundaries._h.ndim != 1:
        raise RuntimeError(f"bucketize(): boundaries tensor must be 1 dimension, but got dim({boundaries._h.ndim})")
    return _search("bucketize", boundaries, _as_values(input, boundaries), None, right, out_int32, out)


@function
def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None, out=None):
    """``bucketize`` with a row of boundaries for each row of ``input``: their shapes agree but for the last dimension,
    or the sequence is a vector. ``sorter`` sorts it. Follows ``torch.searchsorted``.

    Args:
        sorted_sequence: a sorted vector, or sorted rows (*, n)
        input: a number, or a tensor (*, m)
        out_int32: int32 instead of int64
        right: where a value equals an element, the place after it
        side: ``'left'`` or ``'right'``, as ``right``
        sorter: the indices that sort ``sorted_sequence``, if it is not sorted
    Returns:
        An integer tensor of the shape of ``input``.
    Raises:
        RuntimeError: shapes do not match
    """
    values = _as_values(input, sorted_sequence)
    n = sorted_sequence._h.ndim
    if n == 0 or (n > 1 and (n != values._h.ndim or sorted_sequence.shape[:-1] != values.shape[:-1])):
        raise RuntimeError(
            "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of "
            "boundaries tensor and input value tensor must match, but we got boundaries tensor "
            f"{list(sorted_sequence.shape)} and input value tensor {list(values.shape)}"
        )
    if side not in (None, "left", "right"):
        raise RuntimeError(f"searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    if sorter is not None and (sorter._h.dtype != lib.TT_I64 or sorter.shape != sorted_sequence.shape):
        raise RuntimeError(
            "searchsorted(): sorter must be an int64 tensor of the boundaries' shape "
            f"{list(sorted_sequence.shape)}, got {sorter.dtype!r} of shape {list(sorter.shape)}"
        )
    return _search("searchsorted", sorted_sequence, values, sorter, right or side == "right", out_int32, out)


@function
def isin(elements, test_elements, *, assume_unique=False, invert=False):
    """Which ``elements`` occur among ``test_elements`` (with ``invert``, which do not): bool.

    Args:
        elements: a tensor, or a number
        test_elements: a tensor, or a number
        assume_unique: taken as in PyTorch
        invert: where ``elements`` are not among them
    Returns:
        A bool tensor of the shape of ``elements``.
    Raises:
        RuntimeError: bool or complex numbers
    """
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise TypeError("isin(): at least one of elements and test_elements must be a Tensor")
    for x in (elements, test_elements):
        if isinstance(x, (bool, complex)) or (isinstance(x, Tensor) and (x._h.dtype == lib.TT_BOOL or x.is_complex())):
            kind = x.dtype.name if isinstance(x, Tensor) else type(x).__name__
            raise RuntimeError(f"isin(): Unsupported input type encountered: {kind}")
    if not isinstance(test_elements, Tensor):
        return elements.ne(test_elements) if invert else elements.eq(test_elements)
    elements, among = _as_values(elements, test_elements), test_elements
    return owned.tt_isin(_ready(elements)._h, _ready(among)._h, invert)
