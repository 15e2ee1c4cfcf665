"""Further names of ``torch._C`` that programs use."""

from __future__ import annotations

from contextlib import nullcontext

import tinytorch
from tinytorch import Generator, Size, Tensor, default_generator, device, dtype, layout, memory_format
from tinytorch.cuda import is_available
from tinytorch.linalg import LinAlgError as _LinAlgError
from tinytorch.torch_function import off

__all__ = ["Generator", "_LinAlgError", "_get_tracing_state", "_is_torch_function_enabled", "_log_api_usage_once",
           "_are_functorch_transforms_active", "_get_privateuse1_backend_name", "_get_accelerator",
           "_jit_set_profiling_executor", "_jit_set_profiling_mode", "_jit_override_can_fuse_on_cpu",
           "_jit_override_can_fuse_on_gpu", "_jit_set_texpr_fuser_enabled", "device", "dtype", "layout",
           "memory_format", "Value", "Graph", "Size", "TensorBase", "_TensorBase", "_VariableFunctions",
           "_add_docstr", "_nn", "default_generator",
           "DispatchKey", "DispatchKeySet", "_ExcludeDispatchKeyGuard"]  # fmt: skip


TensorBase = _TensorBase = Tensor
_VariableFunctions, _nn = tinytorch, tinytorch.nn.functional


def _add_docstr(obj, doc: str):
    """``obj`` itself."""
    return obj


class Value:
    """A value of TorchScript: there is none."""


class Graph:
    """A program of TorchScript: there is none."""


def _log_api_usage_once(event: str) -> None:
    """Nothing is told anybody."""


def _get_tracing_state() -> None:
    """None: nothing is being traced."""


def _are_functorch_transforms_active() -> bool:
    """False."""
    return False


def _is_torch_function_enabled() -> bool:
    """Are overriding arguments asked?"""
    return not off()


def _get_privateuse1_backend_name() -> str:
    """PyTorch's name for a device that others add."""
    return "privateuseone"


def _get_accelerator(check: bool = False):
    """The device."""
    return device("cuda" if is_available() else "cpu")


def _switch(value: bool) -> bool:
    """False: there was and is no such compiler."""
    return False


_jit_set_profiling_executor = _jit_set_profiling_mode = _switch
_jit_override_can_fuse_on_cpu = _jit_override_can_fuse_on_gpu = _jit_set_texpr_fuser_enabled = _switch


class _DispatchKeys:
    def __getattr__(self, name: str) -> str:
        return name


DispatchKey = _DispatchKeys()  # what PyTorch asks, in turn, to answer a call: here each is its name alone


class DispatchKeySet(frozenset):
    """Some of them: of one, or joined by ``|``."""

    def __new__(cls, key):
        return super().__new__(cls, {key} if isinstance(key, str) else key)

    def __or__(self, other):
        return DispatchKeySet(super().__or__(other))

    has = frozenset.__contains__


def _ExcludeDispatchKeyGuard(keys):
    """A context that changes nothing: no key is asked."""
    return nullcontext()
