"""``torch.onnx.symbolic_helper``: decorators that give what they are given."""

from __future__ import annotations

__all__ = ["parse_args"]


def parse_args(*arg_descriptors):
    """A decorator that gives the function itself: nothing is exported."""
    return lambda fn: fn
