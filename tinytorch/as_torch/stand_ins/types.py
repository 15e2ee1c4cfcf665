"""Further names of ``torch.types``."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tinytorch import Tensor, device

__all__ = ["Device", "FileLike", "Storage", "Tensor", "_TensorOrTensors", "_bool", "_int"]

_bool, _int = bool, int
_TensorOrTensors = Tensor | Sequence[Tensor]
Device = device | str | int | None
FileLike = str | os.PathLike
Storage = object
