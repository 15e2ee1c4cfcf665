"""NVRTC: CUDA C++ to machine code. Needs NVIDIA's library, no GPU."""

from __future__ import annotations

import functools

from cffi import FFI

from ... import cache
from .libraries import once, open_library

_ffi = FFI()
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


@once
def library():
    """NVRTC's functions; OSError when it is not installed."""
    if not _ffi.list_types()[0]:  # parsed when first needed: that takes some milliseconds
        _ffi.cdef(_DECLARATIONS)
    return open_library(_ffi, "nvrtc")


@functools.cache
def version() -> str:
    """As in "13.0"."""
    major, minor = _ffi.new("int *"), _ffi.new("int *")
    library().nvrtcVersion(major, minor)
    return f"{major[0]}.{minor[0]}"


def compile_cubin(source: str, name: str, arch: str, include: str) -> bytes:
    """``source`` for the GPU architecture ``arch`` ("sm_90"); ``#include`` looks in the folder ``include``."""
    nvrtc = library()
    program = _ffi.new("nvrtcProgram *")
    _check(nvrtc.nvrtcCreateProgram(program, source.encode(), name.encode(), 0, _ffi.NULL, _ffi.NULL), name)
    try:
        texts = [_ffi.new("char[]", o.encode()) for o in (*OPTIONS, f"--gpu-architecture={arch}", f"-I{include}")]
        status = nvrtc.nvrtcCompileProgram(program[0], len(texts), _ffi.new("char *[]", texts))
        if status:
            raise CompileError(f"the kernel {name} did not compile for {arch}:\n" + _log(nvrtc, program[0]))
        size = _ffi.new("size_t *")
        _check(nvrtc.nvrtcGetCUBINSize(program[0], size), name)
        cubin = _ffi.new("char[]", size[0])
        _check(nvrtc.nvrtcGetCUBIN(program[0], cubin), name)
        return bytes(_ffi.buffer(cubin, size[0]))
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _log(nvrtc, program) -> str:
    size = _ffi.new("size_t *")
    nvrtc.nvrtcGetProgramLogSize(program, size)
    text = _ffi.new("char[]", max(size[0], 1))
    nvrtc.nvrtcGetProgramLog(program, text)
    return _ffi.string(text).decode(errors="replace")


def _check(status: int, name: str) -> None:
    if status:
        raise CompileError(f"{name}: {_ffi.string(library().nvrtcGetErrorString(status)).decode()}")
