"""Arguments of one number or one of each dimension; prefixes of state dicts. Follows ``torch.nn.modules.utils``."""

from __future__ import annotations

from collections.abc import Callable, Iterable

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Callable:
    def parse(x):
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t, n: int) -> tuple:
    return tuple(x for x in reversed(t) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict, prefix: str) -> None:
    """Takes ``prefix`` off the keys that have it, in place: ``"module."`` of a DataParallel's state dict, say."""
    for key in [k for k in state_dict if k.startswith(prefix)]:
        state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", {})
    for key in [k for k in metadata if k and (k == prefix.replace(".", "") or k.startswith(prefix))]:
        metadata[key[len(prefix) :]] = metadata.pop(key)
