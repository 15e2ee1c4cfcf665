"""One HTML page that shows profiles: a timeline of each mode, charts and tables. It needs no network.

What it has that Perfetto, the viewer of ``export_chrome_trace``, has not: eager, interpreted and compiled
runs of one program side by side; time, memory traffic and operations of each operator and kernel against what the
machine can do; a fused kernel's operators and their lines, and why programs ended; memory by what it is used for.

What the page shows is computed here, as plain numbers and texts; report.js draws it. Texts of the user's are data to
it: they never become part of the page's markup.
"""

from __future__ import annotations

import contextlib
import html
import json
import pathlib
import platform
import sys
from collections.abc import Sequence

from ..backends.cpu import get_num_threads
from ..fuse.describe import bytes_text, count_text
from .ceilings import ceilings
from .digest import breaks, kernels, launches, memory, totals, traffic
from .events import Event, Trace
from .memory import CATEGORIES

#: What the kinds of events are called on the page.
KINDS = {
    "op": "operator",
    "backward": "backward",
    "module": "module",
    "kernel": "kernel",
    "program": "fused program",
    "compile": "compilation",
    "cache": "kernel cache",
    "user": "record_function",
    "step": "step",
    "runtime": "CUDA runtime",
    "copy": "copy",
    "gap": "not the program's",
}
#: Events of a timeline that a page shows one by one; of more, short ones of the earlier part are merged.
MOST_EVENTS = 100_000
_MOST_ROWS = 200  # of a table
_MOST_TEXT = 400  # characters of a detail
_HERE = pathlib.Path(__file__).parent


class Comparison:
    """The table at the top of a page. ``rows``: (name, values, texts, is less better?), a value (None: unknown) and a
    text for each of ``columns``."""

    def __init__(self, columns: Sequence[str], note: str):
        self.columns, self.note = list(columns), note
        self.rows: list[tuple[str, list, list[str], bool]] = []

    def add(self, name: str, values: Sequence, text=str, less: bool = False) -> None:
        """A row; ``text`` makes a value readable, ``less`` is better or nothing is."""
        self.rows.append((name, list(values), ["" if v is None else text(v) for v in values], less))

    def data(self) -> dict:
        """For the page: the best of each row is marked, and what disagrees."""
        rows = []
        for name, values, texts, less in self.rows:
            known = [v for v in values if v is not None]
            best = values.index(min(known)) if less and len(known) > 1 and min(known) < max(known) else -1
            bad = [k for k, v in enumerate(values) if v is False or (isinstance(v, str) and v.startswith("differ"))]
            rows.append({"name": name, "cells": texts, "best": best, "bad": bad})
        return {"columns": self.columns, "note": self.note, "rows": rows}

    def __str__(self):
        rows = [["", *self.columns], *([name, *texts] for name, _, texts, _ in self.rows)]
        widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
        return "\n".join(
            "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:]))]).rstrip()
            for row in rows
        )


def page(
    traces: dict[str, Trace],
    *,
    title: str,
    subtitle: str = "",
    comparison: Comparison | None = None,
    gains: dict | None = None,
    limits: Sequence[dict] = (),
    most: int = MOST_EVENTS,
) -> str:
    """The page as HTML.

    ``traces``      by the mode's name, in the order in which they are shown
    ``comparison``  a table of figures of the modes
    ``gains``       lines and what they took before and after: see compare.py
    ``limits``      what devices can do: see ``limits_of``
    ``most``        events of each timeline to show one by one
    """
    figures = {
        "kinds": KINDS,
        "categories": CATEGORIES,
        "cards": _cards(traces, comparison is None),
        "modes": [{"name": name, **_timeline(trace, most), "memory": _memory(trace)} for name, trace in traces.items()],
        "comparison": comparison.data() if comparison else None,
        "gains": gains,
        "ceilings": list(limits),
        "operators": _operators(traces),
        "breaks": _breaks(traces),
        "efficiency": _efficiency(traces),
    }
    # In a script element nothing is an entity, and nothing but "</script" or "<!--" could end it early.
    data = json.dumps(figures, separators=(",", ":"), ensure_ascii=True, default=str).replace("<", "\\u003c")
    machine = f"CPython {platform.python_version()}, {count_text(get_num_threads(), 'thread')}, {platform.machine()}"
    parts = {
        "title": html.escape(title),
        "subtitle": html.escape(subtitle),
        "data": data,
        "style": (_HERE / "report.css").read_text(encoding="utf-8"),
        "script": (_HERE / "report.js").read_text(encoding="utf-8"),
        "footer": html.escape(f"{machine} {sys.platform}"),
    }
    text = (_HERE / "report.html").read_text(encoding="utf-8")
    pieces = text.split("{{")  # each name once or more; what is put in is not looked at again
    return pieces[0] + "".join(parts[name] + rest for name, _, rest in (p.partition("}}") for p in pieces[1:]))


def limits_of(traces: dict[str, Trace]) -> list[dict]:
    """The ceilings of the devices at work in some traces, as the page wants them; measured, if they never were."""
    devices = dict.fromkeys(e.device for trace in traces.values() for e in trace.of_kind("op", "kernel"))
    found = []
    for device in devices:
        with contextlib.suppress(RuntimeError):  # a trace may come from another machine
            c = ceilings(device)
            found.append({"device": device, "bandwidth": c.bandwidth, "flops": c.flops})
    return found


def _cards(traces: dict[str, Trace], alone: bool) -> list[tuple[str, str]]:
    """The numbers at the top of the page: a few, where a table follows that has more."""
    cards = []
    for name, trace in traces.items():
        mode = f"{name}: " if len(traces) > 1 else ""
        cards.append(
            (
                time_text(trace.end - trace.start),
                f"{mode}{launches(trace):,} kernels"
                + (f", {bytes_text(traffic(trace))} of traffic" if traffic(trace) else ""),
            )
        )
    for name, trace in traces.items() if alone else ():
        mode = f"{name}: " if len(traces) > 1 else ""
        cards += [(bytes_text(m.peak), f"{mode}peak memory, {m.device}") for m in memory(trace)]
        programs = sum(1 for _ in trace.of_kind("program"))
        if programs:
            cards.append((f"{programs:,}", f"{mode}runs of fused programs"))
    return cards


def time_text(ns: float) -> str:
    """``"1.23 ms"``."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{f'{ns / size:#.3g}'.rstrip('.')} {unit}" if ns < 999.5 * size else f"{ns / size:,.0f} {unit}"
    return f"{ns:.0f} ns"


def _timeline(trace: Trace, most: int) -> dict:
    """Events by lane (a thread, or a device's stream) and row (how deep they are), as columns of numbers."""
    start = _origin(trace)
    sorts: dict[tuple, int] = {}
    described: list[dict] = []
    lanes: dict[tuple, dict[int, list]] = {}
    depth: dict[int, int] = {}
    step = None
    for e in trace.events:
        level = depth[id(e)] = depth[id(e.parent)] + 1 if e.parent is not None else 0
        if e.kind == "step":
            step = [e.start - start, e.end - start]
        sort = _sort(e, sorts, described)
        rows = lanes.setdefault((e.device != "cpu", e.device, e.stream, e.thread), {})
        rows.setdefault(level, []).append(
            (e.start - start, e.duration, sort, -1 if e.sequence is None else e.sequence, 0)
        )
    count = len(trace.events)
    merged = count > most
    if merged:
        _merge(lanes, most)
    made = [
        {"name": _lane_name(trace, key), "rows": [_row(sorted(rows[level])) for level in sorted(rows)]}
        for key, rows in sorted(lanes.items(), key=lambda item: _lane_order(item[0], item[1]))
    ]
    span = max((e.end - start for e in trace.events), default=trace.end - start)
    return {
        "span": max(span, 1),
        "before": start - trace.start,
        "step": step,
        "count": count,
        "merged": merged,
        "dropped": trace.dropped,
        "lanes": made,
        "sorts": described,
    }


def _origin(trace: Trace) -> int:
    """Where the page's time begins: before it, a script imports its modules and the like."""
    return trace.events[0].start if trace.events else trace.start


def _memory(trace: Trace) -> list[dict]:
    shift = _origin(trace) - trace.start
    return [
        {
            **m._asdict(),
            "times": [max(t - shift, 0) for t in m.times],
            "peak_time": max(m.peak_time - shift, 0),
            "held": [h._asdict() for h in m.held[:30]],
        }
        for m in memory(trace)
    ]


def _lane_order(key: tuple, rows: dict[int, list]) -> tuple:
    """Threads before devices; those that work most first."""
    return key[0], -sum(len(row) for row in rows.values()), str(key)


def _lane_name(trace: Trace, key: tuple) -> str:
    is_device, device, stream, thread = key
    if is_device:
        return device if stream is None else f"{device}, stream {stream}"
    return trace.threads.get(thread) or f"thread {thread}"


def _sort(e: Event, sorts: dict[tuple, int], described: list[dict]) -> int:
    """The number of what events like ``e`` have in common."""
    extra = tuple(
        (str(name).replace("_", " "), _short(value))
        for name, value in (e.extra or {}).items()
        if value not in (None, "", ())
    )
    key = (e.name, e.kind, e.shapes, e.dtypes, e.stack, e.bytes, e.flops, extra)
    if key not in sorts:
        sorts[key] = len(described)
        shapes = ", ".join(f"{_short(d)} {_short(s)}" for s, d in zip(e.shapes, [*e.dtypes, *[""] * len(e.shapes)]))
        described.append(
            {
                "name": e.name,
                "kind": e.kind,
                "shapes": shapes.strip(),
                "stack": list(e.stack[:12]),
                "bytes": e.bytes,
                "flops": e.flops,
                "extra": extra,
            }
        )
    return sorts[key]


def _short(value) -> str:
    if isinstance(value, (list, tuple)) and value and not isinstance(value[0], int):
        value = ", ".join(map(str, value))
    text = str(value)
    return text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + " ..."


def _merge(lanes: dict[tuple, dict[int, list]], most: int) -> None:
    """Makes one block of short events next to each other, until there are no more than ``most``. The latest ones, half
    of what may stay, are left alone: a program that runs long mostly does the same again and again."""
    rows = [row for levels in lanes.values() for row in levels.values()]
    starts = sorted(entry[0] for row in rows for entry in row)
    border = starts[-(most // 2)] if most > 1 else starts[-1] + 1
    shortest = max(1, (starts[-1] - starts[0]) // 1_000_000)
    while sum(map(len, rows)) > most and shortest <= 2 * (starts[-1] - starts[0]) + 2:
        for row in rows:
            row[:] = _merged(row, shortest, border)
        shortest *= 2


def _merged(row: list, shortest: int, border: int) -> list:
    """A row whose events that are shorter than ``shortest``, and no farther apart, have become blocks: with the sort of
    the longest, and the number of events in the last place."""
    result: list = []
    longest = 0  # event of the last block
    for entry in row:
        start, took, sort, _, count = entry
        last = result[-1] if result else None
        small = start < border and (took < shortest or count)
        if small and last and (last[4] or last[1] < shortest) and start - last[0] - last[1] < shortest:
            each = took / max(count, 1)
            if last[4] == 0:
                longest = last[1]
            kept = sort if each > longest else last[2]
            longest = max(longest, each)
            result[-1] = (last[0], start + took - last[0], kept, -1, max(last[4], 1) + max(count, 1))
        else:
            longest = took / max(count, 1)
            result.append(entry)
    return result


def _row(entries: list) -> dict:
    """Columns: starts (each as the distance from the one before), durations, sorts, sequences, numbers of merged."""
    starts = [e[0] for e in entries]
    row = {
        "t": [b - a for a, b in zip([0, *starts], starts)],
        "d": [e[1] for e in entries],
        "s": [e[2] for e in entries],
    }
    if any(e[3] >= 0 for e in entries):
        row["q"] = [e[3] for e in entries]
    if any(e[4] for e in entries):
        row["c"] = [e[4] for e in entries]
    return row


def _operators(traces: dict[str, Trace]) -> list[dict]:
    """What took longest in any mode, side by side."""
    by_mode = [{(t.name, t.kind): t for t in totals(trace)} for trace in traces.values()]
    keys = dict.fromkeys(key for found in by_mode for key in found)
    rows = [
        {
            "name": key[0],
            "kind": KINDS[key[1]],
            "cells": [
                {"self": found[key].self_time, "calls": found[key].calls} if key in found else None for found in by_mode
            ],
        }
        for key in keys
        if key[1] != "runtime"
    ]
    rows.sort(key=lambda row: -max(c["self"] for c in row["cells"] if c))
    return rows[:60]


def _breaks(traces: dict[str, Trace]) -> list[dict]:
    return [
        {
            "mode": name,
            "place": b.place,
            "reason": b.reason,
            "count": b.count,
            "operators": b.operators,
            "kernels": b.kernels,
            "compiled": b.compiled,
            "ns": b.nanoseconds,
            "names": _short(", ".join(b.names)),
        }
        for name, trace in traces.items()
        for b in breaks(trace)
    ][:_MOST_ROWS]


def _efficiency(traces: dict[str, Trace]) -> list[dict]:
    rows = [
        {"mode": name, **t._asdict()}
        for name, trace in traces.items()
        for t in kernels(trace)
        if t.counted and (t.bytes or t.flops)
    ]
    rows.sort(key=lambda row: -row["counted"])
    return rows[:_MOST_ROWS]
