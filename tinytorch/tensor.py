"""The Tensor type: a descriptor of an array, and its place in the graph. Operators attach themselves where they are
declared (ops/), the tape does so in autograd/."""

from __future__ import annotations

import sys

from .backends.cpu import error, ffi, lib
from .backends.native import TensorBase, dtype_of, owned_array, owned_memory, owned_result, owned_results, owner
from .devices import CPU, device_of
from .dtypes import Size
from .layouts import layout, strided

_DEVICE = lib.TT_FLAG_DEVICE
_unpack = ffi.unpack
_shape_key = lib.tt_shape_key
new = object.__new__


class _Sizes(dict):
    """Shapes by their keys: what tt_shape_key gives is the whole shape, as one number."""

    MOST = 4096

    def __missing__(self, key: int) -> Size:
        ndim = key >> 60
        bits = 60 // max(ndim, 1)
        if len(self) >= self.MOST:
            self.clear()
        self[key] = size = Size([key >> bits * d & (1 << bits) - 1 for d in range(ndim)])
        return size


_sizes = _Sizes()
FUNCTIONS: dict[str, object] = {}  # the public functions, by name; an operator enters itself where it is declared


class Tensor(TensorBase):
    """An n-dimensional array that knows how it was computed. Follows ``torch.Tensor``.

    ``_h``     the C descriptor (``tt_array *``), owned: freed with this object. See Note [Ownership] in
               kernels/python/tensor.c
    ``_node``  the Node whose gradient this tensor's is: None where none is wanted, an AccumulateGrad for a leaf
    ``_grad``  a leaf's gradient, or that of a tensor with ``retain_grad()``; unset means None
    ``_view``  of a differentiable view: its base (autograd/views.py); unset otherwise
    """

    __slots__ = ("_grad", "_view", "__weakref__", "__dict__")

    # Metadata.

    @property
    def shape(self) -> Size:
        """The size of each dimension."""
        key = _shape_key(self._h)
        if key >= 0:
            return _sizes[key]
        h = self._h
        return tuple.__new__(Size, _unpack(h.shape, h.ndim))

    def size(self, dim: int | None = None):
        """The shape, or the size of one dimension."""
        if dim is None:
            return self.shape
        h = self._h
        return h.shape[dim if dim.__class__ is int and 0 <= dim < h.ndim else self._own_dim(dim)]

    def stride(self, dim: int | None = None):
        """The step in elements along each dimension, or along one."""
        h = self._h
        if dim is None:
            return tuple(_unpack(h.strides, h.ndim))
        return h.strides[self._own_dim(dim)]

    def _dim(self, dim: int, extra: int = 0) -> int:
        """``dim`` as a number from 0 on; IndexError when out of range. ``extra`` dimensions are about to be added."""
        n = self._h.ndim + extra
        low = max(n, 1)
        if type(dim) is not int:
            if isinstance(dim, bool) or not hasattr(type(dim), "__index__"):
                raise TypeError(f"{operator_above()}argument 'dim' must be int, not {type(dim).__name__}")
            dim = dim.__index__()
        if not -low <= dim < low:
            raise IndexError(
                f"{operator_above()}Dimension out of range (expected to be in range of "
                f"[{-low}, {low - 1}], but got {dim})"
            )
        return dim % low

    def _own_dim(self, dim: int) -> int:
        """``_dim`` of a tensor that has dimensions; IndexError for one that has none."""
        found = self._dim(dim)
        if not self._h.ndim:
            raise IndexError(f"{operator_above()}Dimension specified as {dim} but tensor has no dimensions")
        return found

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._h.ndim

    def dim(self) -> int:
        """The number of dimensions."""
        return self._h.ndim

    ndimension = dim

    def numel(self) -> int:
        """The number of elements."""
        return self._h.numel

    nelement = numel

    dtype = property(dtype_of, doc="The element type.")

    @property
    def device(self):
        """Where the memory is."""
        h = self._h
        return device_of(h.storage.device) if h.flags & _DEVICE else CPU

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._h.numel * self.dtype.itemsize

    def storage_offset(self) -> int:
        """Elements between the storage's start and the first element."""
        return lib.tt_offset(self._h)

    def data_ptr(self) -> int:
        """The address of the first element."""
        if lib.tt_sync(self._h, 1) < 0:  # whoever has the address may look and write
            raise error("data_ptr")
        return address_of(self)

    def is_contiguous(self) -> bool:
        """Are the elements row-major without gaps?"""
        return self._h.flags & lib.TT_FLAG_CONTIGUOUS != 0

    def is_floating_point(self) -> bool:
        """Is the dtype a floating one?"""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Is the dtype a complex one?"""
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        """Has the dtype negative numbers?"""
        return self.dtype.is_signed

    @property
    def layout(self) -> layout:
        """How the elements are stored: ``strided``; otherwise of sparse tensors."""
        return strided

    @property
    def is_sparse(self) -> bool:
        """Is the layout ``sparse_coo``?"""
        return False

    @property
    def is_sparse_csr(self) -> bool:
        """Is the layout ``sparse_csr``?"""
        return False

    @property
    def is_cuda(self) -> bool:
        """Is the memory a CUDA device's?"""
        return self._h.flags & _DEVICE != 0

    @property
    def is_cpu(self) -> bool:
        """Is the memory the CPU's?"""
        return self._h.flags & _DEVICE == 0

    def get_device(self) -> int:
        """The index of the CUDA device, -1 for the CPU."""
        return self._h.storage.device - 1

    @property
    def _version(self) -> int:
        """How often its elements were written in place; shared by all views. RuntimeError for inference tensors."""
        if self._h.flags & lib.TT_FLAG_INFERENCE:
            raise RuntimeError("Inference tensors do not track version counter.")
        return lib.tt_version_of(self._h)

    def is_set_to(self, tensor: Tensor) -> bool:
        """Do both show the same elements in the same way?"""
        if not isinstance(tensor, Tensor):
            raise TypeError(f"is_set_to(): argument 'tensor' must be Tensor, not {type(tensor).__name__}")
        return (
            address_of(self) == address_of(tensor) and self.shape == tensor.shape and self.stride() == tensor.stride()
        )

    def __hash__(self):
        """By identity: ``==`` compares elements."""
        return id(self)


def as_class(t: Tensor, cls: type[Tensor]) -> Tensor:
    """A tensor of class ``cls`` on the memory of ``t``, without history. A sparse tensor has no memory of its own."""
    if getattr(t, "_layout", strided) is not strided:
        raise NotImplementedError(f"{cls.__name__}: not implemented for sparse tensors")
    return owned_result(cls, lib.tt_alias, True)(t._h)


own = owner(Tensor)  # the tensor without history that owns a descriptor


def gives_tensor(function):
    """A C function that makes a descriptor, as one that gives a Tensor without history, or None for NULL."""
    return owned_result(Tensor, function)


def gives_tensors(function, raises: bool = True):
    """A C function that makes several descriptors, all but the first in the array that is its last argument, as one
    that gives a tuple of Tensors; raises what the C side refused, or else gives None."""
    return owned_results(Tensor, function, raises)


def gives_array(function):
    """A C function that gives a status and puts descriptors into the array that is its last argument, as one that gives
    a tuple of Tensors: as far as the last that is there, with None for others. None where the status is negative."""
    return owned_array(Tensor, function)


def gives_two(function):
    """A C function that makes two descriptors as one that gives two Tensors, or None."""
    return owned_results(Tensor, function, False, lib.tt_second)


class _Owned:
    """C's functions that make a descriptor, by name, as functions that give a Tensor without history: Ctrl-C finds no
    descriptor without an owner."""

    def __init__(self, raises: bool):
        self._raises = raises

    def __getattr__(self, name: str):
        if not name.startswith("tt_"):
            raise AttributeError(name)
        function = owned_result(Tensor, getattr(lib, name), self._raises)
        setattr(self, name, function)
        return function


owned = _Owned(True)  # ``owned.tt_clone(h)`` raises what the C side refuses,
attempted = _Owned(False)  # ``attempted.tt_clone(h)`` gives None then
_from_python = owned_memory(Tensor, lib.tt_from_python)


def tensor_on(owner, op: str, code: int, shape, strides, memory, nbytes: int, device: int = 0) -> Tensor:
    """A tensor on memory that ``owner`` owns, which lives as long as the tensor's storage: ``memory`` is a pointer to
    the first element, and ``nbytes`` is where the last one ends. ``device`` is 0 for the CPU."""
    t = _from_python(device, code, len(shape), shape, strides, memory, nbytes, id(owner))
    if t is None:
        raise error(op)
    return t


def address_of(t: Tensor) -> int:
    """Where the first element is, or will be."""
    return int(ffi.cast("intptr_t", t._h.data))


def operator_above() -> str:
    """``"sort: "`` when this was called, over some steps, by the operator sort: for messages."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_name
        if name in FUNCTIONS or (hasattr(Tensor, name) and not name.startswith("_")):
            return f"{name}: "
        frame = frame.f_back
    return ""
