"""Launches that are kept: Note [Launching again] in kernels/cuda/host/launch.c."""

import threading

import numpy as np
import pytest

import tinytorch as torch
from tinytorch.backends.cpu import lib
from tinytorch.backends.cuda import runtime


@pytest.fixture
def told(gpu, monkeypatch):
    """Which launches Python was told of, and was told of again."""
    firsts, agains = [], []
    work = dict(runtime.WORK)
    monkeypatch.setattr(runtime, "_keep_handles", lambda *_: None)

    def launch(*args):
        firsts.append(args)
        return work["tt_cuda_launch"](*args)

    def again(number):
        agains.append(number)
        return runtime.tt_cuda_launch_again(number)

    runtime.let_work({**work, "tt_cuda_launch": launch, "tt_cuda_launch_again": again})
    lib.tt_cuda_keep_launches(1)
    yield firsts, agains
    runtime.let_work({**runtime.WORK, "tt_cuda_launch_again": runtime.tt_cuda_launch_again})
    runtime.let_work(runtime.WORK)


def test_the_same_launch_is_told_once(told):
    firsts, agains = told
    x = torch.arange(64.0, device="cuda")
    y = x * 1.5
    firsts.clear()
    agains.clear()
    for k in range(5):
        x = x + y
        np.testing.assert_array_equal(x.cpu().numpy(), np.arange(64, dtype=np.float32) * (1 + 1.5 * (k + 1)))
    assert len(firsts) == 1 and len(agains) == 4


def test_reductions_are_told_once_too(told):
    firsts, agains = told
    x = torch.arange(20_000.0, device="cuda").view(200, 100)
    for f in (lambda: x.sum(), lambda: x.sum(0), lambda: x.t().amax(0), lambda: x.max(1), lambda: x.argmax()):
        f()
        firsts.clear()
        f()
        assert not firsts and agains
        agains.clear()


def test_other_arguments_grids_and_streams(told):
    firsts, _ = told
    side = torch.cuda.Stream()
    for n in (64, 100, 64, 5000, 100):
        x = torch.arange(float(n), device="cuda")
        np.testing.assert_array_equal((x + x).cpu().numpy(), np.arange(n, dtype=np.float32) * 2)
    before = len(firsts)
    with torch.cuda.stream(side):
        z = x + x
    side.synchronize()
    np.testing.assert_array_equal(z.cpu().numpy(), np.arange(100, dtype=np.float32) * 2)
    assert firsts[before][2] != firsts[0][2]  # the stream


def test_what_differs_by_its_shared_memory_alone_is_another_launch(told):
    firsts, _ = told
    rows = [torch.ones(2, n, device="cuda") for n in (40_000, 40_008)]  # of as many blocks, and threads
    firsts.clear()
    for x in rows:
        x.softmax(1)
    (small, large) = firsts
    assert small[1:7] == large[1:7] and small[7] < large[7]


def test_many_launches_some_of_one_place(told):
    for n in range(1, 700):  # numbers of blocks: a launch each
        x = torch.full((n * 2048,), float(n), device="cuda")
        if n % 50 == 0:
            assert (x[-1] + x[0]).item() == 2 * n


def test_threads_keep_their_own(told):
    failed = []

    def work(k):
        x = torch.full((256,), float(k), device="cuda")
        total = torch.zeros(256, device="cuda")
        for _ in range(100):
            total = total + x
        if not (total.cpu().numpy() == 100 * k).all():
            failed.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


def test_nothing_is_kept_while_somebody_looks(gpu):
    x = torch.ones(8, device="cuda")
    x + x
    seen = []
    work = dict(runtime.WORK)

    def launch(*args):
        seen.append(args[0])
        return work["tt_cuda_launch"](*args)

    runtime.let_work({**work, "tt_cuda_launch": launch})
    try:
        for _ in range(3):
            x + x
    finally:
        runtime.let_work(runtime.WORK)
    assert seen == [-1, -1, -1]


def test_what_is_forgotten_stays_so(told):
    firsts, agains = told
    x = torch.ones(8, device="cuda")
    for _ in range(2):
        x * 0.25, x + 0.25
    lib.tt_cuda_keep_launches(1)
    firsts.clear()
    agains.clear()
    x * 0.25
    assert (len(firsts), len(agains)) == (1, 0)
    x + 0.25  # that a launch of the same thread is kept again does not bring back this one
    assert (len(firsts), len(agains)) == (2, 0)


def test_a_launch_that_failed_is_not_kept(told, monkeypatch):
    firsts, agains = told
    x = torch.ones(8, device="cuda")
    (x * 0.25).cpu()
    key = firsts[-1][3]

    def fail(*args):
        raise RuntimeError("refused")

    lib.tt_cuda_keep_launches(1)
    monkeypatch.setitem(runtime._devices[0].loaded[False].functions, key, fail)
    agains.clear()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="refused"):
            x * 0.25
    monkeypatch.undo()
    assert (x * 0.25).cpu().tolist() == [0.25] * 8
    assert not agains


def finalized(owner, name, monkeypatch, run):
    """What ``run`` gives, when the garbage collector comes by a finalizer that runs it during ``owner.name``."""
    before, inside = getattr(owner, name), []

    def during(*args):
        monkeypatch.setattr(owner, name, before)
        inside.append(run("inside"))
        return before(*args)

    monkeypatch.setattr(owner, name, during)
    thread = threading.Thread(target=lambda: inside.append(run("outside")), daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive() and len(inside) == 2
    return inside


def test_a_kernel_is_installed_while_another_is(emulated, monkeypatch):
    device = runtime.open_device(0)
    monkeypatch.setattr(device, "fused", {})
    with emulated.planning():
        install = finalized(emulated, "build", monkeypatch, lambda source: runtime.install_fused(0, source))
    (inside, known), (outside, also) = install
    assert inside != outside and not known and not also
    assert device.sources[lib.tt_fused_key(inside)] == "inside" and device.fused == {
        "inside": inside,
        "outside": outside,
    }
    for number in (inside, outside):
        del device.sources[lib.tt_fused_key(number)]
        for loaded in device.loaded:
            loaded.functions.pop(lib.tt_fused_key(number), None)


def test_a_device_is_opened_while_it_is_opened(emulated, monkeypatch):
    monkeypatch.setattr(runtime, "_devices", {})
    inside, outside = finalized(emulated, "properties", monkeypatch, lambda _: runtime.open_device(0))
    assert inside is outside is runtime._devices[0]


def test_a_launch_inside_a_launch(told, monkeypatch):
    """As when Python, told of a launch, comes upon a finalizer that computes: on this device, and on the CPU."""
    firsts, agains = told
    x = torch.arange(8.0, device="cuda")
    y = x * 10
    (x + y).cpu()
    functions, key, inner = runtime._devices[0].loaded[False].functions, firsts[-1][3], []
    plain = functions[key]

    def launch(*args):
        if not inner:
            inner.append(None)
            inner.append(y + y)
            inner.append((torch.zeros(3) + torch.tensor([1.0, 2.0, 3.0])).cumsum(0))
        plain(*args)

    monkeypatch.setitem(functions, key, launch)
    lib.tt_cuda_keep_launches(1)
    for again in (0, 1):
        inner.clear()
        agains.clear()
        assert (x + y).tolist() == [11.0 * k for k in range(8)]
        assert inner[1].tolist() == [20.0 * k for k in range(8)]
        assert inner[2].device.type == "cpu" and inner[2].tolist() == [1, 3, 6]
        assert len(agains) == again


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("shape", [(), (4, 4), (33,), (1000,), (70001,)])
def test_the_gradients_of_a_product_are_one_launch(told, dtype, shape):
    firsts, agains = told
    dtype = getattr(torch, dtype)
    here = [torch.randn(shape).to(dtype) for _ in range(3)]
    there = [t.to("cuda") for t in here]
    grads = []
    for a, b, g in (here, there):
        a.requires_grad_(), b.requires_grad_()
        out = a * b
        firsts.clear()
        agains.clear()
        out.backward(g)
        launched = len(firsts) + len(agains)
        grads.append([a.grad.cpu(), b.grad.cpu()])
    assert launched == 1
    for x, y in zip(*grads):
        assert x.dtype is dtype and torch.equal(x, y)


def test_products_of_other_layouts(gpu):
    grads = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        a = torch.randn(5, 7).to(device).requires_grad_()
        row, other = (torch.randn(n).to(device).requires_grad_() for n in (7, 5))
        out = (a.t() * other)[1:] * row[1:, None]
        out.square().sum().backward()
        again = torch.autograd.grad(((a * a) * row).sum(), (a, row), create_graph=True)
        grads.append(
            [t.grad.cpu() for t in (a, row, other)]
            + [t.detach().cpu() for t in again]
            + [t.cpu() for t in torch.autograd.grad(again[0].sum(), (a, row))]
        )
    for x, y in zip(*grads):
        assert torch.equal(x, y)
