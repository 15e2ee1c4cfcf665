"""The sampler of one process among several that share a dataset."""

from __future__ import annotations

import math
import sys

from ...generator import Generator
from ...ops.random import randperm
from .sampler import Sampler

# Where groups of processes come from: whoever has one has imported it.
_DISTRIBUTED = "tinytorch.distributed", "tinytorch.as_torch.stand_ins.distributed"

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """Every ``num_replicas``-th number of a permutation, which is the same in all processes, from the ``rank``-th on.
    All have as many: the first numbers come again at the end, or with ``drop_last`` the last ones are left out.
    ``set_epoch`` makes it another permutation. Follows ``torch.utils.data.distributed.DistributedSampler``.

    Raises:
        ValueError: ``rank`` is not below ``num_replicas``
        RuntimeError: one of the two is not given, and there is no group of processes that could tell
    """

    def __init__(
        self,
        dataset,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ):
        if num_replicas is None or rank is None:
            group = next((sys.modules[name] for name in _DISTRIBUTED if name in sys.modules), None)
            if group is None or not group.is_available():
                raise RuntimeError("Requires distributed package to be available")
            num_replicas = group.get_world_size() if num_replicas is None else num_replicas
            rank = group.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0
        n = len(dataset)
        self.num_samples = n // num_replicas if drop_last else math.ceil(n / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self):
        n = len(self.dataset)
        if self.shuffle:
            indices = randperm(n, generator=Generator().manual_seed(self.seed + self.epoch)).tolist()
        else:
            indices = list(range(n))
        if self.total_size > n:
            indices = (indices * math.ceil(self.total_size / n))[: self.total_size] if n else []
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch, which together with ``seed`` makes the permutation."""
        self.epoch = epoch
