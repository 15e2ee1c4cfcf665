"""Fixtures for tests of CUDA devices: the machine's GPU, or an emulated one."""

import gc

import pytest
import tinytorch
from gpu import emulator
from gpu.memory import fresh_stream
from tinytorch import cuda
from tinytorch.backends.cuda import runtime


@pytest.fixture
def gpu():
    """The driver. Skips where there is neither a GPU nor a compiler for the emulated one."""
    emulated = not runtime.device_count()
    if emulated:
        if not emulator.available():
            pytest.skip("no GPU, and no C++ compiler to emulate one")
        emulator.machine().plug_in()
    runtime.open_device(0)
    yield runtime.driver()
    if emulated:
        gc.collect()
        tinytorch.fuse.wait(60)  # for kernels of devices
        emulator.machine().take_out()


@pytest.fixture
def emulated(gpu):
    """The emulated driver, for tests that look at what it was told."""
    if not isinstance(gpu, emulator.Emulator):
        pytest.skip("this test looks into the emulated device")
    return gpu


@pytest.fixture
def stream(gpu):
    """A stream without any memory, current during the test."""
    gc.collect()
    cuda.synchronize()
    cuda.empty_cache()
    s = fresh_stream()
    with tinytorch.config(cuda_caching=1), cuda.stream(s):
        yield s
