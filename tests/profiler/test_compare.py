"""profiler.compare: the same work in all modes."""

import functools
import importlib
import importlib.util
import itertools
import json
import random

import numpy as np
import pytest

import tinytorch as torch
from tinytorch import nn
from tinytorch.backends.cpu import lib
from tinytorch.profiler import compare, digest, profile
from tinytorch.profiler.state import eagerly

OURS = ["eager", "interpreted", "compiled"]


def chain(x):
    """Six elementwise operators."""
    return ((x * 1.5 + 2).tanh() - x).exp() / 3


def quick(fn, *args, **options):
    """As few rounds as there can be."""
    return compare(fn, *args, **{"rounds": 1, **options})


def test_a_chain_is_one_kernel_when_fused():
    x = torch.rand(100, 1000)
    told = quick(chain, x)
    assert list(told.modes) == OURS and told.agree
    eager, interpreted, compiled = told.modes.values()
    assert (eager.kernels, interpreted.kernels, compiled.kernels) == (6, 1, 1)
    assert (eager.compiled, interpreted.compiled, compiled.compiled) == (None, 0, 1)
    n = x.nbytes
    assert eager.traffic == 13 * n  # the difference reads two
    assert 2 * n <= interpreted.traffic == compiled.traffic <= 3 * n
    assert compiled.traffic == compiled.explanation.bytes_read + compiled.explanation.bytes_written
    assert eager.peak >= 2 * n and n <= interpreted.peak <= interpreted.explanation.peak_memory
    assert (eager.agrees, interpreted.agrees, compiled.agrees) == (None, True, True)
    assert all(m.seconds > 0 and m.first > 0 for m in told.modes.values())
    assert compiled.ready > 0 and eager.ready is None
    assert torch.equal(told.result, chain(x))
    assert told.breaks == [(mode, place, "end of the mode", 6) for mode, place, _, _ in told.breaks]
    assert {mode for mode, *_ in told.breaks} == {"interpreted", "compiled"}


def test_the_line_that_gained_is_reported():
    told = quick(chain, torch.rand(300, 1000))
    (gain,) = (g for g in told.gains if "test_compare.py" in g.place)
    assert gain.place.rpartition(":")[2] == str(chain.__code__.co_firstlineno + 2)
    assert set(gain.names) == {"mul", "add", "tanh", "sub", "exp", "div"}
    assert gain.saved == gain.before - gain.after and gain.after > 0
    text = str(told)
    for part in (*OURS, "a call", "kernels launched", "equal bits", gain.place, "end of the mode (6 operators)"):
        assert part in text


def make_step():
    """A training step, its model and its optimizer."""
    torch.manual_seed(3)
    model = nn.Sequential(
        nn.Linear(8, 16),
        nn.BatchNorm1d(16) if hasattr(nn, "BatchNorm1d") else nn.LayerNorm(16),
        nn.GELU(),
        nn.Dropout(0.25),
        nn.Linear(16, 4),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = torch.randn(32, 8), torch.randint(4, (32,))

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step, model, optimizer


def test_a_training_step_starts_from_the_same_state_and_leaves_it():
    step, model, optimizer = make_step()
    step()
    before = [p.detach().clone() for p in model.parameters()]
    grads = [p.grad.clone() for p in model.parameters()]
    moments = [s["exp_avg"].clone() for s in optimizer.state_dict()["state"].values()]
    random_state = torch.get_rng_state()
    told = quick(step)
    assert told.agree, str(told)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters()))
    assert all(torch.equal(a, p.grad) for a, p in zip(grads, model.parameters()))
    assert all(torch.equal(a, s["exp_avg"]) for a, s in zip(moments, optimizer.state_dict()["state"].values()))
    assert torch.equal(random_state, torch.get_rng_state())
    loss = step()
    assert torch.equal(loss.detach(), told.result.detach())
    assert "linear is not fused" in [reason for _, _, reason, _ in told.breaks]


def test_a_model_that_was_never_trained_is_left_without_gradients():
    step, model, optimizer = make_step()
    quick(step, modes=("eager", "interpreted"))
    assert all(p.grad is None for p in model.parameters()) and optimizer.state_dict()["state"] == {}


@pytest.mark.parametrize(
    "wrap",
    [
        lambda fn, m, x: (fn, (m, x)),
        lambda fn, m, x: (functools.partial(fn, m), (x,)),
        lambda fn, m, x: (fn, ({"model": [m]}, x)),
    ],
)
def test_state_is_found_in_arguments(wrap):
    model, x = nn.Linear(3, 3), torch.randn(2, 3)

    def work(model, x):
        model = model["model"][0] if isinstance(model, dict) else model
        with torch.no_grad():
            model.weight.mul_(2)
            x += 1
        return model(x)

    before, given = model.weight.detach().clone(), x.clone()
    fn, args = wrap(work, model, x)
    assert quick(fn, *args).agree
    assert torch.equal(model.weight, before) and torch.equal(x, given)


def test_random_numbers_are_the_same_in_each_mode():
    def noise():
        return torch.randn(100) + random.random() + float(np.random.rand())

    assert quick(noise).agree


def test_a_difference_is_reported():
    calls = []

    def unsteady(x):
        calls.append(1)
        return x + len(calls)

    told = quick(unsteady, torch.zeros(3), modes=("eager", "interpreted"))
    assert not told.agree and told.modes["interpreted"].agrees is False
    assert told.modes["interpreted"].remark == "result differs in 3 of 3 elements"
    assert "differ" in str(told.table()) and "result differs in 3 of 3 elements" in str(told)


def test_a_difference_in_what_was_written_is_reported():
    seen, total = [], torch.zeros(2)

    def unsteady():
        seen.append(1)
        total.add_(len(seen))

    told = quick(unsteady, modes=("eager", "interpreted"))
    assert told.modes["interpreted"].remark == "total differs in 2 of 2 elements"
    assert torch.equal(total, torch.zeros(2))


@pytest.mark.parametrize("values", [[float("nan"), 1.0], [-0.0, 0.0]])
def test_bits_are_compared(values):
    flips = []

    def work(x):
        flips.append(1)
        return x if len(flips) == 1 else x * 1 if values[0] != 0 else -x

    told = quick(work, torch.tensor(values), modes=("eager", "interpreted"))
    assert told.agree == (values[0] != 0)  # any NaN equals any other, but zeros have a sign


def test_nested_results_and_those_that_are_no_tensors():
    def work(x):
        return {"a": (x * 2, [x.sum().item(), "text"]), "b": None}

    assert quick(work, torch.rand(5)).agree
    turns = itertools.count()
    told = quick(lambda x: {"a": next(turns)}, torch.rand(5), modes=("eager", "interpreted"))
    assert told.modes["interpreted"].remark.startswith("result['a'] is 0 and ")


def test_inside_of_fused_mode_eager_is_eager():
    with torch.fuse():
        x = torch.rand(10) + 1
        told = quick(chain, x)
        assert (told.modes["eager"].kernels, told.modes["compiled"].kernels) == (6, 1)
        y = x.square()
        assert lib.tt_fuse_pending() == 1  # and the mode goes on; chain's operators may be left to eager mode
    assert torch.equal(y, x * x)


def test_a_function_that_enters_fused_mode_itself_is_reported():
    told = quick(torch.fuse(chain), torch.rand(10), modes=("eager", "interpreted"))
    assert told.modes["eager"].remark == "the function enters fused mode by itself, here too" and told.agree


def test_errors_are_the_functions():
    x = torch.zeros(3)

    def wrong(x):
        x += 1
        return x @ torch.zeros(4)

    with pytest.raises(RuntimeError, match="matmul|mat|size"):
        quick(wrong, x)
    assert torch.equal(x, torch.zeros(3))
    with pytest.raises(ValueError, match="compare: argument 'modes' must be of eager, .*got 'fast'"):
        quick(chain, x, modes=("fast",))
    with pytest.raises(ValueError, match="compare: argument 'rounds' must be at least 1, got 0"):
        compare(chain, x, rounds=0)


def test_settings_and_memory_statistics_are_left_alone():
    before = torch.config.get("fuse_hot"), torch.config.get("fuse")
    big = torch.zeros(1_000_000)
    peak = torch.cpu.max_memory_allocated() if hasattr(torch, "cpu") else None
    del big
    quick(chain, torch.rand(10))
    assert (torch.config.get("fuse_hot"), torch.config.get("fuse")) == before
    if peak is not None:
        assert torch.cpu.max_memory_allocated() >= peak


def test_json_has_all_figures(tmp_path):
    told = quick(chain, torch.rand(10, 10))
    text = told.to_json(tmp_path / "figures.json")
    assert (tmp_path / "figures.json").read_text() == text
    figures = json.loads(text)
    assert figures["name"] == "chain" and figures["agree"] is True and list(figures["modes"]) == OURS
    compiled = figures["modes"]["compiled"]
    assert compiled["kernels"] == 1 and compiled["seconds"] == told.modes["compiled"].seconds
    (program,) = compiled["programs"]
    assert program["operators"] == 6 and program["reason"] == "end of the mode" and program["kernels"][0]["compiled"]
    assert {t["name"] for t in figures["modes"]["eager"]["operators"]} >= {"mul", "tanh", "exp"}


def test_without_a_compiler_the_compiled_tier_is_interpreted(monkeypatch, tmp_path):
    monkeypatch.setenv("CC", "/nonexistent/cc")
    monkeypatch.setenv("TINYTORCH_CACHE_DIR", str(tmp_path))
    told = quick(lambda x: (x * 0.3).cos() - 7.125, torch.rand(50), modes=("fused",))
    assert told.agree and told.modes["compiled"].compiled in (0, 1)


# Beside PyTorch.


def test_pytorch_runs_the_same_function_and_is_compared(torch):  # noqa: F811 (the fixture is PyTorch)
    import_tinytorch = importlib.import_module("tinytorch")
    x = import_tinytorch.rand(20, 30)
    told = quick(chain, x, torch=True)
    assert list(told.modes) == [*OURS, "torch"] and told.modes["torch"].agrees is True
    assert told.modes["torch"].kernels is None and "near" in str(told)
    given = []

    def theirs(x):
        given.append(x)
        return chain(x) + 1e-2

    told = quick(chain, x, torch=theirs)
    assert all(isinstance(g, torch.Tensor) for g in given)
    assert told.modes["torch"].agrees is False and not told.agree
    assert "result is too far off in 600 of 600 elements (by at most 0.01)" in told.modes["torch"].remark
    assert quick(chain, x, torch=theirs, atol=0.1).agree


def test_a_function_that_pytorch_cannot_run_is_reported(torch):  # noqa: F811
    x = importlib.import_module("tinytorch").rand(3)

    def broken(x):
        raise ValueError("no")

    told = quick(chain, x, torch=broken)
    assert told.modes["torch"].remark == "ValueError: no" and told.modes["torch"].seconds is None
    assert told.agree and "torch: ValueError: no" in str(told)


def test_where_pytorch_is_not_installed_the_others_run(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "torch" else found(name, *a))
    told = quick(chain, torch.rand(3), modes=("eager", "torch.compile"))
    assert told.modes["torch.compile"].remark == "PyTorch is not installed"
    assert told.modes["eager"].seconds > 0 and json.loads(told.to_json())["modes"]["torch.compile"]["seconds"] is None


# The figures that reports and comparisons rest on.


def test_totals_agree_with_the_events():
    x = torch.rand(50, 50, requires_grad=True)
    with eagerly(), profile() as profiler:
        for _ in range(3):
            (x @ x).tanh().sum().backward()
    totals = {(t.name, t.kind): t for t in digest.totals(profiler.trace)}
    assert totals["tanh", "op"].calls == totals["TanhBackward0", "backward"].calls == 3
    outermost = sum(
        e.duration
        for e in profiler.trace.events
        if e.parent is None and e.kind in digest.WORK and e.device == "cpu" and "(pool)" not in e.name
    )
    own = sum(t.self_time for t in totals.values() if "(pool)" not in t.name)
    assert abs(own - outermost) <= 0.01 * outermost


def test_operators_that_only_look_do_not_launch():
    x = torch.rand(6, 4)
    with eagerly(), profile() as profiler:
        x.t().reshape(24).view(4, 6)[3:].exp()
    assert digest.launches(profiler.trace) == 2  # reshape copies, exp computes


def test_memory_over_time_is_what_the_allocator_says():
    with eagerly(), profile(profile_memory=True) as profiler:
        a = torch.zeros(1000, 1000)
        b = a + 1
        del a
        b.exp_()
    (memory,) = digest.memory(profiler.trace)
    assert memory.peak - memory.totals[0] >= 8_000_000 > memory.totals[-1] - memory.totals[0] >= 4_000_000
    for k in range(len(memory.times)):
        assert sum(values[k] for values in memory.parts.values()) == memory.totals[k]
    assert memory.peak == max(memory.totals)


def test_a_derivative_that_is_only_recorded_moves_nothing():
    x = torch.rand(50, 50, requires_grad=True)
    with eagerly(), profile() as profiler, torch.fuse():
        torch.nn.functional.gelu(x).backward(torch.ones(50, 50))
    (derivative,) = (e for e in profiler.trace.events if e.name == "GeluBackward0")
    assert derivative.bytes is None
    assert digest.traffic(profiler.trace) == sum(e.bytes for e in profiler.trace.of_kind("program")) >= 2 * x.nbytes


def test_an_operator_that_runs_a_program_first_counts_as_well():
    x, w = torch.rand(50, 50), torch.rand(50, 50)
    with eagerly(), profile() as profiler, torch.fuse():
        ((x * 2) @ w).sum().item()
    programs = sum(e.bytes for e in profiler.trace.of_kind("program"))
    (product,) = (e for e in profiler.trace.events if e.name == "matmul")
    assert product.bytes == 3 * x.nbytes and any(c.kind == "program" for c in product.children)
    assert digest.traffic(profiler.trace) == product.bytes + programs
    assert digest.launches(profiler.trace) == 1 + 2  # the product of matrices, and a kernel before and after it
    assert [t.name for t in digest.kernels(profiler.trace) if t.kind == "op"] == ["matmul"]


def test_the_traces_tell_why_programs_ended_as_explain_does():
    model = nn.Linear(8, 4)
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.randn(5, 8), torch.tensor([0, 1, 2, 3, 0])

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()  # its wrapper is at work while the program ends
        return loss

    told = quick(step)
    for name in OURS[1:]:
        reasons = {reason for mode, _, reason, _ in told.breaks if mode == name}
        assert reasons == {b.reason for b in digest.breaks(told.modes[name].trace)}
        assert "step() writes and is not fused" in reasons
