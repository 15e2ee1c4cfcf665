"""``torch.backends.cpu``."""

from __future__ import annotations

from tinytorch.backends.cpu import ffi, lib

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """Which instructions the kernels use, in PyTorch's words."""
    name = ffi.string(lib.tt_isa_name()).decode()
    return name.upper() if name.startswith("avx") else "DEFAULT"
