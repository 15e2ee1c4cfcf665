"""``torch.backends.mkldnn``: tinytorch has kernels of its own."""

from __future__ import annotations

import contextlib

__all__ = ["allow_tf32", "deterministic", "enabled", "flags", "is_available"]

enabled, deterministic, allow_tf32 = False, False, False


def is_available() -> bool:
    """False."""
    return False


@contextlib.contextmanager
def flags(enabled=False, deterministic=False, allow_tf32=True, fp32_precision="none"):
    """A context that changes nothing."""
    yield
