"""Adam and AdamW (Kingma and Ba 2015; Loshchilov and Hutter 2019; AMSGrad: Reddi et al. 2018)."""

from __future__ import annotations

from ..tensor import Tensor
from .optimizer import (
    NULL,
    Optimizer,
    check_options,
    check_rate,
    check_ways,
    lib,
    refused,
    step_count,
    writer_number,
    zeros_for,
)

_writer = writer_number("Adam.step")


class Adam(Optimizer):
    """Adam. ``decoupled_weight_decay=True`` makes it AdamW. Follows ``torch.optim.Adam``; ``foreach`` and ``fused``
    are accepted and make no difference; ``capturable`` keeps the step counts on the parameters' device, so that a
    recorded step counts when it is replayed."""

    def __init__(
        self,
        params,
        lr=1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ):
        check_rate(lr)
        if isinstance(betas[0], Tensor) is not isinstance(betas[1], Tensor):
            raise ValueError("betas must be either both floats or both Tensors")
        if foreach and not capturable:
            for what, value in (("lr", lr), ("betas[0]", betas[0])):
                if isinstance(value, Tensor):
                    raise ValueError(f"{what} as a Tensor is not supported for capturable=False and foreach=True")
        check_options(
            [
                (eps >= 0.0, "epsilon value", eps),
                (0.0 <= betas[0] < 1.0, "beta parameter at index 0", betas[0]),
                (0.0 <= betas[1] < 1.0, "beta parameter at index 1", betas[1]),
                (weight_decay >= 0.0, "weight_decay value", weight_decay),
            ]
        )
        check_ways(differentiable, foreach, fused)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": (float(betas[0]), float(betas[1])),
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )

    def update(self, group):
        params = [p for p in group["params"] if p._grad is not None]
        state = self.state
        states = [state[p] for p in params]
        try:
            avgs = [s["exp_avg"]._h for s in states]
            squares = [s["exp_avg_sq"]._h for s in states]
            largest = [s["max_exp_avg_sq"]._h for s in states] if group["amsgrad"] else NULL
            steps = [s["step"]._h for s in states]
        except KeyError:
            self.begin(params, states, group["amsgrad"], group["capturable"])
            return self.update(group)
        beta1, beta2 = group["betas"]
        if (
            lib.tt_adam(
                len(params),
                [p._h for p in params],
                [p._grad._h for p in params],
                avgs,
                squares,
                largest,
                steps,
                group["lr"],
                beta1,
                beta2,
                group["eps"],
                group["weight_decay"],
                group["decoupled_weight_decay"],
                group["maximize"],
                _writer,
            )
            < 0
        ):
            raise refused("Adam", params)

    def begin(self, params, states, amsgrad, capturable) -> None:
        """Gives the parameters whose first step this is their state."""
        for p, s in zip(params, states):
            if "step" not in s:
                s["step"] = step_count(p=p if capturable else None)
            for name in ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")[: 3 if amsgrad else 2]:
                if name not in s:
                    s[name] = zeros_for(p)


class AdamW(Adam):
    """Adam with decoupled weight decay. Follows ``torch.optim.AdamW``."""

    def __init__(
        self,
        params,
        lr=1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
