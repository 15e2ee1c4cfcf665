"""Memory that processes share: blocks without a name, which the system frees with the last process that has them.

A block is mapped where it is made or received. A child that is forked has all of its parent's; other processes are sent
a block's file descriptor (multiprocessing/reductions.py, utils/data/_utils/blocks.py).
"""

from __future__ import annotations

import os

from .backends.cpu import error, ffi, lib
from .dtypes import dtype, uint8
from .layouts import row_major
from .tensor import Tensor, tensor_on
from .weak import WeakValues


class Block:
    """Shared memory, mapped into this process; ``address`` is its first byte's. C ends it."""

    __slots__ = ("_shared", "nbytes", "address", "key", "__weakref__")

    def __init__(self, fd: int, nbytes: int, *, own: bool = True):
        """Takes ``fd`` over, also where that fails: OSError. Without ``own`` it stays the caller's, and the block can
        be sent no more."""
        self._shared = ffi.gc(ffi.new("tt_shared *", (ffi.NULL, nbytes, fd if own else -1)), lib.tt_shared_end)
        status = os.fstat(fd)
        if status.st_size < nbytes:
            raise OSError(f"a block of {nbytes} bytes was announced, and has {status.st_size}")
        if lib.tt_shared_map(self._shared, fd) < 0:
            raise OSError(ffi.errno, os.strerror(ffi.errno))
        self.nbytes, self.address = nbytes, int(ffi.cast("intptr_t", self._shared.data))
        self.key = status.st_dev, status.st_ino
        _blocks[self.address] = self
        _received[self.key] = self

    @property
    def fd(self) -> int | None:
        """The descriptor that stands for it; None where it is another's, or closed."""
        return None if self._shared.fd < 0 else self._shared.fd

    def close(self) -> None:
        """Lets go of the descriptor, not of the memory: it can be sent no more."""
        lib.tt_shared_close(self._shared)


_blocks = WeakValues()  # each Block by its address
_received = WeakValues()  # by device and inode


def new_block(nbytes: int) -> Block:
    """A block of at least one byte, of zeros. OSError when there is no memory or no descriptor left."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("tinytorch", os.MFD_CLOEXEC)
    else:
        from tempfile import TemporaryFile  # when used: a start of Python does not wait for it

        with TemporaryFile() as file:
            fd = os.dup(file.fileno())
    try:
        os.ftruncate(fd, nbytes)
    except BaseException:
        os.close(fd)
        raise
    return Block(fd, nbytes)


def received_block(fd: int, nbytes: int) -> Block:
    """The block that a descriptor of another process stands for; ``fd`` is taken over. It is mapped once."""
    status = os.fstat(fd)
    known = _received.get((status.st_dev, status.st_ino))
    if known is None:
        return Block(fd, nbytes)
    os.close(fd)
    return known


def tensor_in(owner, of: dtype, shape: tuple[int, ...], nbytes: int) -> Tensor:
    """The elements at the beginning of a block's ``nbytes``, in order; ``owner`` is the block, or has it, and lives as
    long as they do."""
    memory = ffi.cast("void *", owner.address)
    return tensor_on(owner, "share_memory_", of.code, shape, row_major(shape), memory, nbytes)


def bytes_of(block: Block) -> Tensor:
    """A block as a vector of bytes."""
    return tensor_in(block, uint8, (block.nbytes,), block.nbytes)


def block_of(t: Tensor) -> Block | None:
    """The block that a tensor's memory is in; None where it is not shared."""
    return _blocks.get(int(ffi.cast("intptr_t", t._h.storage.data)))


def shared_copy(whole: Tensor) -> Tensor:
    """The bytes of a vector of them in a new block."""
    made = bytes_of(new_block(whole._h.numel))
    if lib.tt_copy(made._h, whole._h, -1) < 0:
        raise error("share_memory_")
    return made
