"""``torch.compiler``: nothing is being compiled."""

from __future__ import annotations

import contextlib

from .compile import compile

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable", "is_compiling",
    "is_dynamo_compiling", "is_exporting", "list_backends", "reset", "set_stance", "wrap_numpy",
]  # fmt: skip


def is_compiling() -> bool:
    """False."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def disable(fn=None, recursive=True, *, reason=None):
    """``fn`` itself."""
    return (lambda f: f) if fn is None else fn


def allow_in_graph(fn):
    """``fn`` itself."""
    return fn


assume_constant_result = wrap_numpy = allow_in_graph


def reset() -> None:
    """Nothing is kept."""


def cudagraph_mark_step_begin() -> None:
    """Nothing is captured behind the program's back."""


def list_backends(exclude_tags=()) -> list[str]:
    """The only one: ``fuse``."""
    return ["fuse"]


def set_stance(*args, **kwargs):
    """A context that changes nothing."""
    return contextlib.nullcontext()
