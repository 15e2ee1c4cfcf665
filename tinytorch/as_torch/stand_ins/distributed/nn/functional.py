"""Collectives of one rank that give copies of their inputs, through which gradients flow."""

from __future__ import annotations

from ..collectives import _only
from ..group import ReduceOp, the_group

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def _copied(tensor):
    the_group()
    return tensor.clone()


def all_reduce(tensor, op=ReduceOp.SUM, group=None):
    """A copy of the tensor."""
    return _copied(tensor)


def reduce(tensor, dst, op=ReduceOp.SUM, group=None):
    """A copy of the tensor."""
    return _copied(tensor)


def broadcast(tensor, src, group=None):
    """A copy of the tensor."""
    return _copied(tensor)


def all_gather(tensor, group=None) -> tuple:
    """A tuple of one copy."""
    return (_copied(tensor),)


def gather(tensor, dst=0, group=None) -> tuple:
    """A tuple of one copy."""
    return (_copied(tensor),)


def scatter(tensors, src=0, group=None):
    """A copy of the only one of the tensors."""
    return _copied(_only(tensors, "scatter"))


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None):
    """The output, which becomes a copy of the only one of the inputs."""
    the_group()
    return output.copy_(_only(input_list, "reduce_scatter"))


def all_to_all(output_tensor_list, input_tensor_list, group=None) -> tuple:
    """The outputs, the only one of which becomes a copy of the input."""
    the_group()
    return (_only(output_tensor_list, "all_to_all").copy_(_only(input_tensor_list, "all_to_all")),)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None):
    """The output, which becomes a copy of the input."""
    the_group()
    return output.copy_(input)
