"""Datasets, samplers, and DataLoader. Follows ``torch.utils.data``."""

import importlib

from .dataloader import DataLoader, _DatasetKind, default_collate, default_convert, get_worker_info
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataChunk",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterDataPipe",
    "IterableDataset",
    "MapDataPipe",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "_DatasetKind",
    "default_collate",
    "default_convert",
    "functional_datapipe",
    "get_worker_info",
    "random_split",
]

_PIPES = "DataChunk", "IterDataPipe", "MapDataPipe", "functional_datapipe"


def __getattr__(name: str):
    """Pipes are imported when they are first asked for: most programs do without."""
    if name == "datapipes":
        return importlib.import_module(".datapipes", __name__)
    if name in _PIPES:
        return getattr(importlib.import_module(".datapipes", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
