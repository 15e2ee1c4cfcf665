"""``torch.backends.openmp``."""

__all__ = ["is_available"]


def is_available() -> bool:
    """False: tinytorch has threads of its own."""
    return False
