"""Batches into page-locked memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....tensor import Tensor
from .collate import changed_mapping, changed_sequence
from .worker import ExceptionWrapper


def pin_memory(data, device=None):
    """Tensors inside ``data`` go to page-locked memory; what has a method ``pin_memory`` is asked to. Follows
    ``torch.utils.data._utils.pin_memory.pin_memory``."""
    if isinstance(data, Tensor) or hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return changed_mapping(data, {key: pin_memory(item, device) for key, item in data.items()})
    if isinstance(data, tuple):
        items = [pin_memory(item, device) for item in data]
        return type(data)(*items) if hasattr(data, "_fields") else type(data)(items)
    if isinstance(data, Sequence):
        return changed_sequence(data, [pin_memory(item, device) for item in data])
    return data


def pinned_or_failure(data):
    """``pin_memory``, in a thread: an exception is told, not raised."""
    if isinstance(data, ExceptionWrapper):
        return data
    try:
        return pin_memory(data)
    except Exception:
        return ExceptionWrapper(where="in pin memory thread")
