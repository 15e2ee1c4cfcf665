"""Fused mode: ``with tinytorch.fuse():`` or ``@tinytorch.fuse``. Operators are recorded and run together, with eager
mode's bits. See Note [Fused mode] in kernels/fuse/fuse.h; this package is its Python side."""

from __future__ import annotations

import sys
import types
from importlib import import_module as _import_module

from . import debug  # noqa: F401 (declares the setting)
from .explanation import Explanation, explain
from .mode import fuse, stats, wait
from .worker import clear_cache

__all__ = ["Explanation", "Minified", "clear_cache", "explain", "fuse", "minify", "stats", "wait"]


def __getattr__(name: str):
    """``minify`` is imported when it is first asked for: only debugging needs it."""
    if name in ("Minified", "minify"):
        return getattr(_import_module(".shrink", __name__), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


class _Callable(types.ModuleType):
    """The module is the function, too: ``tinytorch.fuse(...)``."""

    __call__ = staticmethod(fuse)


sys.modules[__name__].__class__ = _Callable
