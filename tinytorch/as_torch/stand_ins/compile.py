"""``torch.compile``: fused mode."""

from __future__ import annotations

import functools

import tinytorch
from tinytorch.nn import Module

__all__ = ["OptimizedModule", "compile"]


class OptimizedModule(Module):
    """A module that runs in fused mode; ``_orig_mod`` is what was compiled, and what attributes are looked up in."""

    def __init__(self, mod: Module):
        super().__init__()
        self._orig_mod = mod
        object.__setattr__(self, "_run", tinytorch.fuse(mod.__call__))

    def forward(self, *args, **kwargs):
        return self._run(*args, **kwargs)

    def __getattr__(self, name: str):
        if name == "_orig_mod":
            return self._modules[name]
        return getattr(self._orig_mod, name)


def compile(model=None, *, fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None, disable=False):
    """``model`` in fused mode: a module as an OptimizedModule, a function as one that records operators. Results are
    those of eager mode, bit by bit. The options of PyTorch's compilers are taken and change nothing; ``disable=True``
    gives ``model`` back. A decorator, too."""
    if model is None:
        return functools.partial(compile, backend=backend, mode=mode, options=options, disable=disable)
    if disable:
        return model
    return OptimizedModule(model) if isinstance(model, Module) else functools.wraps(model)(tinytorch.fuse(model))
