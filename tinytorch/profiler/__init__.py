"""Where the time goes. Follows ``torch.profiler``.

    with profile(with_stack=True) as p:
        train()
    print(p.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))
    p.export_chrome_trace("trace.json")

Nothing of it is there while no profiler is open: Note [Zero cost while off] in instrument.py.
"""

from .averages import EventAverage, EventList
from .ceilings import Ceilings, ceilings
from .compare import Compared, compare
from .events import Allocation, Event, Trace, nest
from .memory import MemoryView
from .schedules import ProfilerAction, schedule
from .scopes import record_function
from .session import ProfilerActivity, profile, supported_activities
from .tensorboard import tensorboard_trace_handler

__all__ = [
    "Allocation",
    "Ceilings",
    "Compared",
    "Event",
    "EventAverage",
    "EventList",
    "MemoryView",
    "ProfilerAction",
    "ProfilerActivity",
    "Trace",
    "ceilings",
    "compare",
    "nest",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
