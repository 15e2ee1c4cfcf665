"""NVRTC: CUDA C++ to machine code. Needs NVIDIA's library, no GPU."""

from __future__ import annotations

import functools
import os
import sys
from typing import TYPE_CHECKING

from ... import cache
from .binding import Library
from .libraries import candidates

if TYPE_CHECKING:
    import subprocess

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


def _options(arch: str, include: str) -> list[str]:
    return [*OPTIONS, f"--gpu-architecture={arch}", f"-I{include}"]


def compile_cubin(source: str, name: str, arch: str, include: str) -> bytes:
    """``source`` for the GPU architecture ``arch`` ("sm_90"); ``#include`` looks in the folder ``include``."""
    ffi = _nvrtc.ffi
    program = ffi.new("nvrtcProgram *")
    _nvrtc.call("nvrtcCreateProgram", program, source.encode(), name.encode(), 0, ffi.NULL, ffi.NULL)
    try:
        texts = [ffi.new("char[]", option.encode()) for option in _options(arch, include)]
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


class Process:
    """A process that compiles (nvrtc_process.py): threads that call the library wait for one another a third of the
    time. It is started for the first kernel."""

    def __init__(self):
        self._process: subprocess.Popen | None = None

    def compile_cubin(self, source: str, name: str, arch: str, include: str) -> bytes:
        """As the function of that name, whose error has the library's log. CompileError, too, where no process can be
        started, or it has ended: an OSError means to the cache that files cannot be written."""
        import json  # when used: a start of Python does not wait for it

        request = json.dumps([source, name, _options(arch, include)])
        try:
            if self._process is None:
                self._process = self._start()
            self._process.stdin.write(request.encode() + b"\n")
            self._process.stdin.flush()
            size = int(self._process.stdout.readline() or 0)
            code = self._process.stdout.read(size)
        except OSError as exc:
            raise CompileError(f"the kernel {name} did not compile for {arch}: {exc}") from None
        if not code or len(code) < size:
            raise CompileError(f"the kernel {name} did not compile for {arch}")
        return code

    @staticmethod
    def _start() -> subprocess.Popen:
        if not os.path.basename(sys.executable or "").startswith("python"):
            raise OSError("no Python to be started: another program has it inside")
        import subprocess  # when used: a start of Python does not wait for it

        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nvrtc_process.py")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        command = [sys.executable, "-I", "-S", program, *candidates("nvrtc")]
        return subprocess.Popen(command, start_new_session=True, **pipes)  # Ctrl-C is for others

    def kill(self) -> None:
        """Whoever waits for it gets an error."""
        if self._process is not None:
            self._process.kill()

    def leave(self) -> None:
        """In a forked child: lets go of the pipes, whose ends tell the process, and its parent, that the other ended.
        What a thread of the parent has yet to write is not written, and locks that it holds are not waited for."""
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                pipe.raw.close()

    def close(self) -> None:
        """Ends it."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
