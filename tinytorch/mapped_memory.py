"""Memory that the system fills from a file when it is read."""

from __future__ import annotations

import mmap
import os

import numpy as np

from .dtypes import uint8
from .ops.from_python import share_numpy
from .tensor import Tensor, owned


def mapped_bytes(filename, shared: bool, nbytes: int) -> Tensor:
    """A vector of the first bytes of a file. ``shared``: what is written there is written to the file, which is made,
    or made longer, where it has to be. RuntimeError where it cannot be opened, or has fewer bytes."""
    name, mode = os.fspath(filename), "read-write" if shared else "read-only"
    if nbytes < 0:
        raise RuntimeError(f"unable to mmap {nbytes} bytes from file <{name}>")
    try:
        fd = os.open(name, os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY, 0o600)
    except OSError as e:
        raise RuntimeError(f"unable to open file <{name}> in {mode} mode: {e.strerror} ({e.errno})") from None
    try:
        size = os.fstat(fd).st_size
        if size < nbytes:
            if not shared:
                raise RuntimeError(f"file <{name}> size <{size}> is smaller than the required mapping size <{nbytes}>")
            os.ftruncate(fd, nbytes)
        if not nbytes:
            return owned.tt_empty(uint8.code, 1, (0,))
        mapped = mmap.mmap(fd, nbytes, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
    except OSError as e:
        raise RuntimeError(f"unable to mmap {nbytes} bytes from file <{name}>: {e.strerror} ({e.errno})") from None
    finally:
        os.close(fd)
    return share_numpy(np.frombuffer(mapped, np.uint8), uint8.code)
