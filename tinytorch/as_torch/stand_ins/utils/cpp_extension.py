"""``torch.utils.cpp_extension``: extensions of PyTorch's C++ are not compiled. Programs that fall back on Python find
the names."""

from __future__ import annotations

import shutil

__all__ = [
    "BuildExtension",
    "CUDA_HOME",
    "CUDAExtension",
    "CppExtension",
    "ROCM_HOME",
    "check_compiler_ok_for_platform",
    "include_paths",
    "is_ninja_available",
    "library_paths",
    "load",
    "load_inline",
]

CUDA_HOME = ROCM_HOME = None


def _refuse(*args, **kwargs):
    raise RuntimeError("cpp_extension: extensions of PyTorch's C++ do not fit tinytorch, which is torch here")


load = load_inline = CppExtension = CUDAExtension = BuildExtension = _refuse


def is_ninja_available() -> bool:
    """Is there a ninja?"""
    return shutil.which("ninja") is not None


def check_compiler_ok_for_platform(compiler: str) -> bool:
    """Is there such a program?"""
    return shutil.which(compiler) is not None


def include_paths(device_type: str = "cpu") -> list[str]:
    """None: there are no headers."""
    return []


library_paths = include_paths
