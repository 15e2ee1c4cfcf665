"""Further names of ``torch.serialization``: for annotations."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import IO, Any, Union

import tinytorch

__all__ = ["FILE_LIKE", "MAP_LOCATION"]

FILE_LIKE = Union[str, os.PathLike, IO[bytes]]
MAP_LOCATION = Union[Callable[[Any, str], Any], tinytorch.device, str, dict[str, str], None]
