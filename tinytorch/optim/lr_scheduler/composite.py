"""Schedules made of others, and one that follows a figure of the user's."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right

from .scheduler import EPOCH_DEPRECATION_WARNING, LRScheduler, check_optimizer, set_value, values_of


class SequentialLR(LRScheduler):
    """Schedules one after another; ``milestones`` are the epochs at which the next takes over, from its epoch 0."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch: int = -1):
        self.optimizer = check_optimizer(optimizer)
        check_schedulers(self, optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the "
                "number of milestone points, but got number of schedulers "
                f"{len(schedulers)} and the number of "
                f"milestones to be equal to {len(milestones)}"
            )
        self._schedulers, self._milestones = list(schedulers), list(milestones)
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:  # as if no schedule had taken its first step yet ...
            set_value(group, "lr", group["initial_lr"])
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
        if not isinstance(schedulers, (tuple, list)):
            raise TypeError(f"schedulers must be a list of schedulers, not {type(schedulers).__name__}")
        schedulers = list(schedulers)
        self.optimizer = optimizer or (schedulers[0].optimizer if schedulers else None)
        check_schedulers(self, self.optimizer, schedulers)
        self._schedulers = schedulers
        self._last_lr = values_of(self.optimizer, "lr")

    def step(self):
        """Goes on to the next epoch."""
        for s in self._schedulers:
            s.step()
        self._last_lr = values_of(self.optimizer, "lr")


def check_schedulers(owner, optimizer, schedulers) -> None:
    """Schedules of one optimiser that step without a metric; ValueError otherwise."""
    name = type(owner).__name__
    if not schedulers:
        raise ValueError(f"{name} expects at least one scheduler, but got no scheduler.")
    for i, s in enumerate(schedulers):
        if isinstance(s, ReduceLROnPlateau):
            raise ValueError(
                f"{name} does not support `ReduceLROnPlateau` scheduler as it requires a metric when "
                f"calling `step`, but got one at index {i}"
            )
        if not hasattr(s, "optimizer"):
            raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
        if s.optimizer is not optimizer:
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, but that at index {i}, "
                f"{type(s).__name__}, has another"
            )


def undo(schedulers) -> None:
    """Takes back the step that schedules take when they are made."""
    for s in schedulers:
        if hasattr(s, "_schedulers"):
            undo(s._schedulers)
        else:
            s.last_epoch -= 1


class ReduceLROnPlateau(LRScheduler):
    """Times ``factor`` when the metric given to ``step(metric)`` has not improved for more than ``patience`` epochs."""

    def __init__(
        self,
        optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr=0,
        eps: float = 1e-8,
    ):
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.optimizer = check_optimizer(optimizer)
        self.mode, self.factor, self.patience, self.cooldown, self.eps = mode, factor, patience, cooldown, eps
        self.threshold, self.threshold_mode = threshold, threshold_mode
        several, n = isinstance(min_lr, (list, tuple)), len(optimizer.param_groups)
        if several and len(min_lr) != n:
            raise ValueError(f"expected {n} min_lrs, got {len(min_lr)}")
        self.default_min_lr = None if several else min_lr
        self.min_lrs = list(min_lr) if several else [min_lr] * n
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.last_epoch = 0
        self._last_lr = values_of(optimizer, "lr")
        self._reset()

    def _reset(self) -> None:
        """Forgets the metrics so far."""
        self.best = self.mode_worse
        self.cooldown_counter = self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Are bad epochs not counted yet?"""
        return self.cooldown_counter > 0

    def _is_better(self, a: float, best: float) -> bool:
        """Is ``a`` an improvement by more than the threshold?"""
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            bar = best * (1.0 + sign * self.threshold)
        else:
            bar = best + sign * self.threshold
        return a < bar if self.mode == "min" else a > bar

    def step(self, metrics, epoch=None):
        """Ends an epoch with a metric of ``metrics``."""
        value = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = epoch
        if self._is_better(value, self.best):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(epoch)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = values_of(self.optimizer, "lr")

    def _reduce_lr(self, epoch) -> None:
        """Lowers the rates. RuntimeError when there are groups of which ``min_lr`` says nothing."""
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new param group "
                    "being added to the optimizer. Please modify the `min_lrs` field to match the length of the "
                    "`optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, low in zip(groups, self.min_lrs):
            old = float(group["lr"])
            new = max(old * self.factor, low)
            if old - new > self.eps:
                set_value(group, "lr", new)
