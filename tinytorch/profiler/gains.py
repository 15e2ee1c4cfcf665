"""Where fused mode saved time: eager events and fused kernels, each at the user's lines."""

from __future__ import annotations

import math
import os
from collections import Counter
from typing import NamedTuple

from ..fuse import Explanation
from .events import Event, Trace


class Gain(NamedTuple):
    """A line of the user's, before and after."""

    place: str  # "file:line"
    names: tuple[str, ...]  # of the operators there, those that took longest first
    before: float  # ns, eager
    after: float  # ns, fused: recording, kernels, and what was not fused

    @property
    def saved(self) -> float:
        """Nanoseconds."""
        return self.before - self.after


def gains_of(eager: Trace, fused: Trace, explanation: Explanation) -> list[Gain]:
    """By line, the largest saving first."""
    before, names = _by_line(eager)
    after, fused_names = _by_line(fused)
    for place, ns in _kernels(explanation).items():
        after[place] += ns
    gains = [
        Gain(
            place,
            tuple(n for n, _ in (names.get(place) or fused_names[place]).most_common()),
            before[place],
            after[place],
        )
        for place in dict.fromkeys([*before, *fused_names])
        if place
    ]
    return sorted(gains, key=lambda g: -g.saved)


def _by_line(trace: Trace) -> tuple[Counter, dict[str, Counter]]:
    """Nanoseconds at each line, and by the operators there. A program's belong to the lines of its operators."""
    times: Counter[str] = Counter()
    names: dict[str, Counter] = {}
    for e in trace.of_kind("op", "backward"):
        place = place_of(e)
        times[place] += e.self_time
        names.setdefault(place, Counter())[e.name] += e.self_time
    return times, names


def place_of(e: Event) -> str:
    """The innermost line of an event's stack, as fused mode writes it; "" where none is known."""
    if not e.stack:
        return place_of(e.parent) if e.parent is not None else ""
    return e.stack[0].rpartition(" ")[0].removeprefix(os.getcwd() + os.sep)


def _kernels(explanation: Explanation) -> Counter:
    """Nanoseconds of kernels, shared out among the lines of their operators by the elements that these compute."""
    times: Counter[str] = Counter()
    for program in explanation.programs:
        for kernel in program.kernels:
            sizes = {n: math.prod(program.trace.nodes[n].shape) or 1 for n in kernel.nodes}
            for n, size in sizes.items():
                place = program.places[n] if n < len(program.places) else None
                times[str(place or "")] += kernel.nanoseconds * size / sum(sizes.values())
    return times
