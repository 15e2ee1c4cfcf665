"""Events summed by name, and the table of them. PyTorch's names and columns, and ours: bytes, GB/s, GFLOP/s, and the
share of what this machine can do."""

from __future__ import annotations

from bisect import bisect_right

from .ceilings import Ceilings, known_ceilings
from .chrome import export_chrome_trace
from .events import Allocation, Event, Trace

_TIMES = (("s", 1e9), ("ms", 1e6), ("us", 1e3))


class EventAverage:
    """Events of one key: counts and sums. Times are microseconds, as PyTorch's; memory and ``bytes`` are bytes.

    ``bytes`` and ``flops`` are sums over the events of which they are known; ``known_ns`` is the time of those.
    """

    def __init__(self, key: str, kind: str, device: str, shapes: tuple = (), stack: tuple = ()):
        self.key, self.kind, self.device, self.input_shapes, self.stack = key, kind, device, shapes, stack
        self.count = self.total_ns = self.self_ns = 0
        self.device_ns = self.self_device_ns = 0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.bytes = self.flops = self.known_ns = 0

    @property
    def is_device(self) -> bool:
        """Does it run on a device, rather than on the CPU?"""
        return self.device != "cpu"

    cpu_time_total = property(lambda self: self.total_ns / 1e3)
    self_cpu_time_total = property(lambda self: self.self_ns / 1e3)
    cpu_time = property(lambda self: self.total_ns / 1e3 / max(self.count, 1))
    device_time_total = property(lambda self: self.device_ns / 1e3)
    self_device_time_total = property(lambda self: self.self_device_ns / 1e3)
    device_time = property(lambda self: self.device_ns / 1e3 / max(self.count, 1))
    cuda_time_total, self_cuda_time_total, cuda_time = device_time_total, self_device_time_total, device_time

    @property
    def gb_per_second(self) -> float | None:
        """Bytes of memory read and written, by the time of what did it."""
        return self.bytes / self.known_ns if self.bytes and self.known_ns else None

    @property
    def gflop_per_second(self) -> float | None:
        """Operations on numbers, by the time of what did it."""
        return self.flops / self.known_ns if self.flops and self.known_ns else None

    @property
    def ceiling_share(self) -> float | None:
        """What was reached of the machine's bandwidth or rate of products, whichever is more; None before they have
        been measured by ``profiler.ceilings()``."""
        found = known_ceilings(self.device) if self.known_ns else None
        return found and found.share(self.bytes, self.flops, self.known_ns / 1e9)

    def __repr__(self):
        return f"<EventAverage {self.key} x{self.count}, self {self.self_ns / 1e3:.3f} us>"


class EventList(list):
    """Events, or averages of them."""

    def __init__(self, items=(), trace: Trace | None = None, averages: bool = False):
        super().__init__(items)
        self.trace, self.averages = trace or Trace(), averages

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of the CPU's threads in which something was at work: the sum of the exclusive times."""
        return sum(a.self_ns for a in self._averages() if not a.is_device) / 1e3

    @property
    def self_device_time_total(self) -> float:
        """Microseconds of the devices'."""
        return sum(a.self_device_ns for a in self._averages() if a.is_device) / 1e3

    def _averages(self) -> EventList:
        return self if self.averages else self.key_averages()

    def total_average(self) -> EventAverage:
        """All of it in one."""
        total = EventAverage("Total", "", "cpu")
        for a in self._averages():
            for name in (
                "count",
                "total_ns",
                "self_ns",
                "device_ns",
                "self_device_ns",
                "self_cpu_memory_usage",
                "cpu_memory_usage",
                "bytes",
                "flops",
                "known_ns",
            ):
                setattr(total, name, getattr(total, name) + getattr(a, name))
        return total

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0) -> EventList:
        """The events summed by name and kind; by the shapes of the operands, and by the innermost ``group_by_stack_n``
        lines of the stack, if asked."""
        if self.averages:
            return self
        memory = memory_of(self, self.trace.allocations)
        on_device = _device_times(self)
        sums: dict[tuple, EventAverage] = {}
        for event in self:
            name = "ProfilerStep*" if event.kind == "step" else event.name
            shapes = event.shapes if group_by_input_shapes else ()
            stack = event.stack[:group_by_stack_n] if group_by_stack_n > 0 else ()
            key = name, event.kind, event.device, shapes, stack
            a = sums.get(key)
            if a is None:
                a = sums[key] = EventAverage(*key)
            _add(a, event, memory, on_device)
        return EventList(sums.values(), self.trace, averages=True)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The table as text. ``sort_by``: an attribute of EventAverage ("self_cpu_time_total", "cpu_time_total",
        "count", "self_cpu_memory_usage", "bytes", ...), largest first. ``row_limit`` -1: all rows. AttributeError for
        another ``sort_by``, ValueError for another ``time_unit`` than "s", "ms", "us"."""
        rows = (
            self
            if self.averages
            else EventList(
                [e for e in self if e.parent is None] if top_level_events_only else self, self.trace
            ).key_averages()
        )
        return table(
            rows,
            sort_by,
            row_limit,
            max_src_column_width,
            max_name_column_width,
            max_shapes_column_width,
            header,
            time_unit,
        )

    def export_chrome_trace(self, path: str) -> None:
        """See ``profile.export_chrome_trace``."""
        export_chrome_trace(self.trace, path)

    def __str__(self):
        return self.table()


def _add(a: EventAverage, event: Event, memory: dict, on_device: dict) -> None:
    a.count += 1
    if event.device == "cpu":
        a.self_ns += event.self_time
        if not event.recurs:
            a.total_ns += event.duration
            a.device_ns += on_device.get(id(event), 0)
    else:
        a.device_ns += event.duration
        a.self_device_ns += event.duration
    own, whole = memory.get(id(event), (0, 0))
    a.self_cpu_memory_usage += own
    a.cpu_memory_usage += whole
    if event.bytes is not None or event.flops is not None:
        a.bytes += event.bytes or 0
        a.flops += event.flops or 0
        a.known_ns += event.duration


def _device_times(events: list[Event]) -> dict[int, int]:
    """By event of the CPU: the time of the kernels that it, or what is inside of it, launched."""
    launchers = {e.correlation: e for e in events if e.device == "cpu" and e.correlation is not None}
    times: dict[int, int] = {}
    for event in events:
        if event.device == "cpu" or event.correlation is None:
            continue
        above = launchers.get(event.correlation)
        while above is not None:
            times[id(above)] = times.get(id(above), 0) + event.duration
            above = above.parent
    return times


def innermost(events: list[Event], allocations: list[Allocation]) -> list[Event | None]:
    """For each allocation the innermost event of its thread that it happened in."""
    by_thread: dict[int, list[Event]] = {}
    for e in sorted((e for e in events if e.device == "cpu"), key=lambda e: (e.start, -e.end)):
        by_thread.setdefault(e.thread, []).append(e)
    starts = {thread: [e.start for e in of] for thread, of in by_thread.items()}
    found = []
    for a in allocations:
        of = by_thread.get(a.thread, [])
        at = bisect_right(starts.get(a.thread, []), a.time) - 1
        event = of[at] if at >= 0 else None
        while event is not None and event.end < a.time:
            event = event.parent
        found.append(event)
    return found


def memory_of(events: list[Event], allocations: list[Allocation]) -> dict[int, tuple[int, int]]:
    """By event (its id): bytes allocated less those given back, by itself and with what is inside."""
    used: dict[int, list[int]] = {}
    for a, event in zip(allocations, innermost(events, allocations)):
        if a.device != "cpu":
            continue
        own = 0
        while event is not None:
            pair = used.setdefault(id(event), [0, 0])
            pair[own] += a.size
            if own == 0:
                pair[1] += a.size
            own, event = 1, event.parent
    return {key: (own, whole) for key, (own, whole) in used.items()}


# The table.


def table(
    rows: EventList,
    sort_by: str | None,
    row_limit: int,
    source_width: int,
    name_width: int,
    shapes_width: int,
    header: str | None,
    time_unit: str | None,
) -> str:
    """See EventList.table."""
    if not rows:
        return ""
    if time_unit is not None and time_unit not in dict(_TIMES):
        raise ValueError(f"table: time_unit must be 's', 'ms' or 'us', got {time_unit!r}")
    ordered = list(rows)
    if sort_by is not None:
        if not hasattr(rows[0], sort_by):
            known = sorted(n for n in (*vars(rows[0]), *vars(EventAverage)) if not n.startswith("_"))
            raise AttributeError(f"table: cannot sort by '{sort_by}'; there are {', '.join(known)}")
        ordered.sort(key=lambda a: getattr(a, sort_by) or 0, reverse=True)
    columns = _columns(rows, source_width, name_width, shapes_width, time_unit)
    cells = [[text(a) for _, _, text in columns] for a in (ordered if row_limit < 0 else ordered[:row_limit])]
    widths = [
        max(len(title), *(len(row[k]) for row in cells)) if cells else len(title)
        for k, (title, _, _) in enumerate(columns)
    ]
    line = "  ".join("-" * w for w in widths)
    head = "  ".join(f"{title:>{w}}" for (title, _, _), w in zip(columns, widths))
    lines = [*([line, header] if header else []), line, head, line]
    lines += [
        "  ".join(f"{cell:{side}{w}}" for cell, (_, side, _), w in zip(row, columns, widths)).rstrip() for row in cells
    ]
    lines += [line, f"Self CPU time total: {time_text(rows.self_cpu_time_total * 1e3)}"]
    if any(a.is_device for a in rows):
        lines.append(f"Self CUDA time total: {time_text(rows.self_device_time_total * 1e3)}")
    return "\n".join(lines) + "\n"


def _columns(rows: EventList, source_width: int, name_width: int, shapes_width: int, unit: str | None) -> list[tuple]:
    """Title, side and text of each column."""
    cpu = sum(a.self_ns for a in rows if not a.is_device)
    device = sum(a.self_device_ns for a in rows if a.is_device)
    columns = [
        ("Name", ">", lambda a: _cut(a.key, name_width)),
        ("Self CPU %", ">", lambda a: _percent(a.self_ns, cpu)),
        ("Self CPU", ">", lambda a: time_text(a.self_ns, unit)),
        ("CPU total %", ">", lambda a: _percent(a.total_ns, cpu)),
        ("CPU total", ">", lambda a: time_text(a.total_ns, unit)),
        ("CPU time avg", ">", lambda a: time_text(a.total_ns / max(a.count, 1), unit)),
    ]
    if any(a.is_device for a in rows):
        columns += [
            ("Self CUDA", ">", lambda a: time_text(a.self_device_ns, unit)),
            ("Self CUDA %", ">", lambda a: _percent(a.self_device_ns, device)),
            ("CUDA total", ">", lambda a: time_text(a.device_ns, unit)),
            ("CUDA time avg", ">", lambda a: time_text(a.device_ns / max(a.count, 1), unit)),
        ]
    if any(a.cpu_memory_usage or a.self_cpu_memory_usage for a in rows):
        columns += [
            ("CPU Mem", ">", lambda a: memory_text(a.cpu_memory_usage)),
            ("Self CPU Mem", ">", lambda a: memory_text(a.self_cpu_memory_usage)),
        ]
    columns.append(("# of Calls", ">", lambda a: str(a.count)))
    if any(a.bytes or a.flops for a in rows):
        columns += [
            ("Bytes", ">", lambda a: memory_text(a.bytes) if a.bytes else "--"),
            ("GB/s", ">", lambda a: _number(a.gb_per_second)),
            ("MFLOPs", ">", lambda a: _number(a.flops / 1e6 if a.flops else None)),
            ("GFLOP/s", ">", lambda a: _number(a.gflop_per_second)),
        ]
        ceilings = {device: known_ceilings(device) for device in {a.device for a in rows}}
        if any(ceilings.values()):
            columns.append(("Ceiling %", ">", lambda a: _share(a, ceilings[a.device])))
    if any(a.input_shapes for a in rows):
        columns.append(("Input Shapes", "<", lambda a: _cut(str([list(s) for s in a.input_shapes]), shapes_width)))
    if any(a.stack for a in rows):
        columns.append(("Source Location", "<", lambda a: " <- ".join(_cut_left(s, source_width) for s in a.stack)))
    return columns


def time_text(nanoseconds: float, unit: str | None = None) -> str:
    """``"12.345us"``: of the unit that fits, as PyTorch writes it."""
    if unit is None:
        unit = "s" if abs(nanoseconds) >= 1e9 else "ms" if abs(nanoseconds) >= 1e6 else "us"
    return f"{nanoseconds / dict(_TIMES)[unit]:.3f}{unit}"


def memory_text(n: float) -> str:
    """``"1.50 KB"``: in powers of 1024, as PyTorch writes it."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(n) >= size:
            return f"{n / size:.2f} {unit}"
    return f"{n:.0f} B"


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "--"


def _share(a: EventAverage, ceilings: Ceilings | None) -> str:
    share = ceilings.share(a.bytes, a.flops, a.known_ns / 1e9) if ceilings and a.known_ns else None
    return f"{100 * share:.1f}%" if share else "--"


def _number(x: float | None) -> str:
    return "--" if x is None else f"{x:.3f}"


def _cut(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else text[: width - 3] + "..."


def _cut_left(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else "..." + text[3 - width :]
