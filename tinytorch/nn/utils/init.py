"""Modules whose values are not to be drawn. Follows ``torch.nn.utils.init``."""

from __future__ import annotations

import inspect

from ...random import fork_rng
from ..module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: type[Module], *args, **kwargs) -> Module:
    """A module whose parameters are to be overwritten: what their values are is not said, and the random generators are
    as before. ``device`` is "cpu" if it is not given. Follows ``torch.nn.utils.skip_init``.

    Raises:
        RuntimeError: ``module_cls`` is no module, or takes no ``device``
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    with fork_rng():
        module = module_cls(*args, **{**kwargs, "device": "cpu"})
    return module.to_empty(device=kwargs.get("device", "cpu"))
