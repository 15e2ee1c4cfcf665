"""Optimisers whose update is a rule of kernels/scalar/optim_rules.h: one C call for each group.

A class gives its rule, the names of its states, the rule's numbers, and the same rule as a formula over tensors, which
takes its place where a step is differentiated, or parameters are complex."""

from __future__ import annotations

from ..autograd.modes import no_grad, set_grad_enabled
from ..backends.cpu import error, lib
from ..layouts import strided
from ..ops.create_like import full_like
from ..ops.complex_numbers import view_as_complex, view_as_real
from ..tensor import Tensor
from .optimizer import NULL, Optimizer, step_count, zeros_for


class ByRule(Optimizer):
    """Base of the optimisers of one rule."""

    _rule = -1  # of TT_UPDATE_RULES
    _writer = 0  # for messages: who wrote last
    _counted = True  # C counts the steps; else the class does, if at all
    _counters: tuple[str, ...] = ()  # further numbers that are kept from step to step, 0-d
    found_inf: Tensor | None = None  # unless it is 0 the device leaves this step out: GradScaler.step

    def _states(self, group: dict) -> tuple[str | None, ...]:
        """The names of the rule's states s0, s1, s2; None for one that it lacks with these options."""
        raise NotImplementedError

    def _numbers(self, group: dict, lr: float, *more: float) -> tuple:
        """The rule's flags and numbers, as ``tt_optimize`` takes them: flags, lr_decay, beta1, decay, a, b, c, root,
        ahead, eps. ``more``: what ``_by_rule`` was given."""
        raise NotImplementedError

    def _formula(self, p: Tensor, g: Tensor, s: dict, step, lr, group: dict) -> tuple:
        """The rule in operations of tensors: what is to be added to ``p``, the new states in the order of their names,
        and the new counters. ``step``: a number, or a tensor where steps are counted on the device."""
        raise NotImplementedError

    def update(self, group):
        params = [p for p in group["params"] if p._grad is not None]
        if group["differentiable"]:
            return self._by_formula(group, params)
        self._by_rule(group, params)

    def _by_rule(self, group: dict, params: list[Tensor], rate: float | None = None, *more: float) -> bool:
        """One C call. ``rate``: that of this step, if it is not the group's. False where the formula took its place."""
        states = [self.state[p] for p in params]
        if self.found_inf is not None and self._counted:  # then the device is to count
            for p, s in zip(params, states):
                if "step" in s and not s["step"].is_cuda:
                    s["step"] = s["step"].to(p.device)
        try:
            handles = [NULL if name is None else [s[name]._h for s in states] for name in self._states(group)]
            steps = [s["step"]._h for s in states] if self._counted else NULL
        except KeyError:
            for p, s in zip(params, states):
                self._begin(p, s, group)
            return self._by_rule(group, params, rate, *more)
        lr = float(group["lr"])
        numbers = self._numbers(group, lr, *more)
        done = self._call(group, params, handles, steps, NULL, lr if rate is None else rate, numbers)
        if not done:
            self._declined(group, params)
        return done

    def _call(self, group: dict, params: list[Tensor], states, steps, fresh, lr: float, numbers: tuple) -> bool:
        """C's step, of handles of states and step counts. False where C has refused, and written nothing."""
        hs, gs = [p._h for p in params], [p._grad._h for p in params]
        how = self._rule, len(hs), hs, gs, *states, steps, fresh, group["maximize"], self._writer, lr, *numbers
        return lib.tt_optimize(*how, NULL if self.found_inf is None else self.found_inf._h) >= 0

    def _sparse_step(self, p: Tensor, s: dict, group: dict) -> None:
        """The step of a parameter whose gradient is sparse. RuntimeError where there is no rule for it."""
        raise refused(type(self).__name__, [p])

    def _declined(self, group: dict, params: list[Tensor]) -> None:
        """C has refused the parameters, and written nothing: those with sparse gradients have a step of their own,
        complex ones go by the formula, others are an error."""
        sparse = [p for p in params if p._grad.layout is not strided]
        if sparse:
            with no_grad():
                for p in sparse:
                    self._sparse_step(p, self.state[p], group)
            return self.update({**group, "params": [p for p in params if p._grad.layout is strided]})
        if not any(p.is_complex() for p in params):
            raise refused(type(self).__name__, params)
        with_real = {**group, "params": [p for p in params if not p.is_complex()]}
        if with_real["params"]:
            self.update(with_real)
        self._by_formula(group, [p for p in params if p.is_complex()])

    def _can_skip(self, where) -> bool:
        """Can the next step be left to the device ``where``, to do or leave out as ``found_inf`` there says?"""
        return all(
            not group["differentiable"] and all(_is_plain(p, where) for p in group["params"])
            for group in self.param_groups
        )

    def _begin(self, p: Tensor, s: dict, group: dict) -> None:
        """Gives a parameter whose first step this is its state."""
        if "step" not in s:
            s["step"] = step_count(p=p if group.get("capturable") else None)
        for name in self._states(group):
            if name is not None and name not in s:
                s[name] = zeros_for(p)

    def _by_formula(self, group: dict, params: list[Tensor]) -> None:
        """The formula, parameter by parameter; recorded where the group is ``differentiable``."""
        recorded, flag = group["differentiable"], self.found_inf
        if flag is not None:  # then the device counts, and puts back what it was to leave out
            group = {**group, "capturable": True}
        names = [*(name for name in self._states(group) if name is not None), *self._counters]
        with set_grad_enabled(recorded):
            for p in params:
                s = self.state[p]
                self._begin(p, s, group)
                if flag is not None:
                    s.update({name: s[name].to(p.device) for name in ("step", *self._counters) if name in s})
                    kept = [(t, t.clone()) for t in (p, *s.values())]
                step = None
                if "step" in s:
                    s["step"].add_(1)
                    step = s["step"] if group.get("capturable") else s["step"].item()
                x, g, lr = _real(p), _real(p._grad), group["lr"]
                g = -g if group["maximize"] else g
                decay = group.get("weight_decay", 0)
                if decay and group.get("decoupled_weight_decay"):
                    x.mul_(1 - lr * decay)
                elif decay:
                    g = g + x * decay
                old = {name: None if s[name] is None else _real(s[name]) for name in names}
                change, *new = self._formula(x, g, old, step, lr, group)
                for name, value in zip(names, new):
                    if (p if s[name] is None else s[name]).is_complex():
                        value = view_as_complex(value.contiguous())
                    if not isinstance(value, Tensor):
                        value = full_like(s[name], value)
                    if recorded or s[name] is None:
                        s[name] = value
                    else:
                        s[name].copy_(value)
                x.add_(change)
                if flag is not None:
                    for t, before in kept:
                        t.copy_(t.where(flag == 0, before))


def _is_plain(p: Tensor, where) -> bool:
    """Is this a parameter that C updates on that device, if at all?"""
    return p._grad is None or (p.device == where and not p.is_complex() and p._grad.layout is strided)


def _real(t: Tensor) -> Tensor:
    """A complex tensor as pairs of numbers."""
    return view_as_real(t) if t.is_complex() else t


def decay_of(group: dict, lr: float) -> tuple[int, float]:
    """The flag for weight decay and its number: what is added to the gradient, or left of the parameter."""
    decay = group["weight_decay"]
    if decay == 0:
        return 0, 0.0
    if group.get("decoupled_weight_decay"):
        return lib.TT_DECOUPLED, 1 - lr * decay
    return lib.TT_DECAY, decay


def refused(op: str, params) -> Exception:
    """The error of an update that C has refused, before it wrote anything."""
    if any(p._grad.layout is not strided for p in params):
        instead = ", please consider SparseAdam instead" if op in ("Adam", "AdamW") else ""
        return RuntimeError(f"{op} does not support sparse gradients{instead}")
    return error(op)


__all__ = ["ByRule", "decay_of", "lib", "refused"]
