"""Choices of precision for CUDA devices: what ``tinytorch.backends.cuda.matmul`` is."""

from __future__ import annotations

from ..cpu import lib


class MatmulFlags:
    """How products of matrices may be computed. Follows ``torch.backends.cuda.matmul``."""

    __slots__ = ("allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction")

    def __init__(self):
        self.allow_tf32 = False  # float32 operands rounded to 10 bits of mantissa, on tensor cores
        self.allow_fp16_reduced_precision_reduction = True  # parts of long sums are kept in the operands' dtype
        self.allow_bf16_reduced_precision_reduction = True

    def __setattr__(self, name, value):
        if name in self.__slots__ and not isinstance(value, bool):
            raise TypeError(f"backends.cuda.matmul.{name} must be a bool, not {type(value).__name__}")
        if getattr(self, name, None) is not value:
            object.__setattr__(self, name, value)
            lib.tt_cuda_forget_plans()  # they were chosen as it was


matmul = MatmulFlags()
_PRECISIONS = ("highest", "high", "medium")


def set_float32_matmul_precision(precision: str) -> None:
    """``"highest"``: products of float32 matrices are float32's; ``"high"``, ``"medium"``: TF32 may be used, as by
    ``backends.cuda.matmul.allow_tf32 = True``. The CPU's are float32's always. Follows
    ``torch.set_float32_matmul_precision``."""
    if precision not in _PRECISIONS:
        raise RuntimeError(f"set_float32_matmul_precision: expected one of {', '.join(_PRECISIONS)}, got {precision!r}")
    matmul.allow_tf32 = precision != "highest"


def get_float32_matmul_precision() -> str:
    """``"high"`` where TF32 may be used, else ``"highest"``."""
    return "high" if matmul.allow_tf32 else "highest"


def is_built() -> bool:
    """Can this build use CUDA devices? All can; whether there are some, ``cuda.is_available()`` tells."""
    return True
