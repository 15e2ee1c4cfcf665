"""``torch.distributed.algorithms.join``: of one process, nobody has less input."""

from __future__ import annotations

__all__ = ["Join", "Joinable"]


class Joinable:
    """What can be joined."""


class Join:
    """A context in which nobody has to be waited for."""

    def __init__(self, joinables, enable: bool = True, throw_on_early_termination: bool = False, **kwargs):
        self.joinables = joinables

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        pass
