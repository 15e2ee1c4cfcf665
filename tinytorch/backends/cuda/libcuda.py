"""CUDA's driver library, for what PyCUDA does not offer: events by their handles (PyCUDA does not tell them, and the
streams of other libraries and the default stream need them), contexts made current in threads that end (PyCUDA aborts a
process whose thread ends with a context on its stack), memory that outlives Python's objects, and graphs."""

from __future__ import annotations

from ..cpu import ffi
from .binding import Library
from .libraries import opened

_DECLARATIONS = """
    int cuGetErrorName(int, const char **);
    int cuGetErrorString(int, const char **);

    int cuDevicePrimaryCtxRetain(void **, int device);
    int cuCtxGetCurrent(void **);
    int cuCtxSetCurrent(void *);
    int cuCtxSynchronize(void);

    int cuMemAlloc_v2(uint64_t *, size_t);
    int cuMemFree_v2(uint64_t);
    int cuMemGetInfo_v2(size_t *free, size_t *total);
    int cuMemHostAlloc(void **, size_t, unsigned flags);
    int cuMemFreeHost(void *);
    int cuMemHostGetDevicePointer_v2(uint64_t *, void *, unsigned flags);

    int cuModuleLoadData(void **, const void *image);
    int cuModuleGetFunction(void **, void *module, const char *name);
    int cuFuncSetAttribute(void *function, int attribute, int value);
    int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads_x, unsigned threads_y,
                       unsigned threads_z, unsigned shared, void *stream, void **arguments, void **extra);

    int cuPointerGetAttribute(void *, int attribute, uint64_t address);

    int cuCtxGetStreamPriorityRange(int *least, int *greatest);
    int cuStreamGetPriority(void *stream, int *priority);
    int cuStreamSetAttribute(void *stream, int attribute, const void *value);
    int cuStreamSynchronize(void *stream);
    int cuStreamQuery(void *stream);
    int cuStreamIsCapturing(void *stream, int *status);
    int cuStreamWaitEvent(void *stream, void *event, unsigned flags);

    int cuEventCreate(void **, unsigned flags);
    int cuEventRecord(void *event, void *stream);
    int cuEventQuery(void *event);
    int cuEventSynchronize(void *event);
    int cuEventElapsedTime(float *, void *start, void *end);
    int cuEventDestroy_v2(void *event);

    int cuStreamBeginCapture_v2(void *stream, int mode);
    int cuStreamEndCapture(void *stream, void **graph);
    int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags);
    int cuGraphLaunch(void *executable, void *stream);
    int cuGraphExecDestroy(void *executable);
    int cuGraphDestroy(void *graph);
"""

OUT_OF_MEMORY, NOT_READY = 2, 600
DEVICE_ORDINAL = 9  # of an address
MAX_DYNAMIC_SHARED = 8  # attribute of a kernel
ARGUMENTS, ARGUMENTS_SIZE = 1, 2  # of a launch: all are one structure
BLOCKING_SYNC, DISABLE_TIMING = 1, 2  # events
PRIORITY = 8  # attribute of a stream
PORTABLE, DEVICE_MAP = 1, 2  # page-locked memory: for all contexts; at an address of the device's too
RELAXED = 2  # capture: the thread may go on allocating


class _Driver(Library):
    """The loader finds it: it comes with the system's driver."""

    def _open(self):
        for name in ("libcuda.so.1", "libcuda.so"):
            try:
                return opened(self.ffi, name)
            except OSError as exc:
                reason = exc
        raise RuntimeError(f"no NVIDIA driver was found ({reason})")

    def error(self, function: str, status: int) -> RuntimeError:
        return RuntimeError(f"CUDA error: {text_of(status)} when calling `{function}`")


_driver = _Driver("cuda", _DECLARATIONS, "cuGetErrorString")


def address(function: str):
    """Where one of the driver's functions lies."""
    return _driver.address(function)


def library():
    """The driver's functions; RuntimeError where it is not installed."""
    return _driver.lib


def text_of(status: int) -> str:
    """What the driver calls an error."""
    name, words = ffi.new("char **"), ffi.new("char **")
    library().cuGetErrorName(status, name)
    library().cuGetErrorString(status, words)
    if not name[0] or not words[0]:
        return f"error {status}"
    return f"{ffi.string(words[0]).decode()} ({ffi.string(name[0]).decode()})"


def check(status: int, what: str) -> None:
    """RuntimeError unless a function succeeded; ``what`` was being done."""
    if status:
        raise RuntimeError(f"CUDA error: {text_of(status)}, found when {what}." + LATER)


# Kernels run later than the line that launched them, and so their faults are found elsewhere.
LATER = (
    " A kernel that was launched earlier may be the cause: with CUDA_LAUNCH_BLOCKING=1 in the environment, each "
    "launch waits for its kernel, and the error is raised at the line that is wrong."
)


def made(function, what: str, *args):
    """The handle that ``function`` gives through its first argument."""
    out = ffi.new("void **")
    check(function(out, *args), what)
    return out[0]
