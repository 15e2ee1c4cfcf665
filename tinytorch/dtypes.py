"""Dtypes, in the numbering of kernels/core/tt.h, and what follows from them."""

from __future__ import annotations

from .backends.cpu import lib


class dtype:
    """An element type. Each is one object: compare with ``is`` or ``==``. Follows ``torch.dtype``."""

    __slots__ = ("name", "code", "itemsize", "is_floating_point", "is_signed")
    is_complex = False

    def __init__(self, name: str, code: int, is_floating_point: bool, is_signed: bool):
        self.name, self.code, self.itemsize = name, code, lib.tt_itemsize(code)
        self.is_floating_point, self.is_signed = is_floating_point, is_signed

    def __repr__(self):
        return f"tinytorch.{self.name}"

    def __reduce__(self):
        return _by_name, (self.name,)

    def to_complex(self):
        raise RuntimeError(f"{self!r} has no complex counterpart yet")


bool = dtype("bool", 0, False, False)  # noqa: A001 (the name torch gives it)
uint8 = dtype("uint8", 1, False, False)
int8 = dtype("int8", 2, False, True)
int16 = short = dtype("int16", 3, False, True)
int32 = dtype("int32", 4, False, True)
int64 = long = dtype("int64", 5, False, True)
float16 = half = dtype("float16", 6, True, True)
bfloat16 = dtype("bfloat16", 7, True, True)
float32 = dtype("float32", 8, True, True)
float64 = double = dtype("float64", 9, True, True)

ALL = (bool, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64)
FLOATING = (float16, bfloat16, float32, float64)
DIFFERENTIABLE = tuple(d.is_floating_point for d in ALL)  # by code, for hot paths

_names = {d.name: d for d in ALL}
_default = float32


def _by_name(name: str) -> dtype:
    return _names[name]


def get_default_dtype() -> dtype:
    """The dtype of floats from Python and of integers promoted by division; float32 at the start."""
    return _default


def set_default_dtype(d: dtype) -> None:
    """Makes floating dtype ``d`` the default. TypeError otherwise. Process-wide, as in PyTorch."""
    global _default
    if d not in FLOATING:
        raise TypeError(f"set_default_dtype: only floating-point types are supported as the default type, got {d!r}")
    _default = d
    lib.tt_set_default_dtype(d.code)


class Size(tuple):
    """A shape: a tuple that prints as ``tinytorch.Size([2, 3])`` and knows its number of elements."""

    __slots__ = ()

    def numel(self) -> int:
        n = 1
        for s in self:
            n *= s
        return n

    def __repr__(self):
        return f"tinytorch.Size({list(self)})"

    def __getitem__(self, item):
        got = tuple.__getitem__(self, item)
        return Size(got) if isinstance(item, slice) else got

    def __add__(self, other):
        return Size(tuple(self) + tuple(other))


class finfo:
    """Limits of a floating dtype: ``bits, eps, max, min, tiny, smallest_normal, resolution``. Follows torch.finfo."""

    _limits = {float16: (16, 10, 15, 3), bfloat16: (16, 7, 127, 2), float32: (32, 23, 127, 6),
               float64: (64, 52, 1023, 15)}

    def __init__(self, d: dtype | None = None):
        d = _default if d is None else d
        if d not in self._limits:
            raise TypeError(f"finfo: expected a floating-point dtype, got {d!r}; use iinfo")
        self.bits, fraction, top, digits = self._limits[d]
        self.dtype = d.name
        self.eps = 2.0**-fraction
        self.max = (2.0 - self.eps) * 2.0**top
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - top)
        self.resolution = 10.0**-digits


class iinfo:
    """Limits of an integer dtype: ``bits, max, min``. Follows torch.iinfo."""

    def __init__(self, d: dtype):
        if d.is_floating_point or d is bool:
            raise TypeError(f"iinfo: expected an integer dtype, got {d!r}; use finfo for floating-point ones")
        self.bits = 8 * d.itemsize
        self.dtype = d.name
        self.max = (1 << (self.bits - d.is_signed)) - 1
        self.min = -(1 << (self.bits - 1)) if d.is_signed else 0
