"""dtypes that PyTorch has and tinytorch has not: names, which programs put into tables. No tensor has one."""

from __future__ import annotations

import tinytorch

from ... import library_name

_BITS = {
    "float8_e4m3fn": 8, "float8_e4m3fnuz": 8,
    "float8_e5m2": 8, "float8_e5m2fnuz": 8, "float8_e8m0fnu": 8, "float4_e2m1fn_x2": 8, "qint8": 8, "quint8": 8,
    "qint32": 32, "quint4x2": 8, "quint2x4": 8,
}  # fmt: skip


# eps, the largest number, the smallest normal one
_LIMITS = {
    "float8_e4m3fn": (2.0**-3, 448.0, 2.0**-6), "float8_e4m3fnuz": (2.0**-3, 240.0, 2.0**-7),
    "float8_e5m2": (2.0**-2, 57344.0, 2.0**-14), "float8_e5m2fnuz": (2.0**-3, 57344.0, 2.0**-15),
    "float8_e8m0fnu": (1.0, 2.0**127, 2.0**-127),
}  # fmt: skip


class AbsentDtype:
    """The name of a dtype that no tensor has: a function that is given it raises TypeError."""

    def __init__(self, name: str, bits: int):
        self.name, self.itemsize = name, bits // 8
        self.is_floating_point, self.is_complex = name.startswith("float"), False
        self.is_signed = not name.startswith(("u", "qu"))

    def __repr__(self):
        return f"{library_name.shown}.{self.name}"


class finfo(tinytorch.finfo):
    """``tinytorch.finfo``, which knows the limits of absent dtypes, too."""

    def __init__(self, type=None):
        if not isinstance(type, AbsentDtype) or type.name not in _LIMITS:
            super().__init__(type)
            return
        self.bits, self.dtype, self.resolution = 8 * type.itemsize, type.name, 1.0
        self.eps, self.max, self.tiny = _LIMITS[type.name]
        self.smallest_normal = self.tiny
        self.min = self.tiny if type.name == "float8_e8m0fnu" else -self.max


ABSENT = {name: AbsentDtype(name, bits) for name, bits in _BITS.items()}
__all__ = ["ABSENT", "AbsentDtype", "finfo"]
