"""Types of storages by dtype, ``FloatStorage`` and its like: they make typed storages, and ``isinstance`` knows these.
Tensors on a file."""

from __future__ import annotations

from ..dtypes import ALL, NEWER, get_default_dtype
from ..dtypes import dtype as _dtype
from ..mapped_memory import mapped_bytes
from ..storage import TypedStorage, UntypedStorage, storage_of, typed
from .declare import function, method


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
        return typed(UntypedStorage.from_buffer(buffer, byte_order, count, offset, cls.dtype), cls.dtype)

    def from_file(cls, filename, shared: bool = False, size: int = 0) -> TypedStorage:
        """The first elements of a file, mapped. RuntimeError when they are not there."""
        return typed(UntypedStorage.from_file(filename, shared, size * cls.dtype.itemsize), cls.dtype)

    def _new_shared(cls, size: int, *, device=None) -> TypedStorage:
        """Elements that other processes can have."""
        return typed(UntypedStorage._new_shared(size * cls.dtype.itemsize, device=device), cls.dtype)


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
