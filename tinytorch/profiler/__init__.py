"""Where the time goes. Follows ``torch.profiler``."""

from .events import Allocation, Event, Trace, nest
from .session import ProfilerAction, ProfilerActivity, profile, record_function, supported_activities

__all__ = ["Allocation", "Event", "ProfilerAction", "ProfilerActivity", "Trace", "nest", "profile", "record_function",
           "supported_activities"]
