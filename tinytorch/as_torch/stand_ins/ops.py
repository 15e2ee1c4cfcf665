"""``torch.ops``: operators of the program's own, made by ``torch.library.custom_op``. PyTorch's are not there."""

from __future__ import annotations

from types import SimpleNamespace

from .library import CustomOpDef

__all__ = ["load_library"]


def load_library(path) -> None:
    """OSError: a library of operators is written for PyTorch's own."""
    raise OSError(f"ops.load_library: tinytorch cannot load {path}, which is compiled for PyTorch")


def __getattr__(name: str):
    """A namespace."""
    made = {op.partition("::")[2]: fn for op, fn in CustomOpDef.known.items() if op.startswith(f"{name}::")}
    if not made:
        raise AttributeError(f"torch.ops.{name}: not in tinytorch, which is torch here", name=name)
    return SimpleNamespace(**made)
