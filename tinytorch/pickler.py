"""What ``save`` pickles: PyTorch's names for tensors and what belongs to them, so that ``torch.load`` reads the file.

A reference stands for each storage, and the archive has its bytes. torch_names.py has what the names stand for here.

Note [Names]
A pickle names functions and classes, and CPython's Pickler writes the names of objects that are there alone. PyTorch's
need not be: so what stands for one (Global) says that its name is a random word, found in this module, and the words
are replaced when all is written. Where the length of a name is written too (from protocol 4 on), and for dtypes and
classes, which are objects of their own, pickle's slower Pickler in Python does it.
"""

from __future__ import annotations

import io
import os
import pickle
import re
import sys
from collections import OrderedDict
from types import FunctionType
from typing import NamedTuple

from .devices import device
from .dtypes import ALL, NEWER, Size, dtype, uint8
from .layouts import layout, sparse_coo
from .locations import location_tag
from .nn.parameter import Buffer, Parameter, UninitializedTensorMixin
from .nn.state import StateDict
from .ops.sparse import SparseTensor
from .pickling import reduces_itself, state_of
from .storage import TypedStorage, UntypedStorage, storage_of
from .tensor import Tensor

_WORD = f"name_{os.urandom(16).hex()}_"
_WRITTEN = re.compile(rb"c%b\n%b(\d+)\n" % (re.escape(__name__.encode()), _WORD.encode()))
_globals: list[Global] = []


class Global:
    """A name of PyTorch's, as it stands in a pickle: Note [Names]."""

    __slots__ = ("module", "name", "word")

    def __init__(self, path: str):
        self.module, _, self.name = path.rpartition(".")
        self.word = f"{_WORD}{len(_globals)}"
        _globals.append(self)

    def __call__(self, *args):
        """pickle calls only what can be called: never."""
        raise TypeError(f"{self.module}.{self.name} is PyTorch's")

    def __reduce__(self):
        return self.word

    def line(self) -> bytes:
        """The operator of a pickle that takes it."""
        return pickle.GLOBAL + f"{self.module}\n{self.name}\n".encode()


def __getattr__(name: str):
    """A Global by its word, for pickle, which looks whether it is there."""
    if name.startswith(_WORD):
        return _globals[int(name[len(_WORD) :])]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_TENSOR_OF_STORAGE = Global("torch._utils._rebuild_tensor_v2")
_TENSOR_OF_BYTES = Global("torch._utils._rebuild_tensor_v3")
_PARAMETER = Global("torch._utils._rebuild_parameter")
_PARAMETER_WITH_STATE = Global("torch._utils._rebuild_parameter_with_state")
_OF_TYPE = Global("torch._tensor._rebuild_from_type_v2")
_SPARSE = Global("torch._utils._rebuild_sparse_tensor")
_LAYOUT = Global("torch.serialization._get_layout")
_DEVICE, _SIZE = Global("torch.device"), Global("torch.Size")
_STORAGES = {of: Global(f"torch.{of.scalar_type}Storage") for of in ALL if of not in NEWER}
_STORAGES[None] = Global("torch.storage.UntypedStorage")
_NAMED = {of: Global(f"torch.{of.name}") for of in ALL}
_NAMED |= {Tensor: Global("torch.Tensor"), Parameter: Global("torch.nn.parameter.Parameter")}
# Where classes and functions have the names that they have in PyTorch.
_PLACES = (
    "nn", "nn.functional", "nn.parameter", "optim", "optim.lr_scheduler", "optim.swa_utils", "amp", "utils.data", "",
    "special", "linalg", "fft", "distributions", "nn.utils.parametrizations", "nn.utils.parametrize", "nn.utils.rnn",
)  # fmt: skip


class Bytes(NamedTuple):
    """A storage to which a reference is to be written, with the dtype that the file says of it (None: bytes)."""

    storage: UntypedStorage
    of: dtype | None


class Written:
    """The storages of a file that is being written, by their numbers, and the dtype of each."""

    def __init__(self):
        self.numbers: dict[int, str] = {}
        self.storages: dict[str, UntypedStorage] = {}
        self.dtypes: dict[int, dtype] = {}

    def reference(self, storage: UntypedStorage, of: dtype | None) -> tuple:
        """What stands in the pickle for a storage."""
        key = self.numbers.setdefault(id(storage), str(len(self.numbers)))
        self.storages[key] = storage
        self.dtypes.setdefault(id(storage), of or uint8)
        return "storage", _STORAGES[of], key, location_tag(storage), storage.nbytes() // (of or uint8).itemsize

    def told_by_storage(self, storage: UntypedStorage, of: dtype) -> bool:
        """May the class of the storage tell this dtype? So it may where there is one, all tensors on it have the same,
        and it is made of whole elements."""
        return of in _STORAGES and self.dtypes.get(id(storage), of) is of and storage.nbytes() % of.itemsize == 0


class _Again(Exception):
    """All must be pickled again in another way."""


class _Way:
    """How an object is pickled. ``cyclic``: the tensors that are among their own attributes, by id, which must be
    written after them; ``names``: does the Pickler write names itself?"""

    def __init__(self, names: bool):
        self.cyclic: set[int] = set()
        self.names = names


def pickled(obj, pickle_module, protocol: int) -> tuple[bytes, Written]:
    """An object as a pickle, and the storages that it refers to. PicklingError where ``pickle_module`` has no Pickler
    that can do it."""
    way = _Way(names=protocol > 3)
    while True:
        written, content = Written(), io.BytesIO()
        try:
            _pickler_of(pickle_module.Pickler, written, way)(content, protocol).dump(obj)
            break
        except _Again:
            continue
    found = _WRITTEN.sub(lambda match: _globals[int(match[1])].line(), content.getvalue())
    if _WORD.encode() in found:
        raise pickle.PicklingError(
            "save: this pickle_module cannot write PyTorch's names in this pickle_protocol: use protocol 2 or 3"
        )
    return found, written


def _pickler_of(base: type, written: Written, way: _Way) -> type:
    """A kind of Pickler that writes PyTorch's names."""
    slower = pickle._Pickler if base is pickle.Pickler else base  # type: ignore[attr-defined]
    names_classes = hasattr(slower, "save_global")

    class Common(slower if way.names else base):  # type: ignore[misc]
        open_tensors: set[int] = set()

        def persistent_id(self, obj):
            kind = type(obj)
            if kind is Bytes:
                return written.reference(*obj)
            if kind is TypedStorage:
                return written.reference(obj.untyped(), obj.dtype if obj.dtype in _STORAGES else None)
            if kind is UntypedStorage:
                return written.reference(obj, None)
            return None

        def reducer_override(self, obj):
            kind = type(obj)
            if kind in _REDUCED:
                return _REDUCED[kind](obj)
            if isinstance(obj, Tensor):
                return self.tensor(obj)
            if isinstance(obj, (type, FunctionType, dtype)) and names_classes and path_of(obj) is not None:
                if not way.names:
                    way.names = True
                    raise _Again
                return getattr(obj, "__qualname__", "a dtype")
            return super().reducer_override(obj) if hasattr(base, "reducer_override") else NotImplemented

        def tensor(self, t: Tensor):
            if isinstance(t, UninitializedTensorMixin) or reduces_itself(type(t)):
                return NotImplemented
            if id(t) in self.open_tensors:  # it is not in the memo yet
                way.cyclic.add(id(t))
                raise _Again
            self.open_tensors.add(id(t))
            cyclic, kind = id(t) in way.cyclic, type(t)
            made, state = _reduced(t, written), None if kind is SparseTensor else state_of(t)
            if kind is Buffer:
                own = {"persistent": t.persistent, "_is_buffer": True}
                made, state = (
                    (_OF_TYPE, (made[0], Tensor, made[1], own if cyclic else {**own, **t.__dict__})),
                    t.__dict__,
                )
            elif kind not in (Tensor, Parameter, SparseTensor):
                made = _OF_TYPE, (made[0], kind, made[1], None if cyclic else state)
            elif state is not None and not cyclic:
                if kind is Parameter:
                    made = _PARAMETER_WITH_STATE, (*made[1], state)
                else:
                    made = _OF_TYPE, (made[0], kind, made[1], state)
            return (*made, state) if cyclic else made

    if not way.names:
        return Common

    class Names(Common):
        def save_global(self, obj, name=None):
            path = obj if type(obj) is Global else path_of(obj)
            if path is None:
                super().save_global(obj, name)
                return
            self.write(path.line())
            self.memoize(obj)

    return Names


def _reduced(t: Tensor, written: Written) -> tuple:
    """The call that makes a tensor again, without its attributes and class."""
    if isinstance(t, Parameter):
        return _PARAMETER, (t.detach().as_subclass(Tensor), t.requires_grad, OrderedDict())
    if isinstance(t, SparseTensor):
        values = t._values().detach()
        if t.layout is sparse_coo:
            return _SPARSE, (t.layout, (t._indices(), values, t.shape, t.is_coalesced()))
        return _SPARSE, (t.layout, (t.crow_indices(), t.col_indices(), values, t.shape))
    storage = storage_of(t)
    place = t.storage_offset(), tuple(t.shape), t.stride(), t.requires_grad, OrderedDict()
    if written.told_by_storage(storage, t.dtype):
        return _TENSOR_OF_STORAGE, (Bytes(storage, t.dtype), *place)
    return _TENSOR_OF_BYTES, (Bytes(storage, None), *place, _NAMED[t.dtype])


def path_of(obj) -> Global | None:
    """PyTorch's name of a dtype, or of a public class or function of tinytorch."""
    if obj in _NAMED:
        return _NAMED[obj]
    module, name = obj.__module__, getattr(obj, "__qualname__", None)
    if isinstance(module, str) and module.partition(".")[0] == "tinytorch" and name is not None:
        for place in _PLACES:
            here = sys.modules.get(f"tinytorch.{place}".removesuffix("."))
            if name in getattr(here, "__all__", ()) and getattr(here, name, None) is obj:
                return _NAMED.setdefault(obj, Global(f"torch.{place}".removesuffix(".") + f".{name}"))
    return None


_REDUCED = {
    Size: lambda obj: (_SIZE, (tuple(obj),)),
    device: lambda obj: (_DEVICE, (obj.type,) if obj.index is None else (obj.type, obj.index)),
    layout: lambda obj: (_LAYOUT, (f"torch.{obj.name}",)),
    StateDict: lambda obj: (OrderedDict, (), obj.__dict__ or None, None, iter(obj.items())),
}
