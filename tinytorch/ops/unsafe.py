"""Parts of a tensor that the tape takes for tensors of their own."""

from __future__ import annotations

import operator

from ..tensor import owned
from .declare import both, primitive
from .slicing import _joined, _parts, _views, chunk, split


def _apart(parts):
    """Views that count writes by themselves, and whose base does not know of them."""
    made = []
    for part in parts:
        made.append(owned.tt_apart(part._h))
    return tuple(made)


def _unsafe(name: str):
    @primitive(name=name, outputs=(), input=lambda g, input_shape, sizes, dim: _joined(g, sizes, input_shape, dim))
    def unsafe(input, sizes, dim):
        return _apart(_views(input.detach(), _parts, len(sizes), dim, 0, sizes))

    return unsafe


_unsafe_split, _unsafe_split_with_sizes = _unsafe("unsafe_split"), _unsafe("unsafe_split_with_sizes")


@both
def unsafe_split(input, split_size, dim=0):
    """``split`` whose results may be written in place, since the tape takes each for a tensor of its own: right only
    where ``input`` and the other parts are not used after that. Follows ``torch.unsafe_split``."""
    parts = split(input.detach(), operator.index(split_size), dim)
    dim = input._dim(dim)
    return _unsafe_split(input, tuple([p.shape[dim] for p in parts]), dim)


@both
def unsafe_split_with_sizes(input, split_sizes, dim=0):
    """``unsafe_split`` by sizes. Follows ``torch.unsafe_split_with_sizes``."""
    parts = split(input.detach(), list(split_sizes), dim)
    dim = input._dim(dim)
    return _unsafe_split_with_sizes(input, tuple([p.shape[dim] for p in parts]), dim)


@both
def unsafe_chunk(input, chunks, dim=0):
    """``chunk``, as ``unsafe_split`` is ``split``. Follows ``torch.unsafe_chunk``."""
    parts = chunk(input.detach(), chunks, dim)
    dim = input._dim(dim)
    return _unsafe_split(input, tuple([p.shape[dim] for p in parts]), dim)
