"""The binding of CUDA's driver library, over a library of the same name that needs no driver."""

import os
import shutil
import subprocess
import sys
import textwrap

import pytest

FAKE = """
    #include <stddef.h>
    #include <stdint.h>
    int cuGetErrorName(int status, const char **out) { *out = "CUDA_ERROR_FAKE"; return 0; }
    int cuGetErrorString(int status, const char **out) { *out = status == 7 ? "it is fake" : NULL; return 0; }
    int cuCtxGetCurrent(void **out) { *out = (void *)16; return 0; }
    int cuMemAlloc_v2(uint64_t *out, size_t n) { *out = n << 40; return 0; }
    int cuMemGetInfo_v2(size_t *free, size_t *total) { *free = 1; *total = 2; return 0; }
    int cuPointerGetAttribute(void *out, int attribute, uint64_t at) { *(int *)out = attribute; return at != 5; }
    int cuStreamGetPriority(void *stream, int *out) { *out = stream == (void *)3 ? -1 : 0; return 0; }
    static int events;
    int cuEventCreate(void **out, unsigned flags) { *out = &events; return ++events == 2; }
    int cuEventDestroy_v2(void *event) { return --*(int *)event; }
    int cuEventQuery(void *event) { return *(int *)event == 1 ? 0 : 600; }
    int cuEventElapsedTime(float *out, void *a, void *b) { *out = 0.5f; return 7; }
"""
PROGRAM = """
    from tinytorch.backends.cuda import driver, libcuda
    cuda = object.__new__(driver.PyCuda)  # without PyCUDA
    cuda.library = libcuda.library()
    print(libcuda.text_of(7), libcuda.text_of(8), sep="; ")
    print(libcuda.made(cuda.library.cuCtxGetCurrent, "looking"), cuda.allocate(0, 6) >> 40, cuda.device_of(5))
    cuda.open = lambda device: None
    print(cuda.memory_info(0), cuda.priority(3) if cuda._pointer(3) else None)
    event = cuda.new_event()
    print(cuda.has_come(event))
    del event  # or else a second one cannot be made
    print(cuda.has_come(cuda.new_event()))
    try:
        cuda.milliseconds(cuda._pointer(1), cuda._pointer(2))
    except RuntimeError as exc:
        print(str(exc).partition(".")[0])
"""


def test_calls_of_the_drivers_library(tmp_path):
    if not shutil.which("gcc"):
        pytest.skip("no C compiler")
    (tmp_path / "fake.c").write_text(FAKE)
    command = ["gcc", "-shared", "-fPIC", "-w", "-o", str(tmp_path / "libcuda.so.1"), str(tmp_path / "fake.c")]
    subprocess.run(command, check=True)
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "it is fake (CUDA_ERROR_FAKE); error 8",
        "<cdata 'void *' 0x10> 6 9",
        "(1, 2) -1",
        "True",
        "True",
        "CUDA error: it is fake (CUDA_ERROR_FAKE), found when comparing the times of two events",
    ], done.stderr
