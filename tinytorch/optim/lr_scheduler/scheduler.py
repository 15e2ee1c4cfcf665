"""What all schedules share: the count of epochs, and the optimiser's rates."""

from __future__ import annotations

import warnings

from ...tensor import Tensor
from ..optimizer import Optimizer


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
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    "last_epoch >= 0"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self.step()

    def step(self, epoch: int | None = None) -> None:
        """Goes on to the next epoch, or to ``epoch``."""
        if self._step_count == 1 and not self.optimizer._stepped:
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. You should call them in "
                "the opposite order: `optimizer.step()` before `lr_scheduler.step()`.",
                stacklevel=2,
            )
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
        return [
            self.next_rate(float(group["lr"]), base) for group, base in zip(self.optimizer.param_groups, self.base_lrs)
        ]

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
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups: expected {n} values for {name}, "
            f"got {len(value)}"
        )
    return list(value)
