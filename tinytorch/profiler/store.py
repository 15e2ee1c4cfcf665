"""A Trace in a file, for another process of ours to read: plain tuples, pickled."""

from __future__ import annotations

import pickle

from .events import Allocation, Event, Trace, nest

_EVENT = tuple(name for name in Event.__slots__ if name not in ("parent", "children"))
_TRACE = ("threads", "start", "end", "wall", "metadata", "dropped")


def save(trace: Trace, path) -> None:
    """Writes it."""
    record = {
        "events": [tuple(getattr(e, name) for name in _EVENT) for e in trace.events],
        "allocations": [tuple(getattr(a, name) for name in Allocation.__slots__) for a in trace.allocations],
        "trace": {name: getattr(trace, name) for name in _TRACE},
    }
    with open(path, "wb") as file:
        pickle.dump(record, file, protocol=pickle.HIGHEST_PROTOCOL)


def load(path) -> Trace:
    """Reads what ``save`` wrote in a folder of our own: a file from elsewhere could run anything."""
    with open(path, "rb") as file:
        record = pickle.load(file)
    events = [Event(**dict(zip(_EVENT, values))) for values in record["events"]]
    allocations = [Allocation(**dict(zip(Allocation.__slots__, values))) for values in record["allocations"]]
    return Trace(nest(events), allocations, **record["trace"])
