"""How a batch is made from what a sampler gives: in the main process, or in a worker."""

from __future__ import annotations

import itertools

from ....ops.create import as_tensor, tensor
from ....tensor import Tensor
from ..dataset import Subset, TensorDataset
from .blocks import empty_for_loader
from .collate import collate_tensor_fn, default_collate, default_collate_fn_map


class _BaseDatasetFetcher:
    """``fetch`` makes what the loader gives of one item of its sampler."""

    is_iterable = False

    def __init__(self, dataset, auto_collation: bool, collate_fn, drop_last: bool):
        self.dataset, self.auto_collation = dataset, auto_collation
        self.collate_fn, self.drop_last = collate_fn, drop_last

    def fetch(self, possibly_batched_index):
        raise NotImplementedError


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """The next samples, as many as the sampler gives numbers. StopIteration when there are none left."""

    is_iterable = True

    def __init__(self, dataset, auto_collation: bool, collate_fn, drop_last: bool):
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, possibly_batched_index):
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        wanted = len(possibly_batched_index)
        samples = list(itertools.islice(self.dataset_iter, wanted))
        self.ended = len(samples) < wanted
        if not samples or (self.ended and self.drop_last):
            raise StopIteration
        return self.collate_fn(samples)


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """The samples of these numbers: all at once from a dataset that has ``__getitems__``."""

    def fetch(self, possibly_batched_index):
        if not self.auto_collation:
            return self.collate_fn(self.dataset[possibly_batched_index])
        get_many = getattr(self.dataset, "__getitems__", None)
        if get_many:
            return self.collate_fn(get_many(possibly_batched_index))
        return self.collate_fn([self.dataset[i] for i in possibly_batched_index])


class TableFetcher(_BaseDatasetFetcher):
    """Batches of a table: one indexing a tensor, without samples in between. They are what `_MapDatasetFetcher` and
    ``default_collate`` would make."""

    def __init__(self, table: tuple):
        self.tensors, rows = table
        self.rows = None if rows is None else as_tensor(rows)

    def fetch(self, possibly_batched_index):
        index = possibly_batched_index
        if isinstance(index, slice):
            if self.rows is None:
                return [t[index].clone() for t in self.tensors]
        elif not isinstance(index, Tensor):
            index = tensor(index)
        if self.rows is not None:
            index = self.rows[index]
        return [rows_at(t, index) for t in self.tensors]


def rows_at(t: Tensor, index: Tensor) -> Tensor:
    """These rows: in a worker, in a block."""
    out = empty_for_loader(t.dtype, (len(index), *t.shape[1:]))
    if out is None or (index < 0).any():
        return t[index]
    return t.index_select(0, index, out=out)


def table_of(dataset, auto_collation: bool, collate_fn) -> tuple | None:
    """The tensors whose rows are the samples, and which rows (None: all); None for other datasets."""
    rows = None
    if not auto_collation or collate_fn is not default_collate:
        return None
    if default_collate_fn_map.get(Tensor) is not collate_tensor_fn:
        return None
    if type(dataset) is Subset:
        dataset, rows = dataset.dataset, dataset.indices
    if type(dataset) is not TensorDataset or not all(plain(t) for t in dataset.tensors):
        return None
    return dataset.tensors, rows


def plain(t: Tensor) -> bool:
    """Do rows of ``t`` need nothing but a copy?"""
    return type(t) is Tensor and not t.requires_grad and not t.is_sparse and not t.is_cuda


class _DatasetKind:
    """Two kinds of datasets. Follows ``torch.utils.data._DatasetKind``."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind: int, dataset, auto_collation: bool, collate_fn, drop_last: bool) -> _BaseDatasetFetcher:
        """How this dataset's batches are made."""
        if kind == _DatasetKind.Iterable:
            return _IterableDatasetFetcher(dataset, auto_collation, collate_fn, drop_last)
        table = table_of(dataset, auto_collation, collate_fn)
        if table is not None:
            return TableFetcher(table)
        return _MapDatasetFetcher(dataset, auto_collation, collate_fn, drop_last)
