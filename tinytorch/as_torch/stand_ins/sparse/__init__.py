"""Further names of ``torch.sparse``: the older way to make sparse tensors."""

from __future__ import annotations

import tinytorch
from tinytorch.ops.typed import TYPES

__all__ = [name for name in TYPES if name != "BoolTensor"]


def _maker(name: str, of: tinytorch.dtype):
    def make(*args) -> tinytorch.Tensor:
        if not args or not isinstance(args[0], tinytorch.Tensor):
            size = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
            places = tinytorch.empty(len(size), 0, dtype=tinytorch.int64)
            return tinytorch.sparse_coo_tensor(places, tinytorch.empty(0, dtype=of), tuple(size))
        return tinytorch.sparse_coo_tensor(args[0], args[1], *map(tuple, args[2:]), dtype=of)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A sparse tensor of {of!r}: of places and values, with or without a size, or of zeros of a size."
    return make


globals().update({name: _maker(name, cls.dtype) for name, cls in TYPES.items()})
