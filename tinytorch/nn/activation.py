"""Nonlinear functions as modules."""

from __future__ import annotations

import warnings

from ..ops.create import empty
from ..tensor import Tensor
from . import functional as F
from .init import constant_
from .module import Module
from .parameter import Parameter


def _plain(name: str, function, doc: str) -> type:
    """A module without options: ``function`` of its input."""

    def forward(self, input: Tensor) -> Tensor:
        return function(input)

    return type(name, (Module,), {"forward": forward, "__doc__": doc, "__module__": __name__})


Sigmoid = _plain("Sigmoid", lambda x: x.sigmoid(), "1 / (1 + exp(-x)). Follows ``torch.nn.Sigmoid``.")
Tanh = _plain("Tanh", lambda x: x.tanh(), "tanh(x). Follows ``torch.nn.Tanh``.")
Tanhshrink = _plain("Tanhshrink", lambda x: F.tanhshrink(x), "x - tanh(x). Follows ``torch.nn.Tanhshrink``.")
LogSigmoid = _plain("LogSigmoid", lambda x: F.logsigmoid(x), "log(sigmoid(x)). Follows ``torch.nn.LogSigmoid``.")
Softsign = _plain("Softsign", lambda x: F.softsign(x), "x / (1 + |x|). Follows ``torch.nn.Softsign``.")


class _Inplace(Module):
    """A module with the option ``inplace``: it then overwrites its input."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def extra_repr(self):
        return "inplace=True" if self.inplace else ""


def _maybe_inplace(name: str, function, doc: str) -> type:
    def forward(self, input: Tensor) -> Tensor:
        return function(input, self.inplace)

    return type(name, (_Inplace,), {"forward": forward, "__doc__": doc, "__module__": __name__})


ReLU = _maybe_inplace(
    "ReLU", lambda x, inplace: x.relu_() if inplace else x.relu(), "max(x, 0). Follows ``torch.nn.ReLU``."
)
ReLU6 = _maybe_inplace(
    "ReLU6", lambda x, inplace: F.relu6(x, inplace), "min(max(x, 0), 6). Follows ``torch.nn.ReLU6``."
)
SELU = _maybe_inplace("SELU", lambda x, inplace: F.selu(x, inplace), "Scaled ELU. Follows ``torch.nn.SELU``.")
SiLU = _maybe_inplace("SiLU", lambda x, inplace: F.silu(x, inplace), "x sigmoid(x). Follows ``torch.nn.SiLU``.")
Mish = _maybe_inplace("Mish", lambda x, inplace: F.mish(x, inplace), "x tanh(softplus(x)). Follows ``torch.nn.Mish``.")
Hardswish = _maybe_inplace(
    "Hardswish", lambda x, inplace: F.hardswish(x, inplace), "x relu6(x + 3) / 6. Follows ``torch.nn.Hardswish``."
)
Hardsigmoid = _maybe_inplace(
    "Hardsigmoid", lambda x, inplace: F.hardsigmoid(x, inplace), "relu6(x + 3) / 6. Follows ``torch.nn.Hardsigmoid``."
)


class ELU(_Inplace):
    """x where positive, else alpha (exp(x) - 1). Follows ``torch.nn.ELU``."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self):
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class CELU(ELU):
    """max(0, x) + min(0, alpha (exp(x / alpha) - 1)). Follows ``torch.nn.CELU``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class LeakyReLU(_Inplace):
    """x where positive, else negative_slope x. Follows ``torch.nn.LeakyReLU``."""

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False):
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self):
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class Threshold(_Inplace):
    """x above threshold, else value. Follows ``torch.nn.Threshold``."""

    def __init__(self, threshold: float, value: float, inplace: bool = False):
        super().__init__(inplace)
        self.threshold, self.value = threshold, value

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self):
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class Hardtanh(_Inplace):
    """x within min_val and max_val. Follows ``torch.nn.Hardtanh``."""

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ):
        super().__init__(inplace)
        if min_value is not None:
            warnings.warn(
                "keyword argument `min_value` is deprecated and renamed to `min_val`", FutureWarning, stacklevel=2
            )
            min_val = min_value
        if max_value is not None:
            warnings.warn(
                "keyword argument `max_value` is deprecated and renamed to `max_val`", FutureWarning, stacklevel=2
            )
            max_val = max_value
        if max_val <= min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")
        self.min_val, self.max_val = min_val, max_val

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class RReLU(Module):
    """x where positive, else a random slope times x, in training; in evaluation the mean of ``lower`` and ``upper``.
    Follows ``torch.nn.RReLU``."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False):
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self):
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class PReLU(Module):
    """x where positive, else a learnt slope (one, or one a channel) times x. Follows ``torch.nn.PReLU``."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """All slopes as given."""
        constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"


class GELU(Module):
    """x times the normal distribution function of x, or its approximation by "tanh". Follows ``torch.nn.GELU``."""

    def __init__(self, approximate: str = "none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self):
        return f"approximate={self.approximate!r}"


class GLU(Module):
    """The first half of ``dim`` times the sigmoid of the second. Follows ``torch.nn.GLU``."""

    def __init__(self, dim: int = -1):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self):
        return f"dim={self.dim}"


class Softplus(Module):
    """log(1 + exp(beta x)) / beta, and x above threshold / beta. Follows ``torch.nn.Softplus``."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self):
        return f"beta={self.beta}, threshold={self.threshold}"


class _Shrink(Module):
    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def extra_repr(self):
        return str(self.lambd)


class Hardshrink(_Shrink):
    """x where |x| > lambd, else 0. Follows ``torch.nn.Hardshrink``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class Softshrink(_Shrink):
    """x brought nearer to 0 by lambd. Follows ``torch.nn.Softshrink``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class _AlongDim(Module):
    def __init__(self, dim: int | None = None):
        super().__init__()
        self.dim = dim

    def extra_repr(self):
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """exp(x) / sum(exp(x)) along ``dim``. Follows ``torch.nn.Softmax``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class Softmin(_AlongDim):
    """Softmax of -x. Follows ``torch.nn.Softmin``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class LogSoftmax(_AlongDim):
    """x - log(sum(exp(x))) along ``dim``. Follows ``torch.nn.LogSoftmax``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmax2d(Module):
    """softmax over the channels of (N, C, H, W) or (C, H, W). Follows ``torch.nn.Softmax2d``."""

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)
