"""CUDA devices, through PyCUDA. Importing this touches no GPU and needs none of NVIDIA's packages."""

from .flags import matmul

__all__ = ["matmul"]
