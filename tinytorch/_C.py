"""Names of ``torch._C`` that programs with ``__torch_function__`` use."""

from .torch_function import DisableTorchFunction, DisableTorchFunctionSubclass, _disabled_torch_function_impl

__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass", "_disabled_torch_function_impl"]
