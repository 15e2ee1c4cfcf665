"""RMSprop (Hinton's lecture notes; the centred form: Graves 2013)."""

from __future__ import annotations

from .optimizer import (
    NULL,
    Optimizer,
    check_options,
    check_rate,
    check_ways,
    lib,
    refused,
    step_count,
    writer_number,
    zeros_for,
)

_writer = writer_number("RMSprop.step")


class RMSprop(Optimizer):
    """RMSprop, centred or not, with momentum. Follows ``torch.optim.RMSprop``; ``foreach`` is accepted
    and makes no difference; ``capturable`` is as in Adam."""

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
        check_rate(lr)
        check_options(
            [
                (eps >= 0.0, "epsilon value", eps),
                (momentum >= 0.0, "momentum value", momentum),
                (weight_decay >= 0.0, "weight_decay value", weight_decay),
                (alpha >= 0.0, "alpha value", alpha),
            ]
        )
        check_ways(differentiable)
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

    def update(self, group):
        params = [p for p in group["params"] if p._grad is not None]
        state = self.state
        states = [state[p] for p in params]
        try:
            squares = [s["square_avg"]._h for s in states]
            avgs = [s["grad_avg"]._h for s in states] if group["centered"] else NULL
            momenta = [s["momentum_buffer"]._h for s in states] if group["momentum"] > 0 else NULL
            steps = [s["step"]._h for s in states]
        except KeyError:
            self.begin(params, states, group)
            return self.update(group)
        if (
            lib.tt_rmsprop(
                len(params),
                [p._h for p in params],
                [p._grad._h for p in params],
                squares,
                avgs,
                momenta,
                steps,
                group["lr"],
                group["alpha"],
                group["eps"],
                group["weight_decay"],
                group["momentum"],
                group["maximize"],
                _writer,
            )
            < 0
        ):
            raise refused("RMSprop", params)

    def begin(self, params, states, group) -> None:
        """Gives the parameters whose first step this is their state."""
        names = ["square_avg"]
        if group["momentum"] > 0:
            names.append("momentum_buffer")
        if group["centered"]:
            names.append("grad_avg")
        for p, s in zip(params, states):
            if "step" not in s:
                s["step"] = step_count(p=p if group["capturable"] else None)
            for name in names:
                if name not in s:
                    s[name] = zeros_for(p)
