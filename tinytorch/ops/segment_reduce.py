"""Reductions of the segments that follow one another along a dimension."""

from __future__ import annotations

import math

from ..dtypes import int32, int64
from ..tensor import Tensor
from .declare import function
from .ranges import arange
from .search import searchsorted

# The reduction that joins what is there, and what there is for no elements.
_JOINS = {
    "sum": ("sum", 0.0), "mean": ("sum", 0.0), "prod": ("prod", 1.0),
    "max": ("amax", -math.inf), "amax": ("amax", -math.inf), "min": ("amin", math.inf), "amin": ("amin", math.inf),
}  # fmt: skip


def _bounds(data, lengths, offsets, axis: int, unsafe: bool):
    """Where segments begin, and the last one ends, in each row before the axis: (*, segments + 1)."""
    given, name = (lengths, "lengths") if offsets is None else (offsets, "offsets")
    if axis != given.ndim - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}.")
    if given.dtype not in (int32, int64):
        raise NotImplementedError(f"segment_reduce: {name} of {given.dtype.name}; wanted int32 or int64")
    if given.shape[:axis] != data.shape[:axis]:
        raise RuntimeError(f"segment_reduce(): Expected data and {name} to have the same sizes before the axis")
    if offsets is not None:
        return offsets.long()
    ends = lengths.long().cumsum(-1)
    if not unsafe:
        if lengths.numel() and int(lengths.min()) < 0:
            raise RuntimeError("segment_reduce: lengths contains negative value!")
        sums = ends[..., -1] if ends.shape[-1] else ends.sum(-1)
        if not bool((sums == data.shape[axis]).all()):
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
                "!unsafe."
            )
    return ends.new_zeros((*ends.shape[:-1], ends.shape[-1] + 1)).slice_scatter(ends, -1, 1)


@function
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
):
    """Sums, products, means or extremes of the segments of ``data`` that follow one another along ``axis``. Follows
    ``torch.segment_reduce``.

    Args:
        data: a floating tensor
        reduce: ``"sum"``, ``"prod"``, ``"mean"``, ``"max"`` or ``"min"``
        lengths: how long each segment is: integers (\\*, segments), after the dimensions of ``data`` before the axis
        indices: not implemented, as in PyTorch
        offsets: where each segment begins, and the last one ends: integers (\\*, segments + 1)
        axis: the last dimension of ``lengths`` or ``offsets``
        unsafe: True: ``lengths`` are not looked at
        initial: what each reduction starts with, and gives for no elements
    Returns:
        A tensor of the shape of ``data`` with as many elements along the axis as there are segments.
    Raises:
        RuntimeError: neither lengths nor offsets, an unknown reduction, or lengths that do not fit
        NotImplementedError: ``data`` is not floating, or lengths are no integers
    """
    if not isinstance(reduce, (str, bytes)):
        raise TypeError(f"segment_reduce(): argument 'reduce' must be str, not {type(reduce).__name__}")
    if reduce not in _JOINS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    axis = data._dim(axis)
    if not data.is_floating_point():
        raise NotImplementedError(f"segment_reduce: not implemented for '{data.dtype.name}'")
    bounds = _bounds(data, lengths, offsets, axis, unsafe)
    n, count = data.shape[axis], bounds.shape[-1] - 1
    before, after = data.shape[:axis], data.shape[axis + 1 :]
    rows = math.prod(before)
    # The number of each element's segment; elements before the first segment and after the last go to one more.
    at = arange(n, device=data.device).expand(rows, n).contiguous()
    segment = searchsorted(bounds.reshape(rows, -1)[:, : count + 1].contiguous(), at, right=True) - 1
    segment = segment.masked_fill((segment < 0) | (segment >= count), count)
    x = data.reshape(rows, n, math.prod(after))
    how, start = _JOINS[reduce]
    out = x.new_full((rows, count + 1, x.shape[2]), start if initial is None else initial)
    out = out.scatter_reduce(1, segment.unsqueeze(2).expand(x.shape), x, how)[:, :count]
    if reduce == "mean":
        sizes = bounds.diff().reshape(rows, count, 1)
        out = out / (sizes.masked_fill(sizes == 0, 1) if initial is not None else sizes).to(out.dtype)
    return out.reshape(*before, count, *after)
