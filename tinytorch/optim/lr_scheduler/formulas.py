"""Schedules that a formula, or a function of the user's, gives."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter

from .scheduler import LRScheduler, check_optimizer, check_positive, per_group


class _ByFunction(LRScheduler):
    """Schedules given by one function for all groups, or one for each."""

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        groups = check_optimizer(optimizer).param_groups
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * len(groups)
        if len(self.lr_lambdas) != len(groups):
            raise ValueError(f"Expected {len(groups)} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self):
        """The state, less functions: those of callable objects are kept by their attributes."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "lr_lambdas")}
        state["lr_lambdas"] = [None if hasattr(f, "__code__") else dict(f.__dict__) for f in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict):
        rest = dict(state_dict)
        for f, attributes in zip(self.lr_lambdas, rest.pop("lr_lambdas")):
            if attributes is not None:
                f.__dict__.update(attributes)
        self.__dict__.update(rest)


class LambdaLR(_ByFunction):
    """The first rate times ``lr_lambda(epoch)``."""

    def get_lr(self):
        return [base * f(self.last_epoch) for f, base in zip(self.lr_lambdas, self.base_lrs)]


class MultiplicativeLR(_ByFunction):
    """Each rate is the last times ``lr_lambda(epoch)``."""

    def get_lr(self):
        groups = self.optimizer.param_groups
        if self.last_epoch == 0:
            return [group["lr"] for group in groups]
        return [float(group["lr"]) * f(self.last_epoch) for f, group in zip(self.lr_lambdas, groups)]


class StepLR(LRScheduler):
    """Times ``gamma`` every ``step_size`` epochs."""

    def __init__(self, optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def next_rate(self, lr, base):
        return lr if self.last_epoch == 0 or self.last_epoch % self.step_size else lr * self.gamma

    def rate_at(self, epoch, base):
        return base * self.gamma ** (epoch // self.step_size)


class MultiStepLR(LRScheduler):
    """Times ``gamma`` at each of the ``milestones``."""

    def __init__(self, optimizer, milestones, gamma: float = 0.1, last_epoch: int = -1):
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def next_rate(self, lr, base):
        times = self.milestones.get(self.last_epoch, 0)
        return lr * self.gamma**times if times else lr

    def rate_at(self, epoch, base):
        return base * self.gamma ** bisect_right(sorted(self.milestones.elements()), epoch)


class ConstantLR(LRScheduler):
    """The first rate times ``factor``, and back to it after ``total_iters`` epochs."""

    def __init__(self, optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1):
        if not 0 <= factor <= 1.0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def next_rate(self, lr, base):
        if self.last_epoch == 0:
            return lr * self.factor
        return lr * (1.0 / self.factor) if self.last_epoch == self.total_iters else lr

    def rate_at(self, epoch, base):
        return base * (self.factor + (epoch >= self.total_iters) * (1 - self.factor))


class LinearLR(LRScheduler):
    """From ``start_factor`` to ``end_factor`` of the first rate, in equal steps over ``total_iters`` epochs."""

    def __init__(
        self,
        optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ):
        if not 0 < start_factor <= 1.0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1.0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def next_rate(self, lr, base):
        if self.last_epoch == 0:
            return lr * self.start_factor
        if self.last_epoch > self.total_iters:
            return lr
        rise = self.end_factor - self.start_factor
        return lr * (1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise))

    def rate_at(self, epoch, base):
        rise = self.end_factor - self.start_factor
        return base * (self.start_factor + rise * min(self.total_iters, epoch) / self.total_iters)


class ExponentialLR(LRScheduler):
    """Times ``gamma`` every epoch."""

    def __init__(self, optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def next_rate(self, lr, base):
        return lr * self.gamma if self.last_epoch else lr

    def rate_at(self, epoch, base):
        return base * self.gamma**epoch


class PolynomialLR(LRScheduler):
    """Down to zero over ``total_iters`` epochs, as (1 - epoch / total_iters) ** power."""

    def __init__(self, optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def next_rate(self, lr, base):
        epoch, total = self.last_epoch, self.total_iters
        if epoch == 0 or epoch > total:
            return lr
        return lr * ((1.0 - epoch / total) / (1.0 - (epoch - 1) / total)) ** self.power

    def rate_at(self, epoch, base):
        return base * (1.0 - min(self.total_iters, epoch) / self.total_iters) ** self.power


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the first rate down to ``eta_min`` over ``T_max`` epochs, then up again (Loshchilov and Hutter
    2017, without restarts)."""

    def __init__(self, optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def next_rate(self, lr, base):
        epoch, period, low = self.last_epoch, self.T_max, self.eta_min
        if epoch == 0:
            return lr
        if (epoch - 1 - period) % (2 * period) == 0:  # the last rate was the lowest: no ratio to it
            return lr + (base - low) * (1 - math.cos(math.pi / period)) / 2
        now, last = (1 + math.cos(math.pi * e / period) for e in (epoch, epoch - 1))
        return now / last * (lr - low) + low

    def rate_at(self, epoch, base):
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * epoch / self.T_max)) / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    """A cosine from the first rate to ``eta_min`` over ``T_0`` epochs, again and again, each ``T_mult`` times as long.
    ``step(epoch)`` takes fractions."""

    def __init__(self, optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1):
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return self._get_closed_form_lr()

    def rate_at(self, epoch, base):
        period = self.T_0
        while epoch >= period:
            epoch -= period
            period *= self.T_mult
        self.T_cur, self.T_i = epoch, period
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * epoch / period)) / 2

    def step(self, epoch=None):
        """Goes on to the next epoch, or to ``epoch``."""
        if epoch is not None and epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        super().step(epoch)
        self.last_epoch = math.floor(self.last_epoch)


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
            if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
                raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
            highs = per_group("max_momentum", optimizer, max_momentum)
            lows = per_group("base_momentum", optimizer, base_momentum)
            if last_epoch == -1:
                for group, high, low in zip(groups, highs, lows):
                    group["max_momentum"], group["base_momentum"] = high, low
                    self.set_momentum(group, high)
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def set_momentum(group, value) -> None:
        """Sets the group's momentum, or its first beta."""
        if "betas" in group:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value

    def between(self, start: float, end: float, part: float) -> float:
        """The value a ``part`` of the way from ``start`` to ``end``."""
        if self.anneal_strategy == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def get_lr(self):
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
                self.set_momentum(group, self.between(group[m_from], group[m_to], part))
        return rates
