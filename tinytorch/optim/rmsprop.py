"""RMSprop (Hinton's lecture notes; the centred form: Graves 2013)."""

from __future__ import annotations

from .optimizer import check_options, writer_number
from .rule import ByRule, decay_of, lib


class RMSprop(ByRule):
    """RMSprop, centred or not, with momentum. Follows ``torch.optim.RMSprop``; ``foreach`` is accepted
    and makes no difference; ``capturable`` is as in Adam."""

    _rule = lib.TT_RULE_rmsprop
    _writer = writer_number("RMSprop.step")

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check_options(lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    def _states(self, group):
        return (
            "square_avg",
            "grad_avg" if group["centered"] else None,
            "momentum_buffer" if group["momentum"] > 0 else None,
        )

    def _numbers(self, group, lr):
        alpha, momentum = group["alpha"], group["momentum"]
        flags, decay = decay_of(group, lr)
        if momentum > 0:
            flags |= lib.TT_MOMENTUM
        if group["centered"]:
            flags |= lib.TT_CENTERED
        return flags, 0.0, 0.0, decay, momentum, alpha, 1 - alpha, 0.0, 0.0, group["eps"]

    def _formula(self, p, g, s, step, lr, group):
        alpha, momentum = group["alpha"], group["momentum"]
        new = [s["square_avg"] * alpha + g * g * (1 - alpha)]
        variance = new[0]
        if group["centered"]:
            new.append(s["grad_avg"].lerp(g, 1 - alpha))
            variance = variance - new[1] * new[1]
        change = g / (variance.sqrt() + group["eps"])
        if momentum > 0:
            change = s["momentum_buffer"] * momentum + change
            new.append(change)
        return change * -lr, *new
