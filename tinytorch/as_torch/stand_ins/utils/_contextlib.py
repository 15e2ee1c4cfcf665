"""``torch.utils._contextlib``: context managers that decorate."""

from __future__ import annotations

from ....autograd.modes import Decorator as _DecoratorContextManager
from ....autograd.modes import MaybeBare

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager"]


class _NoParamDecoratorContextManager(_DecoratorContextManager, metaclass=MaybeBare):
    """One that decorates without being called."""
