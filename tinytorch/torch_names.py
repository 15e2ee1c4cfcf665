"""What the names in PyTorch's files stand for.

There a tensor is a call of ``torch._utils._rebuild_tensor_v2`` on a storage, whose dtype is told by the class that the
storage had. Each function here takes the arguments that PyTorch's of that name does; pickler.py writes such calls.
"""

from __future__ import annotations

import math

from .autograd.leaf import make_leaf
from .devices import device
from .dtypes import ALL, NEWER, Size, dtype, uint8
from .layouts import layout, sparse_coo, sparse_csr, strided
from .nn.parameter import Buffer, Parameter, _rebuild, _share
from .ops.sparse import SparseTensor, _made, sparse_coo_tensor, sparse_csr_tensor
from .pickling import rebuild, set_state
from .safe_names import MAKERS, SAFE, check, integers
from .storage import TypedStorage, UntypedStorage
from .tensor import Tensor

STORAGES = {f"{d.scalar_type}Storage": d for d in ALL if d not in NEWER}
_LAYOUTS = {f"torch.{of.name}": of for of in (strided, sparse_coo, sparse_csr)}


class StorageType:
    """The class of a storage in a file: it tells the dtype. KeyError for a name that no such class has. Follows
    ``torch.serialization.StorageType``."""

    def __init__(self, name: str):
        self._dtype = None if name == "UntypedStorage" else STORAGES[name]

    @property
    def dtype(self) -> dtype | None:
        """The dtype of the elements; None where the class does not tell it."""
        return self._dtype

    def __str__(self):
        return f"StorageType(dtype={self.dtype})"


def dtype_of(storage) -> dtype:
    """The dtype of a tensor whose storage tells it: one of bytes has these."""
    return storage.dtype if isinstance(storage, TypedStorage) else uint8


def rebuild_first(storage, offset, size, stride) -> Tensor:
    """``torch._utils._rebuild_tensor``."""
    return rebuild(Tensor, storage.untyped(), dtype_of(storage), tuple(size), stride, offset, False)


def rebuild_tensor(storage, offset, size, stride, requires_grad=False, hooks=None, metadata=None) -> Tensor:
    """``torch._utils._rebuild_tensor_v2``."""
    return rebuild_tensor_of(storage, offset, size, stride, requires_grad, hooks, dtype_of(storage), metadata)


def rebuild_tensor_of(storage, offset, size, stride, requires_grad, hooks, of, metadata=None) -> Tensor:
    """``torch._utils._rebuild_tensor_v3``. The metadata tell of a tensor that is conjugated or negated when it is read:
    here it is a copy."""
    made = rebuild(Tensor, storage.untyped(), of, tuple(size), stride, offset, False)
    if metadata and metadata.get("conj") is True:
        made = made.conj()
    if metadata and metadata.get("neg") is True:
        made = -made
    if requires_grad:
        make_leaf(made)
    return made


def rebuild_parameter(data, requires_grad, hooks, state=None) -> Parameter:
    """``torch._utils._rebuild_parameter`` and ``_rebuild_parameter_with_state``."""
    made = _rebuild(Parameter, data, requires_grad)
    set_state(made, state)
    return made


def rebuild_from_type(fn, cls, args, state) -> Tensor:
    """``torch._tensor._rebuild_from_type_v2``: a tensor of a class, with attributes."""
    made, state = of_class(fn(*args), cls, state)
    set_state(made, state)
    return made


def of_class(t: Tensor, cls: type, state) -> tuple:
    """A tensor as one of a class, and its state. PyTorch's buffers are tensors whose state says that they are."""
    if cls is Tensor and isinstance(state, dict) and state.get("_is_buffer") is True:
        rest = {name: value for name, value in state.items() if name not in ("_is_buffer", "persistent")}
        return Buffer(t, persistent=bool(state.get("persistent", True))), rest
    return t if type(t) is cls else _share(cls, t).requires_grad_(t.requires_grad), state


def rebuild_sparse(storages, of: layout, data) -> SparseTensor:
    """``torch._utils._rebuild_sparse_tensor``. ``storages`` takes note of it: its places are checked when all of the
    file is read."""
    if of is sparse_coo:
        places, values, size, order = (*data, False) if len(data) == 3 else data
    else:
        *places, values, size = data
        order = True
    made = _made(of, places, values, size, bool(order))
    storages.sparse.append(made)
    return made


def check_sparse(s: SparseTensor) -> None:
    """RuntimeError unless the places of a sparse tensor, which a file has told, are places of it."""
    values = s._entries.detach()
    if s.layout is sparse_coo:
        made = sparse_coo_tensor(s._places, values, s.shape)
        if s._order and not made.coalesce()._places.equal(made._places):
            raise RuntimeError("load: a sparse tensor is said to be coalesced, and is not")
    else:
        made = sparse_csr_tensor(*s._places, values, s.shape)
    s._places, s._entries = made._places, made._entries


def get_layout(name: str) -> layout:
    """``torch.serialization._get_layout``."""
    return _LAYOUTS[name]


# Checks of the arguments, which come from the file.


def _check_place(storage, offset, size, stride, requires_grad) -> None:
    sizes = tuple(size) if type(size) in (tuple, Size) else None
    check(type(storage) in (TypedStorage, UntypedStorage) and type(requires_grad) is bool, "a tensor")
    check(integers(sizes) and integers(stride) and len(sizes) == len(stride) and type(offset) is int, "a tensor")
    check(all(abs(v) < 1 << 62 for v in (*sizes, *stride, offset)), "a tensor")


def _check_metadata(reading, metadata, of, size) -> None:
    check(metadata is None or type(metadata) is dict, "a tensor")
    if metadata:  # a copy
        reading.persistent_load.spend(2 * math.prod(size) * of.itemsize)


def _first(reading, *args):
    check(len(args) == 4, "a tensor")
    _check_place(*args, False)
    return rebuild_first(*args)


def _tensor(reading, *args):
    check(5 <= len(args) <= 7, "a tensor")
    _check_place(*args[:5])
    _check_metadata(reading, args[6] if len(args) > 6 else None, dtype_of(args[0]), args[2])
    return rebuild_tensor(*args)


def _tensor_of(reading, *args):
    check(7 <= len(args) <= 8 and type(args[6]) is dtype, "a tensor")
    _check_place(*args[:5])
    _check_metadata(reading, args[7] if len(args) > 7 else None, args[6], args[2])
    return rebuild_tensor_of(*args)


def _parameter(reading, *args):
    check(len(args) in (3, 4) and isinstance(args[0], Tensor) and type(args[1]) is bool, "a parameter")
    made = rebuild_parameter(*args[:3])
    if len(args) == 4 and args[3] is not None:
        reading.set_state(made, args[3])
    return made


def _from_type(reading, *args):
    check(len(args) == 4 and type(args[2]) is tuple and isinstance(args[1], type), "a tensor with attributes")
    fn, cls, inner, state = args
    check(issubclass(cls, Tensor) and cls is not SparseTensor, "a tensor with attributes")
    check(any(fn is f for f in _REBUILD), "a tensor with attributes")
    made, state = of_class(MAKERS[fn](reading, *inner), cls, state)
    if state is not None:
        reading.set_state(made, state)
    return made


def _sparse(reading, *args):
    check(len(args) == 2 and type(args[0]) is layout and type(args[1]) is tuple, "a sparse tensor")
    of, data = args
    check(len(data) in ((3, 4) if of is sparse_coo else (4,)) and of is not strided, "a sparse tensor")
    parts, size = (data[:2], data[2]) if of is sparse_coo else (data[:3], data[3])
    check(all(isinstance(t, Tensor) and not isinstance(t, SparseTensor) for t in parts), "a sparse tensor")
    check(type(size) in (tuple, Size) and integers(tuple(size)), "a sparse tensor")
    check(all(n >= 0 for n in size) and math.prod(max(n, 1) for n in size) < 1 << 62, "a sparse tensor")
    return rebuild_sparse(reading.persistent_load, of, data)


def _layout(reading, *args):
    check(len(args) == 1 and args[0] in _LAYOUTS, "a layout")
    return _LAYOUTS[args[0]]


_REBUILD = (rebuild_tensor, rebuild_tensor_of, rebuild_parameter, rebuild_sparse)
MAKERS.update(
    {
        rebuild_first: _first,
        rebuild_tensor: _tensor,
        rebuild_tensor_of: _tensor_of,
        rebuild_parameter: _parameter,
        rebuild_from_type: _from_type,
        rebuild_sparse: _sparse,
        get_layout: _layout,
    }
)
SAFE.update({f"torch.{name}": StorageType(name) for name in STORAGES})
SAFE.update({f"torch.{d.name}": d for d in ALL})
SAFE.update(
    {
        "torch.storage.UntypedStorage": StorageType("UntypedStorage"),
        "torch._utils._rebuild_tensor": rebuild_first,
        "torch._utils._rebuild_tensor_v2": rebuild_tensor,
        "torch._utils._rebuild_tensor_v3": rebuild_tensor_of,
        "torch._utils._rebuild_parameter": rebuild_parameter,
        "torch._utils._rebuild_parameter_with_state": rebuild_parameter,
        "torch._utils._rebuild_sparse_tensor": rebuild_sparse,
        "torch._tensor._rebuild_from_type_v2": rebuild_from_type,
        "torch.tensor._rebuild_from_type_v2": rebuild_from_type,
        "torch.serialization._get_layout": get_layout,
        "torch.Size": Size,
        "torch.device": device,
        "torch.Tensor": Tensor,
        "torch.nn.parameter.Parameter": Parameter,
    }
)
