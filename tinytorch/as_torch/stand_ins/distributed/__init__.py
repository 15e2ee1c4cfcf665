"""``torch.distributed`` in a group of one process: collectives do what one rank alone does, and nothing is sent.
``init_process_group`` refuses more than one."""

from __future__ import annotations

import os

from . import collectives
from . import group as _group
from .group import GroupMember, ProcessGroup, Store, group, the_group

# The names of both are here, as in PyTorch.
globals().update({name: getattr(module, name) for module in (collectives, _group) for name in module.__all__})

__all__ = [
    *collectives.__all__,
    *_group.__all__,
    "FileStore",
    "HashStore",
    "TCPStore",
    "destroy_process_group",
    "get_backend",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "new_group",
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
    _set(ProcessGroup(backend or "gloo"))


def destroy_process_group(group=None) -> None:
    """Makes the group no more."""
    _set(None)


def _set(world) -> None:
    group.WORLD = GroupMember.WORLD = world


def get_rank(group=None) -> int:
    """0."""
    the_group(group)
    return 0


def get_world_size(group=None) -> int:
    """1."""
    return the_group(group).size()


def get_backend(group=None) -> str:
    """The name that ``init_process_group`` was given."""
    return the_group(group).backend


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
    return ProcessGroup(backend or the_group().backend)


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
