"""What a profile consists of: events, and traffic of memory. Whatever shows a profile reads these and nothing else.

Times are nanoseconds of one monotonic clock for all (``time.perf_counter_ns``)."""

from __future__ import annotations

from collections.abc import Iterator

KINDS = ("op", "backward", "module", "kernel", "program", "compile", "cache", "user", "step", "runtime", "copy", "gap")


class Event:
    """Something that took time.

    ``name``         the operator's, the Node's class's, the kernel's, ...
    ``kind``         one of KINDS: "op" a forward operator; "backward" a Node's derivative; "module" a call of an
                     nn.Module, or an optimizer's step; "kernel" a fused kernel, a worker's share of an operator, or a
                     kernel of a device; "program" a run of a fused program; "compile" and "cache" of the compiled
                     tier; "user" a record_function; "step" a step of the profiler's; "runtime" a call of a device's
                     runtime; "copy" between devices; "gap" time that the profiler itself took
    ``start, end``   nanoseconds
    ``thread``       a number; Trace.threads has the names
    ``device``       "cpu", "cuda:0"; ``stream`` is a device's, None on the CPU
    ``sequence``     links a "backward" event to the "op" that made its Node; None where there is no Node
    ``shapes, dtypes``  of the operands that are tensors, () where not recorded
    ``outputs``      (shape, dtype) of each result that is a tensor; always recorded for operators
    ``stack``        "file:line function", innermost first; () where not recorded
    ``bytes, flops`` None where unknown
    ``correlation``  links a device's kernel or copy to the op or program that launched it
    ``extra``        what only this kind has: a program's operators, tier, reason it ended, ...; ``recorded``: True of
                     an operator that fused mode has recorded and not computed; ``given_back``: True where the
                     result is an operand itself; None where nothing
    ``parent``       the event of the same thread around this one, ``children`` those directly inside, in order of
                     start: set by nest()
    """

    __slots__ = (
        "name",
        "kind",
        "start",
        "end",
        "thread",
        "device",
        "stream",
        "sequence",
        "shapes",
        "dtypes",
        "outputs",
        "stack",
        "bytes",
        "flops",
        "correlation",
        "extra",
        "parent",
        "children",
    )

    def __init__(
        self,
        name: str,
        kind: str,
        start: int,
        end: int,
        thread: int = 0,
        *,
        device: str = "cpu",
        stream: int | None = None,
        sequence: int | None = None,
        shapes: tuple = (),
        dtypes: tuple = (),
        outputs: tuple = (),
        stack: tuple = (),
        bytes: int | None = None,
        flops: int | None = None,
        correlation: int | None = None,
        extra: dict | None = None,
    ):
        self.name, self.kind, self.start, self.end, self.thread = name, kind, start, end, thread
        self.device, self.stream, self.sequence, self.shapes, self.dtypes = device, stream, sequence, shapes, dtypes
        self.outputs, self.stack, self.bytes, self.flops = outputs, stack, bytes, flops
        self.correlation, self.extra = correlation, extra
        self.parent: Event | None = None
        self.children: list[Event] = []

    @property
    def duration(self) -> int:
        """Nanoseconds from start to end."""
        return self.end - self.start

    @property
    def self_time(self) -> int:
        """Nanoseconds that were not those of an event inside."""
        return self.duration - sum(c.duration for c in self.children)

    @property
    def recurs(self) -> bool:
        """Is it within one of its own name? The time counts once."""
        above = self.parent
        while above is not None:
            if above.name == self.name and above.kind == self.kind:
                return True
            above = above.parent
        return False

    def __repr__(self):
        return f"<{self.kind} {self.name} {self.duration / 1e3:.3f} us>"


class Allocation:
    """Memory that was taken (``size`` > 0) or given back (< 0).

    ``address`` names the block; ``total`` is what was in use after; ``category`` is set by the memory view
    ("parameter", "gradient", "activation", "optimizer", "workspace"), None before."""

    __slots__ = ("time", "address", "size", "total", "device", "thread", "category")

    def __init__(
        self,
        time: int,
        address: int,
        size: int,
        total: int,
        device: str = "cpu",
        thread: int = 0,
        category: str | None = None,
    ):
        self.time, self.address, self.size, self.total = time, address, size, total
        self.device, self.thread, self.category = device, thread, category

    def __repr__(self):
        return f"<Allocation {self.size:+d} of {self.address:#x}, {self.total} in use>"


class Trace:
    """Everything collected between start and stop.

    ``events`` in order of start, those around others before these; ``allocations`` in order of time; ``threads`` names
    by number; ``start, end`` of the whole; ``wall`` is the time since the epoch at ``start``, in nanoseconds;
    ``metadata`` is the user's and the profiler's own (texts and numbers, by name); ``dropped`` counts records for which
    there was no room."""

    __slots__ = ("events", "allocations", "threads", "start", "end", "wall", "metadata", "dropped")

    def __init__(
        self,
        events: list[Event] | None = None,
        allocations: list[Allocation] | None = None,
        threads: dict[int, str] | None = None,
        start: int = 0,
        end: int = 0,
        wall: int = 0,
        metadata: dict | None = None,
        dropped: int = 0,
    ):
        self.events, self.allocations = events or [], allocations or []
        self.threads, self.start, self.end, self.wall = threads or {}, start, end, wall
        self.metadata, self.dropped = metadata or {}, dropped

    def of_kind(self, *kinds: str) -> Iterator[Event]:
        """The events of these kinds."""
        return (e for e in self.events if e.kind in kinds)


def nest(events: list[Event]) -> list[Event]:
    """Sorts the events, and sets ``parent`` and ``children`` of those that contain one another in one thread."""
    events.sort(key=_order)
    open_by_thread: dict[tuple, list[Event]] = {}
    for event in events:
        event.parent, event.children = None, []
        stack = open_by_thread.setdefault((event.device, event.stream, event.thread), [])
        while stack and stack[-1].end <= event.start and stack[-1].end < event.end:
            stack.pop()
        for around in reversed(stack):
            if event.end <= around.end:
                event.parent = around
                around.children.append(event)
                break
        stack.append(event)
    return events


def _order(event: Event) -> tuple[int, int]:
    return event.start, -event.end
