"""Scaling of losses, so that gradients of half types do not underflow."""

from __future__ import annotations

import math
from collections import defaultdict
from enum import Enum

from ..autograd.modes import no_grad
from ..autograd.views import writer_number, wrote
from ..backends.cpu import lib
from ..devices import device as device_of
from ..dtypes import float16, float32, float64, int32
from ..nn.utils.clip_grad import get_total_norm
from ..ops.create import full
from ..ops.pointwise import _where as where
from ..optim.rule import ByRule
from ..tensor import Tensor

_writer = writer_number("GradScaler.unscale_")


class OptState(Enum):
    """How far an optimiser has come since the last ``update``."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh() -> dict:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Multiplies losses by a scale that grows while gradients are finite, and shrinks when they are not; steps with
    infinite gradients are skipped. Follows ``torch.amp.GradScaler``.

    Args:
        device: the kind of device that the scale is on
        init_scale, growth_factor, backoff_factor, growth_interval: the scale at first; what it is multiplied with after
            so many finite steps; and after one that was not
        enabled: False: nothing is scaled
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        self._device, self._enabled = device, enabled
        if enabled:
            if not growth_factor > 1.0:
                raise ValueError("The growth factor must be > 1.0.")
            if not backoff_factor < 1.0:
                raise ValueError("The backoff factor must be < 1.0.")
        self._init_scale, self._scale = init_scale, None
        self._growth_factor, self._backoff_factor, self._growth_interval = (
            growth_factor,
            backoff_factor,
            growth_interval,
        )
        self._init_growth_tracker, self._growth_tracker = 0, None
        self._per_optimizer_states: defaultdict[int, dict] = defaultdict(_fresh)

    def _begin(self, where: device_of) -> None:
        self._scale = full((), self._init_scale, dtype=float32, device=where)
        self._growth_tracker = full((), self._init_growth_tracker, dtype=int32, device=where)

    def _checked(self, of: str) -> tuple[Tensor, Tensor]:
        advice = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
        for value, name in ((self._scale, "_scale"), (self._growth_tracker, "_growth_tracker")):
            if value is None:
                raise AssertionError(f"Attempted {of} but {name} is None.  {advice}")
        return self._scale, self._growth_tracker

    def scale(self, outputs):
        """``outputs``, a tensor or nested containers of them, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._begin(outputs.device)
            return outputs * self._scale.to(outputs.device)
        if isinstance(outputs, (list, tuple)):
            made = [self.scale(v) for v in outputs]
            return type(outputs)(*made) if hasattr(outputs, "_fields") else type(outputs)(made)
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer) -> None:
        """Divides the gradients of the optimiser's parameters by the scale. RuntimeError for the second time since the
        last ``update``, and after ``step``; ValueError for gradients of float16."""
        if not self._enabled:
            return
        scale, _ = self._checked("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        with no_grad():
            inverse = scale.to(float64).reciprocal().to(float32)
            state["found_inf_per_device"] = self._unscale(optimizer, inverse, False)
        state["stage"] = OptState.UNSCALED

    def _unscale(self, optimizer, inverse: Tensor, allow_fp16: bool) -> dict:
        """Which devices have a gradient that is not finite: a tensor of 0 or 1 on each. Nobody waits for a device."""
        by_device: dict = defaultdict(list)
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if not allow_fp16 and p.grad.dtype is float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                by_device[p.grad.device].append(p.grad)
        found = {}
        for where_, grads in by_device.items():
            dense = [g._values() if g.is_sparse else g for g in grads]
            norm = get_total_norm(dense, math.inf)
            found[where_] = (~norm.isfinite()).to(float32)
            handles, factor = [g._h for g in dense], inverse.to(where_)
            apart = len({h.storage for h in handles}) == len(handles)
            together = apart and lib.tt_scale(len(handles), handles, factor._h, _writer) == 0
            for g in dense:
                if together:
                    wrote(g)
                else:
                    g.mul_(factor)
        return found

    def step(self, optimizer, *args, **kwargs):
        """``optimizer.step(...)``, after unscaling the gradients if ``unscale_`` has not; skipped where they are not
        all finite: by a device itself, where the optimiser's rule is one kernel and its parameters are on that device,
        whose step counts are there then. Returns what the optimiser returns. RuntimeError for a
        second step without ``update``."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._checked("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        found = state["found_inf_per_device"]
        if not found:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        where_, flag = next(iter(found.items()))
        if len(found) == 1 and where_.type == "cuda" and isinstance(optimizer, ByRule) and optimizer._can_skip(where_):
            try:  # nobody waits for the device: it steps, or does not
                optimizer.found_inf = flag
                result = optimizer.step(*args, **kwargs)
            finally:
                optimizer.found_inf = None
        else:
            finite = not sum(f.item() for f in found.values())
            result = optimizer.step(*args, **kwargs) if finite else None
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale=None) -> None:
        """Updates the scale, at the end of an iteration; ``new_scale``, a number or tensor, replaces it."""
        if not self._enabled:
            return
        scale, tracker = self._checked("update")
        with no_grad():
            if isinstance(new_scale, Tensor):
                if new_scale.numel() != 1 or new_scale.requires_grad:
                    raise AssertionError("new_scale should be a float or a 1-element tensor with requires_grad=False.")
                scale.copy_(new_scale.reshape(()))
            elif new_scale is not None:
                scale.fill_(float(new_scale))
            else:
                found = [f for s in self._per_optimizer_states.values() for f in s["found_inf_per_device"].values()]
                if not found:
                    raise AssertionError("No inf checks were recorded prior to update.")
                bad = sum(f.to(scale.device) for f in found) > 0
                steps = where(bad, 0, tracker + 1)
                grows = steps == self._growth_interval
                larger = scale * self._growth_factor
                grown = where(grows & larger.isfinite(), larger, scale)
                scale.copy_(where(bad, scale * self._backoff_factor, grown))
                tracker.copy_(where(grows, 0, steps))
        self._per_optimizer_states = defaultdict(_fresh)

    def get_scale(self) -> float:
        """The scale; waits for the device."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()

    def is_enabled(self) -> bool:
        return self._enabled

    def state_dict(self) -> dict:
        """Scale, factors and counts; {} where disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict) -> None:
        """Takes another scaler's state. RuntimeError for that of a disabled one."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict:
        if self._per_optimizer_states:
            raise AssertionError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                "scaler.update()."
            )
        state = dict(self.__dict__)
        if self._enabled:
            state.update(_init_scale=self.get_scale(), _init_growth_tracker=self._get_growth_tracker())
            state.update(_scale=None, _growth_tracker=None)
        return state
