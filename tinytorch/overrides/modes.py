"""Modes: handlers of all calls of a thread."""

from __future__ import annotations

from _thread import get_ident

from ..torch_function import modes
from .overridable import ORDINARY, install_for_modes, plain


class TorchFunctionMode:
    """A context in which this thread's calls of public functions and methods go to ``__torch_function__(self, func,
    types, args=(), kwargs=None)``, which a subclass defines; what that calls goes to the modes around it. Follows
    ``torch.overrides.TorchFunctionMode``."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError("a TorchFunctionMode defines __torch_function__")

    def __enter__(self):
        install_for_modes()
        modes.setdefault(get_ident(), []).append(self)
        plain.clear()  # calls look for modes
        return self

    def __exit__(self, *exc_info):
        thread = get_ident()
        modes[thread].pop()
        if not modes[thread]:
            del modes[thread]
        if not modes:
            plain.update(ORDINARY)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing. Follows ``torch.overrides.BaseTorchFunctionMode``."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **kwargs or {})
