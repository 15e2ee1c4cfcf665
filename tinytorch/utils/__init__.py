"""Utilities. Follows ``torch.utils``."""

from importlib import import_module as _import_module

from . import checkpoint, dlpack, hooks, serialization

__all__ = ["checkpoint", "data", "dlpack", "hooks", "serialization"]


def __getattr__(name: str):
    """``data``, which starts processes, is imported when it is first asked for."""
    if name == "data":
        return _import_module(".data", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
