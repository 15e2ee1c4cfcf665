"""An epoch of a loader: the iterators of DataLoader, in one process and with workers."""

from __future__ import annotations

import functools
import importlib
import itertools
import os
import select
import signal
import socket
import time
import warnings
import weakref
from pickle import PicklingError

from .... import multiprocessing
from ....backends.cuda.runtime import device_count
from ....ops.join import cat
from ..graph_settings import DataPipe, seed_from
from ..sampler import BatchSampler, RandomSampler, SequentialSampler
from . import channel as _channel
from .channel import Channel, Gone
from .fetch import TableFetcher, _DatasetKind
from .pin_memory import pin_memory, pinned_or_failure
from .worker import ExceptionWrapper, _IterableDatasetStopIteration, _ResumeIteration, _worker_loop, seed_pipe

_GRACE = 5.0  # seconds in which workers end by themselves
_LOOK = 0.5  # seconds after which one who waits looks whether the workers are there


class _BaseDataLoaderIter:
    """The batches of one epoch. Its ``__next__`` is what a profiler tells of."""

    def __init__(self, loader):
        self._dataset, self._dataset_kind = loader.dataset, loader._dataset_kind
        self._auto_collation, self._drop_last = loader._auto_collation, loader.drop_last
        self._index_sampler, self._collate_fn = loader._index_sampler, loader.collate_fn
        self._num_workers, self._timeout = loader.num_workers, loader.timeout
        self._persistent_workers = loader.persistent_workers
        if loader.pin_memory and loader.pin_memory_device:
            warnings.warn(
                "pin_memory_device is deprecated, the current accelerator will be used as the device,"
                f"ignore pin_memory_device='{loader.pin_memory_device}'.",
                stacklevel=4,
            )
        self._pin_memory = bool(loader.pin_memory and device_count())
        if loader.pin_memory and not self._pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
                "used.",
                stacklevel=4,
            )
        self._make_fetcher = functools.partial(
            _DatasetKind.create_fetcher,
            self._dataset_kind,
            self._dataset,
            self._auto_collation,
            self._collate_fn,
            self._drop_last,
        )
        self._sampler_iter = iter(self._index_sampler)
        self._draw_shared_seed(loader)
        self._base_seed = seed_from(loader.generator)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def _draw_shared_seed(self, loader) -> None:
        """Draws what seeds an IterDataPipe's shufflers: all workers shuffle alike, and each takes its share of that."""
        pipe = self._dataset_kind == _DatasetKind.Iterable and isinstance(self._dataset, DataPipe)
        self._shared_seed = seed_from(loader.generator) if pipe else None

    def _reset(self, loader, first_iter: bool = False) -> None:
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def __iter__(self):
        return self

    def _next_data(self):
        raise NotImplementedError

    def __next__(self):
        data = self._next_data()
        self._num_yielded += 1
        told = self._IterableDataset_len_called
        if told is not None and self._dataset_kind == _DatasetKind.Iterable and self._num_yielded > told:
            self._warn_of_length(told)
        return data

    def _warn_of_length(self, told: int) -> None:
        text = (
            f"Length of IterableDataset {self._dataset} was reported to be {told}(when accessing len(dataloader)), but "
            f"{self._num_yielded} samples have been fetched. "
        )
        if self._num_workers:
            text += (
                "For multiprocessing data-loading, this could be caused by not properly configuring the "
                "IterableDataset replica at each worker: see utils.data.get_worker_info."
            )
        warnings.warn(text, stacklevel=3)

    def __len__(self):
        return len(self._index_sampler)

    def __getstate__(self):
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Batches made here."""

    def __init__(self, loader):
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        seed_pipe(self._dataset, self._shared_seed)
        self._dataset_fetcher = self._make_fetcher()

    @functools.cached_property
    def _next_data(self):
        """What makes the next batch."""
        fetcher = self._dataset_fetcher
        source = rows_of(self._index_sampler) if type(fetcher) is TableFetcher else None
        batches = map(fetcher.fetch, self._sampler_iter if source is None else source)
        return (map(pin_memory, batches) if self._pin_memory else batches).__next__


def rows_of(sampler):
    """The batches of a BatchSampler as slices, or as tensors of numbers, where it gives such; None where not."""
    if type(sampler) is not BatchSampler:
        return None
    size, drop_last = sampler.batch_size, sampler.drop_last
    if type(sampler.sampler) is RandomSampler:
        return in_batches(sampler.sampler.pieces(), size, drop_last)
    if type(sampler.sampler) is SequentialSampler:
        n = len(sampler.sampler)
        return (slice(k, min(k + size, n)) for k in range(0, n - n % size if drop_last else n, size))
    return None


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


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Batches made by worker processes, each of which is given tasks in turn and has a stream of its own
    (channel.py), Note [Batches from workers]. A stream ends with the process at its other end, and so do workers
    with the loader; what the streams do not tell, for somebody else holds them open, is looked for now and then."""

    def __init__(self, loader):
        super().__init__(loader)
        if loader.prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        self._prefetch_factor, self._in_order = loader.prefetch_factor, loader.in_order
        self._workers, self._channels, self._shutdown = [], [], False
        pinning, self._pinning, self._pinned_later = [], None, ()
        if self._pin_memory:  # only then worth the milliseconds that its import takes
            futures = importlib.import_module("concurrent.futures")
            self._pinning, self._pinned_later = futures.ThreadPoolExecutor(1, "pin_memory"), futures.Future
            pinning.append(self._pinning)
        self._finalizer = weakref.finalize(self, _end, os.getpid(), self._channels, self._workers, pinning)
        self._poll = select.poll()
        self._by_descriptor = {}
        context = loader.multiprocessing_context or multiprocessing.get_context()
        try:
            for i in range(self._num_workers):
                self._start(context, i, loader.worker_init_fn)
        except BaseException:
            self._shutdown_workers()
            raise
        self._send_idx = 0  # the next task's number
        self._reset(loader, first_iter=True)

    def _start(self, context, i: int, init_fn) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            seeds = self._base_seed, self._shared_seed
            args = (theirs, self._dataset, self._make_fetcher, seeds, init_fn, i, self._num_workers)
            process = context.Process(target=_worker_loop, args=args, daemon=True)
            channel = Channel(ours, process.is_alive)
            self._channels.append(channel)
            _channel.ends.add(channel)
            try:
                process.start()
            except (TypeError, AttributeError, PicklingError):
                warnings.warn(
                    "Got pickle error when attempting to start a worker Process. This might be because the worker "
                    "Process arguments are not picklable. Python 3.14+ changed the multiprocessing start method in "
                    "non-Mac POSIX platforms to 'forkserver', which requires the worker Process arguments to be "
                    "picklable. You can also try multiprocessing.set_start_method('fork').",
                    stacklevel=6,
                )
                raise
        self._workers.append(process)
        self._by_descriptor[channel.fileno()] = i
        self._poll.register(channel, select.POLLIN)

    def _reset(self, loader, first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        self._first_idx = self._send_idx  # results of lower numbers are those of an epoch that was left
        self._tasks: dict[int, int] = {}  # what is awaited: the worker by the task's number
        self._results: dict[int, object] = {}  # what has come
        self._active = [True] * self._num_workers  # has it anything left of an iterable dataset?
        self._num_tasks = [0] * self._num_workers
        self._turns = itertools.cycle(range(self._num_workers))
        if not first_iter:
            self._draw_shared_seed(loader)
            for i in range(self._num_workers):
                self._post(i, _ResumeIteration(self._shared_seed))
        for _ in range(self._prefetch_factor * self._num_workers):
            self._try_put_index()

    def _try_put_index(self) -> None:
        """Gives the next task to the worker whose turn it is."""
        active = sum(self._active)
        if not active:
            return
        most = self._prefetch_factor * self._num_workers // active
        for i in itertools.islice(self._turns, self._num_workers):
            if self._active[i] and (self._in_order or self._num_tasks[i] < most):
                break
        else:
            return
        try:
            index = next(self._sampler_iter)
        except StopIteration:
            return
        self._tasks[self._send_idx] = i
        self._num_tasks[i] += 1
        self._post(i, (self._send_idx, index))
        self._send_idx += 1

    def _post(self, i: int, message) -> None:
        channel = self._channels[i]
        channel.post(message)
        self._watch(channel)

    def _watch(self, channel: Channel) -> None:
        self._poll.modify(channel, select.POLLIN | (select.POLLOUT if channel.left else 0))

    def _next_data(self):
        if self._shutdown:
            raise StopIteration
        try:
            return self._next_batch()
        except KeyboardInterrupt:  # perhaps amid a message
            self._shutdown_workers()
            raise

    def _next_batch(self):
        self._take_what_has_come(0)
        deadline = time.monotonic() + self._timeout if self._timeout else None
        while self._tasks:
            number = next(iter(self._tasks)) if self._in_order else next(iter(self._results), None)
            if number in self._results:
                return self._process_data(number)
            wait = _LOOK if deadline is None else min(_LOOK, max(0, deadline - time.monotonic()))
            if not self._take_what_has_come(wait):
                for i, process in enumerate(self._workers):
                    if not process.is_alive():
                        self._died(i)
                if deadline is not None and time.monotonic() >= deadline:
                    raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        if not self._persistent_workers:
            self._shutdown_workers()
        raise StopIteration

    def _process_data(self, number: int):
        data = self._results.pop(number)
        self._num_tasks[self._tasks.pop(number)] -= 1
        self._try_put_index()
        if isinstance(data, self._pinned_later):
            data = data.result()
        if isinstance(data, ExceptionWrapper):
            data.reraise()
        return data

    def _take_what_has_come(self, wait: float) -> bool:
        """Looks at all streams, for ``wait`` seconds at most; was there anything?"""
        events = self._poll.poll(wait * 1000)
        for fd, event in events:
            i = self._by_descriptor[fd]
            channel = self._channels[i]
            if event & select.POLLOUT:
                channel.flush()
                self._watch(channel)
            if event & ~select.POLLOUT:
                try:
                    number, data = channel.receive_batch()
                except Gone:
                    self._died(i)
                self._keep(i, number, data)
        return bool(events)

    def _keep(self, i: int, number: int, data) -> None:
        """Takes a result of worker ``i``."""
        if number < self._first_idx:
            return
        if isinstance(data, _IterableDatasetStopIteration):
            self._active[i] = False
            for other in [n for n, worker in self._tasks.items() if worker == i and n not in self._results]:
                del self._tasks[other]
            self._num_tasks[i] = 0
            self._try_put_index()
        elif self._pinning is None:
            self._results[number] = data
        else:
            self._results[number] = self._pinning.submit(pinned_or_failure, data)

    def _died(self, i: int) -> None:
        """Raises what is to be said of a dead worker; ends the others."""
        process = self._workers[i]
        process.join(_GRACE)
        self._shutdown_workers()
        status = process.exitcode
        if status is not None and status < 0:
            raise RuntimeError(
                f"DataLoader worker (pid {process.pid}) is killed by signal: {signal.strsignal(-status)}. "
            )
        raise RuntimeError(
            f"DataLoader worker (pid {process.pid}) exited unexpectedly with exit code {status}. Details are lost due "
            "to multiprocessing. Rerunning with num_workers=0 may give better error trace."
        )

    def _shutdown_workers(self) -> None:
        """Ends the workers, and with them this epoch."""
        self._shutdown = True
        self._tasks, self._results = {}, {}
        self._finalizer()


def _end(pid: int, channels: list[Channel], workers: list, pinning: list) -> None:
    """Ends workers: their streams first, then those that are still there."""
    if os.getpid() != pid:  # a forked child has the iterator too
        return
    for channel in channels:
        channel.close()
    deadline = time.monotonic() + _GRACE
    for stop in (lambda process: None, lambda process: process.terminate(), lambda process: process.kill()):
        for process in workers:
            if process.is_alive():
                stop(process)
        for process in workers:
            process.join(max(0.0, deadline - time.monotonic()))
        deadline = time.monotonic() + 1.0
    for pool in pinning:
        pool.shutdown(cancel_futures=True)
