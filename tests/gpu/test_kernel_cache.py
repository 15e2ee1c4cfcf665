"""Kernels of CUDA devices in the disk cache. Needs NVRTC, no GPU."""

import threading
from pathlib import Path

import pytest
from tinytorch import cache
from tinytorch.backends.cuda import kernels, nvrtc
from tinytorch.cache import CompileError

SOURCE = '#include "scalar/bits.h"\nextern "C" __global__ void tt_kernel(int *p) { *p = %d; }\n'


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """An empty cache in the place of the process's."""
    own = cache.Cache(str(tmp_path / "cache"))
    monkeypatch.setattr(kernels, "kept", lambda: own)
    return own


@pytest.fixture
def compiled(monkeypatch):
    """The names of what a stand-in for NVRTC compiled."""
    names = []

    def compile_cubin(source, name, arch, include):
        names.append(name)
        return b"\x7fELF" + source.encode() + arch.encode()

    monkeypatch.setattr(nvrtc, "compile_cubin", compile_cubin)
    monkeypatch.setattr(nvrtc, "version", lambda: "13.0")
    return names


def test_a_kernel_is_compiled_once_for_each_architecture(kept, compiled):
    for _ in range(2):
        assert kernels.cubin("a", "one", "sm_80") == b"\x7fELFasm_80"
        assert kernels.cubin("a", "two", "sm_90") == b"\x7fELFasm_90"
    assert compiled == ["one", "two"]
    assert {path.suffix for path in Path(kept.folder).iterdir() if path.suffix} == {".cubin", ".cu"}


def test_the_key_tells_apart_all_that_decides_the_code(kept, compiled, monkeypatch):
    keys = {kernels.key_of("a", "sm_80"), kernels.key_of("a", "sm_90"), kernels.key_of("b", "sm_80")}
    monkeypatch.setattr(nvrtc, "version", lambda: "13.1")
    keys.add(kernels.key_of("a", "sm_80"))
    monkeypatch.setattr(nvrtc, "OPTIONS", ("--other",))
    keys.add(kernels.key_of("a", "sm_80"))
    monkeypatch.setattr(kernels, "headers_digest", lambda: "changed")
    keys.add(kernels.key_of("a", "sm_80"))
    assert len(keys) == 6


def test_a_damaged_file_is_compiled_again(kept, compiled):
    kernels.cubin("a", "one", "sm_80")
    path = kept.get(kernels.key_of("a", "sm_80"), cache.CUDA)
    with open(path, "r+b") as file:
        file.truncate(10)
    assert kernels.cubin("a", "again", "sm_80") == b"\x7fELFasm_80"
    assert compiled == ["one", "again"]


def test_without_a_place_on_disk_kernels_are_still_compiled(tmp_path, compiled, monkeypatch):
    (tmp_path / "file").write_text("")
    own = cache.Cache(str(tmp_path / "file" / "x"))
    monkeypatch.setattr(kernels, "kept", lambda: own)
    monkeypatch.setattr(own, "private", lambda: str(tmp_path / "nowhere"))
    monkeypatch.setattr(cache, "warn_once", lambda text: None)
    with pytest.raises(CompileError, match="no place for compiled kernels"):
        own.build("a" * 64, "source", lambda text, library: None)
    assert kernels.cubin("a", "one", "sm_80") == b"\x7fELFasm_80"


def test_threads_compile_at_once(kept):
    try:
        nvrtc.version()
    except OSError:
        pytest.skip("NVRTC is not installed")
    made = {}

    def work(k):
        made[k] = kernels.cubin(SOURCE % k, f"kernel_{k}", "sm_90")

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(made.values())) == 6
    for k in range(6):
        assert kept.read(kernels.key_of(SOURCE % k, "sm_90"), cache.CUDA) == made[k]
    with pytest.raises(nvrtc.CompileError, match="kernel_bad did not compile for sm_90"):
        kernels.cubin("nonsense", "kernel_bad", "sm_90")
