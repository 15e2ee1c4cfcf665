"""Modules whose name is also a function's."""

from __future__ import annotations

import types

__all__: list[str] = []


class CallableModule(types.ModuleType):
    """A module that is called as its function of the same name."""

    def __call__(self, *args, **kwargs):
        return getattr(self, self.__name__.rpartition(".")[2])(*args, **kwargs)
