"""dtypes that PyTorch has and tinytorch has not: names, which programs put into tables. No tensor has one."""

from __future__ import annotations

from ... import library_name

_BITS = {
    "uint16": 16, "uint32": 32, "uint64": 64, "complex32": 32, "float8_e4m3fn": 8, "float8_e4m3fnuz": 8,
    "float8_e5m2": 8, "float8_e5m2fnuz": 8, "float8_e8m0fnu": 8, "float4_e2m1fn_x2": 8, "qint8": 8, "quint8": 8,
    "qint32": 32, "quint4x2": 8, "quint2x4": 8,
}  # fmt: skip


class AbsentDtype:
    """The name of a dtype that no tensor has: a function that is given it raises TypeError."""

    def __init__(self, name: str, bits: int):
        self.name, self.itemsize = name, bits // 8
        self.is_floating_point, self.is_complex = name.startswith("float"), name.startswith("complex")
        self.is_signed = not name.startswith(("u", "qu"))

    def __repr__(self):
        return f"{library_name.shown}.{self.name}"


ABSENT = {name: AbsentDtype(name, bits) for name, bits in _BITS.items()}
ABSENT["chalf"] = ABSENT["complex32"]
__all__ = ["ABSENT", "AbsentDtype"]
