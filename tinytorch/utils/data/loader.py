"""DataLoader: batches of a dataset, epoch after epoch."""

from __future__ import annotations

import functools
import itertools

from ...backends.cuda.runtime import device_count
from ...ops.create import as_tensor, tensor
from ...ops.join import cat
from ...ops.random import randint
from ...tensor import Tensor
from .collate import default_collate, default_convert, pin
from .dataset import IterableDataset, Subset, TensorDataset
from .sampler import BatchSampler, RandomSampler, SequentialSampler, check_positive
from .workers import Workers


class DataLoader:
    """Iterates over a dataset in batches. Follows ``torch.utils.data.DataLoader``. ``pin_memory`` puts batches into
    page-locked memory, where there is a CUDA device; ``pin_memory_device`` and ``persistent_workers`` are accepted and
    make no difference. ``num_workers`` above 0 makes batches in other processes, ahead of time. The rows of a
    TensorDataset, or of a Subset of one, are taken a batch at a time."""

    def __init__(
        self,
        dataset,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler=None,
        batch_sampler=None,
        num_workers: int = 0,
        collate_fn=None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ):
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing. let num_workers > 0 "
                "to enable multiprocessing, otherwise set prefetch_factor to None."
            )
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        iterable = isinstance(dataset, IterableDataset)
        if iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError(
                "DataLoader with IterableDataset: expected unspecified shuffle, sampler and batch_sampler "
                f"options, but got shuffle={shuffle}, sampler={sampler}, batch_sampler={batch_sampler}"
            )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None:
            if drop_last:
                raise ValueError(
                    "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
                )
        else:
            check_positive("batch_size", batch_size)
        if sampler is None and not iterable:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        self.plain = batch_sampler is None  # batches are stretches of the sampler's order
        if batch_size is not None and batch_sampler is None and not iterable:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.sampler, self.batch_sampler, self.generator = sampler, batch_sampler, generator
        self.batched = batch_sampler is not None or (iterable and batch_size is not None)
        self.collate_fn = collate_fn or (default_collate if self.batched else default_convert)
        self.num_workers, self.prefetch_factor, self.timeout = num_workers, prefetch_factor, timeout
        self.worker_init_fn, self.multiprocessing_context = worker_init_fn, multiprocessing_context
        self.pin_memory, self.pin_memory_device, self.in_order = pin_memory, pin_memory_device, in_order
        self.persistent_workers = persistent_workers

    def __iter__(self):
        batches = self._batches()
        if self.pin_memory and device_count():
            batches = map(pin, batches)
        return (_MultiProcessingDataLoaderIter if self.num_workers else _SingleProcessDataLoaderIter)(batches)

    def _batches(self):
        if isinstance(self.dataset, IterableDataset):
            size, drop_last = self.batch_size, self.drop_last
            make_fetch = functools.partial(NextSamples, self.dataset, size, drop_last, self.collate_fn)
            if self.num_workers:
                return self._in_workers(itertools.repeat(0), make_fetch)
            return make_fetch()
        table = self._table()
        if table is not None and self.num_workers == 0:
            return self._rows(*table)
        source = self.batch_sampler if self.batched else self.sampler
        make_fetch = functools.partial(Fetch, self.dataset, self.collate_fn, self.batched)
        if self.num_workers:
            return self._in_workers(iter(source), make_fetch)
        return map(make_fetch(), source)

    def _in_workers(self, tasks, make_fetch):
        seed = randint(0, 2**62, (1,), generator=self.generator).item()
        return iter(Workers(self, tasks, make_fetch, seed))

    def _table(self):
        """The tensors whose rows are the samples, and which rows (None: all); None for other datasets."""
        dataset, rows = self.dataset, None
        if type(dataset) is Subset:
            dataset, rows = dataset.dataset, dataset.indices
        if type(dataset) is not TensorDataset or self.collate_fn is not default_collate or not self.batched:
            return None
        if any(t.requires_grad for t in dataset.tensors):
            return None
        return dataset.tensors, rows

    def _rows(self, tensors: tuple, rows):
        """Batches of rows: one indexing a tensor, with no sample in between."""
        rows = None if rows is None else as_tensor(rows)
        if not self.plain or type(self.sampler) not in (RandomSampler, SequentialSampler):
            for batch in self.batch_sampler:
                index = tensor(batch)
                yield take(tensors, index if rows is None else rows[index])
            return
        n, size = len(self.sampler), self.batch_size
        if type(self.sampler) is RandomSampler:
            for index in in_batches(self.sampler.pieces(), size, self.drop_last):
                yield take(tensors, index if rows is None else rows[index])
            return
        for begin in range(0, n - n % size if self.drop_last else n, size):
            end = min(begin + size, n)
            yield [t[begin:end].clone() for t in tensors] if rows is None else take(tensors, rows[begin:end])

    def __len__(self):
        if isinstance(self.dataset, IterableDataset):
            n = len(self.dataset)
            if self.batch_size is None:
                return n
            return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
        return len(self.batch_sampler if self.batched else self.sampler)


def in_batches(pieces, size: int, drop_last: bool):
    """What tensors hold, one after the other, as tensors of ``size``; a shorter one at the end unless
    ``drop_last``."""
    rest = None
    for piece in pieces:
        if rest is not None:
            piece = cat([rest, piece])
        whole = len(piece) - len(piece) % size
        for begin in range(0, whole, size):
            yield piece[begin : begin + size]
        rest = piece[whole:] if whole < len(piece) else None
    if rest is not None and not drop_last:
        yield rest


class Batches:
    """The batches of one iteration. Its ``__next__`` is what a profiler tells of."""

    def __init__(self, batches):
        self._next = batches.__next__

    def __iter__(self):
        return self

    def __next__(self):
        return self._next()


class _SingleProcessDataLoaderIter(Batches):
    """Batches made here. PyTorch's name, as a profile shows it."""


class _MultiProcessingDataLoaderIter(Batches):
    """Batches made by worker processes."""


def take(tensors: tuple, index: Tensor) -> list[Tensor]:
    """The rows ``index`` of each."""
    return [t[index] for t in tensors]


class Fetch:
    """Makes a batch from the numbers of its samples."""

    def __init__(self, dataset, collate_fn, batched: bool):
        self.dataset, self.collate_fn, self.batched = dataset, collate_fn, batched
        self.get_many = getattr(dataset, "__getitems__", None)

    def __call__(self, indices):
        dataset = self.dataset
        if not self.batched:
            samples = dataset[indices]
        elif self.get_many is not None:
            samples = self.get_many(indices)
        else:
            samples = [dataset[i] for i in indices]
        return self.collate_fn(samples)


class NextSamples:
    """Makes a batch from the next samples of an iterable dataset; StopIteration when there are none."""

    def __init__(self, dataset, size: int | None, drop_last: bool, collate_fn):
        self.samples, self.size, self.drop_last, self.collate_fn = iter(dataset), size, drop_last, collate_fn

    def __call__(self, _task=None):
        if self.size is None:
            return self.collate_fn(next(self.samples))
        batch = list(itertools.islice(self.samples, self.size))
        if not batch or (self.drop_last and len(batch) < self.size):
            raise StopIteration
        return self.collate_fn(batch)

    def __iter__(self):
        return self

    __next__ = __call__
