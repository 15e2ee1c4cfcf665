"""Stochastic gradient descent."""

from __future__ import annotations

from .optimizer import NULL, check_options, check_ways, empty_for, writer_number, zeros_for
from .rule import ByRule, decay_of, lib


class SGD(ByRule):
    """Gradient descent, with momentum (Nesterov's if asked) and weight decay. Follows ``torch.optim.SGD``; ``foreach``
    and ``fused`` are accepted and make no difference: one C call updates a whole group anyway."""

    _rule = lib.TT_RULE_sgd
    _writer = writer_number("SGD.step")
    _counted = False

    def __init__(
        self,
        params,
        lr=1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        check_options(lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_ways(differentiable, foreach, fused)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )

    def _states(self, group):
        return ("momentum_buffer" if group["momentum"] else None,)

    def _begin(self, p, s, group):
        if group["momentum"]:
            s.setdefault("momentum_buffer", None)

    def _by_rule(self, group, params):
        momenta, fresh, buffers = NULL, NULL, None
        momentum = group["momentum"]
        if momentum != 0:
            state = self.state
            try:
                momenta = [state[p]["momentum_buffer"]._h for p in params]
            except (KeyError, AttributeError):  # missing, or None
                buffers = [state[p].get("momentum_buffer") for p in params]
                if self.found_inf is None:
                    fresh, new = bytes([b is None for b in buffers]), empty_for
                else:  # the device may leave this step out
                    new = zeros_for
                buffers = [new(p) if b is None else b for b, p in zip(buffers, params)]
                momenta = [b._h for b in buffers]
        flags, decay = decay_of(group, 0.0)
        if momentum != 0:
            flags |= lib.TT_MOMENTUM | (lib.TT_NESTEROV if group["nesterov"] else 0)
        numbers = flags, 0.0, 0.0, decay, momentum, 1 - group["dampening"], 0.0, 0.0, 0.0, 0.0
        done = self._call(group, params, (momenta, NULL, NULL), NULL, fresh, float(group["lr"]), numbers)
        if not done:
            return self._declined(group, params)
        if buffers is not None:
            for p, b in zip(params, buffers):
                self.state[p]["momentum_buffer"] = b

    def _can_skip(self, where):
        begun = all(
            not group["dampening"] or self.state[p].get("momentum_buffer") is not None
            for group in self.param_groups
            for p in group["params"]
            if p._grad is not None and group["momentum"]
        )  # the first momentum is the first gradient that is finite, and not dampened
        return begun and super()._can_skip(where)

    def _formula(self, p, g, s, step, lr, group):
        momentum = group["momentum"]
        if not momentum:
            return (g * -lr,)
        old = s["momentum_buffer"]
        new = g.clone() if old is None else old * momentum + g * (1 - group["dampening"])
        return (g + new * momentum if group["nesterov"] else new) * -lr, new

    def _sparse_step(self, p, s, group):
        if group["weight_decay"]:
            raise RuntimeError("SGD does not support sparse gradients with weight_decay")
        g, momentum = -p._grad if group["maximize"] else p._grad, group["momentum"]
        if momentum:
            old = s.get("momentum_buffer")
            new = g.clone() if old is None else old * momentum + g * (1 - group["dampening"])
            s["momentum_buffer"] = new
            g = g + new * momentum if group["nesterov"] else new
        p.add_(g, alpha=-float(group["lr"]))
