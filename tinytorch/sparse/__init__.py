"""Sparse tensors: products, sums and softmax. Follows ``torch.sparse``."""

from ..ops.sparse_functions import addmm, log_softmax, mm, softmax, sum
from ..ops.sparse_select import sampled_addmm, spdiags

__all__ = ["addmm", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "sum"]
