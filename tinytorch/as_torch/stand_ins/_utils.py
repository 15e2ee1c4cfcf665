"""``torch._utils``: lists of tensors as one, and back."""

from __future__ import annotations

import tinytorch
from tinytorch.utils.data._utils.worker import ExceptionWrapper

__all__ = [
    "ExceptionWrapper",
    "_flatten_dense_tensors",
    "_take_tensors",
    "_unflatten_dense_tensors",
    "_get_device_index",
    "_rebuild_tensor_v2",
]


def _rebuild_tensor_v2(storage, offset, size, stride, requires_grad=False, hooks=None, metadata=None):
    """The tensor at that place of a storage."""
    t = tinytorch.empty(0, dtype=storage.dtype).set_(storage._untyped_storage, offset, size, stride)
    return t.requires_grad_(requires_grad)


def _flatten_dense_tensors(tensors):
    """The elements of all, in one tensor."""
    return tinytorch.cat([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat, tensors) -> tuple:
    """Views of ``flat`` in the shapes of ``tensors``."""
    return tuple(part.view(t.shape) for part, t in zip(flat.split([t.numel() for t in tensors]), tensors))


def _take_tensors(tensors, size_limit: int):
    """The tensors in lists of one dtype, of at most so many bytes if more than one."""
    lists: dict = {}
    for t in tensors:
        taken = lists.setdefault(t.dtype, [])
        if taken and sum(u.nbytes for u in taken) + t.nbytes > size_limit:
            yield taken
            taken = lists[t.dtype] = []
        taken.append(t)
    yield from filter(None, lists.values())


def _get_device_index(device, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a device."""
    if isinstance(device, int):
        return device
    found = tinytorch.device(device) if device is not None else None
    if found is None or found.index is None:
        return -1 if found is not None and found.type == "cpu" else tinytorch.cuda.current_device()
    return found.index
