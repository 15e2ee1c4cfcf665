"""``torch.nn._reduction``: the numbers that stand for reductions."""

from __future__ import annotations

import warnings

__all__ = ["get_enum", "legacy_get_enum", "legacy_get_string"]

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number of "none", "mean" or "sum". ValueError for another word."""
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_string(size_average, reduce, emit_warning: bool = True) -> str:
    """The word for two arguments of old, each True unless given."""
    word = "none" if reduce is False else "sum" if size_average is False else "mean"
    if emit_warning:
        warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{word}' instead.",
                      stacklevel=3)  # fmt: skip
    return word


def legacy_get_enum(size_average, reduce, emit_warning: bool = True) -> int:
    """The number for two arguments of old."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
