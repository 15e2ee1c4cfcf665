"""``torch._dynamo``: what programs call of it, which does nothing here."""

from __future__ import annotations

import types

from . import utils

from ..compiler import allow_in_graph, assume_constant_result, disable, is_compiling, list_backends, reset

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static_address",
    "maybe_mark_dynamic",
    "reset",
    "utils",
]

config = types.SimpleNamespace(suppress_errors=False, cache_size_limit=8, recompile_limit=8)
disallow_in_graph = allow_in_graph


def graph_break(msg: str = "") -> None:
    """Nothing."""


def mark_static_address(t, guard: bool = True) -> None:
    """Nothing."""


def mark_dynamic(t, index, **kwargs) -> None:
    """Nothing."""


maybe_mark_dynamic = mark_dynamic
