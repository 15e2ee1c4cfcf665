"""Gradients of weights and optimizers' steps as Note [Asynchronous jobs] in kernels/core/jobs.h: every reader sees what
eager mode would have shown."""

import functools
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinytorch
from fuse.jobs import (  # noqa: F401
    OPTIMIZERS,
    WIDTH,
    jobs_submitted,
    gradients,
    in_mode,
    operands,
    with_jobs,
    steps,
    two_threads,
)
from fuse.helpers import held, ramp, same
from tinytorch import nn, optim
from tinytorch.nn import functional as F


def test_gradients_are_eager_modes():
    expected = gradients()
    for a, b in zip(expected, with_jobs(lambda: in_mode(gradients)), strict=True):
        assert same(a, b)


def test_what_they_are_made_from_is_written_meanwhile():
    expected = gradients()

    def write(x, g):
        x.zero_()
        g[:] = 7
        x.add_(1)

    def write_and_run(x, g):
        write(x, g)
        assert x.sum().item() == x.numel()

    for after in (write, write_and_run):
        found = with_jobs(functools.partial(in_mode, functools.partial(gradients, after)))
        for a, b in zip(expected, found, strict=True):
            assert same(a, b)


def test_an_eager_write_after_the_mode():
    expected = gradients()

    def work():
        kept = []
        with tinytorch.fuse():
            found = gradients(lambda x, g: kept.extend((x, g)))
        for t in kept:
            t.fill_(float("nan"))
        return found

    for a, b in zip(expected, with_jobs(work), strict=True):
        assert same(a, b)


def test_results_that_nobody_wants():
    x, w, _ = operands()
    tinytorch.zeros(1).numpy()
    before = held()

    def work():
        with tinytorch.fuse():
            for _ in range(20):
                v = w.clone().requires_grad_()
                F.linear(x, v).backward(x)
                v.grad = None
                del v

    with_jobs(work)
    with_jobs(lambda: in_mode(gradients))[0].numpy()
    for _ in range(1000):  # the thread lets go of what it held when it is done
        if held() <= before:
            break
        tinytorch.zeros(1 << 16).sum().item()
    assert held() <= before


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_steps_are_eager_modes(make):
    expected = steps(make, 5)
    for a, b in zip(expected, with_jobs(lambda: in_mode(lambda: steps(make, 5))), strict=True):
        assert same(a, b)


def test_parameters_are_looked_at_and_written_after_a_step():
    def look(parameters):
        w, b = parameters
        seen.append(w.detach().numpy().tobytes())
        with tinytorch.no_grad():
            w.mul_(0.5)
            b.copy_(w[0])

    make, seen = OPTIMIZERS[1], []
    expected = steps(make, 4, look)
    eager, seen = seen, []
    found = in_mode(lambda: steps(make, 4, look))
    assert seen == eager and all(same(a, b) for a, b in zip(expected, found, strict=True))


def test_memory_that_others_may_write_is_not_used_by_jobs():
    array = np.ones((256, WIDTH), np.float32)
    x, (_, w, _) = tinytorch.from_numpy(array), operands()
    w.requires_grad_()
    F.linear(x, w).backward(ramp(256, WIDTH))
    expected, w.grad = w.grad, None
    for _ in range(50):
        with tinytorch.fuse():
            F.linear(x, w).backward(ramp(256, WIDTH))
            array[:] = 9
            assert same(w.grad, expected)
        array[:] = 1
        w.grad = None


def test_a_network_with_norms():
    def work():
        tinytorch.manual_seed(0)
        model = nn.Sequential(nn.Linear(64, 128), nn.LayerNorm(128), nn.GELU(), nn.Linear(128, 64), nn.LayerNorm(64))
        optimizer = optim.AdamW(model.parameters(), lr=0.01)
        x = tinytorch.randn(500, 64)
        losses = []
        for _ in range(6):
            optimizer.zero_grad()
            loss = (model(x) - x).square().mean()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        return losses

    assert with_jobs(lambda: in_mode(work)) == work()


def test_the_split_into_jobs_and_programs_is_always_the_same():
    """However far jobs have come: whether they are waited for at once, or others keep the cores busy. Products are too
    small to be shared out: each thread's scratch memory would count, of as many threads as come in time."""

    def work(pause=lambda: None):
        tinytorch.manual_seed(0)
        model = nn.Sequential(nn.Linear(64, 128), nn.LayerNorm(128), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 64))
        optimizer = optim.Adam(model.parameters(), lr=0.01)
        shift = tinytorch.zeros(40, 64, requires_grad=True)  # whose gradient is one that a job reads
        x = tinytorch.randn(40, 64)
        for _ in range(3):
            optimizer.zero_grad()
            (model(x + shift) + shift).square().mean().backward()
            pause()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            pause()
            x.mul_(0.9)

    def counted(pause=lambda: None):
        before = tinytorch.fuse.stats()
        with ThreadPoolExecutor(1) as pool:  # a thread that has not learned yet what is left to eager mode
            pool.submit(in_mode, functools.partial(work, pause)).result()
        after = tinytorch.fuse.stats()
        return [after[key] - before[key] for key in ("recorded", "programs", "jobs", "hits", "misses")]

    def explained():
        report = tinytorch.fuse.explain(work)
        return [(p.reason, p.place, p.operators, p.reads, p.writes) for p in report.programs], report.peak_memory

    counted()
    expected, explanation = counted(), explained()
    recorded, programs, jobs, hits, misses = expected
    assert jobs > 0 and misses == 0 and programs == len(explanation[0])
    for pause in [lambda: time.sleep(0.01)] + 20 * [lambda: None]:
        assert counted(pause) == expected and explained() == explanation


def test_more_jobs_than_are_kept_waiting():
    x, w, _ = operands()
    expected = [(x * k).T @ x for k in range(100)]

    def work():
        kept = []
        for k in range(100):
            v = w.clone().requires_grad_()
            F.linear(x, v).backward(x * k)
            kept.append(v.grad)
        return kept

    before = jobs_submitted()
    for a, b in zip(expected, in_mode(work), strict=True):
        assert same(a, b)
    assert jobs_submitted() == before + 100


def test_a_gradient_that_a_job_reads_is_adopted_as_in_eager_mode():
    """Whether a gradient is copied depends on who has a reference to it: a job has none."""

    def work():
        x, w, b = operands()
        w.requires_grad_()
        shift = tinytorch.zeros(256, WIDTH, requires_grad=True)
        (F.linear(x, w) + shift).backward(ramp(256, WIDTH).cos())
        first = shift.grad
        with tinytorch.no_grad():
            shift.grad.mul_(3)
        return w.grad, first, shift.grad

    expected = work()
    for _ in range(20):
        for a, b in zip(expected, with_jobs(lambda: in_mode(work)), strict=True):
            assert same(a, b)


def test_gradients_are_handed_to_others():
    expected = gradients()[0].numpy()
    for give in (
        lambda t: t.numpy(),
        np.from_dlpack,
        lambda t: np.frombuffer(bytes(t.numpy().data), np.float32),
        lambda t: np.array(t.tolist(), np.float32),
    ):
        for _ in range(5):
            with tinytorch.fuse():
                found = give(gradients()[0])
                assert np.array_equal(found.reshape(expected.shape), expected)


def test_operands_are_handed_to_others_who_write_them():
    expected = gradients()

    def write(x, g):
        x.numpy()[:] = 5
        np.from_dlpack(g)[:] = 6

    for _ in range(5):
        found = with_jobs(lambda: in_mode(lambda: gradients(write)))
        for a, b in zip(expected, found, strict=True):
            assert same(a, b)


def test_errors_while_jobs_are_under_way():
    """A step that is refused has changed nothing, and the jobs before it are done."""
    expected = gradients()[0]

    def work():
        x, w, _ = operands()
        w.requires_grad_()
        F.linear(x, w).backward((x * 3).cos())
        odd = ramp(4, 4).requires_grad_()
        optimizer = optim.SGD([w, odd], lr=0.1)
        odd.grad = ramp(4, 4)
        odd.data = ramp(5)  # no longer its gradient's shape
        version = w._version
        with pytest.raises(RuntimeError, match="shape"):
            optimizer.step()
        assert w._version == version and same(w.detach(), operands()[1])
        with pytest.raises(RuntimeError, match="shape"):
            F.linear(x, w[:, :3])
        raise KeyError(w.grad)

    for _ in range(10):
        with pytest.raises(KeyError) as caught:
            in_mode(work)
        assert same(caught.value.args[0], expected)


def test_saved_tensors_are_checked():
    """Versions count when a step is asked for, not when it is made."""
    x, w, _ = operands()
    w.requires_grad_()
    optimizer = optim.SGD([w], lr=0.1)
    with tinytorch.fuse():
        v = x.clone().requires_grad_()
        y = F.linear(v, w)
        w.grad = ramp(WIDTH, WIDTH).cos()
        optimizer.step()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


ACTS = ["step", "clip", "look", "write x", "write w", "drop", "keep", "second", "accumulate", "numpy", "leave"]


@st.composite
def trainings(draw):
    """Layers, rows, what is done to the gradients and parameters between the steps, and how often."""
    widths = draw(st.lists(st.sampled_from([8, 64, 96, 200]), min_size=2, max_size=4))
    acts = draw(st.lists(st.sampled_from(ACTS), min_size=1, max_size=8))
    return widths, draw(st.sampled_from([1, 40, 333])), acts, draw(st.integers(0, len(OPTIMIZERS) - 1))


def train(widths, rows, acts, which, leave):
    """All numbers that anybody sees."""
    tinytorch.manual_seed(1)
    layers = [nn.Linear(a, b) for a, b in zip(widths, widths[1:])]
    model = nn.Sequential(*[m for layer in layers for m in (layer, nn.Tanh())])
    optimizer = OPTIMIZERS[which](list(model.parameters()))
    x, kept = tinytorch.randn(rows, widths[0]), []
    for act in acts + ["step"]:
        if act != "accumulate":
            optimizer.zero_grad()
        y = model(x)
        (y * y).mean().backward(create_graph=act == "second")
        first = layers[0].weight
        if act == "clip":
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        elif act == "look":
            kept.append(first.grad.clone())
        elif act == "write x":
            x.mul_(0.5)
        elif act == "write w":
            with tinytorch.no_grad():
                first.grad.add_(first)
                first[0] = 1
        elif act == "drop":
            first.grad = None
        elif act == "keep":
            kept.append(first.grad)
        elif act == "second":
            kept.append(first.grad.sum().detach())
        elif act == "numpy":
            kept.append(tinytorch.tensor(first.grad.detach().numpy()))
        elif act == "leave":
            leave()
        optimizer.step()
    return [t.detach().numpy().tobytes() for t in [*kept, *model.parameters()]]


@settings(max_examples=40, deadline=None)
@given(trainings(), st.sampled_from([2, 7]))
def test_any_training_has_eager_modes_numbers(training, threads):
    tinytorch.set_num_threads(threads)
    expected = train(*training, leave=lambda: None)
    with tinytorch.fuse() as mode:
        found = train(*training, leave=lambda: (mode.__exit__(None, None, None), mode.__enter__()))
    assert found == expected


def test_step_through_does_all_at_once():
    before = jobs_submitted()
    expected = gradients()
    with tinytorch.fuse(step=True):
        assert same(gradients()[0], expected[0])
    assert jobs_submitted() == before


def test_many_views_of_one_storage():
    """Its readers are counted in 15 bits: a step over more parameters than that is no job."""

    def work(n, steps=3):
        flat, gradient = ramp(n * 32).sin(), ramp(n * 32).cos()
        parameters = [flat[k * 32 : (k + 1) * 32].requires_grad_() for k in range(n)]
        for k, p in enumerate(parameters):
            p.grad = gradient[k * 32 : (k + 1) * 32]
        optimizer = optim.SGD(parameters, lr=0.1)
        for _ in range(steps):
            optimizer.step()
        gradient.zero_()
        return flat

    for n in (200, 201):
        expected, before = work(n), jobs_submitted()
        assert same(in_mode(functools.partial(work, n)), expected)
        assert (jobs_submitted() > before) == (n == 200)


def test_a_recorded_write_to_what_a_job_writes():
    """Jobs may be done between two looks at a storage."""
    w = ramp(128, 128).sin().requires_grad_()
    w.grad = ramp(128, 128).cos()
    optimizer = optim.SGD([w], lr=0.01)

    def work():
        for _ in range(300):
            optimizer.step()
            with tinytorch.no_grad():
                w.mul_(0.99)
        return w.detach().clone()

    start = w.detach().clone()
    expected = work()
    with tinytorch.no_grad():
        w.copy_(start)
    assert same(with_jobs(lambda: in_mode(work)), expected)
