"""Collectives of one rank: results are copies of the inputs."""

from __future__ import annotations

import tinytorch

from .group import ReduceOp, Work, the_group

__all__ = [
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "gather_object",
    "irecv",
    "isend",
    "monitored_barrier",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
]


def _done(async_op: bool, result=None) -> Work | None:
    the_group()
    return Work(result) if async_op else None


def _copy(to, source) -> None:
    with tinytorch.no_grad():
        to.copy_(source.reshape(to.shape))


def _only(tensors, name: str):
    if len(tensors) != 1:
        raise ValueError(f"{name}: expected a list of 1 tensor, for 1 rank, got {len(tensors)}")
    return tensors[0]


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """The tensor stays as it is."""
    return _done(async_op, [tensor])


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op=False):
    """The tensors stay as they are."""
    return _done(async_op, tensors)


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """The tensor stays as it is."""
    return _done(async_op, [tensor])


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    """The tensor stays as it is."""
    return _done(async_op, [tensor])


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """Copies the tensor into the only one of the list."""
    work = _done(async_op, tensor_list)
    _copy(_only(tensor_list, "all_gather"), tensor)
    return work


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """Copies the input."""
    work = _done(async_op, [output_tensor])
    _copy(output_tensor, input_tensor)
    return work


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    """Copies the tensor into the only one of the list."""
    work = _done(async_op, gather_list)
    _copy(_only(gather_list, "gather"), tensor)
    return work


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    """Copies the only one of the list into the tensor."""
    work = _done(async_op, [tensor])
    _copy(tensor, _only(scatter_list, "scatter"))
    return work


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """Copies the only one of the list."""
    work = _done(async_op, [output])
    _copy(output, _only(input_list, "reduce_scatter"))
    return work


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """Copies the input."""
    work = _done(async_op, [output])
    _copy(output, input)
    return work


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """Copies the only one of the list."""
    work = _done(async_op, output_tensor_list)
    _copy(_only(output_tensor_list, "all_to_all"), _only(input_tensor_list, "all_to_all"))
    return work


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    """Copies the input."""
    work = _done(async_op, [output])
    _copy(output, input)
    return work


def barrier(group=None, async_op=False, device_ids=None):
    """Waits for nobody."""
    return _done(async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False) -> None:
    """Waits for nobody."""
    _done(False)


def all_gather_object(object_list, obj, group=None) -> None:
    """Puts the object into the list."""
    _done(False)
    object_list[0] = obj


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None) -> None:
    """Puts the object into the list."""
    _done(False)
    object_gather_list[0] = obj


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None, **kwargs) -> None:
    """The list stays as it is."""
    _done(False)


def scatter_object_list(scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, **kwargs):
    """Puts the object of one list into the other."""
    _done(False)
    scatter_object_output_list[0] = scatter_object_input_list[0]


def send(*args, **kwargs):
    """ValueError: there is nobody to send to."""
    raise ValueError("distributed: one process has no other to send to, or to receive from")


recv = isend = irecv = batch_isend_irecv = send
