"""Dtypes: the table of kernels/scalar/dtypes.h as Python objects. Other modules ask their properties and compare their
codes for equality with cffi's enumerators (``lib.TT_F32``), never with numbers or by order."""

from __future__ import annotations

import builtins
import functools
import operator

import numpy as np

from . import library_name
from .backends.cpu import error, ffi, lib
from .backends.native import set_dtypes


class dtype:
    """An element type. Each is one object: compare with ``is`` or ``==``. Follows ``torch.dtype``.

    ``code`` numbers it in C, ``compute`` is the code of the dtype its arithmetic is done in, ``kind`` its category in
    promotion (``lib.TT_KIND_...``). ``suffix`` and ``c_type`` name it in C sources; ``numpy`` is NumPy's dtype, None
    for bfloat16 and complex32, which it lacks, and ``stored`` that of the same size in which NumPy holds the elements.
    ``scalar_type`` and ``cpp`` are PyTorch's names, in Python's messages and in traces."""

    __slots__ = (
        "name",
        "code",
        "itemsize",
        "kind",
        "compute",
        "is_signed",
        "is_floating_point",
        "is_complex",
        "is_differentiable",
        "suffix",
        "c_type",
        "numpy",
        "stored",
        "scalar_type",
        "cpp",
    )

    def __init__(self, code: int, scalar_type: str, cpp: str):
        self.scalar_type, self.cpp = scalar_type, cpp
        facts = lib.tt_dtype_facts(code)
        self.name, self.suffix, self.c_type = (
            ffi.string(text).decode() for text in (facts.name, facts.suffix, facts.c_type)
        )
        self.code, self.itemsize, self.kind, self.compute = code, facts.itemsize, facts.kind, facts.compute
        self.is_signed = facts.is_signed == 1
        self.is_floating_point, self.is_complex = self.kind == lib.TT_KIND_FLOAT, self.kind == lib.TT_KIND_COMPLEX
        self.is_differentiable = self.is_floating_point or self.is_complex
        self.numpy = None if code in (lib.TT_BF16, lib.TT_C32) else np.dtype(self.name)
        self.stored = self.numpy or np.dtype(f"uint{8 * self.itemsize}")

    @property
    def typestr(self) -> str | None:
        """NumPy's type string, as in ``__array_interface__``; None where NumPy lacks the dtype."""
        return self.numpy and self.numpy.str

    def __repr__(self):
        return f"{library_name.shown}.{self.name}"

    def __reduce__(self):
        return _by_name, (self.name,)

    def to_complex(self):
        """The complex dtype whose parts have this dtype: complex64 for float32, complex128 for float64, and itself for
        a complex one. RuntimeError for others."""
        if self.is_complex:
            return self
        if self not in _COMPLEX:
            raise RuntimeError(f"{self!r} has no complex counterpart")
        return _COMPLEX[self]

    def to_real(self):
        """The dtype of a complex dtype's parts; itself for another."""
        return _PARTS.get(self, self)


bool = dtype(lib.TT_BOOL, "Bool", "bool")  # noqa: A001 (the name torch gives it)
uint8 = dtype(lib.TT_U8, "Byte", "unsigned char")
int8 = dtype(lib.TT_I8, "Char", "signed char")
int16 = short = dtype(lib.TT_I16, "Short", "short")
int32 = dtype(lib.TT_I32, "Int", "int")
int64 = long = dtype(lib.TT_I64, "Long", "long int")
float16 = half = dtype(lib.TT_F16, "Half", "c10::Half")
bfloat16 = dtype(lib.TT_BF16, "BFloat16", "c10::BFloat16")
float32 = dtype(lib.TT_F32, "Float", "float")
float64 = double = dtype(lib.TT_F64, "Double", "double")

complex64 = cfloat = dtype(lib.TT_C64, "ComplexFloat", "c10::complex<float>")
complex128 = cdouble = dtype(lib.TT_C128, "ComplexDouble", "c10::complex<double>")
complex32 = chalf = dtype(lib.TT_C32, "ComplexHalf", "c10::complex<c10::Half>")
uint16 = dtype(lib.TT_U16, "UInt16", "uint16_t")
uint32 = dtype(lib.TT_U32, "UInt32", "uint32_t")
uint64 = dtype(lib.TT_U64, "UInt64", "uint64_t")

# By code.
ALL = (
    *(bool, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex64, complex128),
    *(complex32, uint16, uint32, uint64),
)
# Those for which PyTorch has no class of storages and of tensors: files and type() tell of them in another way.
NEWER = (complex32, uint16, uint32, uint64)
set_dtypes(ALL)
_COMPLEX = {float16: complex32, float32: complex64, float64: complex128, bfloat16: complex64}
_PARTS = {complex32: float16, complex64: float32, complex128: float64}


def promoted(found: int, op: str) -> dtype:
    """The dtype whose code promotion gave; what C said where it found none."""
    if found < 0:
        raise error(op)
    return ALL[found]


def no_more(cls, *args, **kwargs):
    """``__new__`` of a class whose instances are all there."""
    raise TypeError(f"cannot create 'tinytorch.{cls.__name__}' instances")


dtype.__new__ = no_more  # these are all
DIFFERENTIABLE = tuple(d.is_differentiable for d in ALL)
FLOATING = tuple(d.is_floating_point for d in ALL)
INTEGRAL = tuple(not d.is_differentiable for d in ALL)  # bool too
COMPLEX = tuple(d.is_complex for d in ALL)
SUFFIXES = tuple(d.suffix for d in ALL)

BY_NAME = {d.name: d for d in ALL}
BY_NUMPY = {d.numpy: d for d in ALL if d.numpy}
_default = float32


_OF_PYTHON = {builtins.bool: bool, int: int64, float: float64, complex: complex128}


def as_dtype(d, op: str, name: str = "dtype") -> dtype:
    """A dtype given by the user, or one of Python's types of numbers in its place; TypeError for anything else."""
    if type(d) is dtype:
        return d
    if isinstance(d, type) and d in _OF_PYTHON:
        return _OF_PYTHON[d]
    raise TypeError(f"{op}(): argument '{name}' must be tinytorch.dtype, not {type(d).__name__}")


def dtype_code(d, op: str) -> int:
    """The number of a dtype given by the user."""
    return d.code if type(d) is dtype else as_dtype(d, op).code


def _by_name(name: str) -> dtype:
    return BY_NAME[name]


def get_default_dtype() -> dtype:
    """The dtype of floats from Python and of integers promoted by division; float32 at the start."""
    return _default


def set_default_dtype(d: dtype) -> None:
    """Makes floating dtype ``d`` the default. TypeError otherwise. Process-wide, as in PyTorch."""
    global _default
    if d not in ALL or not d.is_floating_point:
        raise TypeError(f"set_default_dtype: only floating-point types are supported as the default type, got {d!r}")
    _default = d
    lib.tt_set_default_dtype(d.code)


def dtype_of_kind(kind: int) -> dtype:
    """The dtype of a Python number of that category (``lib.TT_KIND_...``): bool, int64, the default or the complex
    dtype that belongs to it."""
    if kind == lib.TT_KIND_COMPLEX:
        return default_complex()
    return {lib.TT_KIND_BOOL: bool, lib.TT_KIND_INT: int64}.get(kind, _default)


def default_complex() -> dtype:
    """The dtype of complex numbers from Python: complex128 where the default dtype is float64, else complex64."""
    return complex128 if _default is float64 else complex64


class Size(tuple):
    """A shape: a tuple that prints as ``tinytorch.Size([2, 3])`` and knows its number of elements."""

    __slots__ = ()

    def __new__(cls, sizes=()):
        try:
            return tuple.__new__(cls, [int(operator.index(n)) for n in sizes])
        except TypeError as exc:
            raise TypeError(f"Size(): expected an iterable of integers: {exc}") from None

    def numel(self) -> int:
        n = 1
        for s in self:
            n *= s
        return n

    def __repr__(self):
        return f"{library_name.shown}.Size({list(self)})"

    def __getitem__(self, item):
        got = tuple.__getitem__(self, item)
        return tuple.__new__(Size, got) if isinstance(item, slice) else got

    def __add__(self, other):
        return Size(tuple(self) + tuple(other))

    def __radd__(self, other):
        return Size(tuple(other) + tuple(self))

    def __mul__(self, other):
        return tuple.__new__(Size, tuple.__mul__(self, other))

    __rmul__ = __mul__


@functools.cache
def exact_integers(d: dtype) -> tuple[int, int]:
    """The least and the largest integer such that the dtype holds both and all between."""
    if d.is_differentiable:
        digits = finfo._limits[d.to_real()][0] + 1
        return -(1 << digits), 1 << digits
    return (0, 1) if d is bool else (iinfo(d).min, iinfo(d).max)


class finfo:
    """Limits of a floating dtype: ``bits, eps, max, min, tiny, smallest_normal, resolution``. Follows torch.finfo."""

    _limits = {float16: (10, 15, 3), bfloat16: (7, 127, 2), float32: (23, 127, 6), float64: (52, 1023, 15)}

    def __init__(self, d: dtype | None = None):
        given, d = d, _default if d is None else as_dtype(d, "finfo", "type").to_real()
        if d not in self._limits:
            raise TypeError(f"finfo: expected a floating-point dtype, got {given!r}; use iinfo")
        fraction, top, digits = self._limits[d]
        self.bits = 8 * d.itemsize
        self.dtype = d.name
        self.eps = 2.0**-fraction
        self.max = (2.0 - self.eps) * 2.0**top
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - top)
        self.resolution = 10.0**-digits


class iinfo:
    """Limits of an integer dtype: ``bits, max, min``. Follows torch.iinfo."""

    def __init__(self, d: dtype):
        given, d = d, as_dtype(d, "iinfo", "type")
        if d.is_differentiable or d is bool:
            raise TypeError(f"iinfo: expected an integer dtype, got {given!r}; use finfo for floating-point ones")
        self.bits = 8 * d.itemsize
        self.dtype = d.name
        self.max = (1 << (self.bits - d.is_signed)) - 1
        self.min = -(1 << (self.bits - 1)) if d.is_signed else 0
