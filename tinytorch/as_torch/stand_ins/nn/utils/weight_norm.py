"""``torch.nn.utils.weight_norm``, a module and a function: an import of the module takes the function's place."""

import sys

from tinytorch.nn.utils.norm_hooks import WeightNorm, remove_weight_norm, weight_norm

from ...callable_module import CallableModule

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]

sys.modules[__name__].__class__ = CallableModule
