"""Two hundred threads at once, on tensors of their own and on shared ones: everyone's results are those of one thread
alone, and nothing stays behind."""

import gc
import sys
import threading

import pytest

import tinytorch as tt
from fuse.helpers import in_threads
from fuzz.steps import data, network
from tinytorch import optim
from tinytorch.nn import functional as F

THREADS = 200


def trained(k):
    """A network of its own, and what it has learnt."""
    tt.manual_seed(0)
    w = (data(8, 5) + k).requires_grad_()
    optimizer = optim.Adam([w], lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        F.cross_entropy(data(6, 8) @ w, tt.arange(6) % 5).backward()
        optimizer.step()
    return w.detach()


def views(k):
    """Slices of a buffer, written and read."""
    y = tt.zeros(31)
    y[1:] = data(30) * k
    y[2:9].add_(y[1:8].clone())
    v = y[::2]
    del y
    return v * 2


@pytest.fixture
def few_threads():
    """Of kernels: these threads are the load, and take turns as often as they can."""
    before, interval = tt.get_num_threads(), sys.getswitchinterval()
    tt.set_num_threads(2)
    sys.setswitchinterval(1e-6)
    yield
    tt.set_num_threads(before)
    sys.setswitchinterval(interval)


def fused(work):
    def run(k):
        with tt.fuse():
            return work(k)

    return run


@pytest.mark.parametrize("mode", ["eager", "fused"])
@pytest.mark.parametrize("work", [trained, views])
def test_tensors_of_their_own(few_threads, work, mode):
    wanted = [work(k) for k in range(THREADS)]
    gc.collect()
    before, got = tt.cpu.memory_allocated(), [None] * THREADS
    run = fused(work) if mode == "fused" else work

    def keep(k):
        got[k] = run(k)

    in_threads(THREADS, keep)
    assert all(map(tt.equal, got, wanted))
    got.clear()
    gc.collect()
    assert tt.cpu.memory_allocated() <= before


@pytest.mark.parametrize("mode", ["eager", "fused"])
def test_shared_weights(few_threads, mode):
    """All read the same weights, and add to their gradients; every sum is exact, so their order does not matter."""
    net, x = network(), tt.arange(6) % 11
    w = tt.ones(64, requires_grad=True)
    wanted = net(x).detach()

    def work(k):
        y = net(x)
        assert tt.equal(y.detach(), wanted)
        (w * float(k)).sum().backward()

    in_threads(THREADS, fused(work) if mode == "fused" else work)
    assert w.grad.tolist() == [THREADS * (THREADS - 1) / 2] * 64


@pytest.mark.parametrize("mode", ["eager", "fused"])
def test_shared_buffer(few_threads, mode):
    """Each writes its part of one buffer, and reads it and others' while all write."""
    buffer = tt.zeros(THREADS, 33)

    def work(k):
        for step in range(5):
            buffer[k] = float(k + step)
            assert buffer[k].tolist() == [float(k + step)] * 33
            assert buffer[(k + 1) % THREADS].sum().item() >= 0
            assert ((buffer[k] + 1) * 2).amax(0).item() == 2.0 * (k + step + 1)
            buffer[k].mul_(1).add_(0)

    in_threads(THREADS, fused(work) if mode == "fused" else work)
    assert buffer.tolist() == [[k + 4.0] * 33 for k in range(THREADS)]


def test_modes_are_their_own(few_threads):
    """Modes of one thread are not seen by another."""
    seen, lock = [], threading.Lock()

    def work(k):
        for _ in range(20):
            with tt.no_grad() if k % 2 else tt.inference_mode() if k % 3 else tt.enable_grad():
                y = tt.ones(3, requires_grad=True) * 2 if k % 2 or not k % 3 else tt.ones(3)
                with lock:
                    seen.append((k, tt.is_grad_enabled(), y.requires_grad, y.is_inference()))
        assert tt.is_grad_enabled() and not tt.is_inference_mode_enabled()

    in_threads(THREADS, work)
    for k, grad, requires, inference in seen:
        assert (grad, requires) == ((False, False) if k % 2 or k % 3 else (True, True))
        assert inference == (k % 2 == 0 and k % 3 != 0)
