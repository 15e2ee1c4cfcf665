"""Adam and AdamW (Kingma and Ba 2015; Loshchilov and Hutter 2019; AMSGrad: Reddi et al. 2018)."""

from __future__ import annotations

from ..tensor import Tensor
from .optimizer import check_options, check_ways, writer_number
from .rule import ByRule, decay_of, lib


class Adam(ByRule):
    """Adam. ``decoupled_weight_decay=True`` makes it AdamW. Follows ``torch.optim.Adam``; ``foreach`` and ``fused``
    are accepted and make no difference; ``capturable`` keeps the step counts on the parameters' device, so that a
    recorded step counts when it is replayed."""

    _rule = lib.TT_RULE_adam
    _writer = writer_number("Adam.step")

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
        check_options(lr, betas, eps=eps, weight_decay=weight_decay)
        if isinstance(betas[0], Tensor) is not isinstance(betas[1], Tensor):
            raise ValueError("betas must be either both floats or both Tensors")
        if foreach and not capturable:
            for what, value in (("lr", lr), ("betas[0]", betas[0])):
                if isinstance(value, Tensor):
                    raise ValueError(f"{what} as a Tensor is not supported for capturable=False and foreach=True")
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

    def _states(self, group):
        return "exp_avg", "exp_avg_sq", "max_exp_avg_sq" if group["amsgrad"] else None

    def _numbers(self, group, lr):
        beta1, beta2 = group["betas"]
        flags, decay = decay_of(group, lr)
        if group["amsgrad"]:
            flags |= lib.TT_AMSGRAD
        return flags, 0.0, beta1, decay, 1 - beta1, beta2, 1 - beta2, 0.0, 0.0, group["eps"]

    def _formula(self, p, g, s, step, lr, group):
        beta1, beta2 = group["betas"]
        new = [s["exp_avg"].lerp(g, 1 - beta1), s["exp_avg_sq"] * beta2 + g * g * (1 - beta2)]
        if group["amsgrad"]:
            new.append(s["max_exp_avg_sq"].maximum(new[1]))
        scale = new[-1].sqrt() / (1 - beta2**step) ** 0.5 + group["eps"]
        return new[0] / scale * (-lr / (1 - beta1**step)), *new


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
