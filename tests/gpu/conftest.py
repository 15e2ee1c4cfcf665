"""Fixtures for tests of CUDA devices: the machine's GPU, or an emulated one."""

import pytest
from gpu import emulator
from tinytorch.backends.cuda import runtime


@pytest.fixture(scope="session")
def gpu():
    """The driver. Skips where there is neither a GPU nor a compiler for the emulated one."""
    if not runtime.device_count():
        if not emulator.available():
            pytest.skip("no GPU, and no C++ compiler to emulate one")
        runtime.use_driver(emulator.Emulator())
    runtime.open_device(0)
    return runtime.driver()


@pytest.fixture
def emulated(gpu):
    """The emulated driver, for tests that look at what it was told."""
    if not isinstance(gpu, emulator.Emulator):
        pytest.skip("this test looks into the emulated device")
    return gpu
