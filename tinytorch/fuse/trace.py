"""A trace as Python objects: Note [The encoding of a trace] in kernels/fuse/fuse.h."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..backends.cpu import ffi, lib
from ..dtypes import ALL
from ..layouts import row_major
from ..scalar import ELEMENTWISE, REDUCERS

OP, COPY, REDUCE, RANDOM = range(4)  # kinds of nodes
PLAIN, FULL, NUMBER = range(3)  # modes of operands
_HAS_SHAPE = 1


class Operand(NamedTuple):
    """Elements of a storage, or a Python number."""

    id: int  # of the storage, or of the number
    dtype: int
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()  # in elements
    offset: int = 0  # in bytes
    number: bool = False


class Node(NamedTuple):
    """A recorded operator."""

    kind: int
    op: int  # of the operators, of the reducers, of the kinds of random numbers
    dtype: int  # computed in; of a reduction: read
    shape: tuple[int, ...]  # of iteration; of a reduction: its operand's
    mask: int  # a reduction's dimensions, as bits
    out: Operand
    inputs: tuple[Operand, ...]

    @property
    def name(self) -> str:
        """The operator's, the reducer's, "copy" or "random"."""
        if self.kind == OP:
            return ELEMENTWISE[self.op].name
        return REDUCERS[self.op].name if self.kind == REDUCE else "copy" if self.kind == COPY else "random"

    @property
    def dims(self) -> tuple[int, ...]:
        """The dimensions that are reduced."""
        return tuple(d for d in range(len(self.shape)) if self.mask >> d & 1)


class Storage(NamedTuple):
    """Memory that a trace mentions."""

    nbytes: int
    seen: bool  # someone could see it when the trace was run
    made: bool  # the trace wrote all of it before anything looked


class Trace(NamedTuple):
    """The nodes of a program, in order, and its storages."""

    nodes: tuple[Node, ...]
    storages: tuple[Storage, ...]
    numbers: tuple[float | int, ...]

    def fills(self, storage: int) -> list[int]:
        """The nodes that put a number into a storage."""
        return [
            k
            for k, node in enumerate(self.nodes)
            if node.kind == COPY and node.inputs[0].number and node.out.id == storage
        ]

    def listing(self, place: Callable[[int], str] = lambda node: "") -> list[str]:
        """A line of text for each node; ``place`` tells where one was recorded."""
        made: set[int] = set()
        texts = []
        for node in self.nodes:
            arguments = [self._operand(o) for o in node.inputs]
            if node.kind == REDUCE:
                arguments.append(f"dim={node.dims}")
            # The first time a storage appears it is with its dtype and shape.
            new = "" if node.out.id in made else f": {ALL[node.out.dtype].name} {node.out.shape}"
            made.add(node.out.id)
            texts.append(f"{self._storage(node.out)}{new} = {node.name}({', '.join(arguments)})")
        width = max(map(len, texts), default=0)
        return [f"{k:3}  {text:{width}}  {place(k)}".rstrip() for k, text in enumerate(texts)]

    def _operand(self, o: Operand) -> str:
        if o.number:
            return repr(self.numbers[o.id]) if o.id < len(self.numbers) else f"n{o.id}"
        return self._storage(o)

    def _storage(self, o: Operand) -> str:
        name = f"s{o.id}"
        whole = math.prod(o.shape) * ALL[o.dtype].itemsize == self.storages[o.id].nbytes
        if not whole or o.strides != row_major(o.shape):
            name += f"[{o.offset // ALL[o.dtype].itemsize}: {'x'.join(map(str, o.shape))} by {o.strides}]"
        return name


def number_value(number) -> float | int:
    """The value of a ``tt_number``. Its half types are told by their bits."""
    raw = np.array([number.bits], np.int64).view(ALL[number.dtype].stored)[:1]
    if number.dtype == lib.TT_BF16:
        raw = (raw.astype(np.uint32) << 16).view(np.float32)
    elif number.dtype == lib.TT_C32:
        raw = raw.view(np.float16).astype(np.float32).view(np.complex64)
    return raw[0].item()


def read(program, numbers=None) -> Trace:
    """The trace of a ``tt_program *``; with ``numbers``, a ``tt_number *``, the values of its Python numbers."""
    words = ffi.unpack(program.encoding, program.encoded)
    at, shape = 0, ()
    nodes = []
    for _ in range(program.num_nodes):
        head, ids = words[at], words[at + 1]
        at += 2
        kind, n, flags = head & 255, head >> 24 & 255, head >> 32
        if flags & _HAS_SHAPE:
            ndim = words[at]
            shape = tuple(words[at + 1 : at + 1 + ndim])
            at += 1 + ndim
        mask = 0
        if kind == REDUCE:
            mask = words[at]
            at += 1
        operands = []
        for k in range(n + 1):
            mode, dtype, number = flags >> (1 + 2 * k) & 3, flags >> (9 + 4 * k) & 15, ids >> (16 * k) & 0xFFFF
            if mode == NUMBER:
                operands.append(Operand(number, dtype, number=True))
            elif mode == FULL:
                offset, ndim = words[at : at + 2]
                sizes = tuple(words[at + 2 : at + 2 + ndim])
                operands.append(Operand(number, dtype, sizes, tuple(words[at + 2 + ndim : at + 2 + 2 * ndim]), offset))
                at += 2 + 2 * ndim
            else:
                operands.append(Operand(number, dtype, shape, row_major(shape)))
        nodes.append(Node(kind, head >> 8 & 255, head >> 16 & 255, shape, mask, operands[0], tuple(operands[1:])))
    sizes = words[at : at + program.num_storages]
    values = tuple(number_value(numbers[k]) for k in range(program.num_constants)) if numbers else ()
    return Trace(tuple(nodes), _storages(nodes, sizes), values)


def _storages(nodes: list[Node], sizes: list[int]) -> tuple[Storage, ...]:
    made: dict[int, bool] = {}
    for node in nodes:
        for o in node.inputs:
            if not o.number:
                made.setdefault(o.id, False)
        out = node.out
        made.setdefault(out.id, math.prod(out.shape) * ALL[out.dtype].itemsize == sizes[out.id] >> 1)
    return tuple(Storage(size >> 1, bool(size & 1), made.get(k, False)) for k, size in enumerate(sizes))
