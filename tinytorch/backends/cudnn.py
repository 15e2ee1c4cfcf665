"""cuDNN: how convolutions and attention of CUDA devices are computed. Follows ``torch.backends.cudnn``, but for a
setting that follows the rest of tinytorch: results are the same in every run (``deterministic`` is True).

- ``enabled``: use it; without it convolutions are computed by a plain kernel, which is slow.
- ``benchmark``: time the plans for each new problem, and keep the fastest; otherwise the library's guess is taken.
- ``benchmark_limit``: how many of them; 0: all.
- ``deterministic``: only plans whose results are the same in every run; of attention, whose derivative such a plan
  finds by way of all scores in memory, kernels of ours compute that. On an H200 attention of bfloat16, forward
  and backward, takes a sixth more time then (8 x 12 x 4096 x 64: 3.8 ms instead of 3.2).
  ``use_deterministic_algorithms(True)`` overrules False.
- ``allow_tf32``: round float32 operands of convolutions and recurrent layers to 10 bits of mantissa for tensor cores,
  as in PyTorch; without it float32's results are float32's. Recurrent layers are products of matrices, which cuBLAS
  computes: with ``backends.cuda.matmul.allow_tf32`` they are rounded as well.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterator

from .cpu import lib
from .cuda import cudnn as _library

__all__ = ["version", "is_available", "is_acceptable", "set_flags", "flags"]

enabled: bool = True
benchmark: bool = False
benchmark_limit: int = 10
deterministic: bool = True
allow_tf32: bool = True

_SETTINGS = {"enabled": bool, "benchmark": bool, "benchmark_limit": int, "deterministic": bool, "allow_tf32": bool}


class _Settings(types.ModuleType):
    """A module whose settings have types."""

    def __setattr__(self, name, value):
        wanted = _SETTINGS.get(name)
        if wanted and type(value) is not wanted:
            raise TypeError(
                f"backends.cudnn.{name} must be {'a bool' if wanted is bool else 'an int'}, not {type(value).__name__}"
            )
        super().__setattr__(name, value)
        lib.tt_cuda_forget_plans()  # they were chosen as the settings were


sys.modules[__name__].__class__ = _Settings


def version() -> int | None:
    """The version of cuDNN, as in 91900 for 9.19.0; None where it is not installed. Follows
    ``torch.backends.cudnn.version``."""
    try:
        return _library.version()
    except OSError:
        return None


def is_available() -> bool:
    """Is cuDNN installed? Follows ``torch.backends.cudnn.is_available``."""
    return version() is not None


def is_acceptable(tensor) -> bool:
    """Would cuDNN be asked for a convolution of that tensor? Follows ``torch.backends.cudnn.is_acceptable``."""
    return enabled and tensor.is_cuda and tensor.is_floating_point() and is_available()


_PRECISIONS = {"none": None, "ieee": False, "tf32": True}  # and what allow_tf32 becomes


def set_flags(
    _enabled=None, _benchmark=None, _benchmark_limit=None, _deterministic=None, _allow_tf32=None, _fp32_precision="none"
) -> tuple:
    """Changes the settings that are given; the former values of all but the last, which is another word for
    ``allow_tf32``: "ieee" or "tf32". Follows ``torch.backends.cudnn.set_flags``.

    Raises:
        TypeError: a value is of the wrong type
        RuntimeError: there is no such precision
    """
    module = sys.modules[__name__]
    if _fp32_precision not in _PRECISIONS:
        raise RuntimeError(f"backends.cudnn: fp32_precision must be one of {', '.join(_PRECISIONS)}")
    if _PRECISIONS[_fp32_precision] is not None:
        _allow_tf32 = _PRECISIONS[_fp32_precision]
    given = _enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32
    before = tuple(getattr(module, name) for name in _SETTINGS)
    for name, value in zip(_SETTINGS, given, strict=True):
        if value is not None:
            setattr(module, name, value)
    return before


@contextlib.contextmanager
def flags(
    enabled=False,
    benchmark=False,
    benchmark_limit=10,
    deterministic=False,
    allow_tf32=True,
    fp32_precision="none",
) -> Iterator[None]:
    """Inside, the settings are these. Follows ``torch.backends.cudnn.flags``, defaults included.

    Raises:
        TypeError: a value is of the wrong type
        RuntimeError: there is no such precision
    """
    before = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32, fp32_precision)
    try:
        yield
    finally:
        set_flags(*before)
