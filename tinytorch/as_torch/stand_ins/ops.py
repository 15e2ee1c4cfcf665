"""``torch.ops``: operators by their names in PyTorch's dispatcher, which is not there."""

from __future__ import annotations

__all__ = ["load_library"]


def load_library(path) -> None:
    """OSError: a library of operators is written for PyTorch's own."""
    raise OSError(f"ops.load_library: tinytorch cannot load {path}, which is compiled for PyTorch")
