"""Kernels compiled before they are asked for. Where the cache is empty, a first training step would compile its thirty
kernels one after the other, a tenth of a second each, while the other cores have nothing to do. So processes compile
the usual ones from when a device is opened, where the cache has none of them, or else from the first kernel that it
does not have."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading

from ...dtypes import SUFFIXES
from ..cpu import ffi, lib
from . import kernels, nvrtc
from .source import name_of, source_of

#: What the training steps of bench/train.py launch: family and operator; of each kernel the variant and the dtypes. A
#: kernel that is not here, or is another by now, is compiled when it is asked for. Those that take longest come first.
USUAL = """
    attention 0: 6281 f32 f32
    attention_query 0: 6281 f32 f32
    attention_key 0: 6281 f32 f32
    attention_wgmma 0: 0 bf16 f32, 3 bf16 f32
    reduce sum: 11520 f64 f64 f64 f64, 1282 f32 f32 f32 f32, 1285 f32 f32 f32 f32, 132101 f32 f32 f32 f32
    reduce sum: 132357 f32 f32 f32 f32, 132361 f32 f32 f32 f32, 135941 bf16 f32 f32 bf16
    reduce sum: 136197 bf16 f32 f32 bf16, 136453 bf16 f32 f32 bf16, 159008 f32 f32 f32 f32, 2 f32 f32 f32 f32
    reduce sum: 3328 f64 f64 f64 f64, 3360 f32 f32 f32 f32, 4869 bf16 f32 f32 bf16, 5378 f32 f32 f32 f32
    reduce sum: 5413 bf16 f32 f32 bf16, 773 f32 f32 f32 f32
    class_loss 1: 340 bf16 f32 f32, 340 f32 f32 f32, 6 bf16 f32 f32, 6 f32 f32 f32
    class_loss 3: 2 bf16 f32, 2 f32 f32, 340 bf16 f32, 340 f32 f32
    optim adam: 18 f32 f32
    norm 0: 12628 f32 f32
    norm 1: 4436 f32 f32
    norm_weight 0: 12 f32 f32, 16 f32 f32, 20 f32 f32
    elementwise add: 10 f32 f32 f32 f32, 138 f32 bf16 bf16 bf16, 138 f32 f32 f32 f32, 2 f32 f32 f32 bf16
    elementwise add: 2 f32 f32 f32 f32, 257 i64 i64 i64 i64, 3 f32 bf16 bf16 bf16
    elementwise div: 258 f32 f32 f32 f32, 259 f32 bf16 bf16 f32
    elementwise gelu: 4098 f32 f32 f32, 4099 f32 bf16 bf16
    elementwise gelu_backward: 2 f32 f32 f32 f32, 3 f32 bf16 bf16 bf16
    elementwise gelu_tanh: 4098 f32 f32 f32, 4099 f32 bf16 bf16
    elementwise gelu_tanh_backward: 2 f32 f32 f32 f32, 3 f32 bf16 bf16 bf16
    elementwise relu: 2 f32 f32 f32, 3 f32 bf16 bf16
    elementwise relu_backward: 11 f32 bf16 bf16 bf16, 2 f32 f32 f32 f32, 3 f32 bf16 bf16 bf16, 8 f32 f32 f32 f32
    elementwise squared_difference: 2 f32 f32 f32 f32
    elementwise squared_difference_backward: 34 f32 f32 f32 f32 f32
    batch_norm 0: 115 bf16 f32 f32 f32, 243 bf16 f32 f32 f32, 96 f32 f32 f32 f32, 98 f32 f32 f32 f32
    batch_norm 1: 179 bf16 f32 f32 f32, 32 f32 f32 f32 f32, 34 f32 f32 f32 f32, 51 bf16 f32 f32 f32
    batch_running 0: 1 f32 f32
    batch_sums 0: 0 f32 f32, 176 bf16 f32, 400 bf16 f32, 432 bf16 f32
    batch_sums 1: 0 f32 f32, 176 bf16 f32, 400 bf16 f32, 432 bf16 f32
    batch_sums 2: 0 f32 f32, 176 bf16 f32, 400 bf16 f32, 432 bf16 f32
    class_total 0: 0 f32 f32
    copy 0: 10 bf16 bf16 f32, 10 f32 f32 f32, 11 bf16 bf16 bf16, 2 bf16 bf16 f32, 2 f32 f32 bf16, 2 f32 f32 f32
    copy 0: 65 i64 i64 i64, 66 f32 f32 f32, 66 i32 i32 i32, 8 bf16 bf16 bf16, 8 f32 f32 f32
    index 0: 68 i64
    index 4: 64 i64
    join 0: 20
    pool 0: 1796 f32 f32, 1862 bf16 f32
    pool 2: 1792 f32 f32, 1858 bf16 f32
    radix 0: 2 i32
    radix 1: 2 i32
    recurrent 2: 0 f32
    recurrent 6: 0 f32
    segments 1: 2 f32 f32
    transpose 0: 5 f32 f32
"""
_MOST_PROCESSES, _LEAST_CORES = 8, 4

_lock = threading.RLock()  # what holds it may run a destructor, which may ask for a kernel
_begun: dict[str, threading.RLock] = {}  # by the name in the cache: who asked first compiles it, others wait
_waiting: list[tuple[str, str, str]] = []  # names in the cache, sources, names
_asked: set[str] = set()  # the words of the names of kernels that were asked for: operators, dtypes
_threads: list[threading.Thread] = []  # each with a process
_processes: list[nvrtc.Process] = []
_started = [False]


def usual() -> list[int]:
    """The keys of the usual kernels."""
    families = {ffi.string(lib.tt_family_name(k)).decode(): k for k in range(256) if lib.tt_family_name(k)}
    codes = {suffix: code for code, suffix in enumerate(SUFFIXES)}
    found = []
    for line in USUAL.strip().splitlines():
        (family, operator), kinds = (
            part.split() if k == 0 else part.split(",") for k, part in enumerate(line.split(":"))
        )
        number = families[family]
        op = int(operator) if operator.isdigit() else _operator(number, operator)
        for variant, *dtypes in map(str.split, kinds):
            key = number | op << 8 | int(variant) << 36
            for k, suffix in enumerate(dtypes):
                key |= codes[suffix] << (16 + 4 * k)
            found.append(key)
    return found


def _operator(family: int, name: str) -> int:
    return next(op for op in range(256) if ffi.string(lib.tt_operator_name(family, op)).decode() == name)


def expect(arch: str) -> None:
    """A device is about to be opened, which takes a while."""

    def look():
        with contextlib.suppress(Exception):  # who asks for a kernel is told
            if not any(kernels.on_disk(kernels.key_of(source_of(key), arch)) for key in usual()):
                _start(arch)

    if not _started[0]:
        threading.Thread(target=look, name="tinytorch: kernels", daemon=True).start()


def cubin(source: str, name: str, arch: str) -> bytes:
    """kernels.cubin, which others may be about to find or compile."""
    _asked.update(name.split("_"))
    key = kernels.key_of(source, arch)
    found = kernels.on_disk(key)
    if found is not None:
        return found
    if not _started[0]:
        _start(arch)
    with _begun.setdefault(key, threading.RLock()):
        return kernels.cubin(source, name, arch)


def _start(arch: str) -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with _lock:
        if _started[0]:
            return
        _started[0] = True
        if cores < _LEAST_CORES:
            return
        for key in usual():
            source = source_of(key)
            _waiting.append((kernels.key_of(source, arch), source, name_of(key)))
        for _ in range(min(_MOST_PROCESSES, cores - 1)):
            _threads.append(threading.Thread(target=_work, args=(arch,), name="tinytorch: NVRTC", daemon=True))
    for thread in list(_threads):
        thread.start()


def _likeliest() -> int:
    """Which of those waiting has the fewest words that nobody has asked for: a step in bfloat16 soon needs others of
    bfloat16, and what goes back through batch_norm comes after it. Of several, the first."""
    return min(range(len(_waiting)), key=lambda k: len({*_waiting[k][2].split("_")} - _asked))


def _work(arch: str) -> None:
    process = nvrtc.Process()
    try:
        with _lock:
            _processes.append(process)
        _compile_waiting(arch, process.compile_cubin)
    finally:
        with _lock:
            _processes.remove(process)
        process.close()


def _compile_waiting(arch: str, compile_cubin) -> None:
    while True:
        with _lock:
            if not _waiting:
                return
            key, source, name = _waiting.pop(_likeliest())
            if key in _begun:
                continue
            own = _begun.setdefault(key, threading.RLock())
        with own, contextlib.suppress(Exception):  # who asks for it is told
            kernels.cubin(source, name, arch, compile_cubin)


@atexit.register
def stop() -> None:
    """Nothing more is compiled ahead; what is under way is given up."""
    with _lock:
        _started[0] = True  # expect() may be about to
        _waiting.clear()
        for process in _processes:
            process.kill()
    for thread in _threads:
        if thread.is_alive():
            thread.join(10)


def _forget() -> None:
    """In a forked process there are no threads, and the processes are another's."""
    global _lock
    _lock = threading.RLock()
    for process in _processes:
        process.leave()
    _begun.clear()
    _waiting.clear()
    _threads.clear()
    _processes.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
