"""``torch.backends.mkl``."""

__all__ = ["is_available"]


def is_available() -> bool:
    """False: OpenBLAS multiplies matrices."""
    return False
