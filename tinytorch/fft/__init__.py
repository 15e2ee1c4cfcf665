"""Discrete Fourier transforms, for float32, float64 and their complex dtypes, on the CPU. Follows ``torch.fft``."""

from ..ops.declare import names_of as _names_of

globals().update(_names_of("fft"))
__all__ = sorted(_names_of("fft"))
