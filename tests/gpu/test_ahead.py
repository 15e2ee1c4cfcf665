"""Kernels that are compiled before they are asked for."""

import threading
import time

import pytest
from tinytorch.backends.cuda import ahead, kernels, nvrtc
from tinytorch.backends.cuda.source import name_of, source_of

ARCH = "sm_90a"


@pytest.fixture
def compiled(monkeypatch):
    """The sources that were compiled, in whichever thread; an empty cache."""
    made, lock = [], threading.Lock()

    def cubin(source, name, arch):
        time.sleep(0.01)
        with lock:
            made.append(source)
        if "attention" in source:
            raise nvrtc.CompileError("refused")
        return name.encode()

    monkeypatch.setattr(kernels, "cubin", cubin)
    monkeypatch.setattr(kernels, "key_of", lambda source, arch: source + arch)
    monkeypatch.setattr(kernels, "on_disk", lambda key: None)
    for name, value in (("_begun", {}), ("_waiting", []), ("_asked", set()), ("_threads", []), ("_started", [False])):
        monkeypatch.setattr(ahead, name, value)
    monkeypatch.setattr(ahead, "_LEAST_CORES", 1)
    yield made
    ahead.stop()


def test_each_kernel_is_compiled_once(compiled):
    keys = [key for key in ahead.usual() if "attention" not in name_of(key)]
    assert [ahead.cubin(source_of(key), name_of(key), ARCH) for key in keys] == [name_of(key).encode() for key in keys]
    for thread in ahead._threads:
        thread.join(30)
    # who asks for a kernel that a thread compiles waits, and then finds it in the cache
    assert len(ahead.usual()) <= len(compiled) <= 2 * len(keys) + 8 and set(map(source_of, ahead.usual())) == set(
        compiled
    )


def test_those_like_what_was_asked_for_come_first(compiled, monkeypatch):
    waiting = ["relu_f32", "norm_bf16_f32", "relu_backward_bf16", "relu_bf16"]
    monkeypatch.setattr(ahead, "_waiting", [(name, name, name) for name in waiting])
    monkeypatch.setattr(ahead, "_started", [True])
    ahead.cubin("source", "relu_bf16", ARCH)
    ahead._work(ARCH)
    assert compiled[1:] == ["relu_bf16", "relu_f32", "relu_backward_bf16", "norm_bf16_f32"]


def test_an_error_is_that_of_who_asks(compiled):
    (key, *_) = [key for key in ahead.usual() if "attention" in name_of(key)]
    for _ in range(2):
        with pytest.raises(nvrtc.CompileError, match="refused"):
            ahead.cubin(source_of(key), name_of(key), ARCH)


def test_the_end_does_not_wait_for_all(compiled):
    ahead.cubin("one", "one", ARCH)
    ahead.stop()
    assert not ahead._waiting and not any(thread.is_alive() for thread in ahead._threads)
    assert len(compiled) < len(ahead.usual())


def test_they_are_kernels():
    keys = ahead.usual()
    assert len(set(keys)) == len(keys) > 50
    try:
        nvrtc.library()
    except OSError:
        pytest.skip("no NVRTC")
    for key in keys[::9]:
        assert kernels.cubin(source_of(key), name_of(key), ARCH)
