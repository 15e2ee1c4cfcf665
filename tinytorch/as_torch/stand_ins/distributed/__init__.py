"""``torch.distributed`` in a group of one process: collectives do what one rank alone does, and nothing is sent.
``init_process_group`` refuses more than one."""

from __future__ import annotations

import os

from .group import (
    Backend,
    GroupMember,
    P2POp,
    ProcessGroup,
    ReduceOp,
    Store,
    Work,
    group,
)
from .collectives import (
    all_gather,
    all_gather_into_tensor,
    all_gather_object,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    batch_isend_irecv,
    broadcast,
    broadcast_object_list,
    gather,
    gather_object,
    irecv,
    isend,
    monitored_barrier,
    recv,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
    scatter_object_list,
    send,
)

__all__ = [
    "Backend",
    "FileStore",
    "GroupMember",
    "HashStore",
    "P2POp",
    "ProcessGroup",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "isend",
    "monitored_barrier",
    "new_group",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
]

FileStore = HashStore = TCPStore = Store


def is_available() -> bool:
    """False: programs that ask do without several processes, and without what PyTorch has for these. A group of one
    process can be made all the same."""
    return False


def is_initialized() -> bool:
    """Was ``init_process_group`` called?"""
    return group.WORLD is not None


def is_gloo_available() -> bool:
    """True: what it does in one process is done."""
    return True


def is_nccl_available() -> bool:
    """False."""
    return False


is_mpi_available = is_nccl_available


def is_backend_available(backend: str) -> bool:
    """Is it gloo?"""
    return backend.lower() == "gloo"


def is_torchelastic_launched() -> bool:
    """Has PyTorch's launcher started this process?"""
    return "TORCHELASTIC_RUN_ID" in os.environ


def init_process_group(
    backend=None,
    init_method=None,
    timeout=None,
    world_size=-1,
    rank=-1,
    store=None,
    group_name="",
    pg_options=None,
    device_id=None,
    _ranks=None,
) -> None:
    """Makes the group, of this process alone.

    Raises:
        ValueError: there is one
        NotImplementedError: the group is to have more than one process
    """
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    size = world_size if world_size > 0 else int(os.environ.get("WORLD_SIZE", 1))
    if size != 1:
        raise NotImplementedError(f"distributed.init_process_group: tinytorch runs in 1 process, not in {size}")
    group.WORLD = GroupMember.WORLD = ProcessGroup(backend or "gloo")


def destroy_process_group(group=None) -> None:
    """Makes the group no more."""
    _set(None)


def _set(world) -> None:
    group.WORLD = GroupMember.WORLD = world


def _the_group(given) -> ProcessGroup:
    if not is_initialized():
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return given if isinstance(given, ProcessGroup) else group.WORLD


def get_rank(group=None) -> int:
    """0."""
    _the_group(group)
    return 0


def get_world_size(group=None) -> int:
    """1."""
    return _the_group(group).size()


def get_backend(group=None) -> str:
    """The name that ``init_process_group`` was given."""
    return _the_group(group).backend


def get_default_backend_for_device(device) -> str:
    """gloo."""
    return "gloo"


def new_group(
    ranks=None,
    timeout=None,
    backend=None,
    pg_options=None,
    use_local_synchronization=False,
    group_desc=None,
    device_id=None,
) -> ProcessGroup:
    """A group of the same process. ValueError for other ranks."""
    if ranks not in (None, [0], (0,)):
        raise ValueError(f"distributed.new_group: the only rank is 0, got {ranks}")
    return ProcessGroup(backend or _the_group(None).backend)


def get_process_group_ranks(group) -> list[int]:
    """[0]."""
    return [0]


def get_global_rank(group, group_rank: int) -> int:
    """0."""
    return 0


def get_group_rank(group, global_rank: int) -> int:
    """0."""
    return 0


def get_node_local_rank(fallback_rank=None) -> int:
    """0."""
    return 0
