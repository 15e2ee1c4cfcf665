"""The module tinytorch.backends._tensor, which lies in cffi's shared object (kernels/cpu/py_tensor.c)."""

from __future__ import annotations

import importlib.util
import sys

from . import _cpu


def _load(name: str):
    spec = importlib.util.spec_from_file_location(f"{__package__}.{name}", _cpu.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_tensor = sys.modules[f"{__package__}._tensor"] = _load("_tensor")
TensorBase, owner, owned_result = _tensor.TensorBase, _tensor.owner, _tensor.owned_result
