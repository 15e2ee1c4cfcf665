"""``torch.nn.modules.utils``."""

from __future__ import annotations

import collections.abc
import itertools

__all__ = ["_list_with_default", "_ntuple", "_pair", "_quadruple", "_reverse_repeat_tuple", "_single", "_triple",
           "consume_prefix_in_state_dict_if_present"]  # fmt: skip


def _ntuple(n: int, name: str = "parse"):
    """A function that gives a tuple: of what can be iterated, its elements; of another value, ``n`` times that."""

    def parse(x):
        return tuple(x) if isinstance(x, collections.abc.Iterable) else tuple(itertools.repeat(x, n))

    parse.__name__ = name
    return parse


_single, _pair, _triple = _ntuple(1, "_single"), _ntuple(2, "_pair"), _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t, n: int) -> tuple:
    """The elements from the last on, each ``n`` times."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size, defaults) -> list:
    """The sizes, with the last of ``defaults`` for None."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [v if v is not None else d for v, d in zip(out_size, defaults[-len(out_size) :])]


def consume_prefix_in_state_dict_if_present(state_dict: dict, prefix: str) -> None:
    """Takes ``prefix`` from the keys that begin with it, and from those of ``_metadata``."""
    for key in [key for key in state_dict if key.startswith(prefix)]:
        state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", {})
    for key in [key for key in metadata if key and key.startswith(prefix.rstrip("."))]:
        metadata[key[len(prefix) :]] = metadata.pop(key)
