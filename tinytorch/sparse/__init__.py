"""Sparse tensors: products, sums and softmax. Follows ``torch.sparse``."""

from ..ops.sparse_functions import addmm, log_softmax, mm, softmax, sum

__all__ = ["addmm", "log_softmax", "mm", "softmax", "sum"]
