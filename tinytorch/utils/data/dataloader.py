"""DataLoader: batches of a dataset, epoch after epoch."""

from __future__ import annotations

import math
import os
import warnings
from multiprocessing.context import BaseContext

from ... import multiprocessing
from ._utils.collate import default_collate, default_convert
from ._utils.fetch import _DatasetKind
from ._utils.iterators import _BaseDataLoaderIter, _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter
from ._utils.worker import get_worker_info
from .dataset import IterableDataset
from .graph_settings import DataPipe, apply_shuffle_settings
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

_FIXED = frozenset({"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"})


class _InfiniteConstantSampler(Sampler):
    """None for ever: an iterable dataset's sampler."""

    def __iter__(self):
        while True:
            yield None


class DataLoader:
    """Iterates over a dataset in batches; ``num_workers`` above 0 makes them in other processes, ahead of time, and
    takes them out of shared memory without a copy. Follows ``torch.utils.data.DataLoader``.

    Args:
        dataset: samples by number, or an IterableDataset
        batch_size: samples in a batch; None: samples as they are
        shuffle: whether every epoch has an order of its own; of an IterDataPipe, whether its shufflers are switched on
        sampler: the numbers of the samples, in the place of ``shuffle``
        batch_sampler: lists of them, in the place of ``batch_size``, ``shuffle``, ``sampler`` and ``drop_last``
        num_workers: processes that make batches
        collate_fn: what makes a batch of a list of samples; ``default_collate`` unless given
        pin_memory: whether batches are put into page-locked memory, from which copies to a CUDA device need not be
            waited for; without a device a warning
        drop_last: whether a last, shorter batch is left out
        timeout: seconds that a batch of a worker may be waited for; 0: for ever
        worker_init_fn: called with its number in each worker, when that is seeded
        multiprocessing_context: how workers are started: a context, or ``"fork"``, ``"spawn"``, ``"forkserver"``
        generator: where the order and the workers' seeds are drawn from
        prefetch_factor: batches that each worker makes in advance, 2 unless given
        persistent_workers: whether workers, with their datasets, live as long as the loader
        pin_memory_device: ignored, with a warning
        in_order: whether batches come in the sampler's order, and not as soon as they are made

    Raises:
        ValueError: options that exclude one another
        RuntimeError: while iterating: a worker has died, or ``timeout`` has passed

    An exception in a worker is raised, with its traceback in the text, when its batch's turn has come.
    """

    dataset: object
    batch_size: int | None
    num_workers: int
    pin_memory: bool
    drop_last: bool
    timeout: float
    sampler: object
    pin_memory_device: str
    prefetch_factor: int | None
    _iterator: _BaseDataLoaderIter | None
    __initialized = False

    def __class_getitem__(cls, item):
        return cls

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
                "prefetch_factor option could only be specified in multiprocessing."
                "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
            )
        if num_workers > 0 and prefetch_factor is None:
            prefetch_factor = 2
        elif prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        self.dataset, self.num_workers, self.prefetch_factor = dataset, num_workers, prefetch_factor
        self.pin_memory, self.pin_memory_device, self.timeout = pin_memory, pin_memory_device, timeout
        self.worker_init_fn, self.in_order = worker_init_fn, in_order
        self.multiprocessing_context = multiprocessing_context
        if isinstance(dataset, IterableDataset):
            self._dataset_kind = _DatasetKind.Iterable
            if isinstance(dataset, DataPipe):
                self.dataset, shuffle = apply_shuffle_settings(dataset, shuffle), None
            given = [("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)]
            for name, value in given:
                if value is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
                    )
        else:
            self._dataset_kind = _DatasetKind.Map
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last = batch_size, drop_last
        self.sampler, self.batch_sampler, self.generator = sampler, batch_sampler, generator
        self.collate_fn = collate_fn or (default_collate if self._auto_collation else default_convert)
        self.persistent_workers = persistent_workers
        self.__initialized = True
        self._IterableDataset_len_called = None  # what len() said
        self._iterator = None
        self.check_worker_number_rationality()

    def __setattr__(self, name, value):
        if self.__initialized and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self):
        """How workers are started; None: as Python does. ValueError for an unknown name, or without workers; TypeError
        for what is no context."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context):
        if context is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    f"num_workers={self.num_workers}"
                )
            if isinstance(context, str):
                methods = multiprocessing.get_all_start_methods()
                if context not in methods:
                    raise ValueError(
                        f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
                        f"multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the start "
                    f"method, but got multiprocessing_context={context}"
                )
        self.__multiprocessing_context = context

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    def __iter__(self) -> _BaseDataLoaderIter:
        if not (self.persistent_workers and self.num_workers):
            return self._get_iterator()
        if self._iterator is None or self._iterator._shutdown:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def __len__(self):
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        n = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else math.ceil(n / self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warns of more workers than there are processors."""
        known = hasattr(os, "sched_getaffinity")
        most = len(os.sched_getaffinity(0)) if known else os.cpu_count()
        if self.num_workers and (most is None or self.num_workers > most):
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number "
                f"of worker in current system is {most}{'' if known else ' (`cpuset` is not taken into account)'}, "
                "which is smaller than what this DataLoader is going to create. Please be aware that excessive worker "
                "creation might get DataLoader running slow or even freeze, lower the worker number to avoid potential "
                "slowness/freeze if necessary.",
                stacklevel=2,
            )
