"""Samples into batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...dtypes import float64
from ...ops.create import as_tensor, tensor
from ...ops.join import stack
from ...tensor import Tensor


def default_convert(data):
    """NumPy arrays and numbers inside ``data`` become tensors; all else stays."""
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return data if data.dtype.kind in "SUO" else as_tensor(data)
    if isinstance(data, Mapping):
        return _like(data, {k: default_convert(v) for k, v in data.items()})
    if isinstance(data, tuple):
        items = [default_convert(v) for v in data]
        return type(data)(*items) if hasattr(data, "_fields") else items
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return [default_convert(v) for v in data]
    return data


def default_collate(batch):
    """A batch of samples as one: tensors, arrays and numbers are stacked along a new first dimension; tuples, lists and
    dictionaries are gone through; strings stay a list. RuntimeError when sizes differ, TypeError for other kinds."""
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(list(batch), 0)
    if isinstance(first, (np.ndarray, np.generic)):
        if first.dtype.kind in "SUO":
            raise TypeError(
                "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
                f"found an array of {first.dtype}"
            )
        return as_tensor(np.stack([np.asarray(x) for x in batch]))
    if isinstance(first, float):
        return tensor(list(batch), dtype=float64)
    if isinstance(first, int):
        return tensor(list(batch))
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, Mapping):
        return _like(first, {k: default_collate([sample[k] for sample in batch]) for k in first})
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [default_collate(column) for column in zip(*batch)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {type(first)}"
    )


def pin(data):
    """Tensors inside ``data`` go to page-locked memory; what has a method ``pin_memory`` is asked to."""
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, Mapping):
        return _like(data, {k: pin(v) for k, v in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(pin, data))
    if isinstance(data, (tuple, list)):
        return type(data)(map(pin, data))
    return data


def _like(data, items: dict):
    """``items`` in a mapping of the kind of ``data``, where that can be made from a dictionary."""
    try:
        return type(data)(items)
    except TypeError:
        return items
