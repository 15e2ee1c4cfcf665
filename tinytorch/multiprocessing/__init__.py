"""Python's multiprocessing, with tensors that share their memory among processes. Follows ``torch.multiprocessing``.

A tensor that is put into a Queue or Pipe, or is an argument of a spawned Process, goes there without a copy; its memory
is freed with the last process that has it.
"""

from __future__ import annotations

import multiprocessing as _multiprocessing
from multiprocessing import *  # noqa: F403 (which names there are depends on the system and on Python's version)

from .reductions import register
from .spawn import ProcessContext, ProcessExitedException, ProcessRaisedException, SpawnContext, spawn, start_processes

__all__ = [
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
    *_multiprocessing.__all__,
]

_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = ["file_descriptor"]


def get_all_sharing_strategies() -> set[str]:
    """The names that ``set_sharing_strategy`` takes. Follows ``torch.multiprocessing.get_all_sharing_strategies``."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """What was set last. Follows ``torch.multiprocessing.get_sharing_strategy``."""
    return _strategy[0]


def set_sharing_strategy(new_strategy: str) -> None:
    """Notes a strategy, and changes nothing: memory has no name here, and goes as a file descriptor. AssertionError for
    an unknown one. Follows ``torch.multiprocessing.set_sharing_strategy``."""
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"unknown sharing strategy {new_strategy!r}")
    _strategy[0] = new_strategy


register()
