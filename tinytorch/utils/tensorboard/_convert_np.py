"""Whatever is to be shown, as an array."""

from __future__ import annotations

import numpy as np

from ...dtypes import bfloat16, float32
from ...tensor import Tensor


def make_np(x) -> np.ndarray:
    """A tensor of any device, an array or a number as an array: a number as one of one element, bfloat16 as float32.
    NotImplementedError for anything else."""
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    if isinstance(x, Tensor):
        x = x.detach().cpu()
        return (x.to(float32) if x.dtype is bfloat16 else x).numpy()
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")
