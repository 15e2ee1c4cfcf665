"""Muon (Jordan 2024): momentum whose matrix is made orthogonal, by Newton and Schulz's iteration."""

from __future__ import annotations

import math

from ..autograd.modes import no_grad
from ..dtypes import bfloat16
from ..layouts import strided
from ..ops.addmm import addmm
from ..tensor import Tensor
from .optimizer import Optimizer, zeros_for

_RATES = {
    "original": lambda rows, columns: math.sqrt(max(1, rows / columns)),
    "match_rms_adamw": lambda rows, columns: 0.2 * math.sqrt(max(rows, columns)),
}


class Muon(Optimizer):
    """Muon, for the matrices of a network's hidden layers. Follows ``torch.optim.Muon``. ``adjust_lr_fn``: how the
    rate follows from a matrix's shape, ``"original"`` (also None) or ``"match_rms_adamw"``. ValueError for parameters
    that are no matrices."""

    def __init__(
        self,
        params,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ):
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for value, what in ((lr, "Learning rate"), (momentum, "momentum"), (weight_decay, "weight decay")):
            if not value >= 0.0:
                raise ValueError(f"{what} should be >= 0 but is: {value}")
        if adjust_lr_fn is not None and adjust_lr_fn not in _RATES:
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(
            params,
            {
                "lr": lr,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "nesterov": nesterov,
                "ns_coefficients": ns_coefficients,
                "eps": eps,
                "ns_steps": ns_steps,
                "adjust_lr_fn": adjust_lr_fn,
            },
        )
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}"
                    )

    def update(self, group):
        params = [p for p in group["params"] if p._grad is not None]
        for p in params:
            if p.is_complex():
                raise RuntimeError("Muon does not support complex parameters")
            if p._grad.layout is not strided:
                raise RuntimeError("Muon does not support sparse gradients")
        lr, momentum = float(group["lr"]), group["momentum"]
        scale = _RATES[group["adjust_lr_fn"] or "original"]
        with no_grad():
            for p in params:
                s, g = self.state[p], p._grad
                if "momentum_buffer" not in s:
                    s["momentum_buffer"] = zeros_for(g)
                average = s["momentum_buffer"].lerp_(g, 1 - momentum)
                g = g.lerp(average, momentum) if group["nesterov"] else average
                change = orthogonalized(g, group["ns_coefficients"], group["ns_steps"], group["eps"])
                p.mul_(1 - lr * group["weight_decay"])
                p.add_(change, alpha=-lr * scale(*p.shape))


def orthogonalized(g: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """A matrix near the orthogonal factor of ``g``'s polar decomposition, in bfloat16: singular values are brought near
    1 by the quintic a x + b x^3 + c x^5, time and again."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = g.shape[0] > g.shape[1]
    x = g.to(bfloat16)
    x = x.t() if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.t()
        x = addmm(x, addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.t() if tall else x
