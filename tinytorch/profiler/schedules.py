"""What a profiler does in which step. Follows ``torch.profiler.schedule``."""

from __future__ import annotations

import enum
from collections.abc import Callable


class ProfilerAction(enum.Enum):
    """What the profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """After ``skip_first`` steps: cycles of ``wait`` steps without the profiler, ``warmup`` in which it runs and its
    results are dropped, and ``active`` that are recorded; ``repeat`` cycles, 0 for no end. ``skip_first_wait``: the
    first cycle does not wait. ValueError for a negative number, or if nothing would be recorded."""
    given = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat, "skip_first": skip_first}
    for name, value in given.items():
        if value < 0:
            raise ValueError(f"schedule: {name} must not be negative, got {value}")
    if active == 0:
        raise ValueError("schedule: active must be at least 1, got 0: nothing would be recorded")

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise ValueError(f"schedule: a step must not be negative, got {step}")
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait:
            step += wait
        cycle, place = divmod(step, wait + warmup + active)
        if repeat and cycle >= repeat:
            return ProfilerAction.NONE
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        last = place == wait + warmup + active - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


def always(step: int) -> ProfilerAction:
    """Without a schedule."""
    return ProfilerAction.RECORD
