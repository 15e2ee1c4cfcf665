"""``torch.fx`` without a tracer: classes that no object is of, and ``symbolic_trace``, which refuses."""

from __future__ import annotations

from tinytorch.nn import Module

__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "symbolic_trace", "wrap"]


def symbolic_trace(root, concrete_args=None):
    """NotImplementedError: tinytorch records operators as they run, and makes no program of Python's code."""
    raise NotImplementedError("fx.symbolic_trace: tinytorch has no symbolic tracer")


def wrap(fn_or_name):
    """What it is given: it tells a tracer what to leave alone."""
    return fn_or_name


class Tracer:
    """A tracer, which refuses to trace."""

    def trace(self, root, concrete_args=None):
        """NotImplementedError."""
        return symbolic_trace(root)

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Is it one of the library's?"""
        return m.__module__.startswith("tinytorch.nn")


class Graph:
    """A traced program: there is none."""

    __init__ = symbolic_trace


class GraphModule(Module):
    """A traced module: there is none."""


class Node:
    """A node of a traced program: there is none."""


class Proxy:
    """A value that is being traced: there is none."""


class Interpreter:
    """Runs a traced program."""

    __init__ = symbolic_trace


class Transformer(Interpreter):
    """Changes a traced program."""
