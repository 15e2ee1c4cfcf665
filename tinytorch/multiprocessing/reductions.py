"""How multiprocessing's pickler sends tensors: their memory is shared, not copied.

A storage is sent as its block's file descriptor; everything else of a tensor is pickled as always, and so tensors that
share memory share it at the other end. The sender must be there when the receiver takes what was sent.
"""

from __future__ import annotations

from multiprocessing.reduction import DupFd, ForkingPickler

from ..nn.parameter import Buffer, Parameter
from ..shared_memory import block_of, bytes_of, received_block, shared_copy
from ..storage import UntypedStorage, storage_on
from ..tensor import Tensor


def _rebuild_storage(sent, nbytes: int) -> UntypedStorage:
    return storage_on(bytes_of(received_block(sent.detach(), nbytes)))


def reduce_storage(storage: UntypedStorage):
    """A storage as its block, into which its bytes are copied if they are in none. That of a device is copied."""
    if storage.is_cuda or not len(storage):
        return storage.__reduce__()
    whole = storage.whole if storage.is_shared() else shared_copy(storage.whole)
    block = block_of(whole)
    return _rebuild_storage, (DupFd(block.fd), block.nbytes)


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
