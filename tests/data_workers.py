"""What tests of worker processes share: a dataset, and that nothing is left."""

import gc
import os
import pathlib
import threading

import pytest

import tinytorch as tt
from tinytorch.shared_memory import _blocks
from tinytorch.utils import data

needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this machine has no /proc")


def shared_names():
    """Names of ours in shared memory; other programs may come and go."""
    return {name for name in os.listdir("/dev/shm") if "tinytorch" in name} if os.path.isdir("/dev/shm") else set()


def children():
    """The pids of this process's children that live."""
    return {int(p) for p in pathlib.Path("/proc/self/task").glob("*/children") for p in p.read_text().split()}


def nothing_left():
    """For a fixture: afterwards there are no more descriptors, shared blocks, their names, and threads than before."""
    assert tt.fuse.wait(200)  # a compiler, which another test may have started, has a descriptor
    before = set(os.listdir("/proc/self/fd")), shared_names(), threading.active_count(), set(_blocks)
    yield
    gc.collect()  # a caught exception refers to itself
    more = sorted(set(os.listdir("/proc/self/fd")) - before[0])
    assert not more, [os.readlink(f"/proc/self/fd/{fd}") for fd in more if os.path.lexists(f"/proc/self/fd/{fd}")]
    assert shared_names() <= before[1] and threading.active_count() <= before[2]
    assert set(_blocks) <= before[3]


class Numbers(data.Dataset):
    def __init__(self, n, act=None):
        self.n, self.act = n, act

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if self.act is not None:
            self.act(i)
        return tt.full((3,), float(i)), i


def first(batches):
    return [batch[1].tolist() for batch in batches]
