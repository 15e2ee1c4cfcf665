"""Launches that C makes itself: by the driver's handles, through the address of its function."""

import types

import pytest
import tinytorch as tt
from tinytorch.backends.cpu import ffi, lib
from tinytorch.backends.cuda import driver, libcuda, runtime

_NINE = "void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **"


_current = {0: 0}  # the context of this thread, as a number


@ffi.callback("int(void **)")
def _get_current(context):
    context[0] = ffi.cast("void *", _current[0])
    return 0


@pytest.fixture
def direct(emulated, monkeypatch):
    """The streams of launches that reached the driver's function, whose kernels the emulated device runs; and the
    status that it gives instead, if there is one."""
    kernels, streams, statuses = [], [], []
    load = emulated.load

    @ffi.callback(f"int({_NINE})")
    def launch(function, x, y, z, a, b, c, shared, stream, arguments, extra):
        words = ffi.cast("intptr_t *", extra)
        assert (words[0], words[2], words[4]) == (1, 2, 0) and arguments == ffi.NULL
        size, handle = ffi.cast("size_t *", words[3])[0], int(ffi.cast("intptr_t", stream))
        streams.append(handle)
        if statuses:
            return statuses[0]
        given = ffi.buffer(ffi.cast("char *", words[1]), size)
        kernels[int(ffi.cast("intptr_t", function)) - 1]((x, y, z), (a, b, c), given, shared, handle or None)
        return 0

    def loaded(*args):
        kernels.append(load(*args))
        return driver.Kernel(ffi.cast("void *", len(kernels)), emulated.handle)

    monkeypatch.setattr(emulated, "load", loaded)
    monkeypatch.setattr(emulated, "failures", (driver.LaunchError,))
    monkeypatch.setattr(libcuda, "library", lambda: types.SimpleNamespace(cuLaunchKernel=launch))
    monkeypatch.setattr(libcuda, "text_of", lambda status: f"error {status}")
    monkeypatch.setattr(runtime, "_several", False)
    functions = runtime._devices[0].loaded[0].functions
    before = dict(functions)
    functions.clear()
    lib.tt_cuda_launcher(ffi.cast("void *", launch), ffi.cast("void *", _get_current))
    lib.tt_cuda_keep_launches(1)
    yield streams, statuses
    functions.clear()
    functions.update(before)
    lib.tt_cuda_keep_launches(1)


def test_python_is_told_once(direct, monkeypatch):
    streams, _ = direct
    x = tt.arange(64.0, device="cuda")
    y = x * 1.5
    (x + y).tolist()
    monkeypatch.setattr(runtime, "_kept", {})  # what Python would need
    streams.clear()
    for k in range(3):
        assert (x + y).tolist() == [2.5 * j for j in range(64)]
        x += k
        y -= k
    assert len(streams) == 9


def test_other_streams(direct):
    streams, _ = direct
    x = tt.arange(8.0, device="cuda")
    side = tt.cuda.Stream()
    for _ in range(2):
        x + 1.0
        with tt.cuda.stream(side):
            x + 1.0
    assert streams[-4:] == [0, side.cuda_stream] * 2


def test_what_the_driver_refuses(direct):
    """Python launches it again, for the error's words."""
    streams, statuses = direct
    x = tt.arange(8.0, device="cuda")
    for _ in range(2):
        x + 1.0
    statuses.append(700)
    with pytest.raises(RuntimeError, match="CUDA error: error 700, found when launching a kernel"):
        x + 1.0
    statuses.clear()
    assert (x + 1.0).tolist() == [k + 1.0 for k in range(8)]


def test_several_devices(direct, emulated, monkeypatch):
    """Where another library has made another device's context this thread's, Python launches, which looks at that."""
    streams, _ = direct
    turned = []
    monkeypatch.setattr(runtime, "_several", True)
    monkeypatch.setattr(emulated, "turn_to", turned.append)
    x = tt.arange(8.0, device="cuda")
    x + 1.0
    streams.clear()
    lib.tt_cuda_context(0, ffi.cast("void *", 77))
    try:
        for current, told in ((77, []), (78, [0]), (77, [0])):
            monkeypatch.setitem(_current, 0, current)
            assert (x + 1.0).tolist() == [k + 1.0 for k in range(8)]
            assert turned == told
    finally:
        lib.tt_cuda_context(0, ffi.NULL)
    assert len(streams) == 3
