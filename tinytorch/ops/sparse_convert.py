"""From dense tensors to sparse ones, and back. Note [Sparse tensors] in ops/sparse.py."""

from __future__ import annotations

import math

from ..layouts import layout as _layout
from ..layouts import sparse_coo, sparse_csr, strided
from .declare import method
from .join import cat
from .sparse import RULES, SparseTensor, _coo, _flat, _made, added_up, coalesce, coo


@method
def to_dense(self, dtype=None, *, masked_grad=None):
    """A dense tensor of these elements; a dense tensor itself. Follows ``torch.Tensor.to_dense``.

    Args:
        dtype: the dtype of the result
        masked_grad: taken as in PyTorch; places without values never get gradients
    Returns:
        A dense tensor.
    """
    if not isinstance(self, SparseTensor):
        return self if dtype is None else self.to(dtype)
    s = _coo(self)
    sparse = s._size[: s._places.shape[0]]
    out = added_up(_flat(s._places, sparse), s._entries, math.prod(sparse)).reshape(s._size)
    return out if dtype is None else out.to(dtype)


@method
def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """The elements that are not 0, and their places. Follows ``torch.Tensor.to_sparse``.

    Args:
        sparse_dim: how many dimensions are sparse: the first ones; all unless given
        layout: ``sparse_coo`` (None) or ``sparse_csr``
        blocksize: of layouts that are not there
        dense_dim: the same
    Returns:
        A sparse tensor.
    Raises:
        RuntimeError: there are fewer dimensions
        NotImplementedError: ``blocksize`` or ``dense_dim`` is given, or another layout
    """
    if blocksize is not None or dense_dim is not None:
        raise NotImplementedError("to_sparse: not implemented for blocks, nor for stacks of matrices")
    if isinstance(sparse_dim, _layout):
        sparse_dim, layout = None, sparse_dim
    if layout is sparse_csr:
        return to_sparse_csr(self)
    if layout is strided:
        return to_dense(self)
    if layout not in (None, sparse_coo):
        raise NotImplementedError(f"to_sparse: not implemented for the layout {layout!r}")
    if isinstance(self, SparseTensor):
        return _coo(self)
    count = self.ndim if sparse_dim is None else sparse_dim
    if not 0 < count <= self.ndim and (count or self.ndim):
        raise RuntimeError(f"to_sparse: requested {count} sparse dimensions of a tensor of {self.ndim}")
    there = self.detach() != 0
    for _ in range(self.ndim - count):
        there = there.any(-1)
    places = there.nonzero().t()
    values = self[tuple(places.unbind(0))] if count else self.reshape(1)[: places.shape[1]]
    return coo(places, values, self.shape, True)


@method
def to_sparse_csr(self, dense_dim=None):
    """The values of a matrix that are not 0, by rows. Follows ``torch.Tensor.to_sparse_csr``.

    Args:
        dense_dim: how many of the last dimensions are dense: none
    Returns:
        A tensor of the layout ``sparse_csr``.
    Raises:
        NotImplementedError: of other than two dimensions, or with dense ones
    """
    if isinstance(self, SparseTensor) and self._layout is sparse_csr:
        return self
    if self.ndim != 2 or dense_dim or (isinstance(self, SparseTensor) and self._entries.ndim > 1):
        raise NotImplementedError("to_sparse_csr: implemented for matrices alone")
    s = coalesce(self if isinstance(self, SparseTensor) else to_sparse(self))
    rows, cols = s._places.unbind(0)
    ends = rows.bincount(minlength=s._size[0]).cumsum(0)
    return _made(sparse_csr, (cat((ends.new_zeros(1), ends)), cols), s._entries, s._size, True)


for _fn in (to_dense, to_sparse, to_sparse_csr):
    RULES[_fn.__name__] = _fn
