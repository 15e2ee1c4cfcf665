"""Adagrad (Duchi et al. 2011)."""

from __future__ import annotations

from ..layouts import strided
from .optimizer import check, check_options, check_ways, filled_for, step_count, writer_number
from .rule import ByRule, decay_of, lib


class Adagrad(ByRule):
    """Adagrad. Follows ``torch.optim.Adagrad``; ``foreach`` and ``fused`` are accepted and make no difference."""

    _rule = lib.TT_RULE_adagrad
    _writer = writer_number("Adagrad.step")

    def __init__(
        self,
        params,
        lr=1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        check_options(lr, lr_decay=lr_decay, weight_decay=weight_decay, eps=eps)
        check(initial_accumulator_value >= 0.0, "initial_accumulator_value value", initial_accumulator_value)
        check_ways(differentiable, foreach, fused)
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        for group in self.param_groups:
            for p in group["params"]:
                self._begin(p, self.state[p], group)

    def share_memory(self) -> None:
        """Moves the sums of squares to memory that other processes see."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _begin(self, p, s, group):
        if "step" not in s:
            s["step"] = step_count()
        if "sum" not in s:
            start = group["initial_accumulator_value"]
            s["sum"] = filled_for(p, complex(start, start) if p.is_complex() else start)

    def _states(self, group):
        return "sum", None, None

    def _numbers(self, group, lr):
        flags, decay = decay_of(group, lr)
        return flags, group["lr_decay"], 0.0, decay, 0.0, 0.0, 0.0, 0.0, 0.0, group["eps"]

    def _sparse_step(self, p, s, group):
        if group["weight_decay"]:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        if p.layout is not strided:
            raise RuntimeError("Adagrad requires dense parameter tensors")
        s["step"] += 1
        grad = p._grad.coalesce()
        places, g = tuple(grad._indices()), grad._values()
        g = -g if group["maximize"] else g
        total = s["sum"][places] + g * g
        s["sum"][places] = total
        rate = float(group["lr"]) / (1 + (s["step"].item() - 1) * group["lr_decay"])
        p[places] -= g / (total.sqrt() + group["eps"]) * rate

    def _formula(self, p, g, s, step, lr, group):
        total = s["sum"] + g * g
        return g / (total.sqrt() + group["eps"]) * (-lr / (1 + (step - 1) * group["lr_decay"])), total
