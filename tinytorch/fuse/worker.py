"""The thread that compiles kernels while the program runs on in the interpreter.

It asks the C side for a kernel that has run often enough, and either brings back the compiled functions or refuses, so
that the kernel stays interpreted. No error leaves it: the compiled tier can only make a program faster.
"""

import atexit
import contextlib
import functools
import os
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from ..backends.cpu import error, ffi, lib
from ..backends.cuda import runtime
from ..cache import Cache, CompileError, default_folder
from ..warn_once import warn_once
from . import codegen_cuda, compiler
from .codegen import PREFIX, source
from .compiler import key_of
from .listeners import lines_of

POLL = 1000  # milliseconds for which the thread waits in C
MOST_FAILURES = 3  # of the compiler in a row, before it is asked no more


class Event(NamedTuple):
    """What became of a kernel that was to be compiled."""

    what: str  # "hit" (it was on the disk), "compiled", "refused"
    kernel: object  # the tt_kernel *
    key: str
    seconds: float
    reason: str  # why it was refused


class Worker:
    """A daemon thread of this process, and what it has done."""

    def __init__(self, core=lib):
        self.core = core  # tests put something else in the place of the C side
        self.hits = self.compiled = self.refused = 0
        self.on_event: Callable[[Event], None] | None = None
        self._changed = threading.Condition()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._kernel = None  # in work
        self._asked = 0  # questions put to the C side
        self._idle = 0  # the last of them to which there was no answer
        self._waiting = 0  # threads in wait()
        self._failures = 0
        self._stopping = False

    @functools.cached_property
    def cache(self) -> Cache:
        """The kernels on disk."""
        return Cache(default_folder())

    def start(self) -> None:
        """Starts the thread if it does not run."""
        if self._thread is not None or self._stopping:
            return
        with self._starting:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="tinytorch-fuse", daemon=True)
                with contextlib.suppress(RuntimeError):  # no more threads here, or the interpreter is shutting down
                    thread.start()
                    self._thread = thread

    def wait(self, timeout: float | None = None) -> bool:
        """Blocks until no kernel is wanted or in work; False when that took longer than ``timeout`` seconds."""
        self.start()
        with self._changed:
            question = self._asked + 1  # one that is put after this call
            self._waiting += 1
            self.core.tt_kernel_wake()
            try:
                return self._changed.wait_for(
                    lambda: self._idle >= question or self._stopping or not self._thread, timeout
                )
            finally:
                self._waiting -= 1

    def stop(self) -> None:
        """At the interpreter's exit: a compilation in progress is ended, and none follows."""
        self._stopping = True
        compiler.stop()
        self.core.tt_kernel_wake()
        if self._thread is not None:
            self._thread.join(1.0)  # it cleans up behind itself

    def after_fork(self) -> None:
        """In a forked child, which has none of its parent's threads: it starts its own, which begins with the kernel
        that its parent's has in work."""
        running = self._thread is not None
        self._changed, self._starting = threading.Condition(), threading.Lock()
        self._thread, self._waiting = None, 0
        compiler.after_fork()
        if running:
            self.start()

    def _run(self) -> None:
        if self._kernel is not None:
            self.serve(self._kernel)
        while not self._stopping:
            self._asked += 1
            kernel = self.core.tt_kernel_wanted(0 if self._waiting else POLL)
            if kernel != ffi.NULL:
                self.serve(kernel)
            else:
                with self._changed:
                    self._idle = self._asked
                    self._changed.notify_all()

    def serve(self, kernel) -> None:
        """Installs a kernel's compiled functions, or refuses it."""
        start, what, key, reason = time.perf_counter(), "refused", "", "after other failures no more are tried"
        self._kernel = kernel
        try:
            if self._failures < MOST_FAILURES:
                what, key = self._install(kernel)
                self._failures, reason = 0, ""
        except codegen_cuda.Refused as exc:
            reason = str(exc)
        except Exception as exc:
            reason = str(exc)
            self._complain(exc)
        if what == "refused":
            self.refused += 1
            self.core.tt_kernel_refuse(kernel)
        try:
            if self.on_event:
                self.on_event(Event(what, kernel, key, time.perf_counter() - start, reason))
        except Exception as exc:
            self._complain(exc)
        self._kernel = None

    def _install_cuda(self, kernel) -> tuple[str, str]:
        """On a device: NVRTC compiles it, and the launches find it under its number."""
        source, detail = codegen_cuda.source(kernel)
        number, known = runtime.install_fused(kernel.device - 1, source)
        self.core.tt_kernel_install_device(kernel, number, detail)
        self.hits += known
        self.compiled += not known
        return "hit" if known else "compiled", f"cuda {number}"

    def _install(self, kernel) -> tuple[str, str]:
        if kernel.device:
            return self._install_cuda(kernel)
        text, isa = source(kernel), ffi.string(self.core.tt_isa_name()).decode()
        key, did = key_of(text, isa, compiler.find()), []

        def compile_file(c, library):
            compiler.compile_file(c, library, isa)
            did.append(c)

        for _ in range(3):
            # The lines are comments, and the same kernel may come from others: the key does not know them.
            path = self.cache.get(key) or self.cache.build(key, source(kernel, lines_of(kernel)), compile_file)
            if self.core.tt_kernel_install(kernel, os.fsencode(path), PREFIX.encode()) == 0:
                self.hits += not did
                self.compiled += bool(did)
                return "compiled" if did else "hit", key
            reason = str(error())
            if os.path.exists(path):  # else another process removed it just now
                self.cache.remove(key)
                self.cache.avoid_folder(f"a compiled kernel cannot be loaded ({reason})")
        raise CompileError(f"a compiled kernel cannot be loaded ({reason})")

    def _complain(self, exc: Exception) -> None:
        if isinstance(exc, CompileError):
            self._failures += 1
        if not self._stopping:
            text = str(exc) if isinstance(exc, CompileError) else f"{type(exc).__name__}: {exc}"
            warn_once(f"{text}\nFused programs go on without compiled kernels")


worker = Worker()
os.register_at_fork(after_in_child=worker.after_fork)
atexit.register(worker.stop)


def clear_cache() -> None:
    """Removes all compiled kernels from the disk; those that are loaded go on running."""
    worker.cache.clear()
