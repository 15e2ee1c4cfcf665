"""Subscripts: ``x[key]`` and ``x[key] = value``.

A key is translated into the code of kernels/api/index.h, four numbers a part, and a list of index tensors. Without
index tensors it makes a view, in one call; with them, one call gathers or writes. A mask stands for the positions where
it is true, taken over its dimensions as one. Derivatives go through the same code: what reading gathers, the gradient
adds into zeros, and the other way round.
"""

from __future__ import annotations

import functools
import warnings

import numpy as np

from ..autograd.engine import unbroadcast
from ..autograd.formulas import node_class
from ..autograd.modes import current, modes
from ..autograd.node import link
from ..backends.native import record, shape_of
from ..autograd.views import FLAG_DEVICE, FLAG_VIEW, refresh, track
from ..backends.cpu import check, error, ffi, lib
from ..dtypes import ALL, INTEGRAL
from ..tensor import Tensor, attempted, gives_tensor, owned
from .create import tensor
from .declare import Op, attach, both, is_number, number, primitive, scalar_kind, tensors_only, update
from .fitting import check_fits, fitted

unpack = ffi.unpack
LEFT_OUT = -(1 << 63)
_FAR = 1 << 62
_BOOL, _INT64 = lib.TT_BOOL, lib.TT_I64
_MASKS = (_BOOL, lib.TT_U8)  # as an index, such a tensor is a mask
AT, SLICE, NEW, REST, INDEX, KEEP = range(6)
SUBSCRIPT, SELF, STRICT, FLAT = range(4)  # which integers are valid: tt_index_rule in kernels/backend/indexing.h
REPLACE, ADD, MULTIPLY, LARGER, SMALLER = range(5)  # what a write does


# From a key to code.


def parse(x: Tensor, key) -> tuple[list[int], list[Tensor]]:
    """The code of a key, and its index tensors. IndexError for what cannot be an index."""
    code, indices, masks = [], [], []
    for item in key if type(key) is tuple else (key,):
        kind = type(item)
        if kind is int:
            code += (AT, item, 0, 0)
        elif kind is slice:
            step = item.step
            code += (SLICE, _end(item.start), _end(item.stop), LEFT_OUT if step is None else _step(step))
        elif item is None:
            code += (NEW, 0, 0, 0)
        elif item is Ellipsis:
            code += (REST, 0, 0, 0)
        elif isinstance(item, Tensor):
            _tensor_part(item, code, indices, masks)
        else:
            _other_part(item, code, indices, masks)
    for part, mask in masks:
        _check_mask(x, code, part, mask)
    return code, indices


def _end(i) -> int:
    """A slice's end as 64 bits; what is beyond them is beyond every dimension."""
    if i is None:
        return LEFT_OUT
    if type(i) is not int:
        try:
            i = i.__index__()
        except AttributeError:
            raise TypeError(
                f"slice indices must be integers or None or have an __index__ method, got {type(i).__name__}"
            ) from None
    return i if LEFT_OUT < i < -LEFT_OUT else LEFT_OUT + 1 if i < 0 else -1 - LEFT_OUT


def _step(i) -> int:
    step = _end(i)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    return step


def _tensor_part(item: Tensor, code, indices, masks) -> None:
    h = item._h
    if not INTEGRAL[h.dtype]:
        raise IndexError(
            f"tensors used as indices must be long, int, byte or bool tensors, got an index of {item.dtype!r}"
        )
    if h.flags & FLAG_VIEW:
        refresh(item)
    if h.dtype == lib.TT_U8:
        warnings.warn(
            "indexing with dtype tinytorch.uint8 is now deprecated, please use a dtype tinytorch.bool instead.",
            stacklevel=5,
        )
    if h.dtype not in _MASKS:
        if h.ndim == 0:
            code += (AT, item.__index__(), 0, 0)
        else:
            code += (INDEX, 1, 0, 0)
            indices.append(item)
    elif h.ndim == 0:
        _truth_part(bool(item), code, indices)
    else:
        masks.append((len(code), item))
        code += (INDEX, h.ndim, 0, 0)
        indices.append(owned.tt_nonzero(h, True))


def _truth_part(truth: bool, code, indices) -> None:
    """A new dimension that is there (True) or empty (False)."""
    code += (INDEX, 0, 0, 0)
    indices.append(owned.tt_full(_INT64, 1, [int(truth)], lib.TT_KIND_INT, 0.0, 0))


def _other_part(item, code, indices, masks) -> None:
    if isinstance(item, bool) or type(item).__name__ in ("bool_", "bool"):
        _truth_part(bool(item), code, indices)
    elif hasattr(item, "__index__") and not getattr(item, "shape", ()):
        code += (AT, item.__index__(), 0, 0)
    elif isinstance(item, (list, tuple, range)) or hasattr(item, "__array__"):
        made = tensor(list(item) if isinstance(item, (range, tuple)) else item)
        if not made._h.numel and not INTEGRAL[made._h.dtype]:
            made = owned.tt_empty(_INT64, made._h.ndim, made._h.shape)
        _tensor_part(made, code, indices, masks)
    elif isinstance(item, str):
        raise TypeError(f"new(): invalid data type 'str': {item!r} is no index")
    else:
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
            f"indices (got {type(item).__name__})"
        )


def _check_mask(x: Tensor, code, part: int, mask: Tensor) -> None:
    """A mask must have the shape of the dimensions it stands for."""
    if len(code) == 4 and lib.tt_same_shape(x._h, mask._h):
        return
    widths = [code[k + 1] if code[k] == INDEX else int(code[k] in (AT, SLICE)) for k in range(0, len(code), 4)]
    rest = [k for k in range(0, len(code), 4) if code[k] == REST]
    dim = sum(widths[: part // 4])
    if rest and rest[0] < part:
        dim += x._h.ndim - sum(widths)
    shape, wanted = list(mask.shape), list(x.shape[dim : dim + mask._h.ndim])
    if shape == wanted:
        return
    if sum(widths) > x._h.ndim:
        raise IndexError(f"too many indices for tensor of dimension {x._h.ndim}")
    k = next(k for k in range(len(shape)) if shape[k] != wanted[k])
    raise IndexError(
        f"The shape of the mask {shape} at index {k} does not match the shape of the indexed tensor "
        f"{list(x.shape)} at index {dim + k}"
    )


_OF_A_TUPLE = (slice, Tensor, list, tuple, range, np.ndarray, str)


def _as_tuple(key):
    """A list of fewer than 32 items stands for a tuple if it holds slices, sequences, None, Ellipsis or tensors."""
    if type(key) is list and len(key) < 32:
        for item in key:
            if item is None or item is Ellipsis or isinstance(item, _OF_A_TUPLE):
                warnings.warn(
                    "Using a non-tuple sequence for multidimensional indexing is deprecated; use x[tuple(seq)] instead "
                    "of x[seq]. Later it may be interpreted as a tensor index, x[tensor(seq)].",
                    stacklevel=4,
                )
                return tuple(key)
    return key


# Views.


def _with_code(name: str, title: str):
    return node_class(
        name, ("input", "code"), {"input": lambda g, input_shape, code: embed(g, input_shape, code)}, title=title
    )


_NODES = {
    AT: _with_code("select", "SelectBackward0"),
    SLICE: _with_code("slice", "SliceBackward0"),
    NEW: _with_code("unsqueeze", "UnsqueezeBackward0"),
    REST: _with_code("alias", "AliasBackward0"),
}


def pick(x: Tensor, code) -> Tensor:
    """The view of ``x`` that a code without index tensors makes."""
    viewed = x._h.flags & FLAG_VIEW
    if viewed:
        refresh(x)
    out = _index_view(x._h, len(code) // 4, code)
    if out is None:
        raise error()
    return _picked(x, viewed, out, code)


_index_view = gives_tensor(lib.tt_index_view)


def _picked(x: Tensor, viewed, out: Tensor, code) -> Tensor:
    """``out``, a view of ``x``, tracked and recorded; ``viewed`` is x's own FLAG_VIEW."""
    if modes:
        track(x, out)
        if x._node is not None and current().grad:
            out._node = link(_node_class(code), (x._node,), (unpack(x._h.shape, x._h.ndim), code), ())
        return out
    out._view = x._view if viewed else x
    edge = x._node
    if edge is None:
        return out
    return record(out, _node_class(code), (edge,), (shape_of(x), code), ())  # as link() does, outside of any mode


def _node_class(code):
    """The class that names the last thing done."""
    for k in range(len(code) - 4, -4, -4):
        if code[k] != REST:
            return _NODES[code[k]]
    return _NODES[REST]


@primitive(name="slice_backward", g=lambda g, code: pick(g, code))
def embed(g, shape, code):
    return owned.tt_index_view_backward(g._h, len(shape), shape, len(code) // 4, code)


@primitive(
    title={"SelectScatterBackward0": f"code[-4] == {AT}", "SliceScatterBackward0": ""},
    input=lambda g, src_shape, code: view_scatter(g, _nought(g, src_shape), code),
    src=lambda g, code: pick(g, code),
)
def view_scatter(input, src, code):
    return owned.tt_index_view_scatter(input._h, src._h, len(code) // 4, code)


def _nought(g: Tensor, shape) -> Tensor:
    """Zeros of g's dtype, where g is."""
    return owned.tt_nought(g._h, len(shape), shape)


# Index tensors. The operators for n of them are made when first needed: each index tensor is a parameter of its own,
# so that a write to one before backward is noticed.


def with_parameters(fn, *names):
    """``fn(*args)`` as a function of these parameters, for the forms of declaration that read them."""
    fn.parameters = names
    return fn


@functools.cache
def reader(name: str, n: int = 1, rule: int = SUBSCRIPT):
    """The operator ``(input, code, *indices)`` that gathers by n index tensors."""
    names = [f"index{k}" for k in range(n)]

    def forward(input, code, *indices):
        out = attempted.tt_index_get(input._h, len(code) // 4, code, [i._h for i in indices], rule)
        if out is None:
            raise error(None if name == "index" else f"{name}()")
        return out

    def formula(g, shape, code, *indices):
        return adder(n)(g, shape, code, *indices)

    return primitive(name=name, input=with_parameters(formula, "g", "input_shape", "code", *names))(
        with_parameters(forward, "input", "code", *names)
    )


@functools.cache
def adder(n: int):
    """The operator ``(g, shape, code, *indices)`` that adds g into zeros where the index points."""
    names = [f"index{k}" for k in range(n)]

    def forward(g, shape, code, *indices):
        out = _nought(g, shape)
        check(lib.tt_index_put(out._h, len(code) // 4, code, [i._h for i in indices], g._h, ADD, SUBSCRIPT, -1))
        return out

    def formula(g, code, *indices):
        return reader("index", n)(g, code, *indices)

    return primitive(name="index_backward", g=with_parameters(formula, "g", "code", *names))(
        with_parameters(forward, "g", "shape", "code", *names)
    )


@functools.cache
def putter(name: str, n: int = 1, rule: int = SUBSCRIPT):
    """The operators ``(input, code, values, mode, *indices)`` that write values, or add them, where the index points:
    into a copy, and in place."""
    names, called = [f"index{k}" for k in range(n)], None if name == "index_put" else f"{name}()"

    def write(h, writer, code, values, mode, *indices):
        handles = [i._h for i in indices]
        return check(lib.tt_index_put(h, len(code) // 4, code, handles, values._h, mode, rule, writer), called)

    def kept(g, code, mode, *indices):
        return g if mode == ADD else putter("index_put", n)[0](g, code, number(0), REPLACE, *indices)

    def put(g, values_shape, values_dtype, values_device, code, *indices):
        if name == "index_fill":  # a place that is named twice is filled once
            indices = [index.unique() for index in indices]
        return unbroadcast(reader("index", n)(g, code, *indices), values_shape, values_dtype, values_device)

    return update(
        name,
        input=with_parameters(kept, "g", "code", "mode", *names),
        values=with_parameters(put, "g", "values_shape", "values_dtype", "values_device", "code", *names),
    )(with_parameters(write, "h", "writer", "code", "values", "mode", *names))


# The subscript operators.

_index_int, _index_slice = gives_tensor(lib.tt_index_int), gives_tensor(lib.tt_index_slice)
_ROWS = (INDEX, 1, 0, 0)
_by_one = reader("index")


def getitem(self, key):
    """``x[key]``: a view for integers, slices, None and Ellipsis; a copy where tensors, lists or masks are among them.
    Follows ``torch.Tensor.__getitem__``."""
    if type(key) is int:
        h = self._h
        viewed = h.flags & FLAG_VIEW
        if viewed:
            refresh(self)
        out = _index_int(h, key)
        if out is None:
            raise error()
        return _picked(self, viewed, out, (AT, key, 0, 0))
    if type(key) is slice:
        start, stop, step = key.start, key.stop, key.step
        if (
            step is None
            and (start is None or type(start) is int and -_FAR < start < _FAR)
            and (stop is None or type(stop) is int and -_FAR < stop < _FAR)
        ):
            h = self._h
            viewed = h.flags & FLAG_VIEW
            if viewed:
                refresh(self)
            code = (SLICE, LEFT_OUT if start is None else start, LEFT_OUT if stop is None else stop, LEFT_OUT)
            out = _index_slice(h, code[1], code[2])
            if out is None:
                raise error()
            return _picked(self, viewed, out, code)
        return pick(self, (SLICE, _end(key.start), _end(key.stop), LEFT_OUT if step is None else _step(step)))
    if type(key) is Tensor and key._h.dtype == _INT64 and key._h.ndim:
        return _by_one(self, _ROWS, key)
    code, indices = parse(self, _as_tuple(key))
    if not indices:
        return pick(self, tuple(code))
    return reader("index", len(indices))(self, tuple(code), *indices)


_PLAIN = {Tensor, float, int, bool, complex}
_NUMBERS = {float, int, complex}
_FITS_ALL = 65504.0  # the largest number of float16; what is beyond becomes infinite here, where fill_ refuses it


def _value(self, value) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if is_number(value):
        kind, code = scalar_kind(value), self._h.dtype
        if kind == lib.TT_KIND_INT and code != lib.TT_U64 and not -(1 << 63) <= value < 1 << 63:
            raise ValueError(f"Overflow: an int64 has not the value {value}")
        if code not in (lib.TT_F16, lib.TT_BF16):
            return number(fitted(value, code))
        if kind == lib.TT_KIND_COMPLEX:
            check_fits(lib.TT_F64, kind, value)
        return number(value.real if kind == lib.TT_KIND_COMPLEX else value)
    raise TypeError(f"can't assign a {type(value).__name__} to a tinytorch {self.dtype.name} tensor")


def setitem(self, key, value):
    """``x[key] = value``, in place. The value is a number, or a tensor that broadcasts to ``x[key]``."""
    if type(value) in _NUMBERS and not abs(value) <= _FITS_ALL:
        value = _value(self, value)
    if isinstance(key, Tensor) and key._h.dtype == _BOOL and key._h.ndim and _assign_masked(self, key, value):
        return
    if type(value) not in _PLAIN:
        value = _value(self, value)
    code, indices = parse(self, _as_tuple(key))
    if not indices:
        _assign(pick(self, tuple(code)), value)
        return
    values = _value(self, value)
    if values._h.ndim:
        _check_dtypes(self, values)
    putter("index_put", len(indices))[1](self, tuple(code), values, REPLACE, *indices)


def _assign(view: Tensor, value) -> None:
    if not isinstance(value, Tensor):
        view.fill_(value)
        return
    extra = value._h.ndim - view._h.ndim
    if extra > 0 and all(s == 1 for s in value.shape[:extra]):
        value = value.reshape(value.shape[extra:])
    view.copy_(value)


def _assign_masked(self, mask: Tensor, value) -> bool:
    """One value under a mask of the same shape needs no positions. False: not this case."""
    if not lib.tt_same_shape(mask._h, self._h) or (mask._h.flags ^ self._h.flags) & FLAG_DEVICE:
        return False
    if isinstance(value, Tensor):
        if value._h.ndim:
            return False
        if value._h.dtype != self._h.dtype:
            value = value.to(ALL[self._h.dtype])
    elif INTEGRAL[self._h.dtype]:
        kind = _value(self, value)
        value = owned.tt_cast(kind._h, self._h.dtype)
    else:
        _value(self, value)
    self.masked_fill_(mask, value)
    return True


def _check_dtypes(self, values) -> None:
    if values._h.dtype != self._h.dtype:
        raise RuntimeError(
            "index_put: Index put requires the source and destination dtypes match, got "
            f"{self.dtype.name} for the destination and {values.dtype.name} for the source."
        )


attach(getitem, "__getitem__", Op("getitem", "view"))
attach(setitem, "__setitem__", Op("setitem", "update"))


def _delitem(self, key):
    """Refused: a tensor has no items of its own."""
    raise TypeError("Tensor does not support deleting items")


Tensor.__delitem__ = _delitem


def _put_arguments(op, input, indices, values, accumulate):
    if not isinstance(indices, (tuple, list)):
        raise TypeError(f"{op}(): argument 'indices' must be tuple of Tensors, not {type(indices).__name__}")
    for at, index in enumerate(indices):
        if not isinstance(index, Tensor):
            raise TypeError(f"{op}(): expected Tensor as element {at} of 'indices', but got {type(index).__name__}")
    code, parsed = parse(input, tuple(indices))
    tensors_only(op, values=values)
    if sum(n for kind, n in zip(code[::4], code[1::4]) if kind == INDEX) > input._h.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input._h.ndim}")
    _check_dtypes(input, values)
    return putter("index_put", len(parsed)), (tuple(code), values, ADD if accumulate else REPLACE, *parsed)


@both
def index_put(input, indices, values, accumulate=False):
    """A copy of ``input`` with ``values`` where the tuple of index tensors points; with ``accumulate`` they are added,
    repeated places counting each time. Follows ``torch.index_put``.

    Args:
        indices: a tuple of int64 or bool tensors
        values: a tensor that broadcasts to what the indices select
        accumulate: whether to add, rather than to write
    Returns:
        A tensor of the shape of ``input``.
    Raises:
        IndexError: an index is out of range
        RuntimeError: shapes or dtypes do not match
    """
    (functional, _), args = _put_arguments("index_put", input, indices, values, accumulate)
    return functional(input, *args)


@both
def index_put_(input, indices, values, accumulate=False):
    """``index_put`` in place."""
    (_, in_place), args = _put_arguments("index_put_", input, indices, values, accumulate)
    return in_place(input, *args)
