"""Kernels that are compiled before they are asked for."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from fuzz.interrupts import Striker
from tinytorch import cache
from tinytorch.backends.cuda import ahead, kernels, nvrtc
from tinytorch.backends.cuda.source import name_of, source_of

ARCH = "sm_90a"


@pytest.fixture
def compiled(monkeypatch):
    """The sources that were compiled, in whichever thread; an empty cache."""
    made, lock = [], threading.Lock()

    def cubin(source, name, arch, compile_cubin=None):
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
    monkeypatch.setattr(ahead, "_processes", [])
    monkeypatch.setattr(ahead, "_LEAST_CORES", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(3), raising=False)  # however many there are
    yield made
    ahead.stop()


def test_each_kernel_is_compiled_once(compiled):
    keys = [key for key in ahead.usual() if "attention" not in name_of(key)]
    assert [ahead.cubin(source_of(key), name_of(key), ARCH) for key in keys] == [name_of(key).encode() for key in keys]
    for thread in ahead._threads:
        thread.join(100)
    # who asks for a kernel that a thread compiles waits, and then finds it in the cache
    assert len(ahead.usual()) <= len(compiled) <= 2 * len(keys) + 8 and set(map(source_of, ahead.usual())) == set(
        compiled
    )


def test_a_destructor_may_ask_for_a_kernel(compiled, monkeypatch):
    """While the thread that runs it looks at what is to be compiled."""
    monkeypatch.setattr(ahead, "_started", [True])
    done = []

    def look():
        with ahead._lock:
            done.append(ahead.cubin("one", "one", ARCH))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(100)
    assert done == [b"one"]


def within(seconds, run):
    """What ``run`` gives, in a thread of its own; none where it does not end."""
    done = []
    thread = threading.Thread(target=lambda: done.append(run()), daemon=True)
    thread.start()
    thread.join(seconds)
    return done


def test_a_destructor_may_ask_for_the_kernel_that_is_compiled(compiled, monkeypatch):
    monkeypatch.setattr(ahead, "_started", [True])
    plain = kernels.cubin

    def cubin(source, *rest):
        monkeypatch.setattr(kernels, "cubin", plain)
        return ahead.cubin(source, *rest)

    monkeypatch.setattr(kernels, "cubin", cubin)
    assert within(10, lambda: ahead.cubin("one", "one", ARCH)) == [b"one"]


def test_ctrl_c_at_any_place_keeps_nobody_waiting(compiled, monkeypatch):
    monkeypatch.setattr(ahead, "_started", [True])
    before, struck = signal.getsignal(signal.SIGALRM), 0
    try:
        with Striker() as counting:
            ahead.cubin("none", "one", ARCH)
        for at in range(1, counting.count + 1):
            try:
                with Striker(at) as striker:
                    ahead.cubin(f"source {at}", "one", ARCH)
                while not striker.fired:
                    pass
            except KeyboardInterrupt:
                struck += 1
            assert within(10, lambda at=at: ahead.cubin(f"source {at}", "one", ARCH)) == [b"one"]
    finally:
        signal.signal(signal.SIGALRM, before)
    assert struck > 20


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


def test_the_end_does_not_wait_for_all(compiled, monkeypatch):
    make, under_way = kernels.cubin, threading.Event()

    def cubin(source, name, *how):
        if name != "one":
            under_way.set()
            while ahead._waiting:
                time.sleep(0.001)
        return make(source, name, *how)

    monkeypatch.setattr(kernels, "cubin", cubin)
    ahead.cubin("one", "one", ARCH)
    assert under_way.wait(100)
    ahead.stop()
    assert not ahead._waiting and not any(thread.is_alive() for thread in ahead._threads)
    assert len(compiled) <= 1 + len(ahead._threads) == 3


@pytest.mark.parametrize("kept", [False, True])
def test_a_device_that_is_opened(compiled, monkeypatch, kept):
    """The usual kernels are compiled, unless the cache has some of them."""
    if kept:
        monkeypatch.setattr(kernels, "on_disk", lambda key: b"code" if "gelu" in key else None)
    ahead.expect(ARCH)
    for thread in threading.enumerate():
        if thread.name == "tinytorch: kernels":
            thread.join(100)
    for thread in ahead._threads:
        thread.join(100)
    assert sorted(compiled) == ([] if kept else sorted(map(source_of, ahead.usual())))


@pytest.fixture
def process():
    try:
        nvrtc.library()
    except OSError:
        pytest.skip("no NVRTC")
    process = nvrtc.Process()
    yield process
    process.close()


def test_a_process_compiles(process, tmp_path):
    source = 'extern "C" __global__ void tt_kernel(int *p) { *p = 1; }'
    for _ in range(2):
        made = process.compile_cubin(source, "one", ARCH, str(tmp_path))
        assert made == nvrtc.compile_cubin(source, "one", ARCH, str(tmp_path))
        with pytest.raises(nvrtc.CompileError, match="the kernel wrong did not compile for sm_90a"):
            process.compile_cubin("no kernel", "wrong", ARCH, str(tmp_path))


def test_a_process_that_ends(process, tmp_path):
    """Who waits for it gets an error."""
    process.compile_cubin("", "none", ARCH, str(tmp_path))
    process.kill()
    with pytest.raises(nvrtc.CompileError):
        process.compile_cubin("", "none", ARCH, str(tmp_path))


def test_a_forked_child_has_none_of_its_pipes(monkeypatch):
    """Its parent's end is the process's, also while the child goes on."""
    process, out = nvrtc.Process(), subprocess.PIPE
    process._process = echo = subprocess.Popen(["cat"], stdin=out, stdout=out, stderr=subprocess.DEVNULL)
    monkeypatch.setattr(ahead, "_processes", [process])
    echo.stdin.write(b"half a line")
    r, w = os.pipe()
    child = os.fork()
    if not child:
        os.close(w)
        os.read(r, 1)
        os._exit(0)
    try:
        echo.stdin.close()
        assert echo.wait(10) == 0 and echo.stdout.read() == b"half a line"
    finally:
        os.close(r), os.close(w)
        os.waitpid(child, 0)
        echo.stdout.close()


def test_no_other_program_is_started(monkeypatch, tmp_path):
    """Where another program has Python inside."""
    monkeypatch.setattr(sys, "executable", "/bin/echo")
    with pytest.raises(nvrtc.CompileError, match="another program"):
        nvrtc.Process().compile_cubin("", "none", ARCH, str(tmp_path))


@pytest.mark.parametrize("program", ["/bin/echo", "/bin/false"], ids=["another program", "ends at once"])
def test_the_cache_outlives_a_process(monkeypatch, tmp_path, recwarn, program):
    """Its folder is not to blame for a process that does not start or ends: kernels are kept there as before."""
    kept = cache.Cache(str(tmp_path / "kernels"))
    monkeypatch.setattr(kernels, "kept", lambda: kept)
    monkeypatch.setattr(kernels, "key_of", lambda source, arch: "0" * 64)
    python = tmp_path / "python"
    python.symlink_to(program)
    monkeypatch.setattr(sys, "executable", str(python) if program == "/bin/false" else program)
    process = nvrtc.Process()
    for _ in range(2):
        with pytest.raises(nvrtc.CompileError):
            kernels.cubin("", "none", ARCH, process.compile_cubin)
    process.close()
    code = b"\x7fELF code"
    assert kernels.cubin("", "one", ARCH, lambda *_: code) == code
    assert kept.read("0" * 64, cache.CUDA) == code and kept.get("0" * 64, cache.CUDA).startswith(kept.folder)
    assert not recwarn.list


def test_nothing_is_started_at_the_end(compiled):
    """By a device that was opened just before."""
    ahead.stop()
    ahead._start(ARCH)
    assert not ahead._threads and not ahead._waiting


def test_they_are_kernels():
    keys = ahead.usual()
    assert len(set(keys)) == len(keys) > 50
    try:
        nvrtc.library()
    except OSError:
        pytest.skip("no NVRTC")
    for key in keys[::9]:
        assert kernels.cubin(source_of(key), name_of(key), ARCH)
