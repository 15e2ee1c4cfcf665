"""Asynchronous jobs of several threads or processes."""

import os

import pytest

import tinytorch
from fuse.jobs import OPTIMIZERS, jobs_submitted, gradients, in_mode, operands, with_jobs, steps, two_threads  # noqa: F401
from fuse.helpers import in_threads, python, ramp, same
from tinytorch import optim


def test_another_thread_looks():
    expected = gradients()

    def work():
        with tinytorch.fuse():
            found = gradients()
            in_threads(3, lambda k: [same(a, b) or pytest.fail("another result") for a, b in zip(expected, found)])

    with_jobs(work)


def test_many_threads_at_once():
    expected = [t.detach().numpy().tobytes() for t in steps(OPTIMIZERS[2], 8)]

    def work(k):
        for _ in range(5):
            found = in_mode(lambda: steps(OPTIMIZERS[2], 8))
            assert [t.detach().numpy().tobytes() for t in found] == expected

    with_jobs(lambda: in_threads(4, work))


def test_threads_that_step_the_same_parameters():
    """Without a lock that is a race, whose result nobody knows; but nothing else is harmed."""
    w = ramp(128, 128).sin().requires_grad_()

    def work(k):
        with tinytorch.fuse():
            optimizer = optim.SGD([w], lr=1e-6)
            for _ in range(50):
                w.grad = tinytorch.full((128, 128), 1.0)
                optimizer.step()
                (w.detach() * 2).sum()

    with_jobs(lambda: in_threads(4, work))
    assert (w.detach() - ramp(128, 128).sin()).abs().max().item() < 1e-2


def test_a_thread_ends_meanwhile():
    expected, found = gradients(), []
    with_jobs(lambda: in_threads(3, lambda k: found.append(in_mode(gradients))))
    for pair in found:
        for a, b in zip(expected, pair, strict=True):
            assert same(a, b)


def test_one_thread_does_all_itself():
    tinytorch.set_num_threads(1)
    before = jobs_submitted()
    expected = gradients()
    for _ in range(5):
        assert same(in_mode(gradients)[0], expected[0])
    assert jobs_submitted() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_process_forks_meanwhile():
    expected = [t.detach().numpy().tobytes() for t in steps(OPTIMIZERS[1], 3)]

    def check():
        return [t.detach().numpy().tobytes() for t in in_mode(lambda: steps(OPTIMIZERS[1], 3))] == expected

    with tinytorch.fuse():
        found = steps(OPTIMIZERS[1], 3)
        pid = os.fork()
        if pid == 0:
            right = [t.detach().numpy().tobytes() for t in found] == expected and check()
            os._exit(0 if right else 1)
        _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert [t.detach().numpy().tobytes() for t in found] == expected and check()


def test_a_process_ends_meanwhile():
    assert python("""
        import tinytorch
        from tinytorch.nn import functional as F
        tinytorch.set_num_threads(2)
        x, w = tinytorch.randn(64, 512), tinytorch.randn(512, 512, requires_grad=True)
        tinytorch.fuse().__enter__()
        for _ in range(20):
            w.grad = None
            F.linear(x, w).backward(x)
        print(tinytorch.fuse.stats()["jobs"] > 0)
    """).split() == ["True"]
