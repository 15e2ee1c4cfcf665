"""The two ends of the stream of messages between a loader and a worker.

A message is a pickle; the memory of its tensors goes beside it: Note [Batches from workers] in blocks.py. Sockets do
not block: who waits looks now and then whether the other end is still there.
"""

from __future__ import annotations

import io
import os
import pickle
import select
import socket
import struct
import threading
import weakref
from collections import deque
from itertools import chain
from multiprocessing.reduction import ForkingPickler

from ....dtypes import uint8
from ....multiprocessing.reductions import reduce_tensor
from ....nn.parameter import Buffer, Parameter
from ....shared_memory import block_of, bytes_of, received_block
from ....storage import UntypedStorage, storage_on
from ....tensor import Tensor
from .blocks import Incoming, Outgoing

_HEADER = struct.Struct("=QH")  # the bytes of the pickle, and how many descriptors come with it
_MOST_DESCRIPTORS = 64  # in a message; the memory of further tensors goes as bytes
_DESCRIPTOR = struct.Struct("=i")
_ROOM = socket.CMSG_SPACE(_MOST_DESCRIPTORS * _DESCRIPTOR.size)
_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
_LOOK = 1000  # milliseconds after which one who waits looks around
_reader = threading.local()  # ``channel``: weakly, the one whose message is being read

#: The loaders' ends in this process: a forked worker closes those that it gets, for their streams end with the loader.
ends: weakref.WeakSet[Channel] = weakref.WeakSet()


def _arrived(number: int, at: int | None, room: int, nbytes: int) -> UntypedStorage:
    channel = _reader.channel()
    fd = None if at is None else channel.arrived.descriptors()[at]
    return storage_on(channel.incoming.take(number, fd, room, nbytes))


def _arrived_foreign(at: int, nbytes: int) -> UntypedStorage:
    return storage_on(bytes_of(received_block(os.dup(_reader.channel().arrived.descriptors()[at]), nbytes)))


class _Parts(list):
    """What recvmsg gave of a message."""

    def descriptors(self) -> list[int]:
        """Those that came."""
        found = []
        for _, beside, *_ in self:
            for _, _, packed in beside:
                whole = len(packed) - len(packed) % _DESCRIPTOR.size
                found += [fd for (fd,) in _DESCRIPTOR.iter_unpack(packed[:whole])]
        return found

    def close(self) -> None:
        """Closes the descriptors. It is one call of C, so that Ctrl-C comes before it or after it."""
        deque(chain(map(os.close, self.descriptors()), map(list.clear, [self])), 0)


class _Parcel:
    """A message that is pickled: the blocks of a worker's that its tensors are on, and the descriptors to be sent."""

    def __init__(self, outgoing: Outgoing, message):
        self.outgoing, self.descriptors, self.used, self.kept = outgoing, [], [], []
        file = io.BytesIO()
        pickler = ForkingPickler(file, pickle.HIGHEST_PROTOCOL)
        own = dict.fromkeys((Tensor, Parameter, Buffer), _reduce_tensor)
        own[UntypedStorage] = self._reduce_storage
        pickler.dispatch_table = {**pickler.dispatch_table, **own}
        pickler.dump((outgoing.dropped, message))
        self.data = file.getvalue()

    def _reduce_storage(self, storage: UntypedStorage):
        if storage.is_cuda or not len(storage) or len(self.descriptors) == _MOST_DESCRIPTORS:
            return storage.__reduce__()
        outgoing, whole = self.outgoing, storage.whole
        number, block = outgoing.number_of(whole), block_of(whole)
        if number is None and block is not None and block.fd is not None:
            self.descriptors.append(block.fd)
            return _arrived_foreign, (len(self.descriptors) - 1, block.nbytes)
        if number is None:
            copied = outgoing.empty(uint8, (len(storage),))
            copied.copy_(whole)
            self.kept.append(copied)
            number = outgoing.number_of(copied)
        self.used.append(number)
        block, at = outgoing.blocks[number], None
        if number not in outgoing.told:
            at = len(self.descriptors)
            self.descriptors.append(block.fd)
        return _arrived, (number, at, block.nbytes, len(storage))

    def is_on_its_way(self) -> None:
        """Counts what the loader has from now on; the descriptors are not needed any more."""
        for number in self.used:
            self.outgoing.uses[number] += 1
            self.outgoing.told.add(number)
            self.outgoing.blocks[number].close()
        self.outgoing.dropped = []


def _reduce_tensor(t: Tensor):
    """A tensor; of one that shows a small part of much memory, as a sample does of a dataset, a copy."""
    plain = type(t) is Tensor and t.is_leaf and not t.is_cuda and not t.__dict__
    if plain and t.numel() * t.itemsize * 2 < t._h.storage.nbytes and block_of(t) is None:
        t = t.detach().clone().requires_grad_(t.requires_grad)
    if t.requires_grad and not t.is_leaf:
        return reduce_tensor(t)  # which refuses
    return t.__reduce_ex__(2)


class Gone(Exception):
    """There is nobody at the other end."""


class Channel:
    """One end. ``alive()`` says whether the process at the other end is there: the stream itself does not tell where a
    process that was forked meanwhile holds it open."""

    def __init__(self, sock: socket.socket, alive):
        sock.setblocking(False)
        self.sock, self.alive = sock, alive
        self.left = b""  # of messages that were posted
        self.incoming, self.outgoing = Incoming(), Outgoing()
        self.arrived = _Parts()  # of the message that is being read

    def fileno(self) -> int:
        """Its descriptor, -1 when it is closed."""
        return self.sock.fileno()

    def close(self) -> None:
        """Closes this end."""
        self.sock.close()
        self.arrived.close()

    def _wait(self, event: int) -> None:
        poll = select.poll()
        poll.register(self.sock, event)
        while not poll.poll(_LOOK):
            if not self.alive():
                raise Gone

    def wait_for_the_end(self) -> None:
        """Waits until the stream has ended, or nobody is at its other end."""
        poll = select.poll()
        poll.register(self.sock, 0)  # ends are told of always
        while not poll.poll(_LOOK) and self.alive():
            pass

    def send(self, message) -> None:
        """A worker's: sends a message whole. Gone when nobody is there to take it; what pickling raises."""
        parcel = _Parcel(self.outgoing, message)
        data, count = parcel.data, len(parcel.descriptors)
        packed = b"".join(map(_DESCRIPTOR.pack, parcel.descriptors))
        beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, packed)] if count else []
        head = _HEADER.pack(len(data), count)
        while True:
            try:
                sent = self.sock.sendmsg([head, data], beside) - len(head)
                break
            except BlockingIOError:
                self._wait(select.POLLOUT)
            except OSError:
                raise Gone from None
        parcel.is_on_its_way()
        rest = memoryview(data)[sent:] if sent >= 0 else memoryview(head + data)[len(head) + sent :]
        while rest:
            self._wait(select.POLLOUT)
            try:
                rest = rest[self.sock.send(rest) :]
            except OSError:
                raise Gone from None

    def post(self, message) -> None:
        """A loader's: sends a message without tensors, as far as it is taken; ``flush`` sends what is left."""
        data = pickle.dumps((self.incoming.leases.over(), message), pickle.HIGHEST_PROTOCOL)
        self.left += _HEADER.pack(len(data), 0) + data
        self.flush()

    def flush(self) -> bool:
        """Goes on sending what was posted; True when all is sent. What nobody takes any more is dropped."""
        try:
            while self.left:
                self.left = self.left[self.sock.send(self.left) :]
        except BlockingIOError:
            return False
        except OSError:  # the end of the stream is seen by who reads
            self.left = b""
        return True

    def receive_task(self):
        """A worker's: the next message; waits for it. Gone when none will come."""
        returned, message = self._receive()
        for number in returned:
            self.outgoing.release(number)
        return message

    def receive_batch(self):
        """A loader's: the next message; waits for it. Gone when none will come."""
        dropped, message = self._receive()
        self.incoming.drop(dropped)
        return message

    def _receive(self):
        """The next message and the numbers that come with it; waits for it. Gone when none will come, OSError when
        there are too many open files."""
        try:
            nbytes, count = _HEADER.unpack(self._receive_head())
            if count != len(self.arrived.descriptors()):
                raise OSError(
                    "a batch came without its shared memory: this process has too many open files. Please increase "
                    "the limit by `ulimit -n` in the shell."
                )
            data = memoryview(bytearray(nbytes))
            rest = data
            while rest:
                rest = rest[self._read(self.sock.recv_into, rest) :]
            _reader.channel = weakref.ref(self)
            return pickle.loads(data)
        finally:
            self.arrived.close()

    def _receive_head(self) -> bytes:
        head = b""
        while len(head) < _HEADER.size:
            head += self._read(self._receive_part, _HEADER.size - len(head))
        return head

    def _receive_part(self, nbytes: int) -> bytes:
        # recvmsg is called by C, which puts what it gives into the list: no bytecode, and so no Ctrl-C, is in between.
        self.arrived.extend(map(self.sock.recvmsg, [nbytes], [_ROOM], [_CLOEXEC]))
        return self.arrived[-1][0]

    def _read(self, receive, *args):
        """What ``receive`` gives, when there is something."""
        while True:
            try:
                got = receive(*args)
            except BlockingIOError:
                self._wait(select.POLLIN)
            except OSError:
                raise Gone from None
            else:
                if not got:
                    raise Gone
                return got
