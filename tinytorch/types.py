"""Names for annotations. Follows ``torch.types``: those with an underscore are for places where a name of tinytorch's
hides Python's own, as ``tinytorch.int`` and ``Tensor.float`` do. The stubs are written in them."""

import builtins
from collections.abc import Sequence

from .devices import device as _device
from .dtypes import Size as _Size
from .dtypes import dtype as _dtype
from .layouts import layout as _layout
from .layouts import memory_format as _memory_format

__all__ = [
    "Device",
    "Number",
    "_bool",
    "_complex",
    "_device",
    "_dtype",
    "_float",
    "_int",
    "_layout",
    "_memory_format",
    "_size",
]

_bool = builtins.bool
_complex = builtins.complex
_float = builtins.float
_int = builtins.int
_size = Sequence[_int] | _Size
Number = _bool | _int | _float
Device = _device | str | _int | None
