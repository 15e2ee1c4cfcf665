"""What all schedules share: the count of epochs, and the optimiser's rates."""

from __future__ import annotations

import contextlib
import warnings

from ...tensor import Tensor
from ..optimizer import Optimizer

HOW_TO = "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available."
)


def _own(value):
    """A value of its own: rates that are tensors are written in place."""
    return value.detach().clone() if isinstance(value, Tensor) else value


def set_value(group: dict, key: str, value) -> None:
    """Makes ``value`` the group's; a tensor is written, so that whoever holds it sees it."""
    if isinstance(group[key], Tensor):
        group[key].fill_(float(value))
    else:
        group[key] = value


def set_momentum(group: dict, value) -> None:
    """Sets the group's momentum, or its first beta."""
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def values_of(optimizer: Optimizer, key: str) -> list:
    """An option of each group. Tensors are copied: what is done to them changes no rate."""
    return [_own(group[key]) for group in optimizer.param_groups]


class LRScheduler:
    """Base of schedules: ``step()`` after each epoch sets the learning rate of every group to what ``get_lr()`` gives.
    ``last_epoch`` other than -1 resumes; the groups must then have ``initial_lr``, or KeyError. Follows
    ``torch.optim.lr_scheduler.LRScheduler``."""

    _get_lr_called_within_step = False  # get_lr() is for step() to call
    _is_initial = False  # the step that a schedule takes when it is made

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        self.optimizer = check_optimizer(optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _own(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    "last_epoch >= 0: was the optimizer's state loaded?"
                )
        self.base_lrs = values_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        optimizer._step_at_schedule = optimizer.__dict__.get("step")
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def step(self, epoch: int | None = None) -> None:
        """Goes on to the next epoch, or, with a warning, to ``epoch``."""
        if self._step_count == 1:
            self._warn_of_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _warn_of_order(self) -> None:
        """Warns when the optimiser has yet to step: the first rate would be skipped."""
        own = self.optimizer.__dict__.get("step")
        if own is not getattr(self.optimizer, "_step_at_schedule", None):
            warnings.warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                f"Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. {HOW_TO}",
                UserWarning,
                stacklevel=3,
            )
        elif own is None and not getattr(self.optimizer, "_stepped", True):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. You should call them in the "
                "opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will result in "
                f"skipping the first value of the learning rate schedule. {HOW_TO}",
                UserWarning,
                stacklevel=3,
            )

    @contextlib.contextmanager
    def _getting_lr(self):
        self._get_lr_called_within_step = True
        try:
            yield
        finally:
            self._get_lr_called_within_step = False

    def _update_lr(self, epoch: int | None = None) -> None:
        with self._getting_lr():
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            if epoch is not None and hasattr(self, "_get_closed_form_lr"):
                rates = self._get_closed_form_lr()
            else:
                rates = self.get_lr()
        self._set_rates(rates)

    def _set_rates(self, rates: list) -> None:
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            set_value(group, "lr", lr)
        self._last_lr = values_of(self.optimizer, "lr")

    def get_lr(self) -> list:
        """The learning rates of this epoch, one a group; a subclass gives them, and ``step()`` asks for them."""
        raise NotImplementedError(f"{type(self).__name__} must define get_lr()")

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def get_last_lr(self) -> list:
        """The learning rates set last."""
        return self._last_lr

    def state_dict(self) -> dict:
        """What ``load_state_dict`` needs: everything but the optimiser."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict) -> None:
        """Takes the state of another schedule of this kind."""
        self.__dict__.update(state_dict)


class _LRScheduler(LRScheduler):
    """The name of old."""


class ByFormula(LRScheduler):
    """Schedules with two formulas: the next rate from the present one, so that several may act on one optimiser; and
    the rate of any epoch from the first. They agree as long as no other schedule acts."""

    _resumes_as_is = True  # are the groups' rates at the start already those of the epoch where the schedule begins?

    def next_rate(self, lr, base):
        """The rate of this epoch from that of the last, and the first of all."""
        raise NotImplementedError(f"{type(self).__name__} must define next_rate()")

    def rate_at(self, epoch, base):
        """The rate of an epoch from the first."""
        raise NotImplementedError(f"{type(self).__name__} must define rate_at()")

    def get_lr(self):
        self._warn_outside_step()
        rates = values_of(self.optimizer, "lr")
        if self._is_initial and self._resumes_as_is and self.last_epoch > 0:
            return rates
        return [self.next_rate(lr, base) for lr, base in zip(rates, self.base_lrs, strict=True)]

    def _get_closed_form_lr(self):
        return [self.rate_at(self.last_epoch, base) for base in self.base_lrs]


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
    """One value for each group, from one for all or a list. ValueError for a list of another length."""
    n = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [_own(value) for _ in range(n)]
    if len(value) != n:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups: expected {n} values for {name}, "
            f"got {len(value)}"
        )
    return [_own(v) for v in value]


def start_momentum(optimizer: Optimizer, base, most, resumes: bool) -> tuple[list, list]:
    """The lower and upper momentum of each group, for a schedule that moves between them; the groups get the upper one
    unless it ``resumes``. ValueError for an optimiser without momentum."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    lows, highs = per_group("base_momentum", optimizer, base), per_group("max_momentum", optimizer, most)
    if not resumes:
        for group, high, low in zip(optimizer.param_groups, highs, lows):
            group["max_momentum"], group["base_momentum"] = high, low
            set_momentum(group, high)
    return lows, highs
