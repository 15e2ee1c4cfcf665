"""What tinytorch asks of CUDA's driver, through PyCUDA: contexts, memory, modules, launches, copies, streams. Another
object of this interface can take its place (tests have one that needs no GPU).

A stream is PyCUDA's object, None the default stream; an event is a handle of the driver's (see libcuda).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator

from ..cpu import ffi, lib
from . import ahead, attention, convolution, cublas, cudnn, cufft, cusolver, libcuda
from .libcuda import check

NON_BLOCKING = 1  # of streams: they do not wait for the default one, nor it for them


def _forever(made):
    """``made``, an object of PyCUDA's that is never unmade: at the interpreter's end that would be too late, and in
    another thread PyCUDA cannot do it, and warns. The process's end frees all."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
    return made


def _open_libraries() -> None:
    """Those that training needs first, while the device is opened, which takes longer."""
    for library in (cublas, cudnn):
        with contextlib.suppress(OSError):  # who needs it is told
            library.version()


class LaunchError(RuntimeError):
    """A kernel that the driver did not launch."""


class Kernel:
    """What launches a kernel: ``f(grid, block, arguments, shared_bytes, stream)``."""

    __slots__ = ("function", "_handle_of")

    def __init__(self, function, handle_of):
        self.function, self._handle_of = function, handle_of  # the driver's handles

    def __call__(self, grid, block, arguments, shared, stream) -> None:
        memory, size = ffi.from_buffer(arguments), ffi.new("size_t *", len(arguments))
        how = [libcuda.ARGUMENTS, memory, libcuda.ARGUMENTS_SIZE, size, 0]
        extra = ffi.new("void *[]", [ffi.cast("void *", x) for x in how])
        handle = ffi.cast("void *", self._handle_of(stream))
        launch = libcuda.library().cuLaunchKernel
        status = launch(self.function, *grid, *block, shared, handle, ffi.NULL, extra)
        if status:
            raise LaunchError(f"{libcuda.text_of(status)}, found when launching a kernel")


class _Thread(threading.local):
    """What a thread has made current."""

    device = -1


class PyCuda:
    """The driver of this machine. RuntimeError without PyCUDA or without a driver."""

    def __init__(self):
        try:
            import pycuda.driver as cuda  # an optional package
        except ModuleNotFoundError as exc:
            raise RuntimeError(f"CUDA tensors need PyCUDA ({exc}): pip install 'tinytorch[cuda]'") from None
        except ImportError as exc:
            raise RuntimeError(
                f"PyCUDA cannot be loaded ({exc}): CUDA tensors need an NVIDIA GPU and its driver"
            ) from None
        try:
            cuda.init()
            self.count = cuda.Device.count()
        except cuda.Error as exc:
            raise RuntimeError(
                f"no NVIDIA driver works here ({exc}): CUDA tensors need an NVIDIA GPU and its driver"
            ) from None
        self.cuda = cuda
        self.library = libcuda.library()
        self.failures = (cuda.Error, LaunchError)  # what becomes a RuntimeError
        lib.tt_cuda_launcher(libcuda.address("cuLaunchKernel"), libcuda.address("cuCtxGetCurrent"))
        self._contexts = {}  # by device: PyCUDA's object and the driver's handle of the primary context
        self._lock = threading.Lock()
        self._thread = _Thread()
        self._pid = os.getpid()
        os.register_at_fork(after_in_child=self._forget)

    # Contexts.

    def _forget(self) -> None:
        """In a forked process no context works."""
        self._contexts, self._thread = {}, _Thread()

    def is_inherited(self) -> bool:
        """Is it that of a process which this one was forked from? Then no device can be opened."""
        return self._pid != os.getpid()

    def open(self, device: int) -> None:
        """Makes the device's primary context, which other libraries of this process share, the thread's."""
        if self._thread.device == device and (self.count == 1 or self.is_current(device)):
            return
        check(self.library.cuCtxSetCurrent(self._context(device)[1]), f"making cuda:{device} current")
        self._thread.device = device

    def turn_to(self, device: int) -> None:
        """``open`` for one launch, without a look at what is current: if that is not what this thread made so, the
        launch fails."""
        if self._thread.device != device:
            self.open(device)

    def is_current(self, device: int) -> bool:
        """Where there are several devices, another library may have changed what is current."""
        return libcuda.made(self.library.cuCtxGetCurrent, "looking for the context") == self._contexts[device][1]

    def _context(self, device: int):
        found = self._contexts.get(device)
        if found is None:
            if self.is_inherited():
                raise RuntimeError(
                    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, "
                    "you must use the 'spawn' start method"
                )
            with self._lock:
                if device not in self._contexts:
                    ahead.expect(self.arch(device))
                    threading.Thread(target=_open_libraries, name="tinytorch: libraries", daemon=True).start()
                    # Takes up to seconds, in which PyCUDA's function would let no other thread run.
                    handle = libcuda.made(self.library.cuDevicePrimaryCtxRetain, "opening the device", device)
                    context = _forever(self.cuda.Device(device).retain_primary_context())
                    self._contexts[device] = context, handle
                    if self.count > 1:
                        lib.tt_cuda_context(device, handle)
            found = self._contexts[device]
        return found

    @contextlib.contextmanager
    def _entered(self, device: int) -> Iterator[None]:
        """PyCUDA's objects are made and unmade while the context is on its own stack."""
        self._context(device)[0].push()
        try:
            yield
        finally:
            self.cuda.Context.pop()

    def synchronize(self, device: int) -> None:
        """Waits for all that the device has to do."""
        self.open(device)
        check(self.library.cuCtxSynchronize(), f"waiting for cuda:{device}")

    # Devices.

    def arch(self, device: int) -> str:
        """As NVRTC names it: "sm_80"; Hopper's with what only it has (kernels/cuda/device/wgmma.cuh): "sm_90a"."""
        major, minor = self.capability(device)
        return f"sm_{major}{minor}{'a' if (major, minor) == (9, 0) else ''}"

    def capability(self, device: int) -> tuple[int, int]:
        return self.cuda.Device(device).compute_capability()

    def properties(self, device: int) -> dict:
        """By the names of ``torch.cuda.get_device_properties``."""
        d = self.cuda.Device(device)
        major, minor = d.compute_capability()
        ask = {
            "multi_processor_count": "MULTIPROCESSOR_COUNT",
            "warp_size": "WARP_SIZE",
            "L2_cache_size": "L2_CACHE_SIZE",
            "max_threads_per_block": "MAX_THREADS_PER_BLOCK",
            "max_threads_per_multi_processor": "MAX_THREADS_PER_MULTIPROCESSOR",
            "regs_per_multiprocessor": "MAX_REGISTERS_PER_MULTIPROCESSOR",
            "shared_memory_per_block": "MAX_SHARED_MEMORY_PER_BLOCK",
            "shared_memory_per_block_optin": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
            "shared_memory_per_multiprocessor": "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
            "clock_rate": "CLOCK_RATE",
            "memory_clock_rate": "MEMORY_CLOCK_RATE",
            "memory_bus_width": "GLOBAL_MEMORY_BUS_WIDTH",
            "is_integrated": "INTEGRATED",
            "pci_bus_id": "PCI_BUS_ID",
            "pci_device_id": "PCI_DEVICE_ID",
            "pci_domain_id": "PCI_DOMAIN_ID",
        }
        known = self.cuda.device_attribute
        found = {
            name: d.get_attribute(getattr(known, attribute))
            for name, attribute in ask.items()
            if hasattr(known, attribute)
        }
        return {"name": d.name(), "major": major, "minor": minor, "total_memory": d.total_memory(), **found}

    def can_access(self, device: int, other: int) -> bool:
        """Can the one device read the other's memory?"""
        return self.cuda.Device(device).can_access_peer(self.cuda.Device(other))

    # Memory.

    def allocate(self, device: int, nbytes: int) -> int:
        """The address, or 0 when there is no memory."""
        out = ffi.new("uint64_t *")
        status = self.library.cuMemAlloc_v2(out, nbytes)
        if status == libcuda.OUT_OF_MEMORY:
            return 0
        check(status, f"allocating {nbytes} bytes on cuda:{device}")
        return out[0]

    def free(self, device: int, address: int) -> None:
        check(self.library.cuMemFree_v2(address), f"giving memory of cuda:{device} back")

    def allocate_host(self, nbytes: int) -> int:
        """Page-locked memory of the CPU's for all devices: the address, or 0 when there is none."""
        out = ffi.new("void **")
        status = self.library.cuMemHostAlloc(out, nbytes, libcuda.PORTABLE)
        if status == libcuda.OUT_OF_MEMORY:
            return 0
        check(status, f"allocating {nbytes} bytes of page-locked memory")
        return int(ffi.cast("intptr_t", out[0]))

    def free_host(self, address: int) -> None:
        check(self.library.cuMemFreeHost(ffi.cast("void *", address)), "giving page-locked memory back")

    def mapped(self, device: int, nbytes: int) -> tuple[int, int]:
        """Memory of the CPU's that kernels see, for as long as the process runs: its address here and there."""
        out, there = ffi.new("void **"), ffi.new("uint64_t *")
        flags = libcuda.PORTABLE | libcuda.DEVICE_MAP
        check(self.library.cuMemHostAlloc(out, nbytes, flags), "allocating memory for both sides")
        check(self.library.cuMemHostGetDevicePointer_v2(there, out[0], 0), "asking for an address")
        ffi.memmove(out[0], bytes(nbytes), nbytes)
        return int(ffi.cast("intptr_t", out[0])), there[0]

    def memory_info(self, device: int) -> tuple[int, int]:
        """Free and total bytes."""
        free, total = ffi.new("size_t *"), ffi.new("size_t *")
        check(self.library.cuMemGetInfo_v2(free, total), f"asking for the memory of cuda:{device}")
        return free[0], total[0]

    def device_of(self, address: int) -> int:
        """The device whose memory that is."""
        out = ffi.new("int *")
        status = self.library.cuPointerGetAttribute(out, libcuda.DEVICE_ORDINAL, address)
        check(status, f"looking for the device of address {address:#x}")
        return out[0]

    # Kernels.

    def build(self, source: str, name: str, arch: str) -> bytes:
        """What load() takes, from a kernel's source."""
        return ahead.cubin(source, name, arch)

    def load(self, device: int, image: bytes, name: str) -> Kernel:
        """A kernel of machine code, which stays loaded."""
        self.open(device)
        module = libcuda.made(self.library.cuModuleLoadData, f"loading {name}", image)
        found = libcuda.made(self.library.cuModuleGetFunction, f"loading {name}", module, name.encode())
        return Kernel(found, self.handle)

    def allow_shared(self, kernel: Kernel, nbytes: int) -> None:
        """Lets the kernel be launched with so much dynamic shared memory."""
        status = self.library.cuFuncSetAttribute(kernel.function, libcuda.MAX_DYNAMIC_SHARED, nbytes)
        check(status, f"allowing a kernel {nbytes} bytes of shared memory")

    def multiply(self, device: int, problem, a, b, c, out, bias, alpha, beta, stream) -> int:
        """A product of matrices: see tt_gemm in kernels/api/cuda.h. 1: not with a bias."""
        return cublas.multiply(device, problem, a, b, c, out, bias, alpha, beta, self.handle(stream), keep=True)

    def transform(self, device: int, problem, a, out, stream) -> int:
        """A Fourier transform: see tt_transform in kernels/api/cuda.h."""
        return cufft.transform(device, problem, a, out, self.handle(stream))

    def solve(self, device: int, problem, stream) -> int:
        """A routine of LAPACK's: see tt_solver in kernels/api/cuda.h."""
        return cusolver.solve(device, problem, self.handle(stream))

    def convolve(self, device: int, problem, input, weight, result, stream) -> int:
        """A convolution: see tt_convolution in kernels/api/cuda.h. 1: there is no plan for it."""
        return convolution.convolve(device, problem, input, weight, result, self.handle(stream), keep=True)

    def attend(self, device: int, problem, tensors, stream) -> int:
        """Attention: see tt_attend in kernels/api/cuda.h. 1: there is no plan for it."""
        return attention.attend(device, problem, tensors, self.handle(stream))

    # Copies. From pageable memory they are done with it when they return.

    def to_device(self, address: int, memory, nbytes: int, stream) -> None:
        self.cuda.memcpy_htod_async(address, ffi.buffer(memory, nbytes), stream)

    def to_host(self, memory, address: int, nbytes: int, stream) -> None:
        self.cuda.memcpy_dtoh_async(ffi.buffer(memory, nbytes), address, stream)

    # Streams.

    def new_stream(self, device: int, priority: int = 0):
        """The less its priority, the earlier what it is told is done; a driver that knows none leaves it at 0."""
        with self._entered(device):
            stream = _forever(self.cuda.Stream(NON_BLOCKING))
            if priority:  # PyCUDA makes only streams of priority 0
                value = ffi.new("int[16]", (priority,))  # the driver's union has 64 bytes
                self.library.cuStreamSetAttribute(self._pointer(stream), libcuda.PRIORITY, value)
            return stream

    def priorities(self, device: int) -> tuple[int, int]:
        """The priorities of streams: the least urgent (the larger number), and the most urgent."""
        self.open(device)
        least, greatest = ffi.new("int *"), ffi.new("int *")
        check(self.library.cuCtxGetStreamPriorityRange(least, greatest), "asking for the priorities of streams")
        return least[0], greatest[0]

    def priority(self, stream) -> int:
        out = ffi.new("int *")
        check(self.library.cuStreamGetPriority(self._pointer(stream), out), "asking for a stream's priority")
        return out[0]

    def handle(self, stream) -> int:
        """The driver's handle; 0 for the default stream."""
        return 0 if stream is None else stream.handle

    def wait_for_stream(self, stream) -> None:
        check(self.library.cuStreamSynchronize(self._pointer(stream)), "waiting for a stream")

    def is_done(self, stream) -> bool:
        return self._ready(self.library.cuStreamQuery(self._pointer(stream)), "asking a stream")

    def _pointer(self, stream):
        return ffi.cast("void *", stream if type(stream) is int else self.handle(stream))

    def _ready(self, status: int, what: str) -> bool:
        if status != libcuda.NOT_READY:
            check(status, what)
        return status == 0

    # Graphs.

    def begin_capture(self, stream) -> None:
        """What the stream is told from now on is recorded, not done. The thread may go on allocating memory."""
        check(self.library.cuStreamBeginCapture_v2(self._pointer(stream), libcuda.RELAXED), "starting a graph")
        cudnn.expect_graphs()

    def end_capture(self, stream):
        """The graph of what was recorded, ready to be run."""
        graph = ffi.new("void **")
        check(self.library.cuStreamEndCapture(self._pointer(stream), graph), "recording a graph")
        try:
            return libcuda.made(self.library.cuGraphInstantiateWithFlags, "building a graph", graph[0], 0)
        finally:
            self.library.cuGraphDestroy(graph[0])

    def run_graph(self, graph, stream) -> None:
        check(self.library.cuGraphLaunch(graph, self._pointer(stream)), "running a graph")

    def drop_graph(self, graph) -> None:
        self.library.cuGraphExecDestroy(graph)

    # Events. A stream may be given as an object or by its handle.

    def new_event(self, timing: bool = False, blocking: bool = False):
        flags = (0 if timing else libcuda.DISABLE_TIMING) | (libcuda.BLOCKING_SYNC if blocking else 0)
        event = libcuda.made(self.library.cuEventCreate, "making an event", flags)
        return ffi.gc(event, self.library.cuEventDestroy_v2)  # by C: Python drops a Ctrl-C that comes in a finalizer

    def record(self, event, stream) -> None:
        check(self.library.cuEventRecord(event, self._pointer(stream)), "recording an event")

    def has_come(self, event) -> bool:
        return self._ready(self.library.cuEventQuery(event), "asking for an event")

    def wait_for_event(self, event) -> None:
        check(self.library.cuEventSynchronize(event), "waiting for an event")

    def let_wait(self, stream, event) -> None:
        """The stream goes on when the event has come."""
        check(self.library.cuStreamWaitEvent(self._pointer(stream), event, 0), "letting a stream wait for an event")

    def milliseconds(self, start, end) -> float:
        out = ffi.new("float *")
        check(self.library.cuEventElapsedTime(out, start, end), "comparing the times of two events")
        return out[0]

    def event_handle(self, event) -> int:
        return int(ffi.cast("intptr_t", event))
