"""L-BFGS (Nocedal and Wright 2006, algorithm 7.4)."""

from __future__ import annotations

from ..autograd.modes import enable_grad, no_grad
from ..layouts import strided
from ..ops.complex_numbers import view_as_real
from ..ops.join import cat
from ..tensor import Tensor
from .line_search import Point, strong_wolfe
from .optimizer import Optimizer, check_options


class LBFGS(Optimizer):
    """L-BFGS with limited memory. ``step(closure)`` makes up to ``max_iter`` iterations; ``line_search_fn``:
    ``"strong_wolfe"``, or None, which takes steps of ``lr``. Follows ``torch.optim.LBFGS``: the parameters are one
    group. The state is kept with the first parameter."""

    def __init__(
        self,
        params,
        lr=1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ):
        check_options(lr)
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def step(self, closure):
        """One step. ``closure`` clears the gradients, computes the loss, calls backward and returns the loss; it is
        called several times. Returns the first loss."""
        with no_grad():
            return self._step(enable_grad()(closure))

    def _step(self, closure):
        group = self.param_groups[0]
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        lr, tolerance = float(group["lr"]), group["tolerance_change"]
        s = self.state[self._params[0]]
        s.setdefault("func_evals", 0)
        s.setdefault("n_iter", 0)

        first_loss = closure()
        loss, grad, evaluations = float(first_loss), self._grad(), 1
        s["func_evals"] += 1
        if not grad.numel() or grad.abs().max().item() <= group["tolerance_grad"]:
            return first_loss
        for iteration in range(1, group["max_iter"] + 1):
            s["n_iter"] += 1
            direction = self._direction(s, grad, group["history_size"])
            s["prev_flat_grad"], s["prev_loss"] = grad.clone(), loss
            t = lr * min(1.0, 1.0 / grad.abs().sum().item()) if s["n_iter"] == 1 else lr
            s["d"], s["t"] = direction, t
            slope = grad.dot(direction).item()
            if slope > -tolerance:
                break
            calls = 0
            if group["line_search_fn"] is not None:
                start = Point(0.0, loss, grad, slope)
                at = [p.clone() for p in self._params]
                size = direction.abs().max().item()

                def evaluate(t: float, at=at, direction=direction) -> Point:
                    self._move(t, direction)
                    loss, grad = float(closure()), self._grad()
                    for p, value in zip(self._params, at):
                        p.copy_(value)
                    return Point(t, loss, grad, grad.dot(direction).item())

                point, calls = strong_wolfe(evaluate, start, t, size, group["max_eval"] - evaluations)
                loss, grad, t = point.loss, point.grad, point.t
                s["t"] = t
                self._move(t, direction)
            else:
                self._move(t, direction)
                if iteration != group["max_iter"]:  # else nobody would use it
                    loss, grad, calls = float(closure()), self._grad(), 1
            evaluations += calls
            s["func_evals"] += calls
            if (
                evaluations >= group["max_eval"]
                or grad.abs().max().item() <= group["tolerance_grad"]
                or (direction * t).abs().max().item() <= tolerance
                or abs(loss - s["prev_loss"]) < tolerance
            ):
                break
        return first_loss

    def _direction(self, s: dict, grad: Tensor, history: int) -> Tensor:
        """Against the gradient, times the approximate inverse of the Hessian."""
        if s["n_iter"] == 1:
            s.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            return -grad
        change, step = grad - s["prev_flat_grad"], s["d"] * s["t"]
        curvature = change.dot(step).item()
        if curvature > 1e-10:
            if len(s["old_dirs"]) == history:
                for name in ("old_dirs", "old_stps", "ro"):
                    s[name].pop(0)
            s["old_dirs"].append(change)
            s["old_stps"].append(step)
            s["ro"].append(1.0 / curvature)
            s["H_diag"] = curvature / change.dot(change).item()
        q, weights = -grad, []
        memory = list(zip(s["old_dirs"], s["old_stps"], s["ro"]))
        for change, step, ro in reversed(memory):
            weights.append(step.dot(q).item() * ro)
            q.add_(change, alpha=-weights[-1])
        q.mul_(s["H_diag"])
        for (change, step, ro), weight in zip(memory, reversed(weights)):
            q.add_(step, alpha=weight - change.dot(q).item() * ro)
        return q

    def _grad(self) -> Tensor:
        """All gradients as one vector."""
        parts = []
        for p in self._params:
            g = p.new_zeros(p.shape) if p._grad is None else p._grad
            g = g if g.layout is strided else g.to_dense()
            parts.append((view_as_real(g) if g.is_complex() else g).reshape(-1))
        return cat(parts)

    def _move(self, t: float, direction: Tensor) -> None:
        at = 0
        for p in self._params:
            p = view_as_real(p) if p.is_complex() else p
            p.add_(direction[at : at + p.numel()].view(p.shape), alpha=t)
            at += p.numel()
