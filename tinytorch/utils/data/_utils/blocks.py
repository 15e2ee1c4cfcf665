"""The shared memory of batches, which goes to and fro between a worker and its loader.

Note [Batches from workers]
A worker makes its batches in blocks of shared memory (shared_memory.py), which have no name. With the first batch in
a block the block's file descriptor goes beside the message: it is the system's as long as it is on its way. So the
worker may end before its last batch is taken, and whatever is killed when, nothing is left.

Fresh pages cost more than what is written into them, so a block is used again: the loader tells the worker when the
last tensor on it is gone. (Not if the loader's process was forked meanwhile, for the child has the tensor too.) Both
ends keep their blocks mapped, and close the descriptors: there may be any number of batches.
"""

from __future__ import annotations

import math
import os
import weakref

from ....dtypes import dtype, uint8
from ....shared_memory import Block, block_of, new_block, tensor_in
from ....tensor import Tensor
from ....weak import End, taken

_PAGE = 4096
_MOST_IDLE = 8  # blocks that a worker keeps for batches to come, if no batch fits into them


class Lease:
    """One use of a block: what the tensors on it own."""

    __slots__ = ("block", "__weakref__")

    def __init__(self, block: Block):
        self.block = block

    @property
    def address(self) -> int:
        """Of the block's first byte."""
        return self.block.address


class Leases:
    """The leases of this process at one end of a stream, by their blocks' numbers."""

    def __init__(self):
        self.current: set[End] = set()
        self.ended: list[End] = []
        _leases.add(self)

    def lend(self, block: Block, number: int) -> Lease:
        """A new use of a block."""
        lease = Lease(block)
        self.current.add(End(lease, self.ended.append, number))
        return lease

    def over(self) -> list[int]:
        """The numbers of the blocks of which a use has ended since the last call."""
        ends = taken(self.ended)
        self.current.difference_update(ends)
        return [end.key for end in ends]


_leases: weakref.WeakSet[Leases] = weakref.WeakSet()


def _before_fork() -> None:
    for leases in list(_leases):  # the child has the tensors too: what they are on is not given back
        leases.current.clear()


os.register_at_fork(before=_before_fork)


def _room(nbytes: int) -> int:
    """The size of the block for so many bytes: at most an eighth more, and whole pages."""
    step = max(_PAGE, 1 << max(0, nbytes.bit_length() - 4))
    return -(-nbytes // step) * step


class Outgoing:
    """A worker's blocks. A block is idle when neither the worker has a tensor on it nor the loader."""

    def __init__(self):
        self.blocks: dict[int, Block] = {}
        self.uses: dict[int, int] = {}
        self.idle: dict[int, int] = {}  # number: size; the one that is idle longest first
        self.numbers: dict[int, int] = {}  # by address
        self.told: set[int] = set()  # whose descriptors were sent
        self.dropped: list[int] = []  # what the loader is to drop too
        self.count = 0
        self.leases = Leases()

    def empty(self, of: dtype, shape: tuple[int, ...]) -> Tensor:
        """A tensor of any values, of at least one element."""
        nbytes = math.prod(shape) * of.itemsize
        number = self._take(_room(nbytes))
        self.uses[number] = 1
        return tensor_in(self.leases.lend(self.blocks[number], number), of, shape, nbytes)

    def _take(self, size: int) -> int:
        for number in self.leases.over():
            self.release(number)
        fitting = [(room, number) for number, room in self.idle.items() if size <= room <= 2 * size]
        if fitting:
            _, number = min(fitting)
            del self.idle[number]
            return number
        if len(self.idle) >= _MOST_IDLE:
            self._drop(next(iter(self.idle)))
        block = new_block(size)
        number, self.count = self.count, self.count + 1
        self.blocks[number] = block
        self.numbers[block.address] = number
        return number

    def _drop(self, number: int) -> None:
        del self.idle[number], self.uses[number], self.numbers[self.blocks.pop(number).address]
        if number in self.told:
            self.told.remove(number)
            self.dropped.append(number)

    def number_of(self, whole: Tensor) -> int | None:
        """The number of the block that a tensor's memory is; None where it is not one of these."""
        block = block_of(whole)
        return None if block is None else self.numbers.get(block.address)

    def release(self, number: int) -> None:
        """One use of a block is over."""
        self.uses[number] -= 1
        if not self.uses[number]:
            self.idle[number] = self.blocks[number].nbytes


class Incoming:
    """The loader's side of a worker's blocks."""

    def __init__(self):
        self.blocks: dict[int, Block] = {}
        self.leases = Leases()

    def take(self, number: int, fd: int | None, room: int, nbytes: int) -> Tensor:
        """The first bytes of a block, whose descriptor came if it is new."""
        if fd is not None:
            self.blocks[number] = Block(fd, room, own=False)
        return tensor_in(self.leases.lend(self.blocks[number], number), uint8, (nbytes,), nbytes)

    def drop(self, numbers: list[int]) -> None:
        """Lets go of blocks that the worker has dropped."""
        for number in numbers:
            del self.blocks[number]


#: In a worker: its blocks.
outgoing: Outgoing | None = None


def empty_for_loader(of: dtype, shape: tuple[int, ...]) -> Tensor | None:
    """In a worker, a new tensor in a block; None elsewhere, and where there are no elements."""
    return outgoing.empty(of, shape) if outgoing is not None and math.prod(shape) else None
