"""``torch.functional``: operators at their older path."""

from __future__ import annotations

import tinytorch
from tinytorch.nn import functional as F

_NAMES = """
atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist chain_matmul einsum
istft lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot unique unique_consecutive unravel_index Tensor
""".split()  # noqa: SIM905 (a list of words)
globals().update({name: getattr(tinytorch, name) for name in _NAMES if hasattr(tinytorch, name)})
__all__ = ["F", *(name for name in _NAMES if name in globals())]
