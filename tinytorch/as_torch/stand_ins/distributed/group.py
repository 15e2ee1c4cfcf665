"""A group of one process, and what says how to reduce."""

from __future__ import annotations

import enum
from typing import NamedTuple

__all__ = ["Backend", "GroupMember", "P2POp", "ProcessGroup", "ReduceOp", "Store", "Work", "group"]


class Backend(str):
    """The name of what sends."""

    GLOO, NCCL, MPI, UNDEFINED = "gloo", "nccl", "mpi", "undefined"


class ReduceOp(enum.Enum):
    """How values of several ranks become one; of one rank, all but PREMUL_SUM leave it as it is."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)


class ProcessGroup:
    """A group of this process."""

    def __init__(self, backend: str):
        self.backend = str(backend)
        self.group_name = "0"

    def rank(self) -> int:
        """0."""
        return 0

    def size(self) -> int:
        """1."""
        return 1

    def name(self) -> str:
        """The backend's."""
        return self.backend


class group:
    """``WORLD`` is the group of all, or None."""

    WORLD: ProcessGroup | None = None


class GroupMember:
    """``WORLD`` is the group of all, or None."""

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER = -100


def the_group(given=None) -> ProcessGroup:
    """The group that a function was given, or that of all. ValueError where there is none."""
    if group.WORLD is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return given if isinstance(given, ProcessGroup) else group.WORLD


class Work:
    """A collective that is done."""

    def __init__(self, result=None):
        self._result = result

    def wait(self, timeout=None) -> bool:
        """True."""
        return True

    def is_completed(self) -> bool:
        """True."""
        return True

    is_success = is_completed

    def result(self):
        """What it gave."""
        return self._result


class P2POp(NamedTuple):
    """A send or receive, which one process has nobody for."""

    op: object
    tensor: object
    peer: int | None = None
    group: object = None
    tag: int = 0


class Store:
    """Keys and values of this process."""

    def __init__(self, *args, **kwargs):
        self._values: dict[str, bytes] = {}

    def set(self, key: str, value) -> None:
        """Gives a key a value."""
        self._values[key] = value.encode() if isinstance(value, str) else bytes(value)

    def get(self, key: str) -> bytes:
        """A key's value. KeyError for none, which no other process will set."""
        return self._values[key]

    def add(self, key: str, amount: int) -> int:
        """The number of that key, raised by ``amount``."""
        value = int(self._values.get(key, b"0")) + amount
        self._values[key] = str(value).encode()
        return value

    def num_keys(self) -> int:
        """How many keys there are."""
        return len(self._values)

    def delete_key(self, key: str) -> bool:
        """Was the key there?"""
        return self._values.pop(key, None) is not None

    def wait(self, keys, timeout=None) -> None:
        """Nothing, if the keys are there. RuntimeError otherwise."""
        if missing := [key for key in keys if key not in self._values]:
            raise RuntimeError(f"no other process will set {missing}")
