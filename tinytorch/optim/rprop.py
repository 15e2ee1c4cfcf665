"""Resilient backpropagation (Riedmiller and Braun 1993)."""

from __future__ import annotations

from .optimizer import check, check_options, filled_for, writer_number
from .rule import ByRule, lib


class Rprop(ByRule):
    """Steps whose sizes grow while the gradient keeps its sign, and shrink when it changes. Follows
    ``torch.optim.Rprop``; ``foreach`` is accepted and makes no difference; ``capturable`` keeps the step counts on the
    parameters' device."""

    _rule = lib.TT_RULE_rprop
    _writer = writer_number("Rprop.step")

    def __init__(
        self,
        params,
        lr=1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check_options(lr)
        check(0.0 < etas[0] < 1.0 < etas[1], "eta values", f"{etas[0]}, {etas[1]}")
        super().__init__(
            params,
            {
                "lr": lr,
                "etas": etas,
                "step_sizes": step_sizes,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _states(self, group):
        return "prev", "step_size", None

    def _begin(self, p, s, group):
        if "step_size" not in s:
            lr = float(group["lr"])
            s["step_size"] = filled_for(p, complex(lr, lr) if p.is_complex() else lr)
        super()._begin(p, s, group)

    def _numbers(self, group, lr):
        smaller, larger = group["etas"]
        least, largest = group["step_sizes"]
        return 0, 0.0, 0.0, 0.0, smaller, larger, least, largest, 0.0, 0.0

    def _formula(self, p, g, s, step, lr, group):
        smaller, larger = group["etas"]
        agreement = (g * s["prev"]).sign()
        factor = (1 - agreement.abs()).masked_fill(agreement > 0, larger).masked_fill(agreement < 0, smaller)
        size = (s["step_size"] * factor).clamp(*group["step_sizes"])
        g = g.masked_fill(agreement < 0, 0.0)
        return g.sign() * -size, g, size
