"""A trace as a file: the Trace Event format (chrome://tracing, Perfetto, TensorBoard), and stacks for flame graphs.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. Categories and arguments
are PyTorch's, so that what reads its traces reads ours.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
from collections.abc import Callable, Iterator

from ..dtypes import BY_NAME
from .events import Event, Trace

# By kind: the category. TensorBoard's reader takes "kernel" for a device's.
_CATEGORIES = {
    "op": "cpu_op",
    "backward": "cpu_op",
    "program": "cpu_op",
    "compile": "cpu_op",
    "cache": "cpu_op",
    "module": "python_function",
    "kernel": "kernel",
    "user": "user_annotation",
    "step": "user_annotation",
    "runtime": "runtime",
    "copy": "gpu_memcpy",
    "gap": "profiler",
}
_CPU, _CUDA = 0, 1  # DeviceType


def export_chrome_trace(trace: Trace, path: str) -> None:
    """Writes the trace as JSON, compressed for a name in ``.gz``. OSError when that cannot be done."""
    text = json.dumps(chrome_trace(trace, str(path)), separators=(",", ":"))
    write("export_chrome_trace", path, text)


def write(op: str, path, text: str) -> None:
    """Writes a file; the OSError says that nothing is lost."""
    try:
        if str(path).endswith(".gz"):
            with gzip.open(path, "wt", encoding="utf-8") as file:
                file.write(text)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    except OSError as exc:
        reason = f"{op}: cannot write ({exc.strerror or exc}); the trace is still there, and can go to another path"
        raise type(exc)(exc.errno, reason, str(path)) from None


def chrome_trace(trace: Trace, name: str = "") -> dict:
    """The trace as the object that the JSON holds. Times are microseconds from its start."""
    return {
        "schemaVersion": 1,
        "deviceProperties": trace.metadata.get("deviceProperties", []),
        "baseTimeNanoseconds": trace.wall,
        "displayTimeUnit": "ms",
        "host_name": platform.node(),
        "traceName": name,
        "producer": "tinytorch",
        **{k: int(v) if isinstance(v, bool) else v for k, v in trace.metadata.items() if k != "deviceProperties"},
        "traceEvents": [*_names(trace), *_spans(trace), *_flows(trace), *_memory(trace)],
    }


def _micro(trace: Trace, nanoseconds: int) -> float:
    return (nanoseconds - trace.start) / 1e3


def _place(event: Event) -> dict:
    """Process and thread: a device is a process of its own, whose threads are its streams."""
    if event.device == "cpu":
        return {"pid": os.getpid(), "tid": event.thread}
    return {"pid": int(event.device.rpartition(":")[2] or 0), "tid": event.stream if event.stream is not None else 0}


def _names(trace: Trace) -> Iterator[dict]:
    """Names of processes and threads, and their order."""
    pid = os.getpid()

    def meta(what: str, process, thread, **args) -> dict:
        return {"ph": "M", "name": what, "ts": 0, "pid": process, "tid": thread, "args": args}

    yield meta("process_name", pid, 0, name="python")
    yield meta("process_labels", pid, 0, labels="CPU")
    yield meta("process_sort_index", pid, 0, sort_index=pid)
    for order, (thread, title) in enumerate(sorted(trace.threads.items(), key=lambda item: item[1] != "MainThread")):
        yield meta("thread_name", pid, thread, name=title if title.endswith(str(thread)) else f"{title} {thread}")
        yield meta("thread_sort_index", pid, thread, sort_index=order)
    for device in sorted({e.device for e in trace.events} - {"cpu"}):
        number = int(device.rpartition(":")[2] or 0)
        yield meta("process_name", number, 0, name="python")
        yield meta("process_labels", number, 0, labels=f"GPU {number}")
        yield meta("process_sort_index", number, 0, sort_index=5_000_000 + number)
        for stream in sorted({e.stream or 0 for e in trace.events if e.device == device}):
            yield meta("thread_name", number, stream, name=f"stream {stream}")


def _spans(trace: Trace) -> Iterator[dict]:
    """What took time."""
    shown = trace.metadata.get("record_shapes")
    python_ids: dict[int, int] = {}
    modules: dict[str, int] = {}
    for number, event in enumerate(trace.events, 1):
        category = _CATEGORIES[event.kind]
        if event.kind == "kernel" and event.device == "cpu":
            category = "cpu_op"
        elif event.name.startswith("Optimizer."):
            category = "user_annotation"
        name, args = event.name, {"External id": number, "Ev Idx": number - 1}
        if category == "python_function":
            python_ids[id(event)] = number
            args = {
                "Python id": number,
                "Python parent id": _module_above(event, python_ids),
                "Python module id": modules.setdefault(name, len(modules)),
                "Ev Idx": number - 1,
            }
            name = f"{name}_{args['Python module id']}"
        if shown and event.shapes:
            args["Input Dims"] = [list(s) for s in event.shapes]
            args["Input type"] = [BY_NAME[d].cpp if d in BY_NAME else d for d in event.dtypes]
        if event.sequence is not None:
            args["Sequence number"] = event.sequence
            args["Fwd thread id"] = 0
        if event.stack:
            args["Call stack"] = ";".join(event.stack)
        if event.correlation is not None:
            args["correlation"] = event.correlation
        if event.device != "cpu":
            args["device"], args["stream"] = _place(event)["pid"], event.stream
        if event.bytes is not None:
            args["bytes"] = event.bytes
        if event.flops is not None:
            args["flops"] = event.flops
        args["kind"] = event.kind
        args.update({k: v for k, v in (event.extra or {}).items() if k not in args})
        yield {
            "ph": "X",
            "cat": category,
            "name": name,
            **_place(event),
            "ts": _micro(trace, event.start),
            "dur": event.duration / 1e3,
            "args": args,
        }
    yield {
        "ph": "X",
        "cat": "Trace",
        "name": "PyTorch Profiler (0)",
        "pid": "Spans",
        "tid": "PyTorch Profiler",
        "ts": 0,
        "dur": _micro(trace, trace.end),
        "args": {"Op count": 0},
    }


def _module_above(event: Event, known: dict[int, int]) -> int | None:
    above = event.parent
    while above is not None and id(above) not in known:
        above = above.parent
    return known[id(above)] if above is not None else None


def _flows(trace: Trace) -> Iterator[dict]:
    """Arrows: from an operator to its derivative, from a launch to what was launched."""
    makers = {e.sequence: e for e in trace.events if e.kind == "op" and e.sequence is not None}
    launchers: dict[int, Event] = {}
    for e in trace.events:
        if e.correlation is not None and e.device == "cpu" and e.kind != "kernel":
            launchers.setdefault(e.correlation, e)
    number = 0
    for e in trace.events:
        begin, name = None, "ac2g"
        if e.kind == "backward" and e.sequence in makers:
            maker, name = makers[e.sequence], "fwdbwd"
            begin = {**_place(maker), "ts": _micro(trace, maker.start)}
        elif e.kind == "kernel" and e.extra and "launched_at" in e.extra:
            begin = {"pid": os.getpid(), "tid": e.extra["launched_by"], "ts": _micro(trace, e.extra["launched_at"])}
        elif e.device != "cpu" and e.correlation in launchers:
            launcher = launchers[e.correlation]
            begin = {**_place(launcher), "ts": _micro(trace, launcher.start)}
        if begin is not None:
            number += 1
            yield {"ph": "s", "id": number, "cat": name, "name": name, **begin}
            yield {
                "ph": "f",
                "bp": "e",
                "id": number,
                "cat": name,
                "name": name,
                **_place(e),
                "ts": _micro(trace, e.start),
            }


def _memory(trace: Trace) -> Iterator[dict]:
    """Each allocation, and a counter of what is in use."""
    pid = os.getpid()
    for a in trace.allocations:
        ts, cpu = _micro(trace, a.time), a.device == "cpu"
        where = -1 if cpu else int(a.device.rpartition(":")[2] or 0)
        yield {
            "ph": "i",
            "cat": "cpu_instant_event",
            "s": "t",
            "name": "[memory]",
            "pid": pid,
            "tid": a.thread,
            "ts": ts,
            "args": {
                "Total Reserved": a.total,
                "Total Allocated": a.total,
                "Bytes": a.size,
                "Addr": a.address,
                "Device Id": where,
                "Device Type": _CPU if cpu else _CUDA,
            },
        }
        yield {"ph": "C", "name": f"memory of {a.device}", "pid": pid, "tid": 0, "ts": ts, "args": {"bytes": a.total}}


_METRICS: dict[str, Callable[[Event], int]] = {
    "self_cpu_time_total": lambda e: e.self_time if e.device == "cpu" else 0,
    "self_cuda_time_total": lambda e: e.duration if e.device != "cpu" else 0,
}


def export_stacks(trace: Trace, path: str, metric: str = "self_cpu_time_total") -> None:
    """One line for each stack: its lines from the outermost on, the event's name, and microseconds. ValueError for
    another metric."""
    if metric not in _METRICS:
        raise ValueError(f"export_stacks: metric must be one of {', '.join(_METRICS)}, got {metric!r}")
    value, sums = _METRICS[metric], {}
    for e in trace.events:
        if e.stack and e.kind != "step":
            key = ";".join(s.replace(";", ",").replace(" ", "_") for s in (*reversed(e.stack), e.name))
            sums[key] = sums.get(key, 0) + value(e)
    write("export_stacks", path, "".join(f"{key} {round(ns / 1e3)}\n" for key, ns in sums.items() if ns >= 500))
