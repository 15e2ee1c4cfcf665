"""Operators in other hands: ``__torch_function__`` of subclasses of Tensor, of any other object, and of modes. Follows
``torch.overrides``. Objects that are no Tensors are asked once a subclass of Tensor that overrides was defined, a mode
was entered, or a function of this module was called: before that no function looks for them, and they are a TypeError.
"""

from __future__ import annotations

import functools
import sys

from ..ops.declare import NAMESPACES
from ..tensor import Tensor
from ..torch_function import active_mode, dispatch, get_default_nowrap_functions, off, overriding
from .overridable import NOT_BY_ARGUMENTS, install, overridable_methods
from .modes import BaseTorchFunctionMode, TorchFunctionMode

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "get_default_nowrap_functions",
    "get_overridable_functions",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]


def has_torch_function(relevant_args) -> bool:
    """Is the call of a function with these arguments in other hands: has one a ``__torch_function__``, or is a mode
    entered? Follows ``torch.overrides.has_torch_function``."""
    install()
    return active_mode() or (not off() and bool(overriding(relevant_args)))


def has_torch_function_unary(tensor) -> bool:
    """``has_torch_function`` of one argument. Follows ``torch.overrides.has_torch_function_unary``."""
    return has_torch_function((tensor,))


def has_torch_function_variadic(*tensors) -> bool:
    """``has_torch_function`` of several arguments. Follows ``torch.overrides.has_torch_function_variadic``."""
    return has_torch_function(tensors)


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """What the handlers among ``relevant_args``, and modes, make of ``public_api(*args, **kwargs)``: the first result
    that is not NotImplemented. TypeError when there is none. Follows ``torch.overrides.handle_torch_function``."""
    install()
    return dispatch(public_api, () if off() else overriding(relevant_args), args, kwargs)


def wrap_torch_function(dispatcher):
    """Decorates a function so that arguments may override it: ``dispatcher``, called as the function is, gives those
    that are looked at. Follows ``torch.overrides.wrap_torch_function``."""
    install()

    def decorate(fn):
        @functools.wraps(fn)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return fn(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp) -> bool:
    """Is it a Tensor, or an object with a ``__torch_function__``? Follows ``torch.overrides.is_tensor_like``."""
    install()
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def get_overridable_functions() -> dict:
    """The functions that arguments may override, as lists by the module or class they belong to. Follows
    ``torch.overrides.get_overridable_functions``."""
    install()
    package = __name__.partition(".")[0]
    found = {}
    for namespace, functions in NAMESPACES.items():
        module = sys.modules.get(f"{package}.{namespace}" if namespace else package)
        if module is not None:
            found[module] = [fn for name, fn in functions.items() if namespace or name not in NOT_BY_ARGUMENTS]
    found[Tensor] = [*overridable_methods().values()]
    found[Tensor] += [p.__get__ for p in vars(Tensor).values() if isinstance(p, property)]
    return found


def is_tensor_method_or_property(func) -> bool:
    """Is it a method of Tensor, or a property's ``__get__``? Follows
    ``torch.overrides.is_tensor_method_or_property``."""
    return any(func is fn for fn in vars(Tensor).values()) or getattr(func, "__name__", "") == "__get__"


def resolve_name(f) -> str | None:
    """Where a function is found: ``tinytorch.Tensor.add``. None for what is no public function. Follows
    ``torch.overrides.resolve_name``."""
    owner = getattr(f, "__self__", None)
    if isinstance(owner, property):
        for name, member in vars(Tensor).items():
            if member is owner:
                return f"{Tensor.__module__.partition('.')[0]}.Tensor.{name}.{f.__name__}"
    name = getattr(f, "__qualname__", None)
    return f"{f.__module__}.{name}" if name and hasattr(f, "op") else None
