"""Adam for sparse gradients: only the rows that they have are updated."""

from __future__ import annotations

import math

from ..autograd.modes import no_grad
from ..layouts import strided
from .optimizer import Optimizer, check, check_options, zeros_for


class SparseAdam(Optimizer):
    """Adam that leaves moments and parameters alone where a sparse gradient has no values. Follows
    ``torch.optim.SparseAdam``. RuntimeError for dense gradients, ValueError for parameters that are sparse or
    complex."""

    def __init__(
        self, params, lr=1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, maximize: bool = False
    ):
        check_options(lr, betas)
        check(lr > 0.0, "learning rate", lr)
        check(eps > 0.0, "epsilon value", eps)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        places = [(p, [i, k]) for i, group in enumerate(self.param_groups) for k, p in enumerate(group["params"])]
        sparse = [place for p, place in places if p.layout is not strided]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        unreal = [place for p, place in places if p.is_complex()]
        if unreal:
            raise ValueError(f"Complex params at indices {unreal}: SparseAdam does not support complex parameters")

    def update(self, group):
        params = [p for p in group["params"] if p._grad is not None]
        if any(p._grad.layout is strided for p in params):
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        lr, (beta1, beta2) = float(group["lr"]), group["betas"]
        with no_grad():
            for p in params:
                s = self.state[p]
                if not s:
                    s.update(step=0, exp_avg=zeros_for(p), exp_avg_sq=zeros_for(p))
                s["step"] += 1
                grad = p._grad.coalesce()
                places, g = tuple(grad._indices()), grad._values()
                g = -g if group["maximize"] else g
                average = s["exp_avg"][places].lerp(g, 1 - beta1)
                square = s["exp_avg_sq"][places].lerp(g * g, 1 - beta2)
                s["exp_avg"][places] = average
                s["exp_avg_sq"][places] = square
                rate = lr * math.sqrt(1 - beta2 ** s["step"]) / (1 - beta1 ** s["step"])
                p[places] -= average / (square.sqrt() + group["eps"]) * rate

    def __setstate__(self, state):
        self.__dict__.update(state)  # step counts are numbers, as PyTorch's are
