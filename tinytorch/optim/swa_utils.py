"""Averages of a model's parameters over training, and the schedule that goes with them. Follows
``torch.optim.swa_utils``."""

from __future__ import annotations

import itertools
import math
from copy import deepcopy

from ..autograd.modes import no_grad
from ..dtypes import int64
from ..nn.module import Module
from ..ops.create import tensor
from .lr_scheduler.scheduler import LRScheduler, per_group

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay: float = 0.999):
    """``f(average, value, n)`` of an exponential average: ``decay * average + (1 - decay) * value``. ValueError unless
    ``decay`` is from 0 to 1."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_ema_multi_avg_fn(decay: float = 0.999):
    """``f(averages, values, n)`` that writes exponential averages in place. ValueError unless ``decay`` is from 0 to
    1."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param_list, current_param_list, _):
        for average, value in zip(ema_param_list, current_param_list, strict=True):
            if average.is_floating_point():
                average.lerp_(value, 1 - decay)
            else:
                average.copy_(average * decay + value * (1 - decay))

    return ema_update


def get_swa_avg_fn():
    """``f(average, value, n)`` of the mean of all: ``average + (value - average) / (n + 1)``."""

    @no_grad()
    def swa_update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def get_swa_multi_avg_fn():
    """``f(averages, values, n)`` that writes the means of all in place."""

    @no_grad()
    def swa_update(averaged_param_list, current_param_list, num_averaged):
        share = float(1 / (num_averaged + 1))
        for average, value in zip(averaged_param_list, current_param_list, strict=True):
            if average.is_floating_point():
                average.lerp_(value, share)
            else:
                average.copy_(average + (value - average) * share)

    return swa_update


class AveragedModel(Module):
    """A copy of ``model`` whose parameters are averages of those that ``update_parameters`` has seen: means, or what
    ``avg_fn(average, value, n)`` returns or ``multi_avg_fn(averages, values, n)`` writes. Buffers are averaged with
    ``use_buffers``, and copied otherwise. AssertionError when both functions are given. Follows
    ``torch.optim.swa_utils.AveragedModel``."""

    def __init__(self, model: Module, device=None, avg_fn=None, multi_avg_fn=None, use_buffers: bool = False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=int64, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def _averaged(self, model: Module) -> list:
        """The tensors of a model that are averaged, without history."""
        buffers = model.buffers() if self.use_buffers else ()
        return [p.detach() for p in itertools.chain(model.parameters(), buffers)]

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Takes the parameters of ``model`` into the averages."""
        averages = self._averaged(self.module)
        values = [v.to(a.device) for a, v in zip(averages, self._averaged(model))]
        n = self.n_averaged
        if n == 0:
            for average, value in zip(averages, values):
                average.copy_(value)
        elif self.avg_fn is not None:
            for average, value in zip(averages, values):
                average.copy_(self.avg_fn(average, value, n.to(average.device)))
        else:
            groups: dict = {}  # a function of several tensors may want those of one kind together
            for average, value in zip(averages, values):
                group = groups.setdefault((average.device, average.dtype), ([], []))
                group[0].append(average)
                group[1].append(value)
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            for (device, _), (some, theirs) in groups.items():
                update(some, theirs, n.to(device))
        if not self.use_buffers:
            for mine, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
                mine.detach().copy_(theirs.detach().to(mine.device))
        self.n_averaged += 1


@no_grad()
def update_bn(loader, model: Module, device=None) -> None:
    """Computes the running statistics of the normalizing layers of ``model`` anew, from the batches of ``loader`` (or
    the first of each, where they are tuples or lists): of all modules that have ``reset_running_stats`` and
    ``momentum``."""
    layers = [m for m in model.modules() if hasattr(m, "reset_running_stats") and hasattr(m, "momentum")]
    if not layers:
        return
    momenta = [layer.momentum for layer in layers]
    training = model.training
    model.train()
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None
    for batch in loader:
        if isinstance(batch, (list, tuple)):
            batch = batch[0]
        model(batch if device is None else batch.to(device))
    for layer, momentum in zip(layers, momenta):
        layer.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """From the present rates to ``swa_lr`` over ``anneal_epochs`` epochs, along half a cosine or a line
    (``anneal_strategy`` "cos" or "linear"), and constant then. Follows ``torch.optim.swa_utils.SWALR``."""

    def __init__(self, optimizer, swa_lr, anneal_epochs: int = 10, anneal_strategy: str = "cos", last_epoch: int = -1):
        for rate, group in zip(per_group("swa_lr", optimizer, swa_lr), optimizer.param_groups):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, t: float) -> float:
        """How far the rate is from the first to the last, a part ``t`` of the time."""
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self):
        self._warn_outside_step()
        step, epochs = self._step_count - 1, max(1, self.anneal_epochs)
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = (self.anneal_func(max(0, min(1, s / epochs))) for s in (step - 1, step))
        rates = []
        for group in self.optimizer.param_groups:
            lr, last = group["lr"], group["swa_lr"]
            first = last if before == 1 else (lr - before * last) / (1 - before)
            rates.append(last * now + first * (1 - now))
        return rates
