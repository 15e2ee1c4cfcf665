"""Memory over time: what it was for, and what asked for it.

What a block is for is known from who holds it, looked at when the profiler opens and closes and around every backward:
parameters, what optimizers keep, gradients of leaves, what the graph has saved when backward begins. What was made by
an operator that creates tensors, or outside of all operators, and outlives that is an input, saved or not. The rest is
workspace: results that were used up, and what operators needed for themselves. Blocks that were there before and that
none of these holds are "other".
"""

from __future__ import annotations

import gc
import gzip
import json
import time
from collections import Counter
from typing import NamedTuple

from ..autograd import engine
from ..autograd.node import FREED, AccumulateGrad
from ..backends.cpu import check, ffi, lib
from ..nn import Parameter
from ..optim import Optimizer
from ..tensor import Tensor
from .averages import innermost, memory_text
from .costs import words
from .events import Allocation, Event, Trace

#: In the order in which they are stacked; of several that fit a block, the first of these.
CATEGORIES = ("parameter", "optimizer", "gradient", "activation", "input", "workspace", "other")
_RANK = {name: k for k, name in enumerate(CATEGORIES)}
_CREATORS = words("""
    tensor as_tensor asarray from_numpy from_dlpack frombuffer arange linspace logspace range zeros ones full eye empty
    rand randn randint randperm normal zeros_like ones_like full_like empty_like rand_like randn_like randint_like
    bernoulli multinomial new_tensor new_zeros new_ones new_full new_empty to cuda cpu pin_memory load stack
""")
_CHUNK = 4096


class Note(NamedTuple):
    """Somebody holds a block."""

    time: int
    device: str
    address: int
    nbytes: int
    category: str


def _note(tensor: Tensor, category: str, when: int) -> Note:
    storage = tensor._h.storage
    device = f"cuda:{storage.device - 1}" if storage.device else "cpu"
    return Note(when, device, int(ffi.cast("intptr_t", storage.data)), storage.nbytes, category)


def holders(when: int) -> list[Note]:
    """Of all parameters, gradients and optimizers there are."""
    notes = []
    for thing in gc.get_objects():  # of others too, whose __class__ may do anything when asked
        if issubclass(type(thing), Tensor):
            if getattr(thing, "_h", None) is None:
                continue
            if isinstance(thing, Parameter):
                notes.append(_note(thing, "parameter", when))
            grad = getattr(thing, "_grad", None)
            if grad is not None:
                notes.append(_note(grad, "gradient", when))
        elif issubclass(type(thing), Optimizer):
            for state in list(thing.__dict__.get("state", {}).values()):
                values = state.values() if isinstance(state, dict) else ()
                notes += [_note(v, "optimizer", when) for v in list(values) if isinstance(v, Tensor)]
    return notes


def _graph(roots) -> tuple[list[Note], list]:
    """What the graph below ``roots`` has saved, and its leaves, by weak references. Nothing of the graph is kept."""
    when = time.perf_counter_ns()
    notes, leaves = [], []
    nodes = [node for node, _ in roots]
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        if type(node) is AccumulateGrad:
            leaves.append(node.ref)
        elif node.saved is not FREED:
            notes += [_note(s, "activation", when) for s in node.saved if isinstance(s, Tensor)]
        for edge in node.edges:
            if edge is not None and edge not in seen:
                seen.add(edge)
                nodes.append(edge)
    return notes, leaves


class Memory:
    """Notes who holds what while a profiler is open, and collects the traffic of devices' memory."""

    def __init__(self, options):
        self.on = options.memory
        self.notes: list[Note] = []

    def start(self) -> None:
        """Begins."""
        if not self.on:
            return
        self.notes = holders(0)
        check(lib.tt_traffic_start())
        self.run = run = engine.run
        notes = self.notes

        def recorded_run(roots, *args, **options):
            saved, leaves = _graph(roots)
            notes.extend(saved)
            try:
                return run(roots, *args, **options)
            finally:
                when = time.perf_counter_ns()
                for ref in leaves:
                    leaf = ref()
                    if leaf is not None and getattr(leaf, "_grad", None) is not None:
                        notes.append(_note(leaf._grad, "gradient", when))

        engine.run = recorded_run

    def stop(self, trace: Trace) -> None:
        """Ends; devices' traffic joins the trace."""
        if not self.on:
            return
        engine.run = self.run
        lib.tt_traffic_stop()
        self.notes += holders(time.perf_counter_ns())
        out = ffi.new("tt_traffic[]", _CHUNK)
        while n := lib.tt_traffic_take(out, _CHUNK):
            for r in out[0:n]:
                device = "pinned" if r.device < 0 else f"cuda:{r.device}"
                trace.allocations.append(Allocation(r.time, r.address, r.size, r.total, device, r.thread))
        trace.dropped += lib.tt_traffic_dropped()

    def categorize(self, trace: Trace) -> None:
        """Sets the category of each allocation of the trace, whose events are nested."""
        if self.on:
            trace.metadata["memory held before"] = categorize(trace, self.notes)
            self.notes = []


class _Life:
    """A block from its allocation to its end."""

    __slots__ = ("taken", "given", "rank", "event")

    def __init__(self, taken: Allocation, event: Event | None):
        self.taken, self.event = taken, event
        self.given: Allocation | None = None
        self.rank = len(CATEGORIES)


def categorize(trace: Trace, notes: list[Note]) -> dict[str, dict[str, int]]:
    """Sets the categories; gives the bytes of each category held before the first record, by device."""
    records = trace.allocations
    live: dict[tuple[str, int], _Life] = {}
    before: dict[tuple[str, int], Note] = {}
    lives = []
    later = iter(sorted(notes, key=lambda n: n.time))
    note = next(later, None)
    for record, event in [*zip(records, innermost(trace.events, records)), (None, None)]:
        while note is not None and (record is None or note.time <= record.time):
            key = note.device, note.address
            if key in live:
                live[key].rank = min(live[key].rank, _RANK[note.category])
            elif note.address and (key not in before or _RANK[note.category] < _RANK[before[key].category]):
                before[key] = note
            note = next(later, None)
        if record is None:
            break
        key = record.device, record.address
        if record.size > 0:
            live[key] = life = _Life(record, event)
            lives.append(life)
        elif key in live:
            life = live.pop(key)
            life.given = record
        else:
            record.category = before[key].category if key in before else "other"
    for life in lives:
        name = CATEGORIES[life.rank] if life.rank < _RANK["activation"] else _by_maker(life)
        life.taken.category = name
        if life.given is not None:
            life.given.category = name
    held: dict[str, Counter] = {}
    for (device, _), one in before.items():
        held.setdefault(device, Counter())[one.category] += one.nbytes
    return {device: dict(counts) for device, counts in held.items()}


def _by_maker(life: _Life) -> str:
    """Of blocks that only the graph was seen to hold."""
    other = "activation" if life.rank == _RANK["activation"] else "workspace"
    event, top = life.event, None
    while event is not None:
        if event.kind in ("op", "backward", "program", "module"):
            top = event
        event = event.parent
    end = life.given.time if life.given is not None else None
    if top is None:  # a kernel on a thread of the pool works for an operator of another thread
        return other if life.event is not None and life.event.kind == "kernel" else "input"
    return "input" if top.name in _CREATORS and (end is None or end > top.end) else other


class Held(NamedTuple):
    """Blocks in use at the peak, of one category, operator and line."""

    category: str
    operator: str  # "" where none was at work
    line: str  # "file:line function"; "" without with_stack
    bytes: int
    blocks: int


class DeviceMemory(NamedTuple):
    """A device's memory over time. Sizes are bytes in use after each time, by category."""

    device: str
    times: list[int]  # nanoseconds since the trace's start
    totals: list[int]
    parts: dict[str, list[int]]
    peak: int
    peak_time: int
    held: list[Held]  # at the peak, the most first


class MemoryView:
    """What a trace recorded with ``profile_memory`` says of memory: ``devices`` by name; ``table()``, ``to_dict()``,
    ``export(path)``."""

    def __init__(self, trace: Trace):
        names = dict.fromkeys(a.device for a in trace.allocations)
        before = trace.metadata.get("memory held before", {})
        events = innermost(trace.events, trace.allocations)
        self.devices = {name: _replay(name, trace, events, before.get(name, {})) for name in names}

    def table(self, row_limit: int = 10) -> str:
        """For each device the peak, its categories, and who had asked for what was in use then."""
        lines = []
        for d in self.devices.values():
            at = max(range(len(d.totals)), key=d.totals.__getitem__)
            shares = ", ".join(f"{name} {memory_text(sizes[at])}" for name, sizes in d.parts.items() if sizes[at])
            when = f"{d.peak_time / 1e6:.3f} ms after the start"
            lines.append(f"{d.device}: at most {memory_text(d.peak)}, {when}: {shares}")
            rows = [("category", "bytes", "blocks", "operator", "line")]
            rows += [
                (h.category, memory_text(h.bytes), str(h.blocks), h.operator or "-", h.line or "-")
                for h in d.held[: row_limit if row_limit >= 0 else None]
            ]
            widths = [max(len(row[k]) for row in rows) for k in range(5)]
            lines += [
                "  " + "  ".join(f"{cell:{side}{w}}" for cell, side, w in zip(row, "<>><<", widths)).rstrip()
                for row in rows
            ]
            if 0 <= row_limit < len(d.held):
                lines.append(f"  and {len(d.held) - row_limit} more")
        return "\n".join(lines) or "no memory was recorded: open the profiler with profile_memory=True"

    __str__ = table

    def to_dict(self) -> dict:
        """All of it, for JSON."""
        return {name: {**d._asdict(), "held": [h._asdict() for h in d.held]} for name, d in self.devices.items()}

    def export(self, path: str, device: str | None = None) -> None:
        """Writes the timeline of a device (of all, without one) as JSON, compressed for a name in ``.gz``. ValueError
        for another name or an unknown device, OSError when it cannot be written."""
        data = self.to_dict()
        if device is not None:
            device = "cuda:0" if device == "cuda" else device
            if device not in data:
                raise ValueError(
                    f"export_memory_timeline: nothing was recorded of device '{device}', but of "
                    f"{', '.join(data) or 'none'}"
                )
            data = {device: data[device]}
        if not path.endswith((".json", ".json.gz")):
            raise ValueError(f"export_memory_timeline: the path must end in .json or .json.gz, got '{path}'")
        with gzip.open(path, "wt") if path.endswith(".gz") else open(path, "w") as file:
            json.dump(data, file)


def _replay(device: str, trace: Trace, events: list[Event | None], before: dict[str, int]) -> DeviceMemory:
    records = [(a, e) for a, e in zip(trace.allocations, events) if a.device == device]
    start = records[0][0].total - records[0][0].size
    now = Counter(before)
    now["other"] = max(0, start - sum(before.values()))
    times, totals, parts = [0], [start], {c: [now[c]] for c in CATEGORIES}
    for a, _ in records:  # threads record in another order than that in which they have counted: no a.total here
        now[a.category or "other"] += a.size
        times.append(a.time - trace.start)
        totals.append(totals[-1] + a.size)
        for c, sizes in parts.items():
            sizes.append(now[c])
    top = max(range(len(totals)), key=totals.__getitem__)
    live: dict[int, tuple[Allocation, Event | None]] = {}
    for a, event in records[:top]:
        if a.size > 0:
            live[a.address] = a, event
        else:
            live.pop(a.address, None)
    held: dict[tuple[str, str, str], list[int]] = {}
    older = {c: sizes[top] for c, sizes in parts.items()}
    for a, event in live.values():
        pair = held.setdefault((a.category or "other", *_asked(event)), [0, 0])
        pair[0] += a.size
        pair[1] += 1
        older[a.category or "other"] -= a.size
    found = [Held(*key, *pair) for key, pair in held.items()]
    found += [Held(c, "before the profile", "", size, 0) for c, size in older.items() if size > 0]
    return DeviceMemory(
        device,
        times,
        totals,
        {c: sizes for c, sizes in parts.items() if any(sizes)},
        totals[top],
        times[top],
        sorted(found, key=lambda h: -h.bytes),
    )


def _asked(event: Event | None) -> tuple[str, str]:
    """The operator at work, and the line that called it."""
    name, line = "", ""
    while event is not None and not (name and line):
        if not name and event.kind in ("op", "backward", "program"):
            name = event.name
        line = line or (event.stack[0] if event.stack else "")
        event = event.parent
    return name, line
