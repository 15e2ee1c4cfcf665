"""How multiprocessing's pickler sends tensors: their memory is shared, not copied.

A storage is sent as its block's file descriptor; everything else of a tensor is pickled as always, and so tensors that
share memory share it at the other end. The sender must be there when the receiver takes what was sent.
"""

from __future__ import annotations

from multiprocessing.context import get_spawning_popen
from multiprocessing.reduction import DupFd, ForkingPickler

from ..nn.parameter import Buffer, Parameter
from ..shared_memory import block_of, bytes_of, received_block, shared_copy
from ..storage import UntypedStorage, storage_on
from ..tensor import Tensor


def _rebuild_storage(sent, nbytes: int) -> UntypedStorage:
    return storage_on(bytes_of(received_block(sent.detach(), nbytes)))


def _sent(block):
    """The block's file descriptor, as the pickler sends it. One that a new process inherits stays open until then, and
    is passed to it once."""
    child = get_spawning_popen()
    if child is not None:
        child.__dict__.setdefault("_tinytorch_blocks", []).append(block)
        if child.method == "spawn" and block.fd in child._fds:
            child._fds.remove(block.fd)
    return DupFd(block.fd)


def reduce_storage(storage: UntypedStorage):
    """A storage as its block, into which its bytes are copied if they are in none. That of a device is copied."""
    if storage.is_cuda or not len(storage):
        return storage.__reduce__()
    whole = storage.whole if storage.is_shared() else shared_copy(storage.whole)
    block = block_of(whole)
    return _rebuild_storage, (_sent(block), block.nbytes)


def reduce_tensor(t: Tensor):
    """A tensor, whose memory is moved to a block first where nobody else shows it: both ends see what the other writes.
    RuntimeError for one that requires grad and is no leaf."""
    if t.requires_grad and not t.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
            "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor before "
            "serializing (e.g., putting it on the queue)."
        )
    if t._h.storage.refs == 1:
        t.share_memory_()
    return t.__reduce_ex__(2)


def register() -> None:
    """Makes this multiprocessing's way."""
    ForkingPickler.register(UntypedStorage, reduce_storage)
    for cls in (Tensor, Parameter, Buffer):
        ForkingPickler.register(cls, reduce_tensor)
