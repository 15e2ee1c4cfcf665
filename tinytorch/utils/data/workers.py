"""Worker processes of a DataLoader.

Each has a queue of tasks and a pipe for its results. Batch number i is made by worker i modulo their number, so the
order of batches does not depend on who is faster. No threads but the queues' own, and nothing shared but what the fork
copies: a batch's bytes go through the pipe, for a worker may be gone when they are taken."""

from __future__ import annotations

import multiprocessing
import pickle
import random
import traceback
from collections import deque
from typing import NamedTuple

from ...generator import manual_seed
from .dataset import IterableDataset

_info: list = [None]


class WorkerInfo(NamedTuple):
    """What a worker knows of itself."""

    id: int
    num_workers: int
    seed: int
    dataset: object


def get_worker_info() -> WorkerInfo | None:
    """In a worker process, which one it is; None elsewhere. Follows ``torch.utils.data.get_worker_info``."""
    return _info[0]


class Failure:
    """An exception in a worker, on its way to the main process."""

    def __init__(self, exc: BaseException, worker: int):
        self.kind = type(exc)
        self.text = (
            f"Caught {self.kind.__name__} in DataLoader worker process {worker}.\nOriginal {traceback.format_exc()}"
        )

    def exception(self) -> BaseException:
        """The exception to raise: of the same type where that can be made from a text."""
        try:
            return self.kind(self.text)
        except TypeError:
            return RuntimeError(self.text)


class End:
    """What a worker sends when its share of an iterable dataset is exhausted."""


def send(results, made) -> None:
    """Puts a result into a worker's pipe."""
    results.send_bytes(pickle.dumps(made, pickle.HIGHEST_PROTOCOL))


def work(tasks, results, info: WorkerInfo, make_fetch, init) -> None:
    """The life of a worker: makes batches until it is told None."""
    try:
        random.seed(info.seed)
        manual_seed(info.seed)
        _info[0] = info
        if init is not None:
            init(info.id)
        fetch = make_fetch()
    except Exception as exc:
        send(results, Failure(exc, info.id))
        return
    while (task := tasks.get()) is not None:
        try:
            made = fetch(task)
        except StopIteration:
            made = End()
        except Exception as exc:
            made = Failure(exc, info.id)
        try:
            send(results, made)
        except (BrokenPipeError, OSError):  # nobody listens any more
            return
        except Exception as exc:  # a batch that cannot be pickled
            send(results, Failure(exc, info.id))


class Workers:
    """The batches of one iteration, made by worker processes."""

    def __init__(self, loader, batches, make_fetch, seed: int):
        context = loader.multiprocessing_context or "fork"
        context = multiprocessing.get_context(context) if isinstance(context, str) else context
        self.batches, self.timeout = batches, loader.timeout
        self.iterable = isinstance(loader.dataset, IterableDataset)
        self.processes, self.tasks, self.results = [], [], []
        self.pending: deque[int] = deque()  # whose results are awaited, in order
        self.next_worker = 0
        self.active = set(range(loader.num_workers))
        for i in range(loader.num_workers):
            tasks = context.Queue()
            receive, send = context.Pipe(duplex=False)
            info = WorkerInfo(i, loader.num_workers, seed + i, loader.dataset)
            process = context.Process(
                target=work, args=(tasks, send, info, make_fetch, loader.worker_init_fn), daemon=True
            )
            process.start()
            send.close()  # so that a worker's death is seen as the end of its pipe
            self.processes.append(process)
            self.tasks.append(tasks)
            self.results.append(receive)
        for _ in range(loader.num_workers * (loader.prefetch_factor or 2)):
            self.hand_out()

    def hand_out(self) -> None:
        """Gives the next batch's numbers to the worker whose turn it is."""
        task = next(self.batches, None)
        if task is None:
            return
        while self.active:
            i, self.next_worker = self.next_worker, (self.next_worker + 1) % len(self.processes)
            if i in self.active:
                self.tasks[i].put(task)
                self.pending.append(i)
                return

    def __iter__(self):
        try:
            while self.pending:
                i = self.pending.popleft()
                made = self.receive(i)
                if isinstance(made, End):
                    self.active.discard(i)
                    self.hand_out()
                    continue
                self.hand_out()
                if isinstance(made, Failure):
                    raise made.exception()
                yield made
        finally:
            self.stop()

    def receive(self, i: int):
        """The next result of worker ``i``; RuntimeError if it has died or takes too long."""
        if self.timeout > 0 and not self.results[i].poll(self.timeout):
            raise RuntimeError(f"DataLoader timed out after {self.timeout} seconds")
        try:
            return pickle.loads(self.results[i].recv_bytes())
        except EOFError:
            pid = self.processes[i].pid
            raise RuntimeError(f"DataLoader worker (pid {pid}) exited unexpectedly") from None

    def stop(self) -> None:
        """Ends the workers."""
        for tasks in self.tasks:
            tasks.put(None)
            tasks.close()
        for receive in self.results:
            receive.close()
        for process in self.processes:
            process.join(0.2)
            if process.is_alive():
                process.terminate()
                process.join()
