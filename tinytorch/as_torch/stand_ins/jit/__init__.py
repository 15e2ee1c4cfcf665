"""``torch.jit`` without a compiler: what is scripted or traced is the function or module itself, which runs as it did.

Files of scripted modules are neither written nor read: ``save`` and ``load`` refuse.
"""

from __future__ import annotations

import contextlib
import typing

from tinytorch.nn import Module

from . import annotations as annotations

__all__ = [
    "Attribute",
    "Error",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "TopLevelTracedModule",
    "TracerWarning",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "fork",
    "freeze",
    "fuser",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "run_frozen_optimizations",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
    "_overload",
    "_overload_method",
    "_script_if_tracing",
    "_unwrap_optional",
]

_isinstance = isinstance
Final = typing.Final
T = typing.TypeVar("T")


class Attribute(typing.NamedTuple):
    """A value with its type."""

    value: object
    type: object


class Error(RuntimeError):
    """An error of TorchScript; nothing raises it."""


class TracerWarning(Warning):
    """A warning of PyTorch's tracer; nothing gives it."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Nothing."""


class ScriptModule(Module):
    """A module whose class says that it is to be scripted."""


class RecursiveScriptModule(ScriptModule):
    """What PyTorch's ``script`` makes of a module: no object is one."""


class TopLevelTracedModule(ScriptModule):
    """What PyTorch's ``trace`` makes of a module: no object is one."""


class ScriptFunction:
    """What PyTorch's ``script`` makes of a function: no object is one."""


def script(obj: T, optimize=None, _frames_up=0, _rcb=None, example_inputs=None) -> T:
    """``obj`` itself, a function, class or module: Python runs it."""
    return obj


def trace(func: T, example_inputs=None, *args, **kwargs) -> T:
    """``func`` itself, which goes on to look at what its inputs are."""
    return func


def trace_module(mod: T, inputs, *args, **kwargs) -> T:
    """``mod`` itself."""
    return mod


def _itself(fn: T, *args, **kwargs) -> T:
    """``fn`` itself."""
    return fn


export = interface = script_method = script_if_tracing = _script_if_tracing = _overload = _overload_method = _itself
freeze = optimize_for_inference = _itself


def ignore(drop=False, **kwargs):
    """The function that is decorated, with or without arguments."""
    return drop if callable(drop) else _itself


unused = _itself


def is_scripting() -> bool:
    """False."""
    return False


is_tracing = onednn_fusion_enabled = is_scripting


def annotate(the_type, the_value: T) -> T:
    """The value."""
    return the_value


def _unwrap_optional(x: T | None) -> T:
    """The value, which is not None."""
    assert x is not None, "Unwrapping null optional"
    return x


def isinstance(obj, target_type) -> bool:
    """Is it an instance of the type, or of the container whose elements the type tells?"""
    origin, parts = typing.get_origin(target_type), typing.get_args(target_type)
    if origin is typing.Union:
        return any(isinstance(obj, part) for part in parts)
    if origin in (list, set):
        return _isinstance(obj, origin) and all(isinstance(v, parts[0]) for v in obj)
    if origin is dict:
        return _isinstance(obj, dict) and all(
            isinstance(k, parts[0]) and isinstance(v, parts[1]) for k, v in obj.items()
        )
    if origin is tuple:
        return _isinstance(obj, tuple) and len(obj) == len(parts) and all(map(isinstance, obj, parts))
    return _isinstance(obj, target_type)


class Future:
    """A result that is there already."""

    def __init__(self, value):
        self._value = value

    def wait(self):
        """The result."""
        return self._value


def fork(func, *args, **kwargs) -> Future:
    """Calls the function now."""
    return Future(func(*args, **kwargs))


def wait(future: Future):
    """The result of ``fork``."""
    return future.wait()


def _nothing(*args, **kwargs) -> None:
    """Changes nothing."""


set_fusion_strategy = enable_onednn_fusion = run_frozen_optimizations = _nothing


def fuser(name: str):
    """A context that changes nothing."""
    return contextlib.nullcontext()


def optimized_execution(should_optimize: bool):
    """A context that changes nothing."""
    return contextlib.nullcontext()


strict_fusion = contextlib.nullcontext


def save(m, f, _extra_files=None) -> None:
    """NotImplementedError: there is no TorchScript to save; ``torch.save(m.state_dict(), f)`` keeps the weights."""
    raise NotImplementedError("jit.save: tinytorch has no TorchScript; save the module's state_dict() by torch.save")


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """NotImplementedError: a file of TorchScript holds a program that tinytorch cannot run."""
    raise NotImplementedError("jit.load: tinytorch has no TorchScript; load a state_dict() by torch.load instead")
