"""What sparse tensors tell of themselves, their copies and their text. Note [Sparse tensors] in ops/sparse.py."""

from __future__ import annotations

import math

from ..dtypes import get_default_dtype, int64
from ..layouts import sparse_coo
from ..printing import with_notes
from ..tensor import Tensor
from .sparse import RULES, _made, coo, dim_of, like, rule


@rule()
def transpose(s, dim0, dim1):
    if s._layout is not sparse_coo:
        raise NotImplementedError("transpose: not implemented for sparse_csr tensors")
    n = s._places.shape[0]
    dim0, dim1 = dim_of(dim0, s.ndim), dim_of(dim1, s.ndim)
    if max(dim0, dim1) >= n:
        raise RuntimeError(
            f"sparse transpose: transposed dimensions must be sparse Got sparse_dim: {n}, d0: {dim0}, d1: {dim1}"
        )
    order, size = list(range(n)), list(s._size)
    order[dim0], order[dim1] = dim1, dim0
    size[dim0], size[dim1] = size[dim1], size[dim0]
    return coo(s._places[order], s._entries, size, s._order and dim0 == dim1)


@rule()
def t(s):
    if s.ndim > 2 or s._entries.ndim > 1:
        raise RuntimeError("t() expects a tensor with <= 2 sparse and 0 dense dimensions")
    return transpose(s, 0, 1) if s.ndim == 2 else s


@rule()
def size(s, dim=None):
    return s._size if dim is None else s._size[dim]


def _number(name: str) -> None:
    """The number of a tensor of one element, as that of a dense one."""
    rule(name)(lambda s: getattr(Tensor, name)(s.to_dense().detach()))


for _name in ("item", "__bool__", "__int__", "__float__", "__complex__", "__index__"):
    _number(_name)


@rule()
def requires_grad_(s, requires_grad=True):
    s._entries.requires_grad_(requires_grad)
    return s


@rule()
def detach(s):
    return like(s, s._entries.detach())


@rule()
def clone(s, *, memory_format=None):
    return like(s, s._entries.clone())


@rule()
def to(s, *args, **kwargs):
    values = s._entries.to(*args, **kwargs)
    if values.device == s.device:
        return like(s, values)
    places = s._places.to(values.device) if s.is_sparse else tuple(part.to(values.device) for part in s._places)
    return _made(s._layout, places, values, s._size, s._order)


@rule("__deepcopy__")
def deep_copy(s, memo):
    if id(s) not in memo:
        values = s._entries.detach().clone()
        memo[id(s)] = like(s, values.requires_grad_() if s.requires_grad else values)
    return memo[id(s)]


@rule("__len__")
def length(s) -> int:
    return s._size[0]


def _told_by_values(name: str):
    RULES[name] = lambda s, *args, **kwargs: getattr(s._entries, name)(*args, **kwargs)


def _kept_places(name: str):
    RULES[name] = lambda s, *args, **kwargs: like(s, getattr(s._entries, name)(*args, **kwargs))


for _name in ("is_floating_point", "is_complex", "is_signed", "element_size", "get_device"):
    _told_by_values(_name)
for _name in ("neg", "float", "double", "half", "bfloat16", "cpu"):
    _kept_places(_name)
RULES["dim"] = RULES["ndimension"] = lambda s: s.ndim
RULES["numel"] = RULES["nelement"] = lambda s: math.prod(s._size)
RULES["is_tensor"] = lambda s: True


@rule("__repr__")
def text(s, *, tensor_contents=None) -> str:
    """The text of a sparse tensor, as PyTorch has it."""
    names = ("indices",) if s.is_sparse else ("crow_indices", "col_indices")
    parts = zip((*names, "values"), (*(s._places if s.is_sparse_csr else (s._places,)), s._entries.detach()))
    shown = ",\n       ".join([f"{name}={_part_text(part, 8 + len(name))}" for name, part in parts])
    notes = [f"size={tuple(s._size)}", f"nnz={s._nnz()}"]
    if s.dtype not in (get_default_dtype(), int64):
        notes.append(f"dtype={s.dtype!r}")
    notes.append(f"layout={s._layout!r}")
    if s.grad_fn is not None:
        notes.append(f"grad_fn=<{type(s.grad_fn).__name__}>")
    elif s.requires_grad:
        notes.append("requires_grad=True")
    return with_notes("tensor(" + shown, notes, 7, s.is_sparse)


RULES["__format__"] = lambda s, spec: format(text(s), spec)


def _part_text(part: Tensor, indent: int) -> str:
    if not part.numel():
        return f"tensor([], size={tuple(part.shape)})"
    shown = repr(part).partition(", dtype=")[0].rstrip(")") + ")"
    return shown.replace("\n", "\n" + " " * indent)
