"""Datasets made of datasets, each step a method of the last. Follows what public programs use of
``torch.utils.data.datapipes``: the base classes, and all steps but those that decode files."""

from . import iter, map
from .datapipe import DataChunk, IterDataPipe, MapDataPipe, functional_datapipe

__all__ = ["DataChunk", "IterDataPipe", "MapDataPipe", "functional_datapipe", "iter", "map"]
