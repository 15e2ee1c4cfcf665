"""NVRTC: CUDA C++ to machine code. Needs NVIDIA's library, no GPU."""

from __future__ import annotations

import functools

from ... import cache
from .binding import Library

_DECLARATIONS = """
    typedef struct _nvrtcProgram *nvrtcProgram;
    int nvrtcVersion(int *major, int *minor);
    const char *nvrtcGetErrorString(int result);
    int nvrtcCreateProgram(nvrtcProgram *, const char *source, const char *name, int n, const char *const *headers,
                           const char *const *names);
    int nvrtcDestroyProgram(nvrtcProgram *);
    int nvrtcCompileProgram(nvrtcProgram, int n, const char *const *options);
    int nvrtcGetCUBINSize(nvrtcProgram, size_t *);
    int nvrtcGetCUBIN(nvrtcProgram, char *);
    int nvrtcGetProgramLogSize(nvrtcProgram, size_t *);
    int nvrtcGetProgramLog(nvrtcProgram, char *);
"""

# Every operation is rounded as IEEE 754 has it, as on the CPU: kernels/scalar/bits.h.
OPTIONS = ("--std=c++17", "--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false")


class CompileError(cache.CompileError, RuntimeError):
    """A kernel did not compile; the message has NVRTC's log."""


class _Nvrtc(Library):
    def __init__(self):
        super().__init__("nvrtc", _DECLARATIONS, "nvrtcGetErrorString")

    def error(self, function: str, status: int) -> RuntimeError:
        return CompileError(str(super().error(function, status)))


_nvrtc = _Nvrtc()


def library():
    """NVRTC's functions; OSError when it is not installed."""
    return _nvrtc.lib


@functools.cache
def version() -> str:
    """As in "13.0"."""
    major, minor = _nvrtc.ffi.new("int *"), _nvrtc.ffi.new("int *")
    _nvrtc.call("nvrtcVersion", major, minor)
    return f"{major[0]}.{minor[0]}"


def compile_cubin(source: str, name: str, arch: str, include: str) -> bytes:
    """``source`` for the GPU architecture ``arch`` ("sm_90"); ``#include`` looks in the folder ``include``."""
    ffi = _nvrtc.ffi
    program = ffi.new("nvrtcProgram *")
    _nvrtc.call("nvrtcCreateProgram", program, source.encode(), name.encode(), 0, ffi.NULL, ffi.NULL)
    try:
        texts = [ffi.new("char[]", o.encode()) for o in (*OPTIONS, f"--gpu-architecture={arch}", f"-I{include}")]
        status = _nvrtc.lib.nvrtcCompileProgram(program[0], len(texts), ffi.new("char *[]", texts))
        if status:
            raise CompileError(f"the kernel {name} did not compile for {arch}:\n" + _log(program[0]))
        size = ffi.new("size_t *")
        _nvrtc.call("nvrtcGetCUBINSize", program[0], size)
        cubin = ffi.new("char[]", size[0])
        _nvrtc.call("nvrtcGetCUBIN", program[0], cubin)
        return bytes(ffi.buffer(cubin, size[0]))
    finally:
        _nvrtc.lib.nvrtcDestroyProgram(program)


def _log(program) -> str:
    size = _nvrtc.ffi.new("size_t *")
    _nvrtc.lib.nvrtcGetProgramLogSize(program, size)
    text = _nvrtc.ffi.new("char[]", max(size[0], 1))
    _nvrtc.lib.nvrtcGetProgramLog(program, text)
    return _nvrtc.ffi.string(text).decode(errors="replace")
