"""Memory over time."""

import gzip
import json

import pytest
import tinytorch as tt
from gpu.conftest import emulated, gpu  # noqa: F401
from tinytorch import nn, profiler
from tinytorch.autograd import engine
from tinytorch.backends.cpu import ffi, lib
from tinytorch.profiler.events import Allocation, Event, Trace, nest
from tinytorch.profiler.memory import CATEGORIES, MemoryView, Note, categorize

M = 1 << 20


def training(device="cpu", width=256):
    """A step: forward, backward, update; parameters of 256 KB, activations of 512 x 256 floats."""
    layers = nn.Linear(width, width, bias=False), nn.Tanh(), nn.Linear(width, width, bias=False)
    model = nn.Sequential(*layers).to(device)
    optimizer = tt.optim.Adam(model.parameters())

    def step():
        x = tt.randn(512, width, device=device)
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()

    return step


def recorded(work, **options):
    with profiler.profile(profile_memory=True, **options) as p:
        work()
    return p


def by_category(p, device="cpu"):
    """Bytes allocated."""
    found = dict.fromkeys(CATEGORIES, 0)
    for a in p.trace.allocations:
        if a.size > 0 and a.device == device:
            found[a.category] += a.size
    return found


def test_categories_of_a_training_step():
    step = training()
    found = by_category(recorded(step))
    assert 512 * 1024 <= found["input"] <= 640 * 1024  # x
    assert 512 * 1024 <= found["gradient"] <= 640 * 1024  # of two weights
    assert 1024 * 1024 <= found["optimizer"] <= 1300 * 1024  # two moments of each; the first step makes them
    assert 1024 * 1024 <= found["activation"] <= 1280 * 1024  # the results of tanh, and of the second layer for square
    assert found["parameter"] == 0 and found["workspace"] > 0


def test_what_was_there_before_is_known():
    step = training()
    step()
    p = recorded(step)
    view = p.memory()
    d = view.devices["cpu"]
    assert d.parts["parameter"][0] >= 512 * 1024 and d.parts["optimizer"][0] >= 1024 * 1024
    assert d.parts["gradient"][0] >= 512 * 1024
    assert any(h.category == "optimizer" and h.operator == "before the profile" for h in d.held)


def test_parameters_made_inside():
    kept = []
    found = by_category(recorded(lambda: kept.append(nn.Linear(512, 512, bias=False))))
    assert found["parameter"] >= M


def test_the_peak_agrees_with_the_allocators():
    step = training()
    tt.cpu.reset_peak_memory_stats()
    p = recorded(step)
    d = p.memory().devices["cpu"]
    assert abs(d.peak - tt.cpu.max_memory_allocated()) <= 0.02 * d.peak
    at = d.totals.index(d.peak)
    assert sum(sizes[at] for sizes in d.parts.values()) == d.peak
    assert sum(h.bytes for h in d.held) == pytest.approx(d.peak, rel=0.01)
    assert d.times[at] == d.peak_time and d.times == sorted(d.times)


def test_the_peak_is_attributed_to_operators_and_lines():
    kept = []

    def work():
        a = tt.ones(1 << 18)
        kept.append(a.exp())

    p = recorded(work, with_stack=True)
    rows = {h.operator: h for h in p.memory().devices["cpu"].held}
    assert rows["exp"].bytes >= M and "test_memory.py" in rows["exp"].line and "work" in rows["exp"].line
    assert rows["ones"].category == "input"
    table = p.memory().table(row_limit=1)
    assert table.splitlines()[0].startswith("cpu: at most") and "more" in table.splitlines()[-1]


def test_export(tmp_path):
    p = recorded(training())
    p.export_memory_timeline(str(tmp_path / "m.json"))
    p.export_memory_timeline(str(tmp_path / "m.json.gz"), "cpu")
    plain = json.loads((tmp_path / "m.json").read_text())
    with gzip.open(tmp_path / "m.json.gz", "rt") as file:
        assert json.load(file) == plain
    assert set(plain) == {"cpu"} and plain["cpu"]["peak"] == p.memory().devices["cpu"].peak
    assert len(plain["cpu"]["times"]) == len(plain["cpu"]["parts"]["activation"])
    with pytest.raises(ValueError, match=r"must end in \.json"):
        p.export_memory_timeline(str(tmp_path / "m.html"))
    with pytest.raises(ValueError, match="nothing was recorded of device 'cuda:0'"):
        p.export_memory_timeline(str(tmp_path / "m.json"), "cuda")
    with pytest.raises(OSError):
        p.export_memory_timeline(str(tmp_path / "no" / "m.json"))


def test_without_profile_memory(tmp_path):
    run = engine.run
    with profiler.profile() as p:
        assert engine.run is run
        tt.ones(3)
    assert "profile_memory=True" in p.memory().table()
    with pytest.raises(ValueError, match="profile_memory=True"):
        p.export_memory_timeline(str(tmp_path / "m.json"))


def test_everything_is_as_before_afterwards_even_after_an_exception():
    run = engine.run
    with pytest.raises(ZeroDivisionError), profiler.profile(profile_memory=True):
        assert engine.run is not run
        raise ZeroDivisionError
    assert engine.run is run
    assert lib.tt_traffic_start() == 0
    lib.tt_traffic_stop()


def test_the_graph_is_freed_as_without_the_profiler():
    """What is looked at is not held: the peak of backward is the same."""

    def work():
        x = tt.ones(1 << 18, requires_grad=True)
        y = x
        for _ in range(10):
            y = y.sin()
        y.sum().backward()

    tt.cpu.reset_peak_memory_stats()
    before = tt.cpu.memory_allocated()
    work()
    plain = tt.cpu.max_memory_allocated() - before
    d = recorded(work).memory().devices["cpu"]
    assert d.peak - d.totals[0] == pytest.approx(plain, rel=0.01)


def test_categories_of_synthetic_records():
    """Two lives of one address, one noted; frees of what was there before."""
    trace = Trace(
        nest([Event("relu", "op", 0, 50, 1), Event("randn", "op", 60, 70, 1)]),
        [
            Allocation(10, 1, 64, 64, thread=1),
            Allocation(20, 1, -64, 0, thread=1),
            Allocation(30, 1, 64, 64, thread=1),
            Allocation(40, 2, 64, 128, thread=1),
            Allocation(45, 2, -64, 64, thread=1),
            Allocation(65, 3, 64, 128, thread=1),
            Allocation(80, 1, -64, 64, thread=1),
            Allocation(90, 4, -64, 0, thread=1),
            Allocation(95, 5, -64, 0, thread=1),
        ],
        end=100,
    )
    held = categorize(
        trace,
        [
            Note(0, "cpu", 4, 60, "parameter"),
            Note(1, "cpu", 6, 10, "activation"),
            Note(2, "cpu", 6, 10, "gradient"),
            Note(3, "cpu", 6, 10, "activation"),
            Note(35, "cpu", 1, 64, "activation"),
            Note(36, "cpu", 1, 64, "gradient"),
            Note(66, "cpu", 3, 64, "activation"),
        ],
    )
    names = [a.category for a in trace.allocations]
    assert names == [
        "workspace",
        "workspace",
        "gradient",
        "workspace",
        "workspace",
        "input",
        "gradient",
        "parameter",
        "other",
    ]
    assert held == {"cpu": {"parameter": 60, "gradient": 10}}
    assert MemoryView(trace).devices["cpu"].peak == 128


def test_device_memory(emulated):  # noqa: F811
    step = training("cuda", 32)
    step()
    p = recorded(step, activities=[profiler.ProfilerActivity.CPU])  # without the devices' timelines, which need CUPTI
    found = by_category(p, "cuda:0")
    assert found["activation"] >= 512 * 32 * 4 and found["input"] >= 512 * 32 * 4
    assert found["gradient"] >= 2 * 32 * 32 * 4
    d = p.memory().devices["cuda:0"]
    assert d.parts["parameter"][0] >= 2 * 32 * 32 * 4
    assert d.peak >= tt.cuda.memory_allocated()


def test_traffic_of_a_device(emulated):  # noqa: F811
    assert lib.tt_traffic_start() == 0
    assert lib.tt_traffic_start() == -1
    a = tt.ones(1000, device="cuda")
    held = tt.cuda.memory_allocated()
    address = int(ffi.cast("intptr_t", a._h.storage.data))
    del a
    lib.tt_traffic_stop()
    tt.ones(1000, device="cuda")
    out = ffi.new("tt_traffic[]", 8)
    n = lib.tt_traffic_take(out, 8)
    got = [(r.address, r.size, r.total, r.device) for r in out[0:n]]
    assert got[0] == (address, 4096, held, 0) and got[-1] == (address, -4096, held - 4096, 0)
    assert lib.tt_traffic_take(out, 8) == 0 and lib.tt_traffic_dropped() == 0
