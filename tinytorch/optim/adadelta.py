"""Adadelta (Zeiler 2012)."""

from __future__ import annotations

from .optimizer import check, check_options, writer_number
from .rule import ByRule, decay_of, lib


class Adadelta(ByRule):
    """Adadelta. Follows ``torch.optim.Adadelta``; ``foreach`` is accepted and makes no difference; ``capturable`` keeps
    the step counts on the parameters' device."""

    _rule = lib.TT_RULE_adadelta
    _writer = writer_number("Adadelta.step")

    def __init__(
        self,
        params,
        lr=1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check_options(lr, eps=eps, weight_decay=weight_decay)
        check(0.0 <= rho <= 1.0, "rho value", rho)
        super().__init__(
            params,
            {
                "lr": lr,
                "rho": rho,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "capturable": capturable,
                "foreach": foreach,
                "differentiable": differentiable,
            },
        )

    def _states(self, group):
        return "square_avg", "acc_delta", None

    def _numbers(self, group, lr):
        rho = group["rho"]
        flags, decay = decay_of(group, lr)
        return flags, 0.0, 0.0, decay, 0.0, rho, 1 - rho, 0.0, 0.0, group["eps"]

    def _formula(self, p, g, s, step, lr, group):
        rho, eps = group["rho"], group["eps"]
        square = s["square_avg"] * rho + g * g * (1 - rho)
        delta = (s["acc_delta"] + eps).sqrt() / (square + eps).sqrt() * g
        return delta * -lr, square, s["acc_delta"] * rho + delta * delta * (1 - rho)
