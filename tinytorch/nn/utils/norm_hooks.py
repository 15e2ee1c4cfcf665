"""Weight and spectral normalization of old, which a hook before forward computes; ``parametrizations`` has the new.
Follow ``torch.nn.utils``."""

from __future__ import annotations

import warnings

from ...tensor import Tensor
from ..module import Module
from ..parameter import Parameter
from .parametrizations import as_matrix, length_of, over_spectral_norm, power_method, random_directions

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]


class _Normalizer:
    """A hook that computes a module's attribute from other parameters before each forward."""

    def __init__(self, name: str):
        self.name = name

    def compute(self, module: Module) -> Tensor:
        """The attribute."""
        raise NotImplementedError(f"{type(self).__name__} must define compute()")

    def __call__(self, module: Module, inputs) -> None:
        setattr(module, self.name, self.compute(module))

    def register(self, module: Module, what: str) -> None:
        """Hooks itself to a module. RuntimeError when another of its kind has the attribute."""
        for hook in module._forward_pre_hooks.values():
            if type(hook) is type(self) and hook.name == self.name:
                raise RuntimeError(f"Cannot register two {what} hooks on the same parameter {self.name}")
        module.register_forward_pre_hook(self)


class WeightNorm(_Normalizer):
    """Length times direction."""

    def __init__(self, name: str, dim: int | None):
        super().__init__(name)
        self.dim = -1 if dim is None else dim

    def compute(self, module: Module) -> Tensor:
        v = getattr(module, self.name + "_v")
        return v * (getattr(module, self.name + "_g") / length_of(v, self.dim))


class SpectralNorm(_Normalizer):
    """A tensor over its largest singular value."""

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float):
        super().__init__(name)
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.n_power_iterations, self.dim, self.eps = n_power_iterations, dim, eps

    def compute(self, module: Module, iterations: int | None = None) -> Tensor:
        weight, u, v = (getattr(module, self.name + end) for end in ("_orig", "_u", "_v"))
        if iterations is None:
            iterations = self.n_power_iterations if module.training else 0
        power_method(as_matrix(weight.detach(), self.dim).mT, v, u, iterations, self.eps)  # the right vector first
        return over_spectral_norm(weight, self.dim, u, v, 0, self.eps)


def _unhook(module: Module, kind: type, name: str, what: str) -> _Normalizer:
    """Takes a hook out. ValueError when there is none."""
    for key, hook in module._forward_pre_hooks.items():
        if type(hook) is kind and hook.name == name:
            del module._forward_pre_hooks[key]
            return hook
    raise ValueError(f"{what} of '{name}' not found in {module}")


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Trains length (``name_g``) and direction (``name_v``) of a parameter apart: see
    ``parametrizations.weight_norm``, which replaces this. Returns the module. RuntimeError when it is done already.
    Follows ``torch.nn.utils.weight_norm``."""
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    hook = WeightNorm(name, dim)
    hook.register(module, "weight_norm")
    weight = getattr(module, name)
    del module._parameters[name]
    module.register_parameter(name + "_g", Parameter(length_of(weight.detach(), hook.dim)))
    module.register_parameter(name + "_v", Parameter(weight.detach()))
    setattr(module, name, hook.compute(module))
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Makes the attribute a parameter again. Returns the module. ValueError where ``weight_norm`` was not applied.
    Follows ``torch.nn.utils.remove_weight_norm``."""
    hook = _unhook(module, WeightNorm, name, "weight_norm")
    weight = hook.compute(module)
    delattr(module, name)
    del module._parameters[name + "_g"], module._parameters[name + "_v"]
    setattr(module, name, Parameter(weight.detach()))
    return module


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divides a parameter (now ``name_orig``) by its largest singular value: see ``parametrizations.spectral_norm``,
    which replaces this. Returns the module. RuntimeError when it is done already, ValueError for less than one
    iteration. Follows ``torch.nn.utils.spectral_norm``."""
    if dim is None:
        dim = 1 if getattr(module, "transposed", False) else 0
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    hook.register(module, "spectral_norm")
    weight = module._parameters.pop(name)
    module.register_parameter(name + "_orig", weight)
    setattr(module, name, weight.detach())
    for end, vector in zip(("_u", "_v"), random_directions(as_matrix(weight.detach(), dim), eps)):
        module.register_buffer(name + end, vector)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Makes the attribute a parameter again. Returns the module. ValueError where ``spectral_norm`` was not applied.
    Follows ``torch.nn.utils.remove_spectral_norm``."""
    hook = _unhook(module, SpectralNorm, name, "spectral_norm")
    weight = hook.compute(module, 0).detach()
    delattr(module, name)
    del module._parameters[name + "_orig"], module._buffers[name + "_u"], module._buffers[name + "_v"]
    module.register_parameter(name, Parameter(weight))
    return module
