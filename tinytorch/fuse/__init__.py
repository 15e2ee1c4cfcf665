"""Fused mode: ``with tinytorch.fuse():`` or ``@tinytorch.fuse``. Operators are recorded and run together, with eager
mode's bits. See Note [Fused mode] in kernels/fuse/fuse.h; this package is its Python side."""

from __future__ import annotations

import sys
import types

from . import debug  # noqa: F401 (declares the setting)
from .explanation import Explanation, explain
from .mode import fuse, stats, wait
from .shrink import Minified, minify
from .worker import clear_cache

__all__ = ["Explanation", "Minified", "clear_cache", "explain", "fuse", "minify", "stats", "wait"]


class _Callable(types.ModuleType):
    """The module is the function, too: ``tinytorch.fuse(...)``."""

    __call__ = staticmethod(fuse)


sys.modules[__name__].__class__ = _Callable
