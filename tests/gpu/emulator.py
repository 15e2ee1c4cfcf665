"""A CUDA device on the CPU: kernels are compiled by g++ (emulator.h) and run at once, and "device" memory cannot be
touched outside of kernels and copies. With it the whole path from an operator to a kernel is tested without a GPU."""

import contextlib
import ctypes
import functools
import hashlib
import mmap
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass

from cffi import FFI

from tinytorch.backends.cpu import ffi
from tinytorch.backends.cuda import runtime
from tinytorch.backends.cuda.source import kernels_folder

from . import products, solvers, transforms

HERE = pathlib.Path(__file__).resolve().parent
WAITS = re.compile(r"__sync|__shfl|__ballot|__any_sync|__all_sync")
FAMILY = re.compile(r'#include "cuda/device/(\w+)\.cuh"')
ARENA = 1 << 30
COMPILER = (
    "g++",
    "-std=c++17",
    "-O1",
    "-march=native",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-w",
    "-fPIC",
)

_ffi = FFI()
_ffi.cdef("int tt_run(const void *args, unsigned x, unsigned y, unsigned threads, int64_t bytes, int back);")


def available() -> bool:
    """Is there a C++ compiler?"""
    return shutil.which("g++") is not None


@dataclass
class Plan:
    """A launch: the kernel's name and source, blocks, threads, packed arguments, bytes of shared memory."""

    name: str
    source: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: bytes
    shared: int

    @property
    def family(self) -> str:
        """The file that the kernel is in; of fused mode's: "fused"."""
        return self.name if self.name == "fused" else FAMILY.findall(self.source)[-1]


class Emulator:
    """The interface of tinytorch.backends.cuda.driver.PyCuda."""

    def __init__(self, count: int = 2):
        self._count = self.count = count  # all, and those that are plugged in
        self._taken_out = {}  # what tinytorch keeps of those that were opened
        self.launches = []  # names of the kernels run, in order
        self.backwards = False  # do the last blocks and threads of a kernel run first?
        self.plans = None  # those of planning()
        self.idle = False  # nothing is computed
        self._lock = threading.RLock()
        self._inside = 0
        self._map = mmap.mmap(-1, ARENA, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        # Changing the protection around a launch takes 40 ms once 900 MB were touched, with huge pages 0.1 ms.
        self._map.madvise(mmap.MADV_HUGEPAGE)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self._free = [(0, ARENA)]  # offset and size, sorted
        self._sizes = {}
        self._owners = []  # device, address and size of all that was ever allocated
        self._host = {}  # page-locked memory, by address
        self.held = set()  # streams that get nothing done: their events do not come
        self.failures = ()
        self.waits = 0  # for events
        self.graphs = {}  # by stream that is being captured: what it was told
        self.order = []  # which stream was told to wait for which
        self._streams = 0
        self._priorities = {}
        self._mapped = {}
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._protect(False)
        self._folder = os.environ.get("TINYTORCH_EMULATOR_DIR") or tempfile.mkdtemp(prefix="tinytorch-emulator-")

    def plug_in(self) -> None:
        """From now on tinytorch finds the devices, as they were when they were taken out."""
        if runtime._driver is not self:
            runtime.use_driver(self)
        self.count = self._count
        runtime._devices.update(self._taken_out)

    def take_out(self) -> None:
        """From now on tinytorch finds no device. Memory that tensors still hold is freed as ever."""
        self.count = 0
        self._taken_out = dict(runtime._devices)
        runtime._devices.clear()

    def _protect(self, open_: bool) -> None:
        flags = mmap.PROT_READ | mmap.PROT_WRITE if open_ else 0
        if self._libc.mprotect(ctypes.c_void_p(self._base), ctypes.c_size_t(ARENA), flags):
            raise OSError(ctypes.get_errno(), "mprotect")

    def __enter__(self):
        self._lock.acquire()
        if not self._inside:
            self._protect(True)
        self._inside += 1

    def __exit__(self, *_):
        self._inside -= 1
        if not self._inside:
            self._protect(False)
        self._lock.release()

    def open(self, device: int) -> None:
        assert 0 <= device < self._count

    turn_to = open

    def is_current(self, device: int) -> bool:
        return True

    def arch(self, device: int) -> str:
        return "sm_90a"

    def allocate(self, device: int, nbytes: int) -> int:
        size = -(-nbytes // 512) * 512
        with self._lock:
            for k, (at, room) in enumerate(self._free):
                if room >= size:
                    self._free[k : k + 1] = [(at + size, room - size)] if room > size else []
                    self._sizes[self._base + at] = size
                    break
            else:
                return 0
        with self:
            ctypes.memset(self._base + at, 0xFF, size)  # fresh memory is NaN, or -1: a read of it shows
        self._owners.append((device, self._base + at, size))
        return self._base + at

    def free(self, device: int, address: int) -> None:
        with self._lock:
            self._free.append((address - self._base, self._sizes.pop(address)))
            merged = []
            for at, room in sorted(self._free):
                if merged and sum(merged[-1]) == at:
                    merged[-1] = (merged[-1][0], merged[-1][1] + room)
                else:
                    merged.append((at, room))
            self._free = merged

    def allocate_host(self, nbytes: int) -> int:
        memory = ctypes.create_string_buffer(nbytes + 64)
        address = -(-ctypes.addressof(memory) // 64) * 64
        self._host[address] = memory
        return address

    def free_host(self, address: int) -> None:
        del self._host[address]

    def memory_info(self, device: int) -> tuple[int, int]:
        return sum(room for _, room in self._free), ARENA

    def capability(self, device: int) -> tuple[int, int]:
        return 9, 0

    def properties(self, device: int) -> dict:
        return {
            "name": "Emulator",
            "major": 9,
            "minor": 0,
            "total_memory": ARENA,
            "multi_processor_count": 1,
            "warp_size": 32,
            "shared_memory_per_block_optin": 232448,
        }

    def device_of(self, address: int) -> int:
        found = [d for d, at, size in self._owners if at <= address < at + size]
        if not found:
            raise RuntimeError("CUDA error: invalid argument, found when looking for an address")
        return found[-1]

    def can_access(self, device: int, other: int) -> bool:
        return False

    def mapped(self, device: int, nbytes: int) -> tuple[int, int]:
        memory = self._mapped[device] = ctypes.create_string_buffer(nbytes + 16)
        address = -(-ctypes.addressof(memory) // 16) * 16
        return address, address

    def build(self, source: str, name: str, arch: str) -> tuple[str, str]:
        return source, name

    def load(self, device: int, image: tuple[str, str], entry: str):
        source, name = image
        library = None

        def launch(grid, block, arguments, shared, stream):
            nonlocal library
            values = bytes(arguments)
            if self.plans is not None:
                self.plans.append(Plan(name, source, grid, block, values, shared))
            if self.idle:
                return
            if library is None:
                library = _ffi.dlopen(compile_kernel(source, self._folder))
            work = _ffi.from_buffer(values), *grid[:2], block[0], shared
            self._tell(stream, name, lambda: library.tt_run(*work, self.backwards))

        if not self.idle:  # so that what does not compile is found where it is loaded
            library = _ffi.dlopen(compile_kernel(source, self._folder))
        return launch

    @contextlib.contextmanager
    def planning(self, run: bool = False):
        """What is launched inside is put into the list that this gives, and neither compiled nor run, unless ``run``.
        What is not run leaves values without meaning, and a value that is read is 0."""
        self.plans, self.idle = [], not run
        try:
            yield self.plans
        finally:
            self.plans, self.idle = None, False

    def multiply(self, device: int, problem, a, b, c, out, bias, alpha, beta, stream) -> int:
        if self.idle:
            return 0
        given = ffi.new("tt_gemm *", problem[0])
        factors = [ffi.new("char[]", ffi.buffer(ffi.cast("char *", f), 16)[:]) for f in (alpha, beta)]
        self._tell(stream, "gemm", lambda: products.multiply(given, a, b, c, out, bias, *factors))
        return 0

    def transform(self, device: int, problem, a, out, stream) -> int:
        if self.idle:
            return 0
        given = ffi.new("tt_transform *", problem[0])
        self._tell(stream, "fft", lambda: transforms.transform(given, a, out))
        return 0

    def solve(self, device: int, problem, stream) -> int:
        if self.idle:
            return 0
        given = ffi.new("tt_solver *", problem[0])
        self._tell(stream, "linalg", lambda: solvers.solve(device, given))
        return 0

    def convolve(self, device: int, problem, input, weight, result, stream) -> int:
        return 1  # no library here: the kernel does it

    def attend(self, device: int, problem, tensors, stream) -> int:
        return 1

    def _tell(self, stream, name: str, work) -> None:
        """Work of a stream: done at once, or recorded."""
        if stream in self.graphs:
            self.graphs[stream].append((name, work))
            return
        with self:
            self.launches += [name] * bool(name)
            work()

    def allow_shared(self, function, nbytes: int) -> None:
        assert nbytes <= 232448

    def to_device(self, address: int, memory, nbytes: int, stream) -> None:
        source = int(ffi.cast("intptr_t", memory))
        self._tell(stream, "", lambda: ctypes.memmove(address, source, nbytes))

    def to_host(self, memory, address: int, nbytes: int, stream) -> None:
        target = int(ffi.cast("intptr_t", memory))
        if self.idle:  # a count that decides about a size
            ctypes.memset(target, 0, nbytes)
            return
        self._tell(stream, "", lambda: ctypes.memmove(target, address, nbytes))

    def is_inherited(self) -> bool:
        return False  # a forked process has devices of its own

    def synchronize(self, device: int) -> None:
        self.held.clear()

    # Streams are numbers. What a stream is told is done at once; a held stream's events come when it is waited for.

    def new_stream(self, device: int, priority: int = 0) -> int:
        self._streams += 1
        self._priorities[0x1000 + self._streams] = priority
        return 0x1000 + self._streams

    def priorities(self, device: int) -> tuple[int, int]:
        return 0, -3

    def priority(self, stream) -> int:
        return self._priorities.get(stream, 0)

    def handle(self, stream) -> int:
        return stream or 0

    def begin_capture(self, stream) -> None:
        self.graphs[stream] = []

    def end_capture(self, stream) -> list:
        return self.graphs.pop(stream)

    def run_graph(self, graph, stream) -> None:
        with self:
            for name, work in graph:
                self.launches += [name] * bool(name)
                work()

    def drop_graph(self, graph) -> None:
        graph.clear()

    def wait_for_stream(self, stream) -> None:
        if stream in self.graphs:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")
        self.held.discard(stream)

    def is_done(self, stream) -> bool:
        return stream not in self.held

    def new_event(self, timing: bool = False, blocking: bool = False) -> dict:
        return {"stream": None, "time": None}

    def record(self, event, stream) -> None:
        event.update(stream=stream, time=time.perf_counter())

    def has_come(self, event) -> bool:
        return event["stream"] not in self.held

    def wait_for_event(self, event) -> None:
        self.held.discard(event["stream"])
        self.waits += 1

    def let_wait(self, stream, event) -> None:
        self.order.append((stream, event["stream"]))

    def milliseconds(self, start, end) -> float:
        return (end["time"] - start["time"]) * 1e3

    def event_handle(self, event) -> int:
        return id(event)


@functools.cache
def machine() -> Emulator:
    """This process's emulated devices: they are there between ``plug_in`` and ``take_out``."""
    return Emulator()


@functools.cache
def headers_digest() -> str:
    digest = hashlib.sha256()
    root = pathlib.Path(kernels_folder())
    device = root / "cuda" / "device"
    for path in (*sorted((root / "scalar").glob("*.h")), *sorted(device.glob("*.*h")), HERE / "emulator.h"):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@functools.cache
def compiled_header(folder: str) -> str:
    """The folder of emulator.h and what g++ made of it beforehand: half of a kernel's compilation is that header."""
    path = os.path.join(folder, "header-" + headers_digest()[:16])
    if not os.path.exists(path):
        os.makedirs(folder, exist_ok=True)
        own = tempfile.mkdtemp(dir=folder)
        shutil.copy(HERE / "emulator.h", own)
        subprocess.run([*COMPILER, "-x", "c++-header", os.path.join(own, "emulator.h")], check=True)
        try:
            os.rename(own, path)
        except OSError:  # another process was first
            shutil.rmtree(own)
    return path


def compile_kernel(source: str, folder: str) -> str:
    """The shared library of a kernel, compiled where it is not there yet."""
    key = hashlib.sha256((source + headers_digest()).encode()).hexdigest()[:32]
    path = os.path.join(folder, key + ".so")
    if os.path.exists(path):
        return path
    os.makedirs(folder, exist_ok=True)
    families, folder_of = FAMILY.findall(source), pathlib.Path(kernels_folder()) / "cuda" / "device"
    text = source if not families else source + (folder_of / f"{families[-1]}.cuh").read_text()
    for inner in FAMILY.findall(text):
        text += (folder_of / f"{inner}.cuh").read_text()
    waits = "true" if WAITS.search(text) else "false"
    own = f"{path}.{os.getpid()}.{threading.get_ident()}"
    with open(own + ".cpp", "w") as f:
        f.write(f'#include "emulator.h"\n{source}\nTT_EMULATED_ENTRY({waits})\n')
    done = subprocess.run(
        [*COMPILER, "-shared", "-I", compiled_header(folder), "-I", kernels_folder(), own + ".cpp", "-o", own],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"the kernel does not compile:\n{source}\n{done.stderr[:4000]}")
    os.rename(own, path)
    os.unlink(own + ".cpp")
    return path
