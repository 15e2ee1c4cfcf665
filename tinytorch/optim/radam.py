"""RAdam (Liu et al. 2020)."""

from __future__ import annotations

from ..tensor import Tensor
from .optimizer import check_options, writer_number
from .rule import ByRule, decay_of, lib


class RAdam(ByRule):
    """Adam with a rectified variance. Follows ``torch.optim.RAdam``; ``foreach`` is accepted and makes no difference;
    ``capturable`` keeps the step counts on the parameters' device."""

    _rule = lib.TT_RULE_radam
    _writer = writer_number("RAdam.step")

    def __init__(
        self,
        params,
        lr=1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        check_options(lr, betas, eps=eps, weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "decoupled_weight_decay": decoupled_weight_decay,
                "differentiable": differentiable,
            },
        )

    def _states(self, group):
        return "exp_avg", "exp_avg_sq", None

    def _numbers(self, group, lr):
        beta1, beta2 = group["betas"]
        flags, decay = decay_of(group, lr)
        return flags, 0.0, beta1, decay, 1 - beta1, beta2, 1 - beta2, 0.0, 0.0, group["eps"]

    def _formula(self, p, g, s, step, lr, group):
        beta1, beta2 = group["betas"]
        average = s["exp_avg"].lerp(g, 1 - beta1)
        square = s["exp_avg_sq"] * beta2 + g * g * (1 - beta2)
        power = beta2**step
        limit = 2 / (1 - beta2) - 1
        length = limit - 2 * step * power / (1 - power)
        change = average * (-lr / (1 - beta1**step))
        if isinstance(step, Tensor) or length > 5:
            variance = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
            scale = (variance * (1 - power)) ** 0.5 / (square.sqrt() + group["eps"])
            change = change * (scale.masked_fill(length <= 5, 1.0) if isinstance(step, Tensor) else scale)
        return change, average, square
