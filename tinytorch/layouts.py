"""Memory formats and layouts: names that PyTorch's signatures take."""

from __future__ import annotations

from . import library_name
from .dtypes import no_more


class memory_format:
    """How the dimensions of a new tensor lie in memory. Follows ``torch.memory_format``."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self):
        return f"{library_name.shown}.{self.name}"

    def __reduce__(self):
        return self.name


class layout(memory_format):
    """How elements are stored: ``strided``, or sparse (ops/sparse.py). Follows ``torch.layout``."""

    __slots__ = ()


preserve_format = memory_format("preserve_format")
contiguous_format = memory_format("contiguous_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
strided = layout("strided")
sparse_coo, sparse_csr = layout("sparse_coo"), layout("sparse_csr")
# That no tensor here has; programs ask for them.
sparse_csc, sparse_bsr, sparse_bsc = layout("sparse_csc"), layout("sparse_bsr"), layout("sparse_bsc")
jagged = layout("jagged")


memory_format.__new__ = no_more  # these are all
_LAST = {channels_last: 4, channels_last_3d: 5}
_OF_RANK = {rank: form for form, rank in _LAST.items()}


def row_major(shape) -> tuple[int, ...]:
    """The strides of elements without gaps, the last dimension innermost."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n or 1
    return tuple(reversed(strides))


def strides_of(shape, form: memory_format, op: str) -> list[int]:
    """The strides of a dense tensor in this format. RuntimeError where the format wants other dimensions."""
    n = len(shape)
    if form is contiguous_format:
        order = list(range(n))
    elif form in _LAST:
        if n != _LAST[form]:
            raise RuntimeError(
                f"{op}: required rank {_LAST[form]} tensor to use {form.name} format, got shape {tuple(shape)}"
            )
        order = [0, *range(2, n), 1]
    else:
        kind = RuntimeError if type(form) is memory_format else TypeError
        raise kind(f"{op}: unsupported memory format {form!r}")
    strides, step = [0] * n, 1
    for d in reversed(order):
        strides[d] = step
        step *= max(shape[d], 1)
    return strides


def suggested(t) -> memory_format:
    """The format of a result that follows ``t``: channels_last where its channels lie closest together, else
    contiguous_format. Where sizes of 1 leave it open, PyTorch's choice."""
    form = _OF_RANK.get(t._h.ndim)
    if form is None:
        return contiguous_format
    shape, strides = t.shape, t.stride()
    least = 0
    for d in (1, *range(len(shape) - 1, 1, -1), 0):
        if shape[d] == 0 or strides[d] < least or (d == 0 and least == strides[1]):
            return contiguous_format
        least = strides[d] * (shape[d] if shape[d] > 1 else 1)
    return form
