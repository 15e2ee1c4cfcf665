"""What a profile sees of fused mode: programs, the operators inside, compilations."""

import pytest

import tinytorch as torch
from tinytorch.cache import Cache
from tinytorch.fuse.worker import worker
from tinytorch.profiler import profile


@pytest.fixture
def fresh_cache(idle, monkeypatch, tmp_path):
    """An empty cache of compiled kernels."""
    monkeypatch.setitem(worker.__dict__, "cache", Cache(str(tmp_path / "cache")))


def chain(x):
    y = x.exp() + 1
    return y.tanh().sum()


def of_kind(p, *kinds):
    return [e for e in p.events() if e.kind in kinds]


def test_a_program_is_told_with_the_operators_inside():
    x = torch.randn(100, 100)
    with profile(with_stack=True) as p, torch.fuse():
        value = chain(x)
        value.item()
    (program,) = of_kind(p, "program")
    assert program.name == "fused exp_add_tanh_sum"
    assert program.extra["operators"] == ["exp", "add", "tanh", "sum"]
    assert program.extra["cause"] == "value" and "item()" in program.extra["reason"]
    assert program.extra["tier"] == "interpreted" and program.extra["kernels"] == 1
    assert program.extra["place"].rpartition(":")[0].endswith("test_programs.py")
    assert program.parent.name == "item" and program.parent.start <= program.start
    (kernel,) = program.children
    assert kernel.kind == "kernel" and kernel.extra["operators"] == ["exp", "add", "tanh", "sum"]
    assert kernel.bytes == 100 * 100 * 4 + 4 and kernel.flops > 0
    assert [s.rpartition(" ")[2] for s in kernel.stack] == ["exp", "add", "tanh", "sum"]
    assert all(__file__ in s for s in kernel.stack)


def test_recorded_operators_are_marked():
    x = torch.randn(10)
    with profile() as p:
        with torch.fuse():
            y = x.exp()
        y.exp()
    first, second = (e for e in of_kind(p, "op") if e.name == "exp")
    assert first.extra == {"recorded": True} and second.extra is None
    assert [e.extra["cause"] for e in of_kind(p, "program")] == ["leave"]


def test_programs_of_backward_are_reported():
    x = torch.randn(50, 50, requires_grad=True)
    with profile() as p, torch.fuse():
        chain(x).backward()
        x.grad.sum().item()
    inside = [name for e in of_kind(p, "program") for name in e.extra["operators"]]
    assert {"exp", "tanh", "sum"} <= set(inside)
    assert {"ExpBackward0", "TanhBackward0"} <= {e.name for e in of_kind(p, "backward")}


def test_what_was_known_and_what_was_compiled(fresh_cache):
    x = torch.randn(123, 7)
    with torch.config(fuse_hot=2), profile() as p:
        for _ in range(3):
            with torch.fuse():
                chain(x * 3).item()
        assert worker.wait(200)
        with torch.fuse():
            chain(x * 3).item()
    programs = of_kind(p, "program")
    assert [e.extra["known"] for e in programs] == [False, True, True, True]
    assert programs[0].extra["tier"] == "interpreted" and programs[-1].extra["tier"] == "compiled"
    (compiled,) = [e for e in of_kind(p, "compile") if e.name.startswith("compile ")]
    assert compiled.extra["what"] == "compiled" and "exp" in compiled.name
    inside = {e.name for e in p.events() if e.thread == compiled.thread}
    assert {"C compiler", "cache lookup", "cache build"} <= inside
    assert p.trace.threads[compiled.thread].startswith("tinytorch-fuse")
    worker.cache.clear()


def test_a_profiler_does_not_disturb_whoever_listens_already():
    heard = []
    before = worker.on_event
    worker.on_event = heard.append
    try:
        with profile():
            assert worker.on_event is not heard.append
        assert worker.on_event == heard.append
    finally:
        worker.on_event = before


def test_results_are_the_same(fresh_cache):
    torch.manual_seed(0)
    x = torch.randn(64, 64)
    with torch.fuse():
        plain = chain(x).item()
    with profile(with_stack=True), torch.fuse():
        profiled = chain(x).item()
    assert plain == profiled
