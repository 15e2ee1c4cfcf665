"""Files that are there whole or not at all: a program that is killed while it writes leaves what was there before."""

from __future__ import annotations

import contextlib
import os


@contextlib.contextmanager
def replacing(path):
    """A file to write that takes the place of ``path`` at the end, if nothing was raised. What is no ordinary file, is
    empty (somebody may have it open: a temporary file), or is in a folder where no other may be made, is written
    itself. RuntimeError when the folder is not there."""
    path = os.path.realpath(os.fsdecode(path))
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    there = os.path.exists(path)
    if there and not (os.path.isfile(path) and os.path.getsize(path)):
        number = None
    else:
        beside = os.path.join(folder, f".{os.urandom(16).hex()}.tmp")
        number, named = _opened(folder, beside)
    if number is None:
        with open(path, "wb") as file:
            yield file
        return
    try:
        with open(number, "wb") as file:
            if there:
                os.fchmod(number, os.stat(path).st_mode & 0o7777)
            yield file
            file.flush()
            if not named:
                # CPython passes on that links are to be followed where there is a src_dir_fd
                os.link(f"/proc/self/fd/{number}", beside, src_dir_fd=number, follow_symlinks=True)
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
        raise


def _opened(folder: str, beside: str) -> tuple[int | None, bool]:
    """A new file in a folder, and whether it has the name ``beside`` already: where the system has files without a name
    it gets one when it is whole, and a process that is killed leaves none behind. None where no file may be made."""
    try:
        if os.path.isdir("/proc/self/fd"):
            return os.open(folder, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o666), False
    except (OSError, AttributeError):  # the file system, or the system, has none
        pass
    try:
        return os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), True
    except PermissionError:
        return None, False
