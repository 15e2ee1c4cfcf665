"""Processes that run one function, each with its number."""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import signal
import sys
import traceback


class ProcessException(Exception):
    """A process that ``start_processes`` has started failed: its number and its pid."""

    def __init__(self, msg: str, error_index: int, pid: int):
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid, self.pid = msg, error_index, pid, pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """It raised an exception, whose traceback is the message."""


class ProcessExitedException(ProcessException):
    """It ended with an exit code that is not 0, or by a signal."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn, i: int, args: tuple, errors) -> None:
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent has it too
    except Exception:
        errors.send_bytes(pickle.dumps(traceback.format_exc()))
        sys.exit(1)


class ProcessContext:
    """Processes that run, and their failures. ``SpawnContext`` is its name in old programs."""

    def __init__(self, processes: list, errors: list):
        self.processes, self.errors = processes, errors
        self.sentinels = {p.sentinel: i for i, p in enumerate(processes)}

    def pids(self) -> list[int]:
        """Their numbers in the system."""
        return [p.pid for p in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits until one has ended, for ``timeout`` seconds at most. True when all have, without failure; False while
        some run. When one failed the others are ended, and ProcessRaisedException or ProcessExitedException is
        raised."""
        from multiprocessing.connection import wait  # when used: a start of Python does not wait for it

        ended = wait(self.sentinels, timeout=timeout) if self.sentinels else []
        failed = None
        for sentinel in ended:
            i = self.sentinels.pop(sentinel)
            self.processes[i].join()
            if self.processes[i].exitcode:
                failed = i
                break
        if failed is None:
            return not self.sentinels
        for p in self.processes:
            if p.is_alive() and grace_period is None:
                p.terminate()
            p.join(grace_period)
            if p.is_alive():
                p.kill()
                p.join()
        raise self._failure(failed)

    def _failure(self, i: int) -> ProcessException:
        process = self.processes[i]
        with contextlib.suppress(EOFError):  # it said nothing
            text = pickle.loads(self.errors[i].recv_bytes())
            return ProcessRaisedException(
                f"\n\n-- Process {i} terminated with the following error:\n{text}", i, process.pid
            )
        status = process.exitcode
        if status < 0:
            name = signal.Signals(-status).name
            return ProcessExitedException(f"process {i} terminated with signal {name}", i, process.pid, status, name)
        return ProcessExitedException(f"process {i} terminated with exit code {status}", i, process.pid, status)


SpawnContext = ProcessContext


def start_processes(
    fn, args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn"
) -> ProcessContext | None:
    """Calls ``fn(i, *args)`` in ``nprocs`` processes, i being 0, 1, ...; waits for all of them, or (not ``join``)
    returns their ProcessContext. ProcessRaisedException or ProcessExitedException when one fails. Follows
    ``torch.multiprocessing.start_processes``."""
    context = multiprocessing.get_context(start_method)
    processes, errors = [], []
    for i in range(nprocs):
        receive, send = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, i, args, send), daemon=daemon)
        process.start()
        send.close()
        processes.append(process)
        errors.append(receive)
    started = ProcessContext(processes, errors)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(fn, args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn"):
    """``start_processes``, which spawns them. Follows ``torch.multiprocessing.spawn``."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
