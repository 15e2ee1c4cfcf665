"""``torch.backends.mkl``."""

__all__ = ["is_available"]


def is_available() -> bool:
    """False: OpenBLAS and kernels of ours multiply matrices."""
    return False
