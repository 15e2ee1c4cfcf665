"""Learning rates that change from epoch to epoch. Follows ``torch.optim.lr_scheduler``.

A schedule gives the next rate from the present one (``next_rate``), so that several may act on one optimiser; and,
where there is a formula, the rate of any epoch from the first (``rate_at``)."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections import Counter

from ..tensor import Tensor
from .optimizer import Optimizer


def set_rate(group: dict, lr) -> None:
    """Makes ``lr`` the group's learning rate; one that is a tensor is written, so that whoever holds it sees it."""
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(float(lr))
    else:
        group["lr"] = lr


class LRScheduler:
    """Base of schedules: ``step()`` after each epoch sets the learning rate of every group to what ``get_lr()`` gives.
    ``last_epoch`` other than -1 resumes; the groups must then have ``initial_lr``."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        self.optimizer = check_optimizer(optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", float(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                               "last_epoch >= 0")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self.step()

    def step(self, epoch: int | None = None) -> None:
        """Goes on to the next epoch, or to ``epoch``."""
        if self._step_count == 1 and not self.optimizer._stepped:
            warnings.warn("Detected call of `lr_scheduler.step()` before `optimizer.step()`. You should call them in "
                          "the opposite order: `optimizer.step()` before `lr_scheduler.step()`.", stacklevel=2)
        self._step_count += 1
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        groups = self.optimizer.param_groups
        if epoch is None:
            self.last_epoch += 1
            rates = self.get_lr()
        else:
            self.last_epoch = epoch
            rates = self._get_closed_form_lr() if hasattr(self, "rate_at") else self.get_lr()
        for group, lr in zip(groups, rates):
            set_rate(group, lr)
        self._last_lr = [group["lr"] for group in groups]

    def get_lr(self) -> list[float]:
        """The learning rates of this epoch, one a group."""
        if self._step_count == 1 and self.last_epoch > 0 and hasattr(self, "rate_at"):
            return self._get_closed_form_lr()  # resumed: the rates in the groups are not those of the last epoch
        return [self.next_rate(float(group["lr"]), base)
                for group, base in zip(self.optimizer.param_groups, self.base_lrs)]

    def next_rate(self, lr: float, base: float) -> float:
        """The rate of this epoch from that of the last, and the first of all."""
        raise NotImplementedError(f"{type(self).__name__} must define get_lr()")

    def _get_closed_form_lr(self) -> list[float]:
        return [self.rate_at(self.last_epoch, base) for base in self.base_lrs]

    def get_last_lr(self) -> list[float]:
        """The learning rates set last."""
        return self._last_lr

    def state_dict(self) -> dict:
        """What ``load_state_dict`` needs: everything but the optimiser."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict) -> None:
        """Takes the state of another schedule of this kind."""
        self.__dict__.update(state_dict)


def check_optimizer(optimizer) -> Optimizer:
    """TypeError for what is not an Optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


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

    def __init__(self, optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5,
                 last_epoch: int = -1):
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

    def __init__(self, optimizer, max_lr, total_steps: int | None = None, epochs: int | None = None,
                 steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos",
                 cycle_momentum: bool = True, base_momentum=0.85, max_momentum=0.95, div_factor: float = 25.0,
                 final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1):
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
            self._phases = [(pct_start * total_steps - 1, *up), (2 * pct_start * total_steps - 2, *down),
                            (total_steps - 1, *last)]
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


def check_positive(name: str, value) -> None:
    """ValueError for what is not an integer above zero."""
    if not isinstance(value, int) or value <= 0:
        raise ValueError(f"Expected positive integer {name}, but got {value}")


def per_group(name: str, optimizer: Optimizer, value) -> list:
    """One value for each group, from one for all or a list."""
    n = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * n
    if len(value) != n:
        raise ValueError(f"{name} must have the same length as optimizer.param_groups: expected {n} values for {name}, "
                         f"got {len(value)}")
    return list(value)


class SequentialLR(LRScheduler):
    """Schedules one after another; ``milestones`` are the epochs at which the next takes over, from its epoch 0."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch: int = -1):
        self.optimizer = check_optimizer(optimizer)
        check_schedulers(self, optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError("Sequential Schedulers expects number of schedulers provided to be one more than the "
                             "number of milestone points, but got number of schedulers "
                             f"{len(schedulers)} and the number of "
                             f"milestones to be equal to {len(milestones)}")
        self._schedulers, self._milestones = list(schedulers), list(milestones)
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:  # as if no schedule had taken its first step yet ...
            set_rate(group, group["initial_lr"])
        undo(self._schedulers)
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._initial_step()  # ... but the one whose turn it is
        self._last_lr = first.get_last_lr()

    def step(self):
        """Goes on to the next epoch."""
        self.last_epoch += 1
        at = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[at]
        if at > 0 and self._milestones[at - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self):
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        return {**state, "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict):
        for s, saved in zip(self._schedulers, state_dict["_schedulers"]):
            s.load_state_dict(saved)
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})


class ChainedScheduler(SequentialLR):
    """Several schedules at once: each changes the rate in turn."""

    def __init__(self, schedulers, optimizer=None):
        schedulers = list(schedulers)
        self.optimizer = optimizer or (schedulers[0].optimizer if schedulers else None)
        check_schedulers(self, self.optimizer, schedulers)
        self._schedulers = schedulers
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def step(self):
        """Goes on to the next epoch."""
        for s in self._schedulers:
            s.step()
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]


def check_schedulers(owner, optimizer, schedulers) -> None:
    """Schedules of one optimiser that step without a metric; ValueError otherwise."""
    name = type(owner).__name__
    if not schedulers:
        raise ValueError(f"{name} expects at least one scheduler, but got no scheduler.")
    for i, s in enumerate(schedulers):
        if isinstance(s, ReduceLROnPlateau):
            raise ValueError(f"{name} does not support `ReduceLROnPlateau` scheduler as it requires a metric when "
                             f"calling `step`, but got one at index {i}")
        if not hasattr(s, "optimizer"):
            raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
        if s.optimizer is not optimizer:
            raise ValueError(f"{name} expects all schedulers to belong to the same optimizer, but that at index {i}, "
                             f"{type(s).__name__}, has another")


def undo(schedulers) -> None:
    """Takes back the step that schedules take when they are made."""
    for s in schedulers:
        if hasattr(s, "_schedulers"):
            undo(s._schedulers)
        else:
            s.last_epoch -= 1


class ReduceLROnPlateau(LRScheduler):
    """Times ``factor`` when the metric given to ``step(metric)`` has not improved for more than ``patience`` epochs."""

    def __init__(self, optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
                 threshold_mode: str = "rel", cooldown: int = 0, min_lr=0, eps: float = 1e-8):
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.optimizer = check_optimizer(optimizer)
        self.mode, self.factor, self.patience, self.cooldown, self.eps = mode, factor, patience, cooldown, eps
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.min_lrs = per_group("min_lr", optimizer, min_lr)
        self.best = math.inf if mode == "min" else -math.inf
        self.cooldown_counter = self.num_bad_epochs = self.last_epoch = 0
        self._last_lr = [group["lr"] for group in optimizer.param_groups]

    def better(self, value: float) -> bool:
        """Is ``value`` an improvement by more than the threshold?"""
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            bar = self.best * (1.0 + sign * self.threshold)
        else:
            bar = self.best + sign * self.threshold
        return value < bar if self.mode == "min" else value > bar

    def step(self, metrics, epoch=None):
        """Ends an epoch with a metric of ``metrics``."""
        value = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        groups = self.optimizer.param_groups
        if self.num_bad_epochs > self.patience:
            for group, low in zip(groups, self.min_lrs):
                old = float(group["lr"])
                new = max(old * self.factor, low)
                if old - new > self.eps:
                    set_rate(group, new)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = [group["lr"] for group in groups]
