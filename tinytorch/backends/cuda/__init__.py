"""CUDA devices, through PyCUDA. Importing this touches no GPU and needs none of NVIDIA's packages."""

from . import allocations  # noqa: F401 (the C side calls its functions)
from .flags import is_built, matmul

__all__ = ["is_built", "matmul"]
