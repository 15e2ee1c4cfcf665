"""Windows for Fourier transforms, symmetric unless told. Follows ``torch.signal.windows``."""

from ...ops.declare import names_of as _names_of

globals().update(_names_of("signal.windows"))
__all__ = sorted(_names_of("signal.windows"))
