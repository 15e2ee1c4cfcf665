"""Adagrad (Duchi et al. 2011)."""

from __future__ import annotations

from .optimizer import (
    Optimizer,
    check_options,
    check_rate,
    check_ways,
    filled_for,
    lib,
    refused,
    step_count,
    writer_number,
)

_writer = writer_number("Adagrad.step")


class Adagrad(Optimizer):
    """Adagrad. Follows ``torch.optim.Adagrad``; ``foreach`` and ``fused`` are accepted and make no difference."""

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
        check_rate(lr)
        check_options(
            [
                (lr_decay >= 0.0, "lr_decay value", lr_decay),
                (weight_decay >= 0.0, "weight_decay value", weight_decay),
                (initial_accumulator_value >= 0.0, "initial_accumulator_value value", initial_accumulator_value),
                (eps >= 0.0, "epsilon value", eps),
            ]
        )
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
            self.begin(group["params"], group)

    def update(self, group):
        params = [p for p in group["params"] if p._grad is not None]
        state = self.state
        states = [state[p] for p in params]
        try:
            sums = [s["sum"]._h for s in states]
            steps = [s["step"]._h for s in states]
        except KeyError:
            self.begin(params, group)
            return self.update(group)
        if (
            lib.tt_adagrad(
                len(params),
                [p._h for p in params],
                [p._grad._h for p in params],
                sums,
                steps,
                group["lr"],
                group["lr_decay"],
                group["eps"],
                group["weight_decay"],
                group["maximize"],
                _writer,
            )
            < 0
        ):
            raise refused("Adagrad", params)

    def begin(self, params, group) -> None:
        """Gives parameters without state theirs."""
        for p in params:
            s = self.state[p]
            if "step" not in s:
                s["step"] = step_count()
            if "sum" not in s:
                s["sum"] = filled_for(p, group["initial_accumulator_value"])
