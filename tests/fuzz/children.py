"""Work in child processes, which may die of it: what was at work then is told apart from what came out of it."""

import contextlib
import faulthandler
import mmap
import os
import pickle
import resource
import signal
import struct
import time
import traceback

NONE = -1


class Child:
    """A forked process that does ``work(number, report)`` for each of ``numbers``. ``report(value)`` sends a value.
    ``limits``: of resources, by their names in lower case (as=2**30)."""

    def __init__(self, numbers, work, seconds=60.0, **limits):
        self.shared = mmap.mmap(-1, 16)  # the number at work; when it began
        self._mark(NONE)
        self.seconds = seconds
        read, write = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(write)
            self.pipe = os.fdopen(read, "rb")
            os.set_blocking(read, False)
            self.held, self.status, self.hung = b"", None, False
            return
        code = 1
        try:
            os.close(read)
            pipe = os.fdopen(write, "wb", buffering=0)
            faulthandler.disable()  # a death is told by its signal
            for name, most in {"core": 0, **limits}.items():
                resource.setrlimit(getattr(resource, f"RLIMIT_{name.upper()}"), (most, most))
            for number in numbers:
                self._mark(number)
                work(number, lambda value, number=number: _send(pipe, (number, value)))
            self._mark(NONE)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def _mark(self, number):
        self.shared[:] = struct.pack("qd", number, time.monotonic())

    @property
    def number(self):
        """What is at work, or was when the process died; NONE when all is done."""
        return struct.unpack("qd", self.shared[:])[0]

    def reports(self):
        """What has been reported since the last call, as (number, value); () while there is nothing."""
        with contextlib.suppress(BlockingIOError):
            while chunk := self.pipe.read(1 << 20):
                self.held += chunk
        while len(self.held) >= 8:
            (size,) = struct.unpack("q", self.held[:8])
            if len(self.held) < 8 + size:
                return
            message, self.held = self.held[8 : 8 + size], self.held[8 + size :]
            yield pickle.loads(message)

    def ended(self):
        """Has the process ended? One that works on one thing for too long is ended here."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = status
            elif time.monotonic() - struct.unpack("qd", self.shared[:])[1] > self.seconds:
                self.hung = True
                os.kill(self.pid, signal.SIGKILL)
                self.status = os.waitpid(self.pid, 0)[1]
        return self.status is not None

    def death(self):
        """What a process that has ended died of; "" if it did not."""
        if self.hung:
            return f"hangs for {self.seconds:g} seconds"
        if os.WIFSIGNALED(self.status):
            return signal.Signals(os.WTERMSIG(self.status)).name
        status = os.WEXITSTATUS(self.status)
        return f"exit status {status}" if status or self.number != NONE else ""


def _send(pipe, message):
    data = pickle.dumps(message)
    data = struct.pack("q", len(data)) + data
    while data:
        data = data[pipe.write(data) :]


def spread(numbers, work, jobs=1, share=500, **limits):
    """Does ``work`` for every number in children, ``jobs`` at once, of ``share`` numbers each. Yields (number, value)
    for each report, and (number, Death) for the number at which a child died; what follows it goes to another child."""
    todo = [numbers[k : k + share] for k in range(0, len(numbers), share)][::-1]
    running = {}
    while todo or running:
        while todo and len(running) < jobs:
            some = todo.pop()
            running[Child(some, work, **limits)] = some
        time.sleep(0.005)
        for child in list(running):
            ended = child.ended()
            yield from child.reports()
            if not ended:
                continue
            child.pipe.close()
            some = running.pop(child)
            if death := child.death():
                at = child.number
                rest = some[some.index(at) + 1 :] if at in some else []
                if rest:
                    todo.append(rest)
                yield at, Death(death)


class Death(str):
    """What a child died of."""
