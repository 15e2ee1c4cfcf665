"""Adafactor (Shazeer and Stern 2018): second moments of a matrix are kept as those of its rows and its columns."""

from __future__ import annotations

from ..autograd.modes import no_grad
from ..dtypes import finfo
from ..layouts import strided
from .optimizer import Optimizer, step_count, zeros_for


class Adafactor(Optimizer):
    """Adafactor, whose state is smaller than its parameters: of the last two dimensions it keeps a row and a column.
    Follows ``torch.optim.Adafactor``; ``foreach`` is accepted and makes no difference. ``eps``: the least second moment
    (None: that of the dtype) and the least size of a parameter that a step is relative to."""

    def __init__(
        self,
        params,
        lr=1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ):
        if getattr(lr, "numel", lambda: 1)() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for valid, text in (
            (lr >= 0.0, f"Learning rate should be >= 0 but is: {lr}"),
            (beta2_decay <= 0.0, f"beta2_decay should be <= 0 but is: {beta2_decay}"),
            (eps[0] is None or eps[0] >= 0.0, f"epsilon1 should be >= 0 but is: {eps[0]}"),
            (eps[1] >= 0.0, f"epsilon2 should be >= 0 but is: {eps[1]}"),
            (d >= 1.0, f"Clipping threshold d should be >= 1 but is: {d}"),
            (weight_decay >= 0.0, f"weight_decay should be >= 0 but is: {weight_decay}"),
        ):
            if not valid:
                raise ValueError(text)
        super().__init__(
            params,
            {
                "lr": lr,
                "beta2_decay": beta2_decay,
                "eps": eps,
                "d": d,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
            },
        )

    def _begin(self, p, s) -> None:
        """Gives a parameter whose first step this is its state."""
        s["step"] = step_count()
        if p.ndim > 1:
            s["row_var"] = p.new_zeros((*p.shape[:-1], 1))
            s["col_var"] = p.new_zeros((*p.shape[:-2], 1, p.shape[-1]))
        else:
            s["variance"] = zeros_for(p)

    def update(self, group):
        params = [p for p in group["params"] if p._grad is not None]
        for p in params:
            if p.is_complex():
                raise RuntimeError("Adafactor does not support complex parameters")
            if p._grad.layout is not strided:
                raise RuntimeError("Adafactor does not support sparse gradients")
        with no_grad():
            for p in params:
                self._update_one(p, group)

    def _update_one(self, p, group) -> None:
        s = self.state[p]
        if not s:
            self._begin(p, s)
        s["step"].add_(1)
        step, lr = s["step"].item(), float(group["lr"])
        g = -p._grad if group["maximize"] else p._grad
        least = finfo(p.dtype).eps if group["eps"][0] is None else group["eps"][0]
        weight = step ** group["beta2_decay"]
        size = p.norm().item() / max(p.numel(), 1) ** 0.5
        rate = max(group["eps"][1], size) * min(lr, step**-0.5)
        if group["weight_decay"]:
            p.mul_(1 - lr * group["weight_decay"])
        if p.ndim > 1:
            rows, columns = s["row_var"], s["col_var"]
            rows.lerp_(g.norm(dim=-1, keepdim=True).square() / g.shape[-1], weight)
            columns.lerp_(g.norm(dim=-2, keepdim=True).square() / g.shape[-2], weight)
            variance = rows @ columns / rows.mean(-2, keepdim=True).clamp(min=least)
        else:
            variance = s["variance"].lerp_(g * g, weight)
        change = variance.clamp(min=least * least).rsqrt() * g
        p.add_(change, alpha=-rate / max(1.0, change.norm().item() / (max(p.numel(), 1) ** 0.5 * group["d"])))
