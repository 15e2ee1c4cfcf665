"""Samples into batches."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence

import numpy as np

from ....dtypes import float64
from ....layouts import strided
from ....ops.create import as_tensor, tensor
from ....ops.join import stack
from ....tensor import Tensor
from .blocks import empty_for_loader

_TEXT = "SUO"  # NumPy's kinds of text and of objects: no tensor has them
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def changed_mapping(data: Mapping, items: dict):
    """A mapping of the kind of ``data`` with other values: its copy where it can be changed, for it may have
    attributes; a dictionary where its kind cannot be made."""
    try:
        if isinstance(data, MutableMapping):
            made = copy.copy(data)
            made.update(items)
            return made
        return type(data)(items)
    except TypeError:
        return items


def changed_sequence(data: Sequence, items: list):
    """A sequence of the kind of ``data`` with other elements; a list where its kind cannot be made."""
    if type(data) is list:
        return items
    try:
        if isinstance(data, MutableSequence):
            made = copy.copy(data)
            for i, item in enumerate(items):
                made[i] = item
            return made
        return type(data)(items)
    except TypeError:
        return items


def default_convert(data):
    """NumPy arrays and numbers inside ``data`` become tensors; all else stays. Follows
    ``torch.utils.data.default_convert``."""
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return data if data.dtype.kind in _TEXT else as_tensor(data)
    if isinstance(data, Mapping):
        return changed_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple):
        items = [default_convert(item) for item in data]
        return type(data)(*items) if hasattr(data, "_fields") else items
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return changed_sequence(data, [default_convert(item) for item in data])
    return data


def collate(batch, *, collate_fn_map: dict[type | tuple[type, ...], Callable] | None = None):
    """A batch of samples as one, by the function that ``collate_fn_map`` has for the type of the first sample, or for
    one of its bases; each is called with the batch and ``collate_fn_map``. Mappings and sequences that are not in there
    are gone through. RuntimeError when lists differ in length, TypeError for other kinds. Follows
    ``torch.utils.data._utils.collate.collate``."""
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        fn = collate_fn_map.get(kind)
        if fn is None:
            fn = next((fn for of, fn in collate_fn_map.items() if isinstance(first, of)), None)
        if fn is not None:
            return fn(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        made = {key: collate([sample[key] for sample in batch], collate_fn_map=collate_fn_map) for key in first}
        return changed_mapping(first, made)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*[collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)])
    if isinstance(first, Sequence):
        size = len(first)
        if any(len(sample) != size for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)]
        return columns if isinstance(first, tuple) else changed_sequence(first, columns)
    raise TypeError(default_collate_err_msg_format.format(kind))


def collate_tensor_fn(batch, *, collate_fn_map=None):
    """Tensors stacked along a new first dimension: in a worker, in memory that the main process will share.
    RuntimeError for sparse ones."""
    first = batch[0]
    if first.layout is not strided:
        raise RuntimeError(
            "Batches of sparse tensors are not currently supported by the default collate_fn; "
            "please provide a custom collate_fn to handle them appropriately."
        )
    out = None if first.is_cuda else empty_for_loader(first.dtype, (len(batch), *first.shape))
    if out is not None:
        with contextlib.suppress(
            RuntimeError, TypeError
        ):  # of another dtype, or with history: as if there were no block
            return stack(batch, 0, out=out)
    return stack(batch, 0)


def collate_numpy_array_fn(batch, *, collate_fn_map=None):
    """Arrays as tensors, stacked. TypeError for arrays of texts and of objects."""
    of = batch[0].dtype
    if of.kind in _TEXT:
        raise TypeError(default_collate_err_msg_format.format(of))
    return collate([as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None):
    """NumPy's numbers as a vector."""
    return as_tensor(np.array(batch))


def collate_float_fn(batch, *, collate_fn_map=None):
    """Numbers as a vector of float64."""
    return tensor(batch, dtype=float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    """Whole numbers, or truth values, as a vector."""
    return tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    """The batch as it is."""
    return batch


#: What ``default_collate`` does with the types of samples, bases too. Follows
#: ``torch.utils.data._utils.collate.default_collate_fn_map``.
default_collate_fn_map: dict[type | tuple[type, ...], Callable] = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch):
    """A batch of samples as one: tensors, arrays and numbers are stacked along a new first dimension; tuples, lists and
    dictionaries are gone through; texts stay a list. Other types: ``default_collate_fn_map``, in
    ``utils.data._utils.collate``, takes functions for them. RuntimeError when sizes differ, TypeError for kinds that it
    has no function for. Follows ``torch.utils.data.default_collate``."""
    return collate(batch, collate_fn_map=default_collate_fn_map)
