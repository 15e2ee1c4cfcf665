"""Decompositions on the emulated device: tinytorch/backends/cuda/cusolver.py over fake_cusolver.c."""

import functools
import os
import pathlib
import subprocess
import tempfile

from cffi import FFI

from tinytorch.backends import blas
from tinytorch.backends.cuda import cusolver

SOURCE = pathlib.Path(__file__).resolve().parent / "fake_cusolver.c"


@functools.cache
def _library() -> str:
    """The shared library's path."""
    path = os.path.join(tempfile.mkdtemp(prefix="tinytorch-solvers-"), "libfake_cusolver.so")
    lapack = blas.library()
    flags = ["-shared", "-fPIC", "-O1", "-w", lapack, f"-Wl,-rpath,{os.path.dirname(lapack)}", "-lm"]
    subprocess.run(["gcc", str(SOURCE), *flags, "-o", path], check=True)
    return path


def stand_in():
    """What tests set of it."""
    ffi = FFI()
    ffi.cdef("int fake_does_not_converge;")
    return ffi.dlopen(_library())


def solve(device: int, problem) -> int:
    """As cuSOLVER does it: see tt_solver in kernels/api/cuda.h."""
    for interface in (cusolver._solver, cusolver._blas):
        if interface._lib is None:
            interface._lib = interface.ffi.dlopen(_library())
    return cusolver.solve(device, problem, 0)
