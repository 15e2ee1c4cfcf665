"""What the names in PyTorch's own files stand for: load() reads weights that ``torch.save`` wrote.

There a tensor is a call of ``torch._utils._rebuild_tensor_v2`` on a storage, whose dtype is told by the class that the
storage had. Each function here takes the arguments that PyTorch's of that name does.
"""

from __future__ import annotations

from typing import NamedTuple

from .devices import device
from .dtypes import ALL, Size, _by_name, dtype
from .nn.parameter import Parameter, _rebuild
from .pickling import rebuild
from .safe_names import MAKERS, SAFE, check, integers
from .storage import UntypedStorage
from .tensor import Tensor


class StorageType(NamedTuple):
    """The class of a storage in a file: it tells the dtype. ``torch.UntypedStorage`` does not."""

    of: dtype | None


class TypedStorage(NamedTuple):
    """A storage of a file, with its dtype."""

    storage: UntypedStorage
    of: dtype | None


def rebuild_tensor(storage, offset, size, stride, requires_grad=False, hooks=None, metadata=None) -> Tensor:
    """``torch._utils._rebuild_tensor_v2``."""
    return rebuild(Tensor, storage.storage, storage.of, tuple(size), stride, offset, requires_grad)


def rebuild_tensor_of(storage, offset, size, stride, requires_grad, hooks, of, metadata=None) -> Tensor:
    """``torch._utils._rebuild_tensor_v3``."""
    return rebuild(Tensor, storage.storage, of, tuple(size), stride, offset, requires_grad)


def rebuild_parameter(data, requires_grad, hooks, state=None) -> Parameter:
    """``torch._utils._rebuild_parameter`` and ``_rebuild_parameter_with_state``."""
    made = _rebuild(Parameter, data, requires_grad)
    return _with_attributes(made, state)


def rebuild_from_type(fn, cls, args, state) -> Tensor:
    """``torch._tensor._rebuild_from_type_v2``: a tensor with attributes."""
    return _with_attributes(fn(*args), state)


def _with_attributes(t: Tensor, state) -> Tensor:
    attributes = state[0] if isinstance(state, tuple) else state
    t.__dict__.update(attributes or {})
    return t


# Checks of the arguments, which come from the file.


def _check_place(storage, offset, size, stride, requires_grad) -> None:
    sizes = tuple(size) if type(size) in (tuple, Size) else None
    check(type(storage) is TypedStorage and type(requires_grad) is bool, "a tensor")
    check(integers(sizes) and integers(stride) and len(sizes) == len(stride) and type(offset) is int, "a tensor")
    check(all(abs(v) < 1 << 62 for v in (*sizes, *stride, offset)), "a tensor")


def _tensor(reading, *args):
    check(5 <= len(args) <= 7, "a tensor")
    _check_place(*args[:5])
    check(args[0].of is not None, "a tensor")
    return rebuild_tensor(*args)


def _tensor_of(reading, *args):
    check(7 <= len(args) <= 8 and type(args[6]) is dtype, "a tensor")
    _check_place(*args[:5])
    return rebuild_tensor_of(*args)


def _check_attributes(reading, state) -> None:
    check(state is None or type(state) is dict or (type(state) is tuple and len(state) == 2), "a tensor's attributes")
    attributes = state[0] if type(state) is tuple else state
    check(attributes is None or type(attributes) is dict, "a tensor's attributes")
    check(all(type(k) is str and k[:2] != "__" for k in attributes or ()), "a tensor's attributes")
    reading.spend(len(attributes or ()))


def _parameter(reading, *args):
    check(len(args) in (3, 4) and isinstance(args[0], Tensor) and type(args[1]) is bool, "a parameter")
    _check_attributes(reading, args[3] if len(args) == 4 else None)
    return rebuild_parameter(*args)


def _from_type(reading, *args):
    check(len(args) == 4 and type(args[2]) is tuple and isinstance(args[1], type), "a tensor with attributes")
    fn, cls, inner, state = args
    check(cls is Tensor or cls is Parameter, "a tensor with attributes")
    check(any(fn is f for f in (rebuild_tensor, rebuild_tensor_of, rebuild_parameter)), "a tensor with attributes")
    _check_attributes(reading, state)
    return _with_attributes(MAKERS[fn](reading, *inner), state)


STORAGES = {d.scalar_type: d.name for d in ALL}

MAKERS.update(
    {
        rebuild_tensor: _tensor,
        rebuild_tensor_of: _tensor_of,
        rebuild_parameter: _parameter,
        rebuild_from_type: _from_type,
    }
)
SAFE.update({f"torch.{name}Storage": StorageType(_by_name(of)) for name, of in STORAGES.items()})
SAFE.update({f"torch.{of}": _by_name(of) for of in STORAGES.values()})
SAFE.update(
    {
        "torch.storage.UntypedStorage": StorageType(None),
        "torch._utils._rebuild_tensor_v2": rebuild_tensor,
        "torch._utils._rebuild_tensor_v3": rebuild_tensor_of,
        "torch._utils._rebuild_parameter": rebuild_parameter,
        "torch._utils._rebuild_parameter_with_state": rebuild_parameter,
        "torch._tensor._rebuild_from_type_v2": rebuild_from_type,
        "torch.Size": Size,
        "torch.device": device,
        "torch.Tensor": Tensor,
        "torch.nn.parameter.Parameter": Parameter,
    }
)
