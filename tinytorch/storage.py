"""Storages: the whole memory that a tensor and its views show, as bytes (UntypedStorage) or elements (TypedStorage).

A storage is an object as long as somebody holds it; all tensors on the memory give the same one meanwhile.
"""

from __future__ import annotations

import sys
import warnings

from . import library_name
from .autograd.node import address
from .backends.cpu import check, error, ffi, lib
from .devices import device as _device
from .dtypes import bfloat16, dtype, float16, float32, float64, get_default_dtype
from .dtypes import bool as _bool
from .dtypes import dtype as _dtype
from .dtypes import int8, int16, int32, int64, uint8
from .mapped_memory import mapped_bytes
from .shared_memory import block_of, bytes_of, new_block, shared_copy
from .tensor import Tensor, owned
from .warn_once import first_time
from .weak import WeakValues

__all__ = ["TypedStorage", "UntypedStorage"]


def vector(t: Tensor, of: dtype) -> Tensor:
    """As many elements of a dtype as the whole memory of ``t`` has room for, without history."""
    nothing = owned.tt_view(t._h, 1, (0,), (1,), 0)  # which may be viewed as any dtype
    same = owned.tt_view_dtype(nothing._h, of.code)
    return owned.tt_view(same._h, 1, (t._h.storage.nbytes // of.itemsize,), (1,), 0)


def content_of(whole: Tensor) -> bytes:
    """The bytes of a vector of them, wherever it is."""
    here = whole.cpu()
    h = here._h
    check(lib.tt_sync(h, 0), "pickling")
    return bytes(ffi.buffer(h.data, h.numel)) if h.numel else b""


def bytes_on_cpu(data: bytes | memoryview) -> Tensor:
    """A vector of these bytes. OutOfMemoryError when there is no memory for them."""
    made = owned.tt_empty(uint8.code, 1, (len(data),))
    if data:
        ffi.memmove(made._h.data, data, len(data))
    return made


def load_storage(data: bytes, where: str = "cpu") -> UntypedStorage:
    """A storage of these bytes on a device. RuntimeError when it is not there."""
    return storage_on(bytes_on_cpu(data).to(where))


def storage_on(whole: Tensor) -> UntypedStorage:
    """The storage that a vector of all of its bytes shows."""
    made = object.__new__(UntypedStorage)
    made.whole = whole
    return _alive.setdefault(address(whole), made)


def storage_of(t: Tensor) -> UntypedStorage:
    """The storage of ``t``: the same object for all tensors on it while it lives."""
    held = held_storage(t)
    return storage_on(vector(owned.tt_apart(t._h), uint8)) if held is None else held


def held_storage(t: Tensor) -> UntypedStorage | None:
    """The storage of ``t`` where somebody holds it."""
    return _alive.get(address(t))


class _Storage:
    """What storages of bytes and of elements have in common; ``_shown()`` is a vector of all of it."""

    __slots__ = ()

    def _shown(self) -> Tensor:
        raise NotImplementedError

    def __len__(self) -> int:
        return self._shown().numel()

    size = __len__

    def nbytes(self) -> int:
        """Its bytes."""
        return self._shown()._h.storage.nbytes

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._shown().data_ptr()

    def element_size(self) -> int:
        """Bytes of an element."""
        return self._shown().itemsize

    @property
    def device(self):
        """Where it is."""
        return self._shown().device

    @property
    def is_cuda(self) -> bool:
        """Is it on a CUDA device?"""
        return self._shown().is_cuda

    def get_device(self) -> int:
        """The index of the CUDA device, -1 for the CPU."""
        return self._shown().get_device()

    @property
    def _cdata(self) -> int:
        """A number that all storages of one memory have, and no other."""
        return address(self._shown())

    def tolist(self) -> list:
        """The elements as Python numbers."""
        return self._shown().tolist()

    def __iter__(self):
        return iter(self.tolist())

    def _index(self, key):
        name = f"{library_name.shown}.{type(self).__name__}"
        if isinstance(key, slice):
            return key
        if isinstance(key, (bool, float)) or not hasattr(key, "__index__"):
            raise TypeError(f"can't index a {name} with {type(key).__name__}")
        if not -len(self) <= key < len(self):
            raise IndexError(f"index {key} out of range for storage of size {len(self)}")
        return key

    def fill_(self, value):
        """Writes ``value`` everywhere. Returns this storage."""
        self._shown().fill_(value)
        return self

    def copy_(self, source, non_blocking: bool = False):
        """Writes the elements of ``source``, a storage of as many, here. Returns this storage. RuntimeError for
        another number."""
        if len(source) != len(self):
            raise RuntimeError(f"size does not match, self was {len(self)} elements but src was {len(source)} elements")
        self._shown().copy_(source._shown(), non_blocking)
        return self

    def is_shared(self) -> bool:
        """May other processes have it? So may all memory of devices."""
        return self.is_cuda or block_of(self._shown()) is not None

    def is_pinned(self, device=None) -> bool:
        """Is it in page-locked memory?"""
        return self._shown().is_pinned()

    def __repr__(self):
        values = "".join(f" {v}\n" for v in self.tolist())
        of = f"dtype={self.dtype}, " if isinstance(self, TypedStorage) else ""
        return f"{values}[tinytorch.storage.{type(self).__name__}({of}device={self.device}) of size {len(self)}]"


def _is_size(given) -> bool:
    """Is it an integer, one of NumPy too, and not a sequence?"""
    return hasattr(given, "__index__") and not getattr(given, "ndim", 0)


class UntypedStorage(_Storage):
    """Memory, byte by byte: ``UntypedStorage(n)`` has n bytes of no defined value, ``UntypedStorage([1, 2])`` these.
    What a tensor shows is its ``untyped_storage()``; writes here are not noticed by backward. Follows
    ``torch.UntypedStorage``."""

    __slots__ = ("whole", "__weakref__")

    def __init__(self, *args, device=None):
        if len(args) > 1:
            raise RuntimeError(f"UntypedStorage() takes a size or a sequence of bytes, got {len(args)} arguments")
        given = args[0] if args else 0
        if _is_size(given):
            whole = owned.tt_empty(uint8.code, 1, (given,))
        elif isinstance(given, str) or any(not isinstance(b, int) for b in given):
            raise RuntimeError("UntypedStorage(): tried to construct a storage of items that are not all int")
        else:
            whole = bytes_on_cpu(bytes([b & 255 for b in given]))
        self.whole = whole.to(_device(device)) if device is not None else whole
        _alive[address(self.whole)] = self

    @staticmethod
    def from_file(filename, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The first bytes of a file as memory. ``shared``: what is written there is written to the file, which is made,
        or made longer, where it has to be; else the file stays as it is. RuntimeError where it cannot be opened, or has
        fewer bytes. Follows ``torch.UntypedStorage.from_file``."""
        return storage_on(mapped_bytes(filename, shared, nbytes))

    @staticmethod
    def from_buffer(buffer, byte_order=None, count: int = -1, offset: int = 0, dtype=None) -> UntypedStorage:
        """A copy of the bytes of a buffer: ``count`` elements (all) of ``dtype`` from byte ``offset`` on. ValueError
        when they are not there. Follows ``torch.UntypedStorage.from_buffer``."""
        if type(dtype) is not _dtype:
            given = type(dtype).__name__
            raise RuntimeError(f"from_buffer(): argument 'dtype' must be {library_name.shown}.dtype, not {given}")
        data, size = memoryview(buffer).cast("B"), dtype.itemsize
        if byte_order is None and size > 1:
            raise RuntimeError("from_buffer(): missing required argument 'byte_order'")
        if byte_order not in (None, "native", "little", "big"):
            raise ValueError(
                f"from_buffer(): invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')"
            )
        if not 0 <= offset <= len(data):
            raise ValueError(f"from_buffer(): offset {offset} is not within the buffer's {len(data)} bytes")
        room = len(data) - offset
        if count < 0 and room % size:
            raise ValueError(f"from_buffer(): {room} bytes are no multiple of the {size} bytes of {dtype.name}")
        count = room // size if count < 0 else count
        if count * size > room:
            raise ValueError(
                f"from_buffer(): {count} elements of {dtype.name} are more than the {room} bytes there are"
            )
        made = storage_on(bytes_on_cpu(data[offset : offset + count * size]))
        if byte_order not in (None, "native", sys.byteorder):
            made.byteswap(dtype)
        return made

    @staticmethod
    def _new_shared(size: int, *, device=None) -> UntypedStorage:
        """Bytes that other processes can have: zeros, on the CPU."""
        if not size or device is not None and _device(device).type != "cpu":
            return UntypedStorage(size, device=device)
        return storage_on(bytes_of(new_block(size)))

    def _shown(self) -> Tensor:
        return self.whole

    def __getitem__(self, key):
        key = self._index(key)
        if not isinstance(key, slice):
            return self.whole[key].item()
        start, stop, step = key.indices(len(self))
        if step != 1:
            raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
        return storage_on(self.whole[start : max(start, stop)].clone())

    def __setitem__(self, key, value):
        if not isinstance(value, int):
            raise RuntimeError(f"can only set storage content with an int, but got {type(value).__name__} instead")
        self.whole[self._index(key)] = value & 255

    def fill_(self, value):
        """Writes the byte ``value`` everywhere. Returns this storage."""
        self.whole.fill_(value & 255)
        return self

    def clone(self) -> UntypedStorage:
        """A copy."""
        return storage_on(self.whole.clone())

    def new(self) -> UntypedStorage:
        """An empty storage on the same device."""
        return UntypedStorage(device=self.device)

    def untyped(self) -> UntypedStorage:
        """This storage."""
        return self

    def to(self, *, device, non_blocking: bool = False) -> UntypedStorage:
        """This storage where it is there, else a copy on the device."""
        return self if self.device == _device(device) else storage_on(self.whole.to(device, non_blocking=non_blocking))

    def cpu(self) -> UntypedStorage:
        """This storage where it is the CPU's, else a copy there."""
        return self.to(device="cpu")

    def cuda(self, device=None, non_blocking: bool = False) -> UntypedStorage:
        """This storage where it is the device's, else a copy there."""
        return storage_on(self.whole.cuda(device, non_blocking)) if not self.is_cuda else self

    def type(self) -> str:
        """The name of its class."""
        return f"{library_name.shown}.storage.UntypedStorage"

    def resize_(self, size: int) -> UntypedStorage:
        """Gives it ``size`` bytes, the first ones as they were. Returns this storage. RuntimeError when there is no
        room behind it and tensors show it, which cannot move."""
        status = lib.tt_resize_storage(self.whole._h, size)
        if status < 0:
            raise error("resize_")
        if status:
            self.move_to(vector(self.whole, uint8))
            return self
        self._alone("resize_")
        larger = owned.tt_empty(uint8.code, 1, (size,)).to(self.device)
        larger[: len(self)] = self.whole
        self.move_to(larger)
        return self

    def share_memory_(self) -> UntypedStorage:
        """Moves it to memory that other processes can have. Returns this storage. RuntimeError where tensors show it:
        ``Tensor.share_memory_`` moves these. Follows ``torch.UntypedStorage.share_memory_``."""
        if not self.is_shared() and len(self):
            self._alone("share_memory_")
            self.move_to(shared_copy(self.whole))
        return self

    def _alone(self, op: str) -> None:
        if self.whole._h.storage.refs > 1:
            raise RuntimeError(f"{op}: the storage has to move, and tensors show it")

    def move_to(self, whole: Tensor) -> None:
        """Makes a vector of bytes its memory."""
        if _alive.get(self._cdata) is self:
            del _alive[self._cdata]
        self.whole = whole
        _alive[self._cdata] = self

    def byteswap(self, of: dtype) -> None:
        """Reverses the bytes of each element of a dtype."""
        if not isinstance(of, dtype):
            raise RuntimeError(f"byteswap(): expected a dtype, but got {type(of).__name__}")
        n = len(self) // of.itemsize * of.itemsize
        self.whole[:n] = self.whole[:n].reshape(-1, of.itemsize).flip(1).reshape(-1)

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        made = memo[id(self)] = storage_on(owned.tt_contiguous(self.whole._h).clone())
        return made

    def __reduce__(self):
        where = (str(self.device),) if self.is_cuda else ()
        return load_storage, (content_of(self.whole), *where)


class TypedStorage(_Storage):
    """Memory, element by element. Follows ``torch.TypedStorage``, which is deprecated."""

    __slots__ = ("_untyped_storage", "dtype")

    def __init__(self, *args, wrap_storage: UntypedStorage | None = None, dtype=None, device=None, _internal=False):
        if not _internal:
            warn_of_typed_storage(3)
        if wrap_storage is not None:
            if args or device is not None or dtype is None:
                raise RuntimeError("TypedStorage: beside 'wrap_storage' there must be 'dtype', and nothing else")
            if not isinstance(wrap_storage, UntypedStorage):
                kind = type(wrap_storage).__name__
                raise TypeError(f"Argument 'wrap_storage' must be UntypedStorage, but got {kind}")
            self._untyped_storage, self.dtype = wrap_storage, dtype
            return
        self.dtype = dtype or get_default_dtype()
        if not isinstance(self.dtype, _dtype):
            raise RuntimeError(f"expected tinytorch.dtype, but got {type(dtype).__name__}")
        values = args[0] if args else 0
        if _is_size(values):
            self._untyped_storage = UntypedStorage(values * self.dtype.itemsize, device=device)
        else:
            self._untyped_storage = UntypedStorage(len(values) * self.dtype.itemsize, device=device)
            for k, value in enumerate(values):
                self._shown()[k] = value

    def _shown(self) -> Tensor:
        return vector(self._untyped_storage.whole, self.dtype)

    def _of(self, untyped: UntypedStorage) -> TypedStorage:
        return self if untyped is self._untyped_storage else typed(untyped, self.dtype)

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return self._untyped_storage

    def __getitem__(self, key):
        if isinstance(key, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._shown()[self._index(key)].item()

    def __setitem__(self, key, value):
        self._shown()[self._index(key)] = value

    def __eq__(self, other):
        return isinstance(other, TypedStorage) and self._cdata == other._cdata and self.dtype is other.dtype

    def __hash__(self):
        return hash((self._cdata, self.dtype))

    def clone(self) -> TypedStorage:
        """A copy."""
        return self._of(self._untyped_storage.clone())

    def cpu(self) -> TypedStorage:
        """This storage where it is the CPU's, else a copy there."""
        return self._of(self._untyped_storage.cpu())

    def cuda(self, device=None, non_blocking: bool = False) -> TypedStorage:
        """This storage where it is the device's, else a copy there."""
        return self._of(self._untyped_storage.cuda(device, non_blocking))

    def to(self, *, device, non_blocking: bool = False) -> TypedStorage:
        """This storage where it is there, else a copy on the device."""
        return self._of(self._untyped_storage.to(device=device, non_blocking=non_blocking))

    def resize_(self, size: int) -> None:
        """As ``UntypedStorage.resize_``, in elements; gives nothing."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def share_memory_(self) -> TypedStorage:
        """As ``UntypedStorage.share_memory_``."""
        self._untyped_storage.share_memory_()
        return self

    def _new_shared(self, size: int, *, device=None) -> TypedStorage:
        return typed(UntypedStorage._new_shared(size * self.dtype.itemsize, device=device), self.dtype)

    def pickle_storage_type(self) -> str:
        """The name of the type that storages of the dtype had."""
        return f"{self.dtype.scalar_type}Storage"

    def type(self) -> str:
        """That name, with the library's."""
        return f"{library_name.shown}.{self.pickle_storage_type()}"

    def __deepcopy__(self, memo):
        return self._of(self._untyped_storage.__deepcopy__(memo))

    def __reduce__(self):
        return typed, (self._untyped_storage, self.dtype)


def typed(untyped: UntypedStorage, of: dtype) -> TypedStorage:
    """A storage's elements of a dtype."""
    return TypedStorage(wrap_storage=untyped, dtype=of, _internal=True)


def warn_of_typed_storage(stacklevel: int) -> None:
    """Warns, once in a process, that TypedStorage is deprecated."""
    if first_time("TypedStorage"):
        warnings.warn(
            "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage "
            "class. To access UntypedStorage directly, use tensor.untyped_storage() instead of tensor.storage()",
            UserWarning,
            stacklevel=stacklevel,
        )


def _cast(of: dtype):
    def cast(self) -> TypedStorage:
        untyped = storage_of(self._shown().to(of, copy=True))
        return typed(untyped, of)

    cast.__doc__ = f"A copy whose elements are {of.name}."
    return cast


for _name, _of in {
    "double": float64, "float": float32, "half": float16, "bfloat16": bfloat16, "long": int64, "int": int32,
    "short": int16, "char": int8, "byte": uint8, "bool": _bool,
}.items():  # fmt: skip
    setattr(_Storage, _name, _cast(_of))

_alive = WeakValues()  # each UntypedStorage by its address
