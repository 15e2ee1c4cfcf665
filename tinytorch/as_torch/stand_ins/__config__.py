"""``torch.__config__``."""

from tinytorch import __version__, get_num_threads

__all__ = ["parallel_info", "show"]


def show() -> str:
    """Which library this is."""
    return f"tinytorch {__version__}, in the place of PyTorch"


def parallel_info() -> str:
    """How many threads compute."""
    return f"tinytorch: {get_num_threads()} threads"
