"""What a Trace comes to: figures by operator, why programs ended, memory by category. For reports and comparisons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from .events import Event, Trace
from .memory import DeviceMemory, MemoryView

WORK = ("op", "backward", "kernel", "program", "compile", "copy", "runtime")


class Total(NamedTuple):
    """All events of one name and kind."""

    name: str
    kind: str
    device: str
    calls: int
    total: int  # ns; an event inside another of the same name is counted once
    self_time: int  # ns
    bytes: int | None  # of those calls whose bytes are known; None if they never are
    flops: int | None
    counted: int  # ns of the calls whose bytes or FLOPs are known: what a rate is to be divided by


def totals(trace: Trace) -> list[Total]:
    """By name and kind, those with the most time of their own first."""
    return _summed(trace.of_kind(*WORK))


def kernels(trace: Trace) -> list[Total]:
    """The same of what computed by itself: kernels, and operators that are not made of others."""
    return _summed(
        e for e in trace.of_kind("op", "backward", "kernel", "copy") if e.kind in ("kernel", "copy") or computes(e)
    )


def _summed(events: Iterable[Event]) -> list[Total]:
    groups: dict[tuple[str, str, str], list] = {}
    for e in events:
        sums = groups.setdefault((e.name, e.kind, e.device), [0, 0, 0, None, None, 0])
        sums[0] += 1
        sums[1] += 0 if e.recurs else e.duration
        sums[2] += e.self_time
        if e.bytes is not None:
            sums[3] = (sums[3] or 0) + e.bytes
        if e.flops is not None:
            sums[4] = (sums[4] or 0) + e.flops
        if e.bytes is not None or e.flops is not None:
            sums[5] += e.duration
    return sorted((Total(*key, *sums) for key, sums in groups.items()), key=lambda t: -t.self_time)


class Break(NamedTuple):
    """Programs that ended at the same place for the same reason."""

    place: str  # "file:line"; "" where it is not known
    reason: str
    count: int
    operators: int  # recorded, of all
    kernels: int  # of all
    compiled: int  # kernels of all that ran compiled
    nanoseconds: int  # of all
    names: tuple[str, ...]  # of the operators of the largest, such as "mul" and "copy x3"


def breaks(trace: Trace) -> list[Break]:
    """Why programs ended, those with the most operators first."""
    groups: dict[tuple[str, str], list] = {}
    for e in trace.of_kind("program"):
        extra = e.extra or {}
        names = tuple(extra.get("operators", ()))
        found = groups.setdefault((str(extra.get("place") or ""), str(extra.get("reason") or "")), [0, 0, 0, 0, 0, ()])
        found[0] += 1
        kernels = [c for c in e.children if c.kind == "kernel"]
        found[1] += len(names)
        found[2] += len(kernels)
        found[3] += sum((c.extra or {}).get("tier") == "compiled" for c in kernels)
        found[4] += e.duration
        found[5] = max(found[5], names, key=len)
    return sorted(
        (Break(*key, *found[:5], _counted(found[5])) for key, found in groups.items()),
        key=lambda b: (-b.count, -b.operators),
    )


def _counted(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name if n == 1 else f"{name} x{n}" for name, n in Counter(names).items())


def memory(trace: Trace, most: int = 1500) -> list[DeviceMemory]:
    """Bytes in use over time, by device; of more than ``most`` changes, the highest of each stretch is kept."""
    found = []
    for m in MemoryView(trace).devices.values():
        step = -(-len(m.times) // most)
        kept = [
            max(range(k, min(k + step, len(m.times))), key=m.totals.__getitem__) for k in range(0, len(m.times), step)
        ]
        found.append(
            m._replace(
                times=[m.times[k] for k in kept],
                totals=[m.totals[k] for k in kept],
                parts={c: [sizes[k] for k in kept] for c, sizes in m.parts.items()},
            )
        )
    return found


def traffic(trace: Trace) -> int | None:
    """Bytes read and written, of what is known."""
    return _amount(trace, "bytes")


def work(trace: Trace) -> int | None:
    """Floating-point operations, of what is known."""
    return _amount(trace, "flops")


def _amount(trace: Trace, field: str) -> int | None:
    """The sum over what computed."""
    amounts = [
        getattr(e, field) or 0
        for e in trace.events
        if e.kind in ("program", "copy") or e.kind in ("op", "backward") and _works(e)
    ]
    return sum(amounts) if amounts else None


def launches(trace: Trace) -> int:
    """Kernels run: those of devices and of fused programs, and each operator on the CPU that computed by itself."""
    count = 0
    for e in trace.events:
        if e.kind == "kernel":
            count += e.device != "cpu" or "program" in (e.extra or {})
        elif e.kind in ("op", "backward"):
            count += computes(e)
    return count


def computes(e: Event) -> bool:
    """Did an operator compute on the CPU by itself?"""
    return _works(e) and "on" not in (e.extra or {})


def _works(e: Event) -> bool:
    """Does an operator touch memory by itself? It does not if it was recorded, is made of others, or only looks
    differently at the same memory. A program that it runs before is another matter."""
    return (
        bool(e.bytes)
        and not (e.extra or {}).get("recorded")
        and not any(c.bytes and c.kind in ("op", "backward") for c in e.children)
    )


def in_operators(trace: Trace) -> int:
    """Nanoseconds that threads of the program spent in operators, derivatives and programs."""
    kinds = ("op", "backward", "program")
    total, inside = 0, set()
    for e in trace.events:  # those around others come first
        if e.parent is not None and id(e.parent) in inside:
            inside.add(id(e))
        elif e.kind in kinds and e.device == "cpu":
            inside.add(id(e))
            total += e.duration
    return total


def summary(trace: Trace) -> dict:
    """The figures of a trace, as JSON has them."""
    steps = [e.duration for e in trace.of_kind("step")]
    return {
        "nanoseconds": trace.end - trace.start,
        "events": len(trace.events),
        "dropped": trace.dropped,
        "threads": {str(number): name for number, name in trace.threads.items()},
        "steps": {"count": len(steps), "median_ns": sorted(steps)[len(steps) // 2] if steps else None},
        "kernels": launches(trace),
        "bytes": traffic(trace),
        "flops": work(trace),
        "events_ns": max(e.end for e in trace.events) - trace.events[0].start if trace.events else 0,
        "in_operators_ns": in_operators(trace),
        "memory": {
            m.device: {"peak": m.peak, "peak_ns": m.peak_time, "held": [h._asdict() for h in m.held[:50]]}
            for m in memory(trace)
        },
        "operators": [t._asdict() for t in totals(trace)],
        "breaks": [b._asdict() for b in breaks(trace)],
    }
