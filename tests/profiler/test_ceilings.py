"""What the machine can do at most."""

import importlib
import json
import os

import pytest
from gpu.conftest import emulated, gpu  # noqa: F401
from tinytorch import profiler
from tinytorch.profiler.ceilings import Ceilings

module = importlib.import_module("tinytorch.profiler.ceilings")  # the function has its name


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TINYTORCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "_known", {})
    monkeypatch.setattr(module, "_PATIENCE", 0.01)
    return tmp_path / "cache"


@pytest.fixture
def measured(monkeypatch):
    """How often a measurement was made; each gives other figures."""
    calls = []

    def measure(device, name, index):
        calls.append(device)
        return Ceilings(device, name, 1e9 * len(calls), 2e9, {"float32": 2e9})

    monkeypatch.setattr(module, "_measure", measure)
    return calls


def test_the_cpu_is_measured(folder):
    found = profiler.ceilings()
    assert found.device == "cpu" and found.name
    assert 1e8 < found.bandwidth < 1e13 and 1e8 < found.flops < 1e15
    assert found.products == {"float32": found.flops}
    assert "GB/s" in str(found) and "GFLOP/s" in str(found)


def test_what_was_measured_is_kept_on_disk(folder, measured, monkeypatch):
    first = profiler.ceilings()
    monkeypatch.setattr(module, "_known", {})  # another process
    assert profiler.ceilings() == first and measured == ["cpu"]
    [file] = os.listdir(folder)
    assert json.loads((folder / file).read_text())[0]["bandwidth"] == 1e9
    assert profiler.ceilings(force=True).bandwidth == 2e9
    monkeypatch.setattr(module, "_known", {})
    assert profiler.ceilings("cpu").bandwidth == 2e9 and len(measured) == 2


def test_the_best_of_some_that_are_well_apart_is_kept(folder, monkeypatch):
    clock, figures = [1e9], iter([(5e9, 1e9), (3e9, 2e9), (4e9, 9e8), (9e9, 9e9), (1e9, 1e9)])
    monkeypatch.setattr(module.time, "time", lambda: clock[0])

    def measure(device, name, index):
        bandwidth, flops = next(figures)
        return Ceilings(device, name, bandwidth, flops, {"float32": flops})

    monkeypatch.setattr(module, "_measure", measure)

    def later(seconds, force=False):
        clock[0] += seconds
        monkeypatch.setattr(module, "_known", {})  # another process
        found = profiler.ceilings(force=force)
        assert found.products == {"float32": found.flops}
        return found.bandwidth, found.flops

    assert [later(0), later(10), later(700), later(10), later(700), later(10**6)] == [
        (5e9, 1e9),
        (5e9, 1e9),
        (5e9, 2e9),
        (5e9, 2e9),
        (5e9, 2e9),
        (5e9, 2e9),
    ]
    assert later(0, force=True) == (9e9, 9e9)
    assert later(700) == (9e9, 9e9) and next(figures, None) is None


def test_another_number_of_threads_is_another_machine(folder, measured, monkeypatch):
    profiler.ceilings()
    monkeypatch.setattr(module, "get_num_threads", lambda: 77)
    assert profiler.ceilings().bandwidth == 2e9


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '[{"device": "cpu"}, 1, 1.0]',
        "[1, 2, 3]",
        '[{"device": "cpu", "name": "", "bandwidth": 0, "flops": 1, "products": {}}, 1, 1]',
    ],
)
def test_a_broken_file_is_measured_anew(folder, measured, monkeypatch, text):
    profiler.ceilings()
    [file] = os.listdir(folder)
    (folder / file).write_text(text)
    monkeypatch.setattr(module, "_known", {})
    assert profiler.ceilings().bandwidth == 2e9


def test_where_nothing_can_be_written_it_is_known_to_this_process(tmp_path, measured, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TINYTORCH_CACHE_DIR", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(module, "_known", {})
    assert profiler.ceilings() == profiler.ceilings() and measured == ["cpu"]


def test_a_device_that_there_is_not(folder):
    with pytest.raises(RuntimeError):
        profiler.ceilings("cuda:99")


def test_an_emulated_device(folder, emulated, monkeypatch):  # noqa: F811
    monkeypatch.setattr(emulated, "memory_info", lambda device: (1 << 16, 1 << 16))  # so that it is quick
    found = profiler.ceilings("cuda")
    assert found.device == "cuda:0" and found.name == "Emulator"
    assert set(found.products) == {"float32", "float16", "bfloat16"}


def test_share():
    c = Ceilings("cpu", "", 100e9, 500e9, {"float32": 500e9, "float16": 1000e9})
    assert c.share(50e9, None, 1.0) == 0.5
    assert c.share(1e9, 250e9, 1.0) == 0.5
    assert c.share(None, 250e9, 1.0, "float16") == 0.25
    assert c.share(None, 250e9, 1.0, "bfloat16") == 0.5
    assert c.share(None, None, 1.0) is None and c.share(1, 1, 0.0) is None
