"""``torch.nn.utils.spectral_norm``, a module and a function: an import of the module takes the function's place."""

import sys

from tinytorch.nn.utils.norm_hooks import SpectralNorm, remove_spectral_norm, spectral_norm

from ...callable_module import CallableModule

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]

sys.modules[__name__].__class__ = CallableModule
