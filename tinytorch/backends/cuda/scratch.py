"""Memory of a device in which libraries work."""

from __future__ import annotations

from ..cpu import error, ffi, lib


def memory(device: int, nbytes: int, op: str):
    """So much of the current stream's for one call, to be freed by tt_free: the stream's next work may have it then.
    OutOfMemoryError, which names the operator, where there is none."""
    before = lib.tt_device_set(device + 1)
    try:
        h = lib.tt_empty(lib.TT_U8, 1, (nbytes,))
    finally:
        lib.tt_device_set(before)
    if not h:
        raise error(op)
    return h


def address(h) -> int:
    """Where it lies."""
    return int(ffi.cast("intptr_t", h.data))
