"""What the C side's allocator asks of the driver: memory, and events that tell when a stream is done with it."""

from __future__ import annotations

from itertools import count

from ..cpu import ffi, lib
from ..native import raise_after_call
from . import runtime


@ffi.def_extern(error=-1, onerror=runtime._keep)
def tt_cuda_segment(index, nbytes):
    if index == lib.TT_HOST_MEMORY:
        runtime.open_device(runtime._thread.device)
        return runtime.driver().allocate_host(nbytes)
    runtime.driver().open(index)
    return runtime.driver().allocate(index, nbytes)


@ffi.def_extern(error=-1, onerror=runtime._keep)
def tt_cuda_segment_free(index, address):
    if index == lib.TT_HOST_MEMORY:
        runtime.open_device(runtime._thread.device)
        runtime.driver().free_host(address)
        return 0
    runtime.driver().open(index)
    runtime.driver().free(index, address)
    return 0


@ffi.def_extern(error=-1, onerror=runtime._keep)
def tt_cuda_memory_info(index, out):
    runtime.driver().open(index)
    out[0], out[1] = runtime.driver().memory_info(index)
    return 0


# The allocator's events: for each device those that are recorded, by number, and those that may be recorded anew.

_recorded: dict[int, object] = {}
_idle: dict[int, list] = {}
_number = count(1).__next__


@ffi.def_extern(error=-1, onerror=raise_after_call)
def tt_cuda_event(what, index, stream, number):
    """No error gets out: who gives memory back cannot be told. The C side then keeps the block for good."""
    try:
        return _event(what, index, stream, number)
    except Exception:
        return -1


def _event(what: int, index: int, stream: int, number: int) -> int:
    runtime.driver().open(index)
    idle = _idle.setdefault(index, [])
    if what == lib.TT_EVENT_RECORD:
        try:
            event = idle.pop()
        except IndexError:
            event = runtime.driver().new_event()
        runtime.driver().record(event, runtime._devices[index].streams[stream])
        number = _number()
        _recorded[number] = event
        return number
    event = _recorded[number]
    if what == lib.TT_EVENT_WAIT:
        runtime.driver().wait_for_event(event)
    elif not runtime.driver().has_come(event):
        return 0
    idle.append(_recorded.pop(number))
    return 1
