"""The system's C compiler: which one, and a run of it."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import pathlib
import platform
import shlex
import signal
import threading
import time
from typing import NamedTuple

from ..cache import CompileError, digest_of
from ..cache import key_of as _key_of
from .flags import BITS, GCC, ISAS

TIMEOUT = 60.0  # seconds, for one kernel
NICENESS = 5  # the program's own threads come first
# sin and cos of one argument must stay two calls, as they are in eager mode, not become one of sincos.
_FLAGS = [*BITS, "-shared", "-fPIC", "-s", "-w", "-fno-builtin-sin", "-fno-builtin-cos"]
# gcc 12 does not vectorise a loop for which it has computed conditions in advance; vectorised, they move out later.
_GCC_FLAGS = ["-fno-tree-loop-im", *GCC]


class Compiler(NamedTuple):
    """A command, and what tells it from every other compiler."""

    command: tuple[str, ...]
    identity: str

    def flags(self, isa: str) -> list[str]:
        """For generated code that is to run beside the kernels of that instruction set."""
        return [*_FLAGS, *([] if "clang" in self.identity.lower() else _GCC_FLAGS), *ISAS[isa]]


@functools.cache
def headers() -> str:
    """The folder of the scalar functions: in the installed package, or in the source tree."""
    package = pathlib.Path(__file__).resolve().parent.parent
    for folder in (package / "kernels" / "scalar", package.parent / "kernels" / "scalar"):
        if (folder / "ops.h").is_file():
            return str(folder)
    raise CompileError("the headers of tinytorch's scalar functions are not installed")


@functools.cache
def headers_digest() -> str:
    """Changes when any of the headers does."""
    return digest_of([headers()])


def key_of(source: str, isa: str, compiler: Compiler) -> str:
    """The name of a kernel: a hash of its source and of all that turns it into machine code."""
    libc = os.confstr("CS_GNU_LIBC_VERSION") if "CS_GNU_LIBC_VERSION" in os.confstr_names else ""
    flags = " ".join(compiler.flags(isa))
    return _key_of(source, flags, compiler.identity, headers_digest(), platform.machine(), libc or "")


@functools.cache
def find() -> Compiler:
    """The compiler of this process: $CC, cc, gcc or clang, the first that answers. CompileError when none does."""
    from shutil import which  # when used: a start of Python does not wait for it

    wanted = os.environ.get("CC", "")
    try:
        candidates = [shlex.split(wanted)] if wanted.strip() else []
    except ValueError:  # an unbalanced quote
        candidates = []
    for words in (*candidates, ["cc"], ["gcc"], ["clang"]):
        path = which(words[0])
        if not path or not os.path.isabs(path):  # never one from the current folder
            continue
        command = (path, *words[1:])
        try:
            version = run([*command, "--version"], 10.0)
            real = os.path.realpath(path)
            return Compiler(command, f"{command} {real} {os.stat(real).st_mtime_ns} {version}")
        except (CompileError, OSError):
            continue
    raise CompileError("there is no C compiler ($CC, cc, gcc, clang)")


def compile_file(source: str, library: str, isa: str) -> None:
    """Compiles the C file to a shared library beside it. CompileError when that cannot be done."""
    found = find()
    command = [*found.command, *found.flags(isa), "-I", headers(), "-o", library, source, "-lm"]
    run(command, TIMEOUT, os.path.dirname(source))
    if not os.path.exists(library):
        raise CompileError("the C compiler wrote no library")


class _Running:
    """The compiler process that is running, so that leaving the interpreter can end it."""

    lock = threading.Lock()
    pid = 0
    stopping = False


def run(command: list[str], timeout: float, folder: str | None = None) -> str:
    """What the command prints. With a folder, for its temporary files, it is run at a lower priority. CompileError.

    It runs in a session of its own, so that no Ctrl-C reaches it. It is spawned without a pipe: a fork elsewhere in
    this process could keep a pipe open, and leave us waiting for its end.
    """
    environment = {**os.environ, "LC_ALL": "C"}
    if folder:
        from shutil import which

        environment["TMPDIR"] = folder
        nice = which("nice")
        command = [nice, "-n", str(NICENESS), *command] if nice else command
    try:
        with open(os.memfd_create("output", os.MFD_CLOEXEC), "rb") as output:
            pid = _spawn(command, environment, output.fileno())
            try:
                status = _wait(pid, time.monotonic() + timeout)
            finally:
                _Running.pid = 0
            output.seek(0)
            text = output.read(4000).decode(errors="replace").strip()
    except OSError as exc:
        raise CompileError(f"cannot run {shlex.join(command)} ({exc.strerror})") from None
    if status is None:
        raise CompileError(f"the C compiler ({shlex.join(command)}) was stopped after {timeout:g} seconds")
    if status != 0:
        raise CompileError(f"the C compiler failed with status {status}: {shlex.join(command)}\n{text}")
    return text


def _spawn(command: list[str], environment: dict[str, str], output: int) -> int:
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_DUP2, output, 2),
    ]
    with _Running.lock:
        if _Running.stopping:
            raise CompileError("the interpreter is shutting down")
        _Running.pid = os.posix_spawn(
            command[0],
            command,
            environment,
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
        )
        return _Running.pid


def _wait(pid: int, deadline: float) -> int | None:
    """The exit status of a child; None when it was ended because time was up."""
    while True:
        try:
            done, status = os.waitpid(pid, os.WNOHANG)
        except OSError as exc:
            if exc.errno == errno.ECHILD:  # the program's own wait() took it: its output will tell
                return 0
            raise
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            _end(pid)
            os.waitpid(pid, 0)
            return None
        time.sleep(0.004)


def _end(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)  # a session of its own is a group of its own


def stop() -> None:
    """Ends the run in progress, and lets no other start: at the interpreter's exit."""
    with _Running.lock:
        _Running.stopping = True
        if _Running.pid:
            _end(_Running.pid)


def after_fork() -> None:
    """In a forked child: the parent's run is not its own."""
    _Running.lock = threading.Lock()
    _Running.pid = 0
