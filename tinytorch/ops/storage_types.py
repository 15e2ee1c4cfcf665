"""Types of storages by dtype, ``FloatStorage`` and its like: they make typed storages, and ``isinstance`` knows these.
Storages on shared memory, of a buffer's bytes and on a file."""

from __future__ import annotations

import sys

from ..devices import device as device_of
from ..dtypes import ALL, NEWER, get_default_dtype, uint8
from ..dtypes import dtype as _dtype
from ..mapped_memory import mapped_bytes
from ..shared_memory import bytes_of, new_block
from ..storage import TypedStorage, UntypedStorage, storage_of, typed
from .create import frombuffer
from .declare import function, method


def new_shared(size: int, device=None) -> UntypedStorage:
    """Bytes that other processes can have: zeros, on the CPU."""
    if not size or device is not None and device_of(device).type != "cpu":
        return UntypedStorage(size, device=device)
    return storage_of(bytes_of(new_block(size)))


def copied(buffer, byte_order, count: int, offset: int, of: _dtype) -> UntypedStorage:
    """The bytes of a buffer, ``count`` elements (all) from byte ``offset`` on. ValueError if they are not there."""
    data = memoryview(buffer).cast("B")
    if byte_order is None and of.itemsize > 1:
        raise RuntimeError("from_buffer(): missing required argument 'byte_order'")
    if byte_order not in (None, "native", "little", "big"):
        raise ValueError(f"from_buffer(): invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
    if not 0 <= offset <= len(data):
        raise ValueError(f"from_buffer(): offset {offset} is not within the buffer's {len(data)} bytes")
    room = len(data) - offset
    if count < 0 and room % of.itemsize:
        raise ValueError(f"from_buffer(): {room} bytes are no multiple of the {of.itemsize} bytes of {of.name}")
    count = room // of.itemsize if count < 0 else count
    if count * of.itemsize > room:
        raise ValueError(f"from_buffer(): {count} elements of {of.name} are more than the {room} bytes there are")
    made = UntypedStorage(count * of.itemsize)
    if count:
        made.whole.copy_(frombuffer(bytearray(data[offset : offset + count * of.itemsize]), dtype=uint8))
    if byte_order not in (None, "native", sys.byteorder):
        made.byteswap(of)
    return made


@function
def from_file(
    filename: str,
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """A vector on a file that is mapped into memory. Follows ``torch.from_file``.

    Args:
        filename: its path
        shared: whether writes change the file, which is made if it is not there; else they change this process's memory
        size: how many elements
        dtype: the dtype; the default dtype unless given
        device: where a copy is to be, if not on the CPU
    Returns:
        A vector.
    Raises:
        RuntimeError: the file cannot be opened, or is too short
    """
    of = get_default_dtype() if dtype is None else dtype
    count = size or 0
    made = mapped_bytes(filename, bool(shared), count * of.itemsize).view(of)
    if pin_memory:
        made = made.pin_memory()
    made = made if device is None else made.to(device)
    return made.requires_grad_() if requires_grad else made


class StorageType(type):
    """The class of these types."""

    dtype: _dtype

    def __call__(cls, *args, wrap_storage=None, device=None) -> TypedStorage:
        if wrap_storage is not None:
            return typed(wrap_storage, cls.dtype)
        if len(args) > 1:
            raise RuntimeError(f"{cls.__name__}(): takes a size or a sequence, got {len(args)} arguments")
        return TypedStorage(*args, dtype=cls.dtype, device=device, _internal=True)

    def __instancecheck__(cls, x) -> bool:
        return isinstance(x, TypedStorage) and x.dtype is cls.dtype and not x.is_cuda

    def from_buffer(cls, buffer, byte_order=None, count: int = -1, offset: int = 0) -> TypedStorage:
        """A copy of the bytes of a buffer. ValueError when they are not there."""
        return typed(copied(buffer, byte_order, count, offset, cls.dtype), cls.dtype)

    def from_file(cls, filename, shared: bool = False, size: int = 0) -> TypedStorage:
        """The first elements of a file, mapped. RuntimeError when they are not there."""
        return typed(UntypedStorage.from_file(filename, shared, size * cls.dtype.itemsize), cls.dtype)

    def _new_shared(cls, size: int, *, device=None) -> TypedStorage:
        """Elements that other processes can have."""
        return typed(new_shared(size * cls.dtype.itemsize, device), cls.dtype)


STORAGE_TYPES = {
    name: StorageType(name, (), {"__module__": "tinytorch", "dtype": d, "__doc__": f"Makes storages of {d!r}."})
    for name, d in ((f"{d.scalar_type}Storage", d) for d in ALL if d not in NEWER)
}


@method(kind="query")
def storage_type(self):
    """The type that a storage of this dtype has: ``FloatStorage``, ... Follows ``torch.Tensor.storage_type``."""
    return STORAGE_TYPES[f"{self.dtype.scalar_type}Storage"]


@method(kind="query")
def _typed_storage(self):
    """``Tensor.storage`` without its warning. Follows ``torch.Tensor._typed_storage``."""
    return typed(storage_of(self), self.dtype)


def _untyped_from_buffer(buffer, byte_order=None, count: int = -1, offset: int = 0, dtype=None) -> UntypedStorage:
    """A copy of the bytes of a buffer. ValueError when they are not there."""
    if dtype is None:
        raise RuntimeError("from_buffer(): argument 'dtype' cannot be None")
    return copied(buffer, byte_order, count, offset, dtype)


def _shared_like(self, size: int, *, device=None) -> TypedStorage:
    return typed(new_shared(size * self.dtype.itemsize, device), self.dtype)


def _untyped_shared(size: int, *, device=None) -> UntypedStorage:
    """Bytes that other processes can have."""
    return new_shared(size, device)


UntypedStorage.from_buffer = staticmethod(_untyped_from_buffer)
UntypedStorage._new_shared = staticmethod(_untyped_shared)
TypedStorage._new_shared = _shared_like
TypedStorage.pickle_storage_type = lambda self: f"{self.dtype.scalar_type}Storage"
