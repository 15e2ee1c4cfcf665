"""Layers that PyTorch keeps for old programs."""

from __future__ import annotations

import warnings

from ..tensor import Tensor
from . import functional as F
from .loss import NLLLoss
from .module import Module


class Container(Module):
    """A module of the modules that it is given by name. Deprecated. Follows ``torch.nn.Container``."""

    def __init__(self, **kwargs: Module):
        super().__init__()
        warnings.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in `nn.Module`. Subclass that "
            "instead.",
            FutureWarning,
            stacklevel=2,
        )
        for name, module in kwargs.items():
            self.add_module(name, module)


class CrossMapLRN2d(Module):
    """``input`` over (k + alpha m)^beta, with m the sum of the squares of ``size`` neighbouring channels over ``size``;
    of an even ``size``, one channel less. Follows ``torch.nn.CrossMapLRN2d``."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.ndim}D instead.")
        neighbours = self.size - 1 + self.size % 2
        return F.local_response_norm(input, neighbours, self.alpha * neighbours / self.size, self.beta, self.k)

    def extra_repr(self):
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class NLLLoss2d(NLLLoss):
    """``NLLLoss``, which takes images as well. Deprecated. Follows ``torch.nn.NLLLoss2d``."""

    def __init__(self, *args, **kwargs):
        warnings.warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in replacement and see "
            "https://pytorch.org/docs/main/nn.html#torch.nn.NLLLoss for more details.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(*args, **kwargs)
