"""Measuring: how the sides take turns, so that a ratio means something on a machine that is never quiet.

Both ways give every side the same share of every stretch of time, and take medians:

- `together`, for work of a single thread or of a GPU: all sides in one process, in many short rounds.
- `apart`, for threaded work: a process for each side, because the worker threads of one library go on
  spinning after its work is done, and would slow the next one. Where only a first call counts, each is made
  in a process of its own.

The loop and the call around the work cost every side some 0.03 µs, which is left in.
"""

import gc
import multiprocessing
import os
import signal
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter

#: Seconds that one batch of calls should fill: far above the clock's resolution, and still a short round.
BATCH = 0.002
#: Seconds that a process measures before the next one has its turn.
TURN = 0.1
#: Where libraries are told to keep what they compile: empty for a first call.
CACHES = ("TMPDIR", "TINYTORCH_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")


@dataclass
class Measured:
    """Seconds per call for the sides that ran a row, an error's text for those that did not."""

    seconds: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


class Stopwatch:
    """A prepared row of one side, with the number of calls that fill a batch."""

    def __init__(self, row, side, threads):
        self.call = row.prepare(side, threads)
        self.wait = row.waiter(side)
        self.self_timed, self.first = row.self_timed, row.first
        self.count = 1
        if not (self.self_timed or self.first):
            self.call()  # the first call of a library pays for much that later calls find ready
            while (took := min(self.batch(), self.batch()) * self.count) < row.batch / 2:
                self.count *= 2
            self.count = max(1, round(self.count * row.batch / took))

    def batch(self):
        """Run one batch; return the seconds of one call."""
        if self.self_timed:
            return self.call()
        call = self.call
        start = perf_counter()
        for _ in range(self.count):
            call()
        if self.wait is not None:
            self.wait()
        return (perf_counter() - start) / self.count

    def turn(self):
        """Run batches for `TURN` seconds; return the median seconds of a call. A first call is only one."""
        if self.first:
            return self.batch()
        end = perf_counter() + TURN
        times = [self.batch()]
        while perf_counter() < end:
            times.append(self.batch())
        return median(times)


def _describe(error):
    return f"{type(error).__name__}: {error}"


def _hide_the_past_from_gc():
    """Take everything that exists out of the garbage collector's sight.

    The collector stays on, since a library that makes garbage should pay for it; but no side should pay for
    walking through the modules of the others.
    """
    gc.collect()
    gc.freeze()


def together(row, sides, rounds):
    """Measure a row on one thread, all sides in this process, a batch each in turn. A side that fails is out."""
    result, watches = Measured(), {}
    for side in sides:
        try:
            watches[side] = Stopwatch(row, side, threads=1)
        except Exception as error:  # a missing operation is a line in the table, not the end of it
            result.errors[side] = _describe(error)
    _hide_the_past_from_gc()
    times = {side: [] for side in watches}
    order = list(watches)
    for _ in range(rounds):
        for side in order:
            try:
                times[side].append(watches[side].batch())
            except Exception as error:
                result.errors[side] = _describe(error)
        order = [side for side in order[1:] + order[:1] if side not in result.errors]  # no side always goes first
    result.seconds = {side: median(times[side]) for side in order}
    return result


class Worker:
    """A process that holds one side of one row, and is frozen whenever it is not its turn.

    It is forked from a parent that has imported no library and has no threads, so it starts clean, and needs
    nothing pickled. A stopped process cannot spin, whatever its library does with idle threads.
    """

    def __init__(self, row, side, threads, caches=None):
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, row, side, threads, caches), daemon=not row.forks)
        self.process.start()
        theirs.close()  # or the end of the process would not be seen as the end of the pipe
        self.times, self.error = [], None
        found = self._listen()  # until it is prepared and calibrated
        row.first_results[:] = row.first_results or found

    def turn(self):
        """Let the process measure for a while, unless it has failed."""
        if self.error is None:
            os.kill(self.process.pid, signal.SIGCONT)
            with suppress(ConnectionError):  # a process killed meanwhile shows when it does not answer
                self.pipe.send("turn")
            self.times += self._listen()

    def _listen(self):
        try:
            times, self.error = self.pipe.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            times, self.error = [], f"the process ended with exit code {self.process.exitcode}"
        if self.error is None:
            os.kill(self.process.pid, signal.SIGSTOP)
        return times

    def close(self):
        self.process.kill()  # a stopped process would not see anything milder
        self.process.join()


def _serve(pipe, row, side, threads, caches):
    """The life of a worker: prepare, then measure whenever asked."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's to handle
    if caches is not None:
        os.environ.update(dict.fromkeys(CACHES, caches))
    try:
        watch = Stopwatch(row, side, threads)
        _hide_the_past_from_gc()
        pipe.send((row.first_results, None))
        while pipe.recv() == "turn":
            pipe.send(([watch.turn()], None))
    except Exception as error:
        pipe.send(([], _describe(error)))


def apart(row, sides, rounds):
    """Measure a row with all cores, a process for each side, the others frozen meanwhile."""
    threads = len(os.sched_getaffinity(0))
    if row.first:
        return _first_calls(row, sides, rounds, threads)
    workers = {}
    try:
        for side in sides:
            workers[side] = Worker(row, side, threads)
        for _ in range(rounds):
            for worker in workers.values():
                worker.turn()
    finally:
        for worker in workers.values():
            worker.close()
    return Measured(
        seconds={side: median(worker.times) for side, worker in workers.items() if worker.error is None},
        errors={side: worker.error for side, worker in workers.items() if worker.error is not None},
    )


def _first_calls(row, sides, rounds, threads):
    """Measure first calls: a new process for each, which finds its caches empty."""
    result, times = Measured(), {side: [] for side in sides}
    for _ in range(rounds):
        for side in sides:
            if side in result.errors:
                continue
            # A library may still be writing there when its process has ended.
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as caches:
                worker = Worker(row, side, threads, caches)
                try:
                    worker.turn()
                finally:
                    worker.close()
            times[side] += worker.times
            if worker.error is not None:
                result.errors[side] = worker.error
    result.seconds = {side: median(values) for side, values in times.items() if side not in result.errors}
    return result
