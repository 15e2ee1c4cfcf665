"""Adamax (Kingma and Ba 2015, section 7)."""

from __future__ import annotations

from .optimizer import check_options, writer_number
from .rule import ByRule, decay_of, lib


class Adamax(ByRule):
    """Adamax, Adam with the infinity norm. Follows ``torch.optim.Adamax``; ``foreach`` is accepted and makes no
    difference; ``capturable`` keeps the step counts on the parameters' device."""

    _rule = lib.TT_RULE_adamax
    _writer = writer_number("Adamax.step")

    def __init__(
        self,
        params,
        lr=2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        check_options(lr, betas, eps=eps, weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _states(self, group):
        return "exp_avg", "exp_inf", None

    def _numbers(self, group, lr):
        beta1, beta2 = group["betas"]
        flags, decay = decay_of(group, lr)
        return flags, 0.0, beta1, decay, 1 - beta1, beta2, 0.0, 0.0, 0.0, group["eps"]

    def _formula(self, p, g, s, step, lr, group):
        beta1, beta2 = group["betas"]
        average = s["exp_avg"].lerp(g, 1 - beta1)
        norm = (s["exp_inf"] * beta2).maximum(g.abs() + group["eps"])
        return average / norm * (-lr / (1 - beta1**step)), average, norm
