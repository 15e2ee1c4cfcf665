"""NAdam (Dozat 2016)."""

from __future__ import annotations

from .optimizer import check_options, step_count, writer_number
from .rule import ByRule, decay_of, lib


class NAdam(ByRule):
    """Adam with Nesterov's momentum. Follows ``torch.optim.NAdam``; ``foreach`` is accepted and makes no difference;
    ``capturable`` keeps the step counts on the parameters' device."""

    _rule = lib.TT_RULE_nadam
    _writer = writer_number("NAdam.step")
    _counted = False
    _counters = ("mu_product",)

    def __init__(
        self,
        params,
        lr=2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        check_options(lr, betas, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
            },
        )

    def _states(self, group):
        return "exp_avg", "exp_avg_sq", None

    def _begin(self, p, s, group):
        super()._begin(p, s, group)
        if "mu_product" not in s:
            s["mu_product"] = step_count(1.0, p if group["capturable"] else None)

    def _numbers(self, group, lr, root, ahead):
        beta1, beta2 = group["betas"]
        flags, decay = decay_of(group, lr)
        return flags, 0.0, 0.0, decay, 1 - beta1, beta2, 1 - beta2, root, ahead, group["eps"]

    def update(self, group):
        params = [p for p in group["params"] if p._grad is not None]
        if group["differentiable"] or group["capturable"] or self.found_inf is not None:
            return self._by_formula(group, params)
        alike: dict[tuple, list] = {}  # parameters of the same step: all, as a rule
        for p in params:
            s = self.state[p]
            self._begin(p, s, group)
            step = s["step"].item() + 1
            product = s["mu_product"] * _momentum(step, group)
            alike.setdefault((step, product.item()), []).append((p, product))
        lr, beta2 = float(group["lr"]), group["betas"][1]
        for (step, product), members in alike.items():
            mu, following = _momentum(step, group), _momentum(step + 1, group)
            done = self._by_rule(
                group,
                [p for p, _ in members],
                lr * (1 - mu) / (1 - product),
                1 - beta2**step,
                -lr * following / (1 - product * following),
            )
            if done:
                for p, product in members:
                    self.state[p]["step"].fill_(step)
                    self.state[p]["mu_product"].copy_(product)

    def _formula(self, p, g, s, step, lr, group):
        beta1, beta2 = group["betas"]
        mu, following = _momentum(step, group), _momentum(step + 1, group)
        kept = s["mu_product"] * mu
        product = kept if group["capturable"] else kept.item()
        average = s["exp_avg"].lerp(g, 1 - beta1)
        square = s["exp_avg_sq"] * beta2 + g * g * (1 - beta2)
        scale = (square / (1 - beta2**step)).sqrt() + group["eps"]
        change = g * (-lr * (1 - mu) / (1 - product)) + average * (-lr * following / (1 - product * following))
        return change / scale, average, square, kept


def _momentum(step, group: dict):
    return group["betas"][0] * (1 - 0.5 * 0.96 ** (step * group["momentum_decay"]))
