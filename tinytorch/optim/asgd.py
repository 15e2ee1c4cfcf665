"""Averaged stochastic gradient descent (Polyak and Juditsky 1992)."""

from __future__ import annotations

from .optimizer import check_options, step_count, writer_number
from .rule import ByRule, decay_of, lib


class ASGD(ByRule):
    """Gradient descent whose parameters are averaged from step ``t0`` on (``state[p]["ax"]``). Follows
    ``torch.optim.ASGD``; ``foreach`` is accepted and makes no difference; ``capturable`` keeps counts and rates on the
    parameters' device."""

    _rule = lib.TT_RULE_asgd
    _writer = writer_number("ASGD.step")
    _counted = False
    _counters = ("eta", "mu")

    def __init__(
        self,
        params,
        lr=1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        check_options(lr, weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "lambd": lambd,
                "alpha": alpha,
                "t0": t0,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _states(self, group):
        return "ax", None, None

    def _begin(self, p, s, group):
        super()._begin(p, s, group)
        for name, start in (("eta", float(group["lr"])), ("mu", 1.0)):
            if name not in s:
                s[name] = step_count(start, p if group["capturable"] else None)

    def _numbers(self, group, lr, shrink, mu):
        flags, decay = decay_of(group, lr)
        return flags, 0.0, 0.0, decay, shrink, mu, 0.0, 0.0, 0.0, 0.0

    def update(self, group):
        params = [p for p in group["params"] if p._grad is not None]
        if group["differentiable"] or group["capturable"] or self.found_inf is not None:
            return self._by_formula(group, params)
        alike: dict[tuple, list] = {}  # parameters of the same step: all, as a rule
        for p in params:
            s = self.state[p]
            self._begin(p, s, group)
            alike.setdefault((s["step"].item(), s["eta"].item(), s["mu"].item()), []).append(p)
        lr = float(group["lr"])
        for (step, eta, mu), same in alike.items():
            if self._by_rule(group, same, eta, 1 - group["lambd"] * eta, mu):
                for p in same:
                    s = self.state[p]
                    s["step"].fill_(step + 1)
                    s["eta"].fill_(_rate(lr, step + 1, group))
                    s["mu"].fill_(1 / max(1.0, step + 1 - group["t0"]))

    def _formula(self, p, g, s, step, lr, group):
        eta = s["eta"]
        change = p * (-group["lambd"] * eta) - g * eta
        average = s["ax"] + (p + change - s["ax"]) * s["mu"]
        since = step - group["t0"]
        mu = 1 / (since.clamp(min=1) if group["capturable"] else max(1.0, since))
        return change, average, _rate(lr, step, group), mu


def _rate(lr, step, group: dict):
    return lr / (1 + group["lambd"] * lr * step) ** group["alpha"]
