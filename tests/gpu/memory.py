"""What tests of the caching allocator share."""

from contextlib import contextmanager

import pytest
import tinytorch as tt
from tinytorch import cuda

MiB = 1 << 20
SMALL, LARGE = 2 * MiB, 20 * MiB


def fresh_stream():
    """A stream without any memory. Streams are handed out in turn, and tests before may have left tensors on some."""
    return next(s for s in (cuda.Stream() for _ in range(40)) if not blocks(s))


def blocks(stream):
    """The sizes of the stream's blocks by segment, oldest segment first; negative where they are free."""
    found = [
        [b["size"] if b["state"] == "active_allocated" else -b["size"] for b in segment["blocks"]]
        for segment in cuda.memory_snapshot(0)
        if segment["stream"] == stream.stream_id
    ]
    return found[::-1]


def free_blocks():
    """The sizes of all free blocks of the device, those that other tests have left too."""
    return [b["size"] for segment in cuda.memory_snapshot(0) for b in segment["blocks"] if b["state"] == "inactive"]


def amount(nbytes):
    """As messages have it."""
    return f"{nbytes / MiB:.2f} MiB" if nbytes < 1 << 30 else f"{nbytes / (1 << 30):.2f} GiB"


def make(nbytes):
    return tt.empty(nbytes, dtype=tt.uint8, device="cuda:0")


@contextmanager
def limited(nbytes):
    """No more than ``nbytes`` beyond what is reserved now."""
    total = cuda.mem_get_info(0)[1]
    cuda.set_per_process_memory_fraction((cuda.memory_reserved(0) + nbytes + 1) / total, 0)
    try:
        yield
    finally:
        cuda.set_per_process_memory_fraction(1.0, 0)


def ctrl_c_in_memory(emulated, monkeypatch, nbytes, run):
    """What is run asks the driver for so many bytes, while Ctrl-C comes: that is what it raises."""
    allocate = emulated.allocate

    def interrupted(device, size):
        if size == nbytes:
            monkeypatch.setattr(emulated, "allocate", allocate)
            raise KeyboardInterrupt
        return allocate(device, size)

    monkeypatch.setattr(emulated, "allocate", interrupted)
    with tt.config(cuda_caching=0), pytest.raises(KeyboardInterrupt):
        run()
