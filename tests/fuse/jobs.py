"""Shared parts of the tests of asynchronous jobs: Note [Asynchronous jobs] in kernels/core/jobs.h."""

import pytest

import tinytorch
from fuse.helpers import ramp
from tinytorch import optim
from tinytorch.nn import functional as F

WIDTH = 192


@pytest.fixture(autouse=True)
def two_threads():
    """With one there are no jobs."""
    before = tinytorch.get_num_threads()
    tinytorch.set_num_threads(2)
    yield
    tinytorch.set_num_threads(before)


def jobs_submitted():
    return tinytorch.fuse.stats()["jobs"]


def with_jobs(work):
    """What ``work`` returns, which must have submitted jobs."""
    before = jobs_submitted()
    result = work()
    assert jobs_submitted() > before
    return result


def operands():
    return ramp(256, WIDTH).sin(), ramp(WIDTH, WIDTH).cos(), ramp(WIDTH)


def gradients(after=lambda x, g: None):
    """Of a linear layer's weight and bias; ``after(x, g)`` runs right after backward."""
    x, w, b = operands()
    w.requires_grad_()
    b.requires_grad_()
    g = (x * 3).cos()
    F.linear(x, w, b).backward(g)
    after(x, g)
    return w.grad, b.grad


def in_mode(work):
    with tinytorch.fuse():
        return work()


def steps(make, n, between=lambda p: None):
    """Parameters after n steps of an optimizer, and its state."""
    x, w, b = operands()
    parameters = [w.requires_grad_(), b.requires_grad_()]
    optimizer = make(parameters)
    for _ in range(n):
        optimizer.zero_grad()
        F.linear(x, *parameters).square().mean().backward()
        optimizer.step()
        between(parameters)
    states = [s for p in parameters for s in optimizer.state[p].values() if isinstance(s, tinytorch.Tensor)]
    return [*parameters, *states]


OPTIMIZERS = [
    lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    lambda p: optim.Adam(p, lr=0.01, amsgrad=True),
    lambda p: optim.AdamW(p, lr=0.01),
    lambda p: optim.RMSprop(p, lr=0.01),
    lambda p: optim.Adagrad(p, lr=0.01),
]
