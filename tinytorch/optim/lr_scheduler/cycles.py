"""Schedules that rise and fall, again and again or once, and may move the momentum the other way."""

from __future__ import annotations

import math

from .formulas import attributes_of
from .scheduler import LRScheduler, check_optimizer, check_positive, per_group, set_momentum, set_value, start_momentum


class CosineAnnealingWarmRestarts(LRScheduler):
    """A cosine from the first rate to ``eta_min`` over ``T_0`` epochs, again and again, each ``T_mult`` times as long.
    ``step(epoch)`` takes fractions."""

    def __init__(self, optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1):
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._warn_outside_step()
        part = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]

    def step(self, epoch=None):
        """Goes on to the next epoch, or to ``epoch``."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        else:
            self.T_cur, self.T_i = epoch, self.T_0
            if self.T_mult == 1:
                self.T_cur = epoch % self.T_0
            while self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        self.last_epoch = math.floor(epoch)
        with self._getting_lr():
            rates = self.get_lr()
        self._set_rates(rates)


class CyclicLR(LRScheduler):
    """Between ``base_lr`` and ``max_lr``, up over ``step_size_up`` batches and down over ``step_size_down``; momentum
    the other way (Smith 2017). The height of a cycle stays (``mode="triangular"``), is halved with each
    ("triangular2"), or shrinks by ``gamma`` with each batch ("exp_range"); or ``scale_fn`` gives it, from the number of
    the cycle or of the batch (``scale_mode`` "cycle" or "iterations")."""

    def __init__(
        self,
        optimizer,
        base_lr,
        max_lr,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn=None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum=0.8,
        max_momentum=0.9,
        last_epoch: int = -1,
    ):
        groups = check_optimizer(optimizer).param_groups
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, groups):
                set_value(group, "lr", lr)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        if scale_fn is None:
            scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.scale_mode, self.cycle_momentum = scale_mode, cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = start_momentum(
                optimizer, base_momentum, max_momentum, last_epoch != -1
            )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x) -> float:
        """The height of a cycle, from its number or that of the batch."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / (2.0 ** (x - 1)) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self):
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        part = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                set_momentum(group, high - (high - low) * part * scale)
        return [low + (high - low) * part * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self):
        """The state, less functions: those of callable objects are kept by their attributes."""
        state = super().state_dict()
        if state["_scale_fn_custom"] is not None:
            state["_scale_fn_custom"] = attributes_of(state["_scale_fn_custom"])
        return state

    def load_state_dict(self, state_dict):
        rest = dict(state_dict)
        attributes = rest.pop("_scale_fn_custom")
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)
        super().load_state_dict(rest)


class OneCycleLR(LRScheduler):
    """One rise to ``max_lr`` and a fall far below the first rate, momentum the other way; a step a batch (Smith and
    Topin 2018)."""

    def __init__(
        self,
        optimizer,
        max_lr,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum=0.85,
        max_momentum=0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ):
        groups = check_optimizer(optimizer).param_groups
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
            check_positive("epochs", epochs)
            check_positive("steps_per_epoch", steps_per_epoch)
            total_steps = epochs * steps_per_epoch
        else:
            check_positive("total_steps", total_steps)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self.total_steps, self.anneal_strategy, self.cycle_momentum = total_steps, anneal_strategy, cycle_momentum
        up = ("initial_lr", "max_lr", "max_momentum", "base_momentum")
        if three_phase:
            down = ("max_lr", "initial_lr", "base_momentum", "max_momentum")
            last = ("initial_lr", "min_lr", "max_momentum", "max_momentum")
            self._phases = [
                (pct_start * total_steps - 1, *up),
                (2 * pct_start * total_steps - 2, *down),
                (total_steps - 1, *last),
            ]
        else:
            down = ("max_lr", "min_lr", "base_momentum", "max_momentum")
            self._phases = [(pct_start * total_steps - 1, *up), (total_steps - 1, *down)]
        max_lrs = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, high in zip(groups, max_lrs):
                group["initial_lr"], group["max_lr"] = high / div_factor, high
                group["min_lr"] = group["initial_lr"] / final_div_factor
        if cycle_momentum:
            start_momentum(optimizer, base_momentum, max_momentum, last_epoch != -1)
        super().__init__(optimizer, last_epoch)

    def between(self, start: float, end: float, part: float) -> float:
        """The value a ``part`` of the way from ``start`` to ``end``."""
        if self.anneal_strategy == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def get_lr(self):
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        begin = 0.0
        for phase in self._phases:
            end, lr_from, lr_to, m_from, m_to = phase
            if step <= end or phase is self._phases[-1]:
                break
            begin = end
        part = (step - begin) / (end - begin)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self.between(group[lr_from], group[lr_to], part))
            if self.cycle_momentum:
                set_momentum(group, self.between(group[m_from], group[m_to], part))
        return rates
