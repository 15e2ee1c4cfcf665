"""What tinytorch asks of CUDA's driver, through PyCUDA: contexts, memory, modules, launches, copies. Another object of
this interface can take its place (tests have one that needs no GPU)."""

from __future__ import annotations

import atexit
from _thread import get_ident

from ..cpu import ffi
from . import nvrtc
from .source import kernels_folder


class PyCuda:
    """The driver of this machine. ImportError without PyCUDA, RuntimeError without a driver."""

    def __init__(self):
        try:
            import pycuda.driver as cuda  # an optional package
        except ImportError as exc:
            raise RuntimeError(f"CUDA tensors need PyCUDA ({exc}): pip install 'tinytorch[cuda]'") from None
        try:
            cuda.init()
        except cuda.Error as exc:
            raise RuntimeError(f"no NVIDIA driver works here: {exc}") from None
        self.cuda = cuda
        self.count = cuda.Device.count()
        self._contexts = {}  # by device: the primary context, shared with other libraries of this process
        self._segments = {}  # by device and address: what PyCUDA allocated
        self._mapped = {}    # by device: memory that both sides see
        self._current = {}   # by thread: the device whose context is current
        atexit.register(self._leave)

    def _leave(self) -> None:
        """At exit: PyCUDA wants its stack of contexts empty."""
        if self._current.pop(get_ident(), None) is not None:
            self.cuda.Context.pop()

    def open(self, device: int) -> None:
        """Makes the device's primary context the thread's."""
        context = self._contexts.get(device)
        if context is None:
            context = self._contexts[device] = self.cuda.Device(device).retain_primary_context()
        if self._current.get(get_ident()) != device:
            if get_ident() in self._current:
                self.cuda.Context.pop()
            context.push()
            self._current[get_ident()] = device

    def arch(self, device: int) -> str:
        """As NVRTC names it: "sm_90"."""
        return "sm_{}{}".format(*self.cuda.Device(device).compute_capability())

    def allocate(self, device: int, nbytes: int) -> int:
        """The address, or 0 when there is no memory."""
        try:
            memory = self.cuda.mem_alloc(nbytes)
        except self.cuda.MemoryError:
            return 0
        self._segments[device, int(memory)] = memory
        return int(memory)

    def free(self, device: int, address: int) -> None:
        self._segments.pop((device, address)).free()

    def mapped(self, device: int, nbytes: int) -> tuple[int, int]:
        """Memory of the CPU's that kernels see, for as long as the process runs: its address here and there."""
        memory = self.cuda.pagelocked_zeros(nbytes, "uint8", mem_flags=self.cuda.host_alloc_flags.DEVICEMAP)
        self._mapped[device] = memory
        return memory.ctypes.data, int(memory.base.get_device_pointer())

    def build(self, source: str, name: str, arch: str) -> bytes:
        """What load() takes, from a kernel's source."""
        return nvrtc.compile_cubin(source, name, arch, kernels_folder())

    def load(self, device: int, image: bytes, name: str):
        """What launches a kernel: ``f(grid, block, arguments, shared_bytes, stream)``."""
        return self.cuda.module_from_buffer(image).get_function(name)._launch_kernel

    def allow_shared(self, launch, nbytes: int) -> None:
        """Lets the kernel be launched with so much dynamic shared memory."""
        launch.__self__.set_attribute(self.cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, nbytes)

    def to_device(self, address: int, memory, nbytes: int, stream) -> None:
        """From pageable memory: done with it when this returns."""
        self.cuda.memcpy_htod_async(address, ffi.buffer(memory, nbytes), stream)

    def to_host(self, memory, address: int, nbytes: int, stream) -> None:
        """Waits for the stream, and the copy."""
        self.cuda.memcpy_dtoh_async(ffi.buffer(memory, nbytes), address, stream)
        if stream is None:
            self.cuda.Context.synchronize()
        else:
            stream.synchronize()

    def on_device(self, to: int, address: int, nbytes: int, stream) -> None:
        self.cuda.memcpy_dtod_async(to, address, nbytes, stream)

    def synchronize(self, device: int) -> None:
        self.cuda.Context.synchronize()
