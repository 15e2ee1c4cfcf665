"""Schedules that a formula, or a function of the user's, gives: each falls, or rises, once."""

from __future__ import annotations

import math
import types
from bisect import bisect_right
from collections import Counter

from .scheduler import ByFormula, LRScheduler, check_optimizer, values_of


def attributes_of(fn) -> dict | None:
    """What a schedule's state keeps of a function: the attributes of a callable object, None of a function."""
    return None if isinstance(fn, types.FunctionType) else dict(getattr(fn, "__dict__", {}))


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
        state["lr_lambdas"] = [attributes_of(f) for f in self.lr_lambdas]
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
        self._warn_outside_step()
        return [base * f(self.last_epoch) for f, base in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(_ByFunction):
    """Each rate is the last times ``lr_lambda(epoch)``. TypeError for what cannot be called."""

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        for f in lr_lambda if isinstance(lr_lambda, (list, tuple)) else [lr_lambda]:
            if not callable(f):
                raise TypeError(f"lr_lambda should be a function, but got {type(f).__name__}")
        super().__init__(optimizer, lr_lambda, last_epoch)

    def get_lr(self):
        self._warn_outside_step()
        rates = values_of(self.optimizer, "lr")
        if self._is_initial:
            return rates
        return [lr * f(self.last_epoch) for f, lr in zip(self.lr_lambdas, rates, strict=True)]


class StepLR(ByFormula):
    """Times ``gamma`` every ``step_size`` epochs."""

    _resumes_as_is = False

    def __init__(self, optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def next_rate(self, lr, base):
        return lr if self.last_epoch == 0 or self.last_epoch % self.step_size else lr * self.gamma

    def rate_at(self, epoch, base):
        return base * self.gamma ** (epoch // self.step_size)


class MultiStepLR(ByFormula):
    """Times ``gamma`` at each of the ``milestones``."""

    _resumes_as_is = False

    def __init__(self, optimizer, milestones, gamma: float = 0.1, last_epoch: int = -1):
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def next_rate(self, lr, base):
        times = self.milestones.get(self.last_epoch, 0)
        return lr * self.gamma**times if times else lr

    def rate_at(self, epoch, base):
        return base * self.gamma ** bisect_right(sorted(self.milestones.elements()), epoch)


class ConstantLR(ByFormula):
    """The first rate times ``factor``, and back to it after ``total_iters`` epochs."""

    _resumes_as_is = False

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


class LinearLR(ByFormula):
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


class ExponentialLR(ByFormula):
    """Times ``gamma`` every epoch."""

    def __init__(self, optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def next_rate(self, lr, base):
        return lr * self.gamma if self.last_epoch else lr

    def rate_at(self, epoch, base):
        return base * self.gamma**epoch


class PolynomialLR(ByFormula):
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


class CosineAnnealingLR(ByFormula):
    """Half a cosine from the first rate down to ``eta_min`` over ``T_max`` epochs, then up again (Loshchilov and Hutter
    2017, without restarts)."""

    def __init__(self, optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def next_rate(self, lr, base):
        epoch, period, low = self.last_epoch, self.T_max, self.eta_min
        if epoch == 0:
            return lr
        if self._step_count == 1:
            return self.rate_at(epoch, base)
        if (epoch - 1 - period) % (2 * period) == 0:  # the last rate was the lowest: no ratio to it
            return lr + (base - low) * (1 - math.cos(math.pi / period)) / 2
        now, last = (1 + math.cos(math.pi * e / period) for e in (epoch, epoch - 1))
        return now / last * (lr - low) + low

    def rate_at(self, epoch, base):
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * epoch / self.T_max)) / 2
