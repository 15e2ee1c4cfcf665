"""Utilities. Follows ``torch.utils``."""

from importlib import import_module as _import_module

from . import checkpoint, dlpack, hooks, serialization

__all__ = ["benchmark", "checkpoint", "data", "dlpack", "hooks", "serialization"]


def __getattr__(name: str):
    """``data``, which starts processes, and ``benchmark`` are imported when they are first asked for."""
    if name in ("benchmark", "data"):
        return _import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
