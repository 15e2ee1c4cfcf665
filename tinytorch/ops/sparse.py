"""Sparse tensors: the type, creation, and conversions.

Note [Sparse tensors]
A sparse tensor consists of dense ones: the values that it has, and their places. What is done to it is done to these by
dense operators, so that its history is that of its values: derivatives of every order follow, and the gradient of a
sparse leaf is that of its values, in the same places. Places without a value are no variables, and get no gradient.

In the layout ``sparse_coo`` the places are ``indices`` (sparse dimensions, n), in any order; where a place occurs
several times, its values add up, until ``coalesce`` makes one of them. ``values`` (n, *) may have further, dense
dimensions. In ``sparse_csr``, of matrices, the places are ordered by rows: those of row i have the numbers from
``crow_indices[i]`` to before ``crow_indices[i + 1]``, and ``col_indices`` has their columns.

SparseTensor is a subclass of Tensor that overrides (Note [Overriding] in overrides/overridable.py): public functions
and methods, given one, look for a rule of their name in RULES. The first sparse tensor of a process makes them look;
until then, and in operators of plain tensors ever after, nothing does. Its own descriptor is that of a vector of no
elements: code that knows nothing of sparse tensors finds a shape that does not fit.
"""

from __future__ import annotations

import re
from types import FunctionType

from ..backends.cpu import lib
from ..backends.native import owned_result
from ..dtypes import Size, int64
from ..layouts import layout as _layout
from ..layouts import sparse_coo, sparse_csr
from ..tensor import Tensor
from ..torch_function import DisableTorchFunctionSubclass, _disabled_torch_function_impl, on_subclass
from .create import as_tensor, zeros
from .declare import function, ints, method, refuse_call
from .join import stack
from .ranges import arange

RULES: dict[str, object] = {}  # what public functions and methods do with sparse arguments, by name


def rule(*names: str):
    """Enters a function into RULES under these names, or its own."""

    def enter(fn):
        RULES.update(dict.fromkeys(names or (fn.__name__,), fn))
        return fn

    return enter


class SparseTensor(Tensor):
    """A tensor of which only some elements are stored: Note [Sparse tensors]. Made by ``sparse_coo_tensor``,
    ``sparse_csr_tensor``, ``Tensor.to_sparse`` and ``Tensor.to_sparse_csr``; an operator that has no rule for it raises
    NotImplementedError."""

    __slots__ = ("_entries", "_layout", "_listed", "_order", "_places", "_size")
    __torch_function__ = _disabled_torch_function_impl  # until there is one: _made

    def _nnz(self) -> int:
        """How many values it has, those of one place counted singly. Follows ``torch.Tensor._nnz``."""
        return self._entries.shape[0]

    def _indices(self) -> Tensor:
        """The places, as they are."""
        return _coo(self)._places

    def _values(self) -> Tensor:
        """The values, as they are."""
        return self._entries

    shape = property(lambda self: self._size)
    ndim = property(lambda self: len(self._size))
    dtype = property(lambda self: self._entries.dtype)
    device = property(lambda self: self._entries.device)
    layout = property(lambda self: self._layout)
    is_sparse = property(lambda self: self._layout is sparse_coo)
    is_sparse_csr = property(lambda self: self._layout is sparse_csr)
    is_cuda = property(lambda self: self._entries.is_cuda)
    is_cpu = property(lambda self: self._entries.is_cpu)
    is_leaf = property(lambda self: self._entries.is_leaf)
    grad_fn = property(lambda self: self._entries.grad_fn)
    T = property(lambda self: RULES["transpose"](self, 0, 1))
    mT = property(lambda self: RULES["transpose"](self, -2, -1))
    requires_grad = property(
        lambda self: self._entries.requires_grad, lambda self, flag: self._entries.requires_grad_(flag)
    )

    @property
    def data(self):
        """A tensor of the same values, without history."""
        return like(self, self._entries.detach())

    @data.setter
    def data(self, value):
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if not isinstance(value, SparseTensor) or value._layout is not self._layout or value.dtype is not self.dtype:
            raise RuntimeError("data: the tensor given has another layout or dtype than the sparse tensor")
        places, entries = value._places, value._entries.detach().requires_grad_(self.requires_grad)
        self._places, self._entries, self._size, self._order = places, entries, value._size, value._order
        self._listed = None

    @property
    def grad(self):
        """The gradient of a leaf: sparse, with the same places."""
        g = self._entries.grad
        return None if g is None else like(self, g)

    @grad.setter
    def grad(self, value):
        if value is not None and not (isinstance(value, SparseTensor) and value._nnz() == self._nnz()):
            raise RuntimeError("the gradient of a sparse tensor must be a sparse tensor of the same places")
        self._entries.grad = None if value is None else value._entries

    _grad = grad  # the optimizers' name of it


def _answer(cls, func, types, args=(), kwargs=None):
    """``SparseTensor.__torch_function__``: the rule of the function's name."""
    op = getattr(func, "op", None)
    name = getattr(func, "__name__", str(func))
    space = op.namespace if op is not None else ""
    answer = func if space == "sparse" else RULES.get(name) if space in ("", "nn.functional") else None
    with DisableTorchFunctionSubclass():
        return _judged(func, answer or _refusal(name))(*args, **(kwargs or {}))


def _judged(fn, answer):
    """``answer``, an answer to calls of the public function ``fn``: what goes wrong in it is judged as in ``fn``."""

    def call(*args, out=None, **kwargs):
        try:
            if out is not None:
                raise NotImplementedError(f"{fn.__name__}: out= is not implemented for sparse tensors")
            return answer(*args, **kwargs)
        except Exception as exc:
            refuse_call(exc, fn, args, kwargs if out is None else kwargs | {"out": out})
            if isinstance(exc, AttributeError) and isinstance(exc.obj, Tensor):  # of a dense one
                raise NotImplementedError(
                    f"{fn.__name__}: not implemented for these dense and sparse tensors"
                ) from None
            raise

    return call


_empty = owned_result(SparseTensor, lib.tt_empty, True)
_PRIVATE = re.compile("_[^_]").match
# Methods of Tensor that sparse tensors have as they are.
_KEPT = frozenset(
    """
    __new__ __init__ __init_subclass__ __torch_function__ __hash__ __dir__ __iter__ __delitem__ as_subclass
    """.split()  # noqa: SIM905 (a list of words)
)


_CONVERSIONS = frozenset(("numpy", "__array__"))  # a tensor of another layout is none of these


def _refusal(name: str):
    def refuse(*args, **kwargs):
        error = TypeError if name in _CONVERSIONS else NotImplementedError
        raise error(f"{name}: not implemented for sparse tensors")

    return refuse


def _begin() -> None:
    """Before the first sparse tensor: its methods are rules, or refuse, even where nothing is overridden (hooks of
    gradients run so); and it overrides."""
    for name, fn in vars(Tensor).items():
        if isinstance(fn, FunctionType) and name not in {*_KEPT, *vars(SparseTensor)} and not _PRIVATE(name):
            setattr(SparseTensor, name, _judged(fn, RULES.get(name) or _refusal(name)))
    SparseTensor.__torch_function__ = classmethod(_answer)


def _made(kind: _layout, places, values: Tensor, size, order: bool = False) -> SparseTensor:
    """A sparse tensor of these parts, which fit. ``order``: are they coalesced?"""
    if SparseTensor.__torch_function__ is _disabled_torch_function_impl:
        _begin()
    for take_note in on_subclass:
        take_note(SparseTensor)
    s = _empty(values._h.dtype, 1, (0,))
    s._h.flags |= lib.TT_FLAG_READONLY  # its own memory holds nothing: who would write there (an optimizer) is refused
    s._layout, s._places, s._entries, s._size, s._order = kind, places, values, Size(size), order
    s._listed = None  # of sparse_csr: the places as in sparse_coo, once they were asked for
    return s


def coo(places: Tensor, values: Tensor, size, order: bool = False) -> SparseTensor:
    """A ``sparse_coo`` tensor of parts that fit."""
    return _made(sparse_coo, places, values, size, order)


def like(s: SparseTensor, values: Tensor, order: bool | None = None) -> SparseTensor:
    """A sparse tensor of the same places, with other values."""
    size = (*s._size[: len(s._size) - s._entries.ndim + 1], *values.shape[1:])
    return _made(s._layout, s._places, values, size, s._order if order is None else order)


def _index_tensor(op: str, data, name: str) -> Tensor:
    t = as_tensor(data).detach()
    if t.is_complex() or t.dtype.is_floating_point and t.numel() and bool((t != t.trunc()).any()):
        raise RuntimeError(f"{op}: {name} must be integers")
    return t.to(int64)


def _given_values(values, dtype, device, requires_grad: bool) -> Tensor:
    """The values, a view of what was given, whose history goes on; or a leaf."""
    t = as_tensor(values, dtype=dtype, device=device)
    if requires_grad:
        return t.detach().clone().requires_grad_()
    return t.view_as(t) if t.requires_grad else t.detach()


def _check_range(op: str, places: Tensor, size) -> None:
    if not places.shape[1]:
        return
    least, largest = places.amin(1).tolist(), places.amax(1).tolist()
    for d, (low, high, n) in enumerate(zip(least, largest, size)):
        if low < 0:
            raise RuntimeError(f"{op}: found negative index {low} for dim {d}")
        if high >= n:
            raise RuntimeError(
                f"{op}: size is inconsistent with indices: for dim {d}, size is {n} but found index {high}"
            )


@function
def sparse_coo_tensor(
    indices=None,
    values=None,
    size=None,
    *,
    dtype=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
    is_coalesced=None,
):
    """A sparse tensor of values and their places; values of one place add up. Follows ``torch.sparse_coo_tensor``.

    Args:
        indices: the places, integers (sparse dimensions, n); none unless given
        values: the values (n, \\*), of which * are dense dimensions; a number stands for one value
        size: the shape; the least that has the places unless given
        check_invariants: taken as in PyTorch; places are always checked
        is_coalesced: whether the places are in order, each once
    Returns:
        A tensor of the layout ``sparse_coo``.
    Raises:
        RuntimeError: the parts do not fit each other, or a place is out of range
    """
    op = "sparse_coo_tensor"
    if size is None and isinstance(indices, (tuple, list, Size)) and values is None:
        indices, size = None, indices
    if indices is None:
        if size is None:
            raise TypeError(f"{op}(): expected indices and values, or a size")
        size = ints((size,))
        places = zeros((len(size), 0), dtype=int64, device=device)
        return coo(places, _given_values(zeros(0, dtype=dtype), dtype, device, requires_grad), size, True)
    places = _index_tensor(op, indices, "indices").to(device) if device else _index_tensor(op, indices, "indices")
    values = _given_values(values, dtype, device, requires_grad)
    if places.ndim != 2:
        raise RuntimeError(f"{op}: indices must be sparse_dim x nnz, but got: {list(places.shape)}")
    if not values.ndim and places.shape[1] == 1:
        values = values.reshape(1)
    if not values.ndim or values.shape[0] != places.shape[1]:
        raise RuntimeError(
            f"{op}: indices and values must have same nnz, but got nnz from indices: {places.shape[1]}, nnz from "
            f"values: {values.shape[0] if values.ndim else 1}"
        )
    if size is None:
        if not places.shape[1]:
            raise RuntimeError(f"{op}: the size is not known where there are no indices")
        size = [n + 1 for n in places.amax(1).tolist()] + list(values.shape[1:])
    size = ints((size,))
    if len(size) != places.shape[0] + values.ndim - 1:
        raise RuntimeError(
            f"{op}: 'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = "
            f"{places.shape[0]}, dense_dim = {values.ndim - 1}"
        )
    if tuple(size[places.shape[0] :]) != tuple(values.shape[1:]):
        raise RuntimeError(f"{op}: values has incorrect size, expected {list(size)}, got {list(values.shape)}")
    _check_range(op, places, size)
    return coo(places, values, size, bool(is_coalesced) if is_coalesced is not None else places.shape[1] < 2)


@function
def sparse_csr_tensor(
    crow_indices,
    col_indices,
    values,
    size=None,
    *,
    dtype=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
):
    """A sparse matrix, of its rows' values. Follows ``torch.sparse_csr_tensor``.

    Args:
        crow_indices: the number of each row's first value, and at the end how many values there are
        col_indices: the column of each value
        values: the values
        size: the shape; the least that has the places unless given
        check_invariants: taken as in PyTorch; places are always checked
    Returns:
        A tensor of the layout ``sparse_csr``.
    Raises:
        RuntimeError: the parts do not fit each other, or a place is out of range
        NotImplementedError: for stacks of matrices, and dense dimensions
    """
    op = "sparse_csr_tensor"
    crow, col = _index_tensor(op, crow_indices, "crow_indices"), _index_tensor(op, col_indices, "col_indices")
    values = _given_values(values, dtype, device, requires_grad)
    if crow.ndim > 1 or values.ndim > 1:
        raise NotImplementedError(f"{op}: not implemented for stacks of matrices, nor for dense dimensions")
    if crow.ndim != 1 or col.ndim != 1 or values.ndim != 1 or not crow.shape[0]:
        raise RuntimeError(f"{op}: crow_indices, col_indices and values must be vectors")
    n = col.shape[0]
    if values.shape[0] != n:
        raise RuntimeError(f"{op}: number of values ({values.shape[0]}) and of col_indices ({n}) must match")
    if size is None:
        size = (crow.shape[0] - 1, int(col.max()) + 1 if n else 0)
    size = ints((size,))
    if len(size) != 2 or crow.shape[0] != size[0] + 1:
        raise RuntimeError(f"{op}: crow_indices must have {size[0] + 1} elements for size {list(size)}")
    steps = crow.diff()
    if int(crow[0]) != 0 or int(crow[-1]) != n or (steps.numel() and int(steps.amin()) < 0):
        raise RuntimeError(f"{op}: crow_indices must go from 0 to {n}, and never fall")
    _check_range(op, col.unsqueeze(0), size[1:])
    return _made(sparse_csr, (crow, col), values, size, True)


# Places as numbers.


def dim_of(dim: int, n: int) -> int:
    """The dimension, counted from the front, of ``n``."""
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return dim % n


def _flat(places: Tensor, size) -> Tensor:
    """Each place's number in row-major order."""
    number = zeros(places.shape[1], dtype=int64, device=places.device)
    for row, n in zip(places.unbind(0), size):
        number = number * n + row
    return number


def _apart(number: Tensor, size) -> Tensor:
    """The places of these numbers."""
    rows = []
    for n in reversed(size):
        rows.append(number % n if n else number)
        number = number.div(max(n, 1), rounding_mode="floor")
    return stack(rows[::-1]) if rows else zeros((0, number.shape[0]), dtype=int64, device=number.device)


def added_up(number: Tensor, values: Tensor, count: int) -> Tensor:
    """``count`` rows: each the sum of the values that have its number, in their order."""
    return values.new_zeros((count, *values.shape[1:])).index_add(0, number, values)


def _coo(s: SparseTensor) -> SparseTensor:
    """``s`` in the layout ``sparse_coo``."""
    if s._layout is sparse_coo:
        return s
    if s._listed is None:
        crow, col = s._places
        s._listed = stack((arange(s._size[0], device=col.device).repeat_interleave(crow.diff()), col))
    return coo(s._listed, s._entries, s._size, True)


def _expect(op: str, s, kind: _layout, name: str) -> None:
    if not isinstance(s, SparseTensor) or s._layout is not kind:
        given = s._layout.name if isinstance(s, SparseTensor) else "Strided"
        raise RuntimeError(f"{op} expected {name} tensor layout but got {given}")


_COO, _CSR = "sparse coordinate", "sparse row compressed"


@method
def coalesce(self):
    """A sparse tensor with each place once, in order. Follows ``torch.Tensor.coalesce``.

    Raises:
        RuntimeError: the layout is not ``sparse_coo``
    """
    _expect("coalesce", self, sparse_coo, _COO)
    if self._order:
        return self
    sparse = self._size[: self._places.shape[0]]
    number, where = _flat(self._places, sparse).unique(return_inverse=True)
    return coo(_apart(number, sparse), added_up(where, self._entries, number.shape[0]), self._size, True)


@method(kind="query")
def is_coalesced(self) -> bool:
    """Is each place of a ``sparse_coo`` tensor there once, in order? Follows ``torch.Tensor.is_coalesced``."""
    _expect("is_coalesced", self, sparse_coo, _COO)
    return self._order


def _of_coalesced(op: str, s):
    _expect(op, s, sparse_coo, _COO)
    if not s._order:
        raise RuntimeError(f"Cannot get {op} on an uncoalesced tensor, please call .coalesce() first")
    return s


@method
def indices(self):
    """The places of a coalesced tensor: (sparse dimensions, n). Follows ``torch.Tensor.indices``."""
    return _of_coalesced("indices", self)._places


@method
def values(self):
    """The values of a coalesced tensor, or of a ``sparse_csr`` one. Follows ``torch.Tensor.values``."""
    if isinstance(self, SparseTensor) and self._layout is sparse_csr:
        return self._entries
    return _of_coalesced("values", self)._entries


@method
def crow_indices(self):
    """The number of each row's first value. Follows ``torch.Tensor.crow_indices``."""
    _expect("crow_indices", self, sparse_csr, _CSR)
    return self._places[0]


@method
def col_indices(self):
    """Each value's column. Follows ``torch.Tensor.col_indices``."""
    _expect("col_indices", self, sparse_csr, _CSR)
    return self._places[1]


@method(kind="query")
def sparse_dim(self) -> int:
    """How many dimensions are sparse; 0 of a dense tensor. Follows ``torch.Tensor.sparse_dim``."""
    return self.ndim - dense_dim(self)


@method(kind="query")
def dense_dim(self) -> int:
    """How many dimensions are not sparse. Follows ``torch.Tensor.dense_dim``."""
    return self._entries.ndim - 1 if isinstance(self, SparseTensor) else self.ndim


for _fn in (coalesce, is_coalesced, indices, values, crow_indices, col_indices, sparse_dim, dense_dim):
    RULES[_fn.__name__] = _fn
