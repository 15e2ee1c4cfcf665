"""Compiled kernels on disk.

One file for each kernel (and its source, for people) in a folder that only the user may write: <key>.so and <key>.c for
the CPU, <key>.cubin and <key>.cu for CUDA devices. The key is a hash of all that decides what the file does. A file is
written under another name and renamed, so that whoever opens it finds it whole; it ends in a checksum of itself, so
that what a full disk, a lost power supply or another program left behind is noticed before it is loaded, and built
again.

Whoever finds a kernel missing tries to take its lock for the time of the compilation, so that of many processes that
start at once one compiles; but no one waits long for it, and nothing depends on it.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import pathlib
import re
import stat
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from .warn_once import warn_once

LIMIT = 256 << 20  # bytes; beyond it the least recently used kernels go
LOCK_PATIENCE = 20.0  # seconds to wait for another process that compiles
_LEFTOVER = 3600.0  # seconds after which a work folder has lost its owner
_USED = 600.0  # seconds for which a kernel's time of last use is near enough
_MAGIC = b"tinytorch kernel"
_TRAILER = len(_MAGIC) + 32
_KERNEL = re.compile(r"[0-9a-f]{64}\.(so|c|cubin|cu)")


class CompileError(Exception):
    """A kernel could not be compiled; the text says why."""


class Kind(NamedTuple):
    """What a kernel's file and its source's are called."""

    library: str
    source: str


CPU, CUDA = Kind(".so", ".c"), Kind(".cubin", ".cu")


def digest_of(folders) -> str:
    """Changes when any of the headers in the folders does."""
    content = []
    for folder in folders:
        for header in sorted(pathlib.Path(folder).glob("*.*h")):
            text = header.read_bytes()
            content += (f"{header.name} {len(text)}\n".encode(), text)
    return _sha256(*content).hex()


def key_of(*parts: str) -> str:
    """The name of a kernel: a hash of its source and of all that turns it into machine code."""
    return _sha256("\0".join(parts).encode()).hex()


def _sha256(*content: bytes) -> bytes:
    from hashlib import sha256  # when used: a start of Python does not wait for it

    return sha256(b"".join(content)).digest()


def default_folder() -> str:
    """$TINYTORCH_CACHE_DIR, $XDG_CACHE_HOME/tinytorch or ~/.cache/tinytorch."""
    if chosen := os.environ.get("TINYTORCH_CACHE_DIR"):
        return os.path.abspath(os.path.expanduser(chosen))
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "tinytorch")


class Cache:
    """The kernels of one folder; when that cannot be used, of a temporary one that goes with the process."""

    def __init__(self, folder: str, limit: int = LIMIT):
        self.folder = folder
        self.limit = limit
        self._state = ""  # "": not looked at yet; "open"; "read": nothing more is written; "closed"
        self._private: dict[int, str] = {}  # by process: its temporary folder; a parent's is not the child's
        self._size = -1  # bytes in the folder, about; -1: not counted yet

    def get(self, key: str, kind: Kind = CPU) -> str | None:
        """The path of a kernel that is there and whole."""
        found = self._find(key, kind)
        return found and found[0]

    def read(self, key: str, kind: Kind = CPU) -> bytes | None:
        """What the compiler made of a kernel that is there and whole."""
        found = self._find(key, kind)
        return found and found[1]

    def _find(self, key: str, kind: Kind) -> tuple[str, bytes] | None:
        for folder in self._folders():
            path = os.path.join(folder, key + kind.library)
            if content := _content(path, key):
                with contextlib.suppress(OSError):
                    if time.time() - os.stat(path).st_mtime > _USED:
                        os.utime(path)
                return path, content
        return None

    def build(self, key: str, source: str, compile_file: Callable[[str, str], None], kind: Kind = CPU) -> str:
        """Compiles a kernel that is not there, or waits for the process that does it; the path. CompileError."""
        if self._open() == "open":
            with _lock(os.path.join(self.folder, "lock-" + key[0])):
                if path := self.get(key, kind):
                    return path
                try:
                    return self._write(self.folder, key, source, compile_file, kind)
                except OSError as exc:
                    self._give_up("read", f"cannot write to {self.folder} ({exc.strerror or exc})")
                except CompileError:
                    if reason := _cannot_hold(self.folder):
                        self._give_up("read", f"cannot write to {self.folder} ({reason})")
                    else:
                        raise
        try:
            return self._write(self.private(), key, source, compile_file, kind)
        except OSError as exc:
            raise CompileError(f"there is no place for compiled kernels ({exc.strerror or exc})") from None

    def remove(self, key: str) -> None:
        """Forgets a kernel, for one that cannot be loaded."""
        for folder in self._folders():
            for suffix in (*CPU, *CUDA):
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(folder, key + suffix))

    def avoid_folder(self, reason: str) -> None:
        """From now on kernels are kept in the temporary folder: those of the other one cannot be loaded."""
        self._give_up("closed", reason)

    def clear(self) -> None:
        """Removes every kernel, and what interrupted processes left behind. Loaded kernels go on running."""
        for folder in self._folders():
            for entry in _entries(folder):
                if _KERNEL.fullmatch(entry.name) or _is_leftover(entry):
                    _remove(entry.path)
        self._size = -1

    def private(self) -> str:
        """The temporary folder, made when first asked for and removed at exit. OSError when there can be none."""
        folder = self._private.get(os.getpid())
        if folder is None:
            from tempfile import mkdtemp  # when used: a start of Python does not wait for it

            made = mkdtemp(prefix="tinytorch-")
            folder = self._private.setdefault(os.getpid(), made)
            if folder is made:
                atexit.register(_remove_own, folder, os.getpid())
            else:  # another thread was sooner
                os.rmdir(made)
        return folder

    def _folders(self) -> list[str]:
        own = self._private.get(os.getpid())
        folders = [own] if own else []
        return [*folders, self.folder] if self._open() in ("open", "read") else folders

    def _open(self) -> str:
        if not self._state:
            reason = _prepare(self.folder)
            if reason:
                self._give_up("closed", f"the folder {self.folder} {reason}")
            else:
                self._state = "open"
        return self._state

    def _give_up(self, state: str, reason: str) -> None:
        self._state = state
        warn_once(
            f"{reason}; compiled kernels are kept for this process only. "
            "TINYTORCH_CACHE_DIR names another folder for them"
        )

    def _write(self, folder: str, key: str, source: str, compile_file: Callable[[str, str], None], kind: Kind) -> str:
        from tempfile import mkdtemp

        path = os.path.join(folder, key + kind.library)
        work = mkdtemp(prefix="work-", dir=folder)
        try:
            text, library = (os.path.join(work, "kernel" + suffix) for suffix in (kind.source, kind.library))
            with open(text, "w") as file:
                file.write(source)
            compile_file(text, library)
            size = _seal(library, key)
            os.replace(text, os.path.join(folder, key + kind.source))
            os.replace(library, path)
        finally:
            _remove(work)
        if folder == self.folder:
            self._trim(size + len(source))
        return path

    def _trim(self, added: int) -> None:
        """Removes what was not used longest, once the folder holds more than the limit."""
        if self._size >= 0 and self._size + added <= self.limit:
            self._size += added
            return
        kernels = []
        for entry in _entries(self.folder):
            if _is_leftover(entry):
                _remove(entry.path)
            elif _KERNEL.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    info = entry.stat(follow_symlinks=False)
                    kernels.append((info.st_mtime, info.st_size, entry.path))
        self._size = sum(size for _, size, _ in kernels)
        if self._size > self.limit:
            for _, size, path in sorted(kernels):
                if self._size <= self.limit * 3 // 4:
                    break
                _remove(path)
                self._size -= size


def _seal(library: str, key: str) -> int:
    """Puts the checksum behind a library, where a loader does not look; the file's size."""
    with open(library, "r+b") as file:
        os.fchmod(file.fileno(), 0o600)
        content = file.read()
        file.write(_MAGIC + _sha256(key.encode(), content))
        return file.tell()


def _content(path: str, key: str) -> bytes | None:
    """The kernel, if it is one of that key, as this user wrote it, to the last byte."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o022:
                return None
            data = file.read()
    except OSError:
        return None
    content, trailer = data[:-_TRAILER], data[-_TRAILER:]
    whole = content[:4] == b"\x7fELF" and trailer == _MAGIC + _sha256(key.encode(), content)
    return content if whole else None


def _prepare(folder: str) -> str:
    """Makes the folder if need be; why it must not be used, or ""."""
    try:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        info = os.stat(folder)
        above = _open_to_all_above(os.path.realpath(folder))
    except OSError as exc:
        return f"cannot be made ({exc.strerror})"
    if not stat.S_ISDIR(info.st_mode):
        return "is not a folder"
    if info.st_uid != os.geteuid():
        return "belongs to another user"
    if info.st_mode & 0o022:
        return "may be written by other users"
    if not os.access(folder, os.W_OK | os.X_OK):
        return "is read-only"
    return f"lies in {above}, which everyone may write" if above else ""


def _open_to_all_above(folder: str) -> str:
    """A folder above this one in which everyone may rename what is not theirs, and so put another in its place."""
    while folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
        mode = os.stat(folder).st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return folder
    return ""


def _cannot_hold(folder: str) -> str:
    """Why no file fits into the folder, or ""."""
    from tempfile import TemporaryFile

    try:
        with TemporaryFile(dir=folder) as file:
            file.write(bytes(1 << 18))
        return ""
    except OSError as exc:
        return exc.strerror or str(exc)


@contextlib.contextmanager
def _lock(path: str) -> Iterator[None]:
    """Holds a lock file, if it can be had in time. The system lets go of a dead process's locks, and a forked child
    does not inherit them."""
    file = -1
    with contextlib.suppress(OSError):  # a file system without locks
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        deadline = time.monotonic() + LOCK_PATIENCE
        while time.monotonic() < deadline:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except (BlockingIOError, PermissionError):  # another process has it
                time.sleep(0.01)
    try:
        yield
    finally:
        if file >= 0:
            os.close(file)


def _is_leftover(entry: os.DirEntry) -> bool:
    """Is it the work folder of a process that was killed?"""
    with contextlib.suppress(OSError):
        return entry.name.startswith("work-") and time.time() - entry.stat(follow_symlinks=False).st_mtime > _LEFTOVER
    return False


def _entries(folder: str) -> list[os.DirEntry]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        if os.path.isdir(path) and not os.path.islink(path):
            from shutil import rmtree

            rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)


def _remove_own(folder: str, pid: int) -> None:
    if os.getpid() == pid:
        _remove(folder)
