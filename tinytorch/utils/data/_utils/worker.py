"""What runs in a worker process, and what it tells the loader."""

from __future__ import annotations

import functools
import multiprocessing
import os
import random
import sys
import threading
import time
import traceback
from dataclasses import dataclass

import numpy as np

from ....backends.cpu import set_num_threads
from ....generator import Generator, manual_seed
from ..graph_settings import DataPipe, apply_random_seed, apply_sharding
from . import blocks
from . import channel as _channel

_worker_info = None


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker knows of itself."""

    id: int
    num_workers: int
    seed: int
    dataset: object
    rng: object = None
    worker_method: str | None = "multiprocessing"


def get_worker_info() -> WorkerInfo | None:
    """In a worker process, which one it is: ``id``, ``num_workers``, ``seed``, and its copy of the ``dataset``; None
    elsewhere. Follows ``torch.utils.data.get_worker_info``."""
    return _worker_info


class KeyErrorMessage(str):
    """A text that shows itself as it is: a KeyError shows its argument's repr."""

    __slots__ = ()

    def __repr__(self):
        return str(self)


class ExceptionWrapper:
    """An exception, the present one unless given, on its way to another process or thread. Follows
    ``torch._utils.ExceptionWrapper``."""

    def __init__(self, exc_info=None, where: str = "in background"):
        kind, *_ = exc_info = exc_info or sys.exc_info()
        self.exc_type, self.where = kind, where
        self.exc_msg = "".join(traceback.format_exception(*exc_info))

    def reraise(self) -> None:
        """Raises it: of the same type where that can be made from a text, with the traceback in the text."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            text = KeyErrorMessage(text)
        try:
            named = getattr(self.exc_type, "message", None)
            exception = self.exc_type(message=text) if named else self.exc_type(text)
        except Exception:
            raise RuntimeError(text) from None
        try:
            raise exception
        finally:
            del exception  # else its traceback would hold it, and the loader, until the garbage collector comes


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """What a worker sends when its share of an iterable dataset is exhausted."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """What a worker is sent when another epoch begins: the seed that all share, for an IterDataPipe."""

    shared_seed: int | None


def _seed(base_seed: int, worker_id: int) -> int:
    """Seeds Python's, NumPy's and our generators; returns the worker's seed."""
    seed = base_seed + worker_id
    random.seed(seed)
    manual_seed(seed)
    mixed = np.random.SeedSequence([worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0])
    np.random.seed(mixed.generate_state(4))
    return seed


def seed_pipe(dataset, shared_seed: int | None) -> None:
    """Seeds the shufflers of an IterDataPipe for an epoch; None: it is no such pipe."""
    if shared_seed is not None:
        apply_random_seed(dataset, Generator().manual_seed(shared_seed))


def _worker_loop(sock, dataset, make_fetcher, seeds: tuple, init_fn, worker_id: int, num_workers: int) -> None:
    """The life of a worker: makes batches until the stream of tasks ends. A task is (number, what the sampler gave), a
    result (number, data)."""
    for end in list(_channel.ends):
        end.close()
    parent, loader = os.getppid(), multiprocessing.parent_process()
    channel = _channel.Channel(sock, lambda: os.getppid() == parent and loader.is_alive())
    threading.Thread(target=_end_with_the_loader, args=(channel,), daemon=True).start()
    blocks.outgoing = channel.outgoing
    where = f"in DataLoader worker process {worker_id}"
    try:
        set_num_threads(1)
        global _worker_info
        base_seed, shared_seed = seeds
        _worker_info = WorkerInfo(worker_id, num_workers, _seed(base_seed, worker_id), dataset)
        fetcher = _made(make_fetcher, where, shared_seed, functools.partial(_prepare, init_fn))
        ended = False
        while True:
            task = channel.receive_task()
            if isinstance(task, _ResumeIteration):
                fetcher, ended = _made(make_fetcher, where, task.shared_seed), False
                continue
            if ended:
                continue
            number, index = task
            if isinstance(fetcher, ExceptionWrapper):
                made = fetcher
            else:
                try:
                    made = fetcher.fetch(index)
                except StopIteration:
                    ended = fetcher.is_iterable
                    made = _IterableDatasetStopIteration(worker_id) if ended else ExceptionWrapper(where=where)
                except Exception:
                    made = ExceptionWrapper(where=where)
            _answer(channel, number, made, where)
            del made, task, index  # a batch is the loader's alone
    except (_channel.Gone, KeyboardInterrupt):  # the loader needs no more, or has Ctrl-C itself
        channel.close()


def _end_with_the_loader(channel) -> None:
    """Ends the process, whatever it is at, once the loader's is gone."""
    channel.wait_for_the_end()
    while channel.alive():  # the stream has ended: the process is about to, or the loader's
        time.sleep(0.2)
    os._exit(1)


def _prepare(init_fn) -> None:
    """What a worker does once: tells a pipe's sharding filters its share, and calls ``worker_init_fn``."""
    info = _worker_info
    if isinstance(info.dataset, DataPipe):
        apply_sharding(info.dataset, info.num_workers, info.id)
    if init_fn is not None:
        init_fn(info.id)


def _made(make_fetcher, where: str, shared_seed: int | None, prepare=None):
    """What makes the batches; the exception on the way to it, which is then told in their place."""
    try:
        seed_pipe(_worker_info.dataset, shared_seed)
        if prepare is not None:
            prepare()
        return make_fetcher()
    except Exception:
        return ExceptionWrapper(where=where)


def _answer(channel, number: int, made, where: str) -> None:
    """Sends a result: in its place the exception that it cannot be sent, and of that its text if need be."""
    try:
        channel.send((number, made))
    except (_channel.Gone, KeyboardInterrupt):
        raise
    except Exception:  # it cannot be pickled, or there is no shared memory for it
        if not isinstance(made, ExceptionWrapper):
            _answer(channel, number, ExceptionWrapper(where=where), where)
        elif made.exc_type is not RuntimeError:
            made.exc_type = RuntimeError
            _answer(channel, number, made, where)
        else:
            raise
