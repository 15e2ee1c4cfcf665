"""``torch._subclasses``."""

from . import fake_tensor

__all__ = ["fake_tensor"]
