"""Distances as modules."""

from __future__ import annotations

from ..tensor import Tensor
from . import functional as F
from .module import Module


class PairwiseDistance(Module):
    """The norm of the difference of vectors. Follows ``torch.nn.PairwiseDistance``."""

    def __init__(self, p=2.0, eps=1e-6, keepdim=False):
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between vectors. Follows ``torch.nn.CosineSimilarity``."""

    def __init__(self, dim=1, eps=1e-8):
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
