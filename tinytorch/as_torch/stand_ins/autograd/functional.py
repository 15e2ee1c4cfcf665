"""Further names of ``torch.autograd.functional``, which copies of its functions use."""

from __future__ import annotations

from tinytorch import Tensor

__all__ = ["_as_tuple", "_construct_standard_basis_for", "_grad_postprocess", "_tuple_postprocess"]


def _as_tuple(inp, arg_name=None, fn_name=None) -> tuple:
    """Was it a tuple, and the tuple that it is or is the one member of. TypeError where a member is no tensor.
    Without names the tuple alone, of whatever is in it, or in a list."""
    if arg_name is None and fn_name is None:
        return tuple(inp) if isinstance(inp, (tuple, list)) else (inp,)
    several = isinstance(inp, tuple)
    members = inp if several else (inp,)
    for i, member in enumerate(members):
        if not isinstance(member, Tensor):
            at = f"value at index {i} in {arg_name}" if several else arg_name
            raise TypeError(f"{fn_name}: {at} must be a Tensor, not {type(member).__name__}")
    return several, members


def _construct_standard_basis_for(tensors, tensor_numels) -> tuple:
    """For each tensor the columns, of an identity matrix of all their elements, that are its own."""
    columns, start = [], 0
    for t, n in zip(tensors, tensor_numels):
        columns.append(t.new_zeros(sum(tensor_numels), n))
        columns[-1].diagonal(-start).fill_(1)
        start += n
    return tuple(columns)


def _grad_postprocess(inputs, create_graph: bool):
    """Tensors, in tuples of tuples, without their history unless there shall be derivatives of them."""
    if isinstance(inputs, Tensor):
        return inputs if create_graph else inputs.detach()
    return tuple(_grad_postprocess(member, create_graph) for member in inputs)


def _tuple_postprocess(res, to_unpack):
    """What is in a tuple that stands for one value; a pair asks for tuples of tuples."""
    if isinstance(to_unpack, tuple):
        outer, inner = to_unpack
        res = res if inner else tuple(member[0] for member in res)
        return res if outer else res[0]
    return res if to_unpack else res[0]
