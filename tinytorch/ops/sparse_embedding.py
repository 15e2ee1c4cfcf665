"""Rows of a matrix, with a sparse gradient: of the rows that were named."""

from __future__ import annotations

from ..backends.cpu import error
from ..tensor import attempted
from .declare import primitive
from .index import INDEX, SELF
from .sparse import coo


def _named_rows(g, shape, indices, padding_idx):
    places, values = indices.reshape(1, -1).long(), g.reshape(-1, shape[1])
    if padding_idx is not None:
        kept = (places[0] != padding_idx).nonzero().squeeze(1)
        places, values = places.index_select(1, kept), values.index_select(0, kept)
    return coo(places, values, shape)


@primitive(
    name="sparse_embedding",
    title="EmbeddingBackward0",
    weight=lambda g, weight_shape, indices, padding_idx: _named_rows(g, weight_shape, indices, padding_idx),
)
def sparse_embedding(weight, indices, padding_idx):
    """The rows of ``weight`` that ``indices`` names; the gradient of ``weight`` is sparse."""
    out = attempted.tt_index_get(weight._h, 1, (INDEX, 1, 0, 0), [indices._h], SELF)
    if out is None:
        raise error("embedding()")
    return out
