"""Further names of ``torch.nn.modules``: its classes, and modules at PyTorch's paths."""

from __future__ import annotations

import tinytorch.nn

from . import utils

_CLASSES = {name: getattr(tinytorch.nn, name) for name in tinytorch.nn.__all__ if name[0].isupper()}
globals().update(_CLASSES)
__all__ = [*_CLASSES, "utils"]
