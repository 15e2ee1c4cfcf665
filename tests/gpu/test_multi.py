"""Several devices: copies between them, whose turn it is, and what may not be mixed. Where there is no GPU, of two
emulated ones."""

import threading

import numpy as np
import pytest
import tinytorch as tt
from gpu.emulator import Emulator
from tinytorch import cuda, nn
from tinytorch.backends.cpu import lib
from tinytorch.backends.cuda import runtime


@pytest.fixture(autouse=True)
def two(gpu):
    if cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    yield
    assert cuda.current_device() == 0


def bits(t):
    return t.detach().cpu().contiguous().reshape(-1).view(tt.uint8).numpy()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_copies_between_devices(dtype):
    a = (tt.randn(30, 7) * 3).to(getattr(tt, dtype))
    for x in (a, a.t(), a[::2, 1:5], a[0, :1], a[:0], a.sum()):
        first = x.to("cuda:0")
        second = first.to("cuda:1")
        assert (first.get_device(), second.get_device()) == (0, 1) and second.device == tt.device("cuda:1")
        assert second.shape == x.shape and tt.equal(second.cpu(), x) and tt.equal(second.to("cuda:0"), first)
        other = tt.empty_like(first)
        other.copy_(second)
        assert tt.equal(other.cpu(), x)
    assert tt.equal(a.to("cuda:0").to("cuda:1", tt.float64).cpu(), a.double())
    assert second.to("cuda:1") is second and second.cuda(1) is second and second.cuda() is not second


def test_the_current_device():
    assert tt.ones(2, device="cuda").get_device() == 0
    with cuda.device(1):
        a = tt.ones(2, device="cuda")
        assert cuda.current_device() == a.get_device() == tt.ones(2).cuda().get_device() == 1
        with cuda.device("cuda:0"):
            assert cuda.current_device() == tt.ones(2, device="cuda").get_device() == 0
            with cuda.device_of(a):
                assert cuda.current_device() == 1
        assert cuda.current_device() == 1
        assert (a + 1).get_device() == 1 and (tt.ones(2, device="cuda:0") + 1).get_device() == 0
    assert (a * 2).get_device() == 1  # work is done where its operands are
    try:
        cuda.set_device(1)
        seen = []
        thread = threading.Thread(target=lambda: seen.append(cuda.current_device()))
        thread.start()
        thread.join()
        assert seen == [0] and cuda.current_device() == 1
    finally:
        cuda.set_device(0)
    with pytest.raises(RuntimeError, match=f"invalid device ordinal {cuda.device_count()}"):
        tt.ones(2, device=f"cuda:{cuda.device_count()}")


def test_operators_work_on_the_other_device():
    x = tt.randn(40, 70)
    at = tt.arange(7) % 3

    def run(x, at):
        return [
            x + 1,
            x.t() * x.t(),
            x.sum(),
            x.sum(0),
            x.softmax(1),
            x.cumsum(1),
            x.sort(1)[0],
            x.topk(3)[1],
            x[at],
            x.clone().index_add_(0, at, x[:7]),
            tt.cat([x, x]),
            x.half(),
            (x > 0).nonzero(),
            nn.functional.layer_norm(x, (70,)),
            x.var(1),
            tt.where(x > 0, x, -x),
        ]

    for here, there in zip(run(x, at), run(x.to("cuda:1"), at.to("cuda:1"))):
        assert there.get_device() == 1
        np.testing.assert_array_equal(bits(here), bits(there))
    assert tt.arange(5, device="cuda:1").get_device() == tt.zeros_like(x, device="cuda:1").get_device() == 1


def test_devices_are_not_mixed():
    a, b = tt.ones(3, device="cuda:0"), tt.ones(3, device="cuda:1")
    for wrong in (
        lambda: a + b,
        lambda: a.add_(b),
        lambda: tt.where(a > 0, a, b),
        lambda: tt.cat([a, b]),
        lambda: a @ b,
        lambda: a[b.long()],
        lambda: nn.functional.linear(a, b.reshape(1, 3)),
        lambda: a.lerp(b, 0.5),
    ):
        with pytest.raises(RuntimeError, match="on the same device.*cuda:1"):
            wrong()
    assert (a * tt.tensor(2.0)).get_device() == 0  # a number on the CPU goes with all


def test_gradients_cross_devices():
    x = tt.arange(3.0).to("cuda:0").requires_grad_()
    y = (x * 2).to("cuda:1") * tt.full((3,), 5.0, device="cuda:1")
    y.sum().backward()
    assert x.grad.get_device() == 0 and x.grad.tolist() == [10.0] * 3
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    first, second = model[0].to("cuda:0"), model[1].to("cuda:1")
    optimizer = tt.optim.Adam(model.parameters())
    plain = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    plain.load_state_dict({k: v.cpu() for k, v in model.state_dict().items()})
    reference = tt.optim.Adam(plain.parameters())
    for _ in range(2):
        for m, o, run in (
            (model, optimizer, lambda t: second(first(t.to("cuda:0")).to("cuda:1"))),
            (plain, reference, plain),
        ):
            o.zero_grad()
            run(tt.ones(5, 3)).square().sum().backward()
            nn.utils.clip_grad_norm_(m[0].parameters(), 1.0)
            o.step()
    for p, q in zip(model.parameters(), plain.parameters()):
        np.testing.assert_allclose(p.detach().cpu().numpy(), q.detach().numpy(), rtol=1e-4, atol=1e-6)
    assert [p.get_device() for p in model.parameters()] == [0, 0, 1, 1]


def test_streams_and_events_are_a_device_s():
    s, other = cuda.Stream(device=1), cuda.Stream(device=0)
    assert s.device == tt.device("cuda:1") and s != other
    with cuda.stream(s):
        assert cuda.current_device() == 1 and cuda.current_stream() == s == cuda.current_stream(1)
        assert cuda.current_stream(0) == cuda.default_stream(0)
        a = tt.ones(1000, device="cuda") * 3
        event = s.record_event()
    assert event.device == tt.device("cuda:1") and cuda.current_stream(1) == cuda.default_stream(1)
    other.wait_event(event)
    with cuda.stream(other):
        b = a.to("cuda:0", non_blocking=True) + 1
    other.synchronize()
    assert b.get_device() == 0 and b.sum().item() == 4000
    event.synchronize()
    assert event.query() and s.query()
    with pytest.raises(RuntimeError, match="does not match recording stream's device 0"):
        event.record(other)
    with pytest.raises(RuntimeError, match="record_stream: the tensor is on cuda:1, the stream on cuda:0"):
        a.record_stream(other)


def test_memory_is_counted_for_each():
    cuda.synchronize(1)
    before = [cuda.memory_allocated(k) for k in (0, 1)]
    a = tt.empty(1 << 20, device="cuda:1")
    assert cuda.memory_allocated(1) - before[1] == a.numel() * 4 and cuda.memory_allocated(0) == before[0]
    del a
    assert [cuda.memory_allocated(k) for k in (0, 1)] == before


def test_each_has_its_own_random_numbers():
    tt.manual_seed(7)
    first, second = tt.rand(5, device="cuda:0"), tt.rand(5, device="cuda:1")
    assert tt.equal(first.cpu(), second.cpu())  # the same seed, each from its beginning
    with cuda.device(1):
        cuda.manual_seed(9)
    assert cuda.get_rng_state(0).tolist() != cuda.get_rng_state(1).tolist()
    assert len(cuda.get_rng_state_all()) == cuda.device_count()


def test_faults_are_found_where_they_are():
    a, at = tt.ones(3, device="cuda:1"), tt.tensor([5], device="cuda:1")
    a[at]
    cuda.synchronize(0)
    with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 0 with size 3"):
        cuda.synchronize(1)


def test_fused_mode_on_both():
    x = tt.randn(300)
    expected = ((x * 2 + 1).exp() - x).sum()
    for _ in range(5):
        with tt.fuse():
            sums = [((y * 2 + 1).exp() - y).sum() for y in (x.to("cuda:0"), x.to("cuda:1"))]
        tt.fuse.wait()
        assert [s.get_device() for s in sums] == [0, 1]
        for s in sums:
            np.testing.assert_array_equal(bits(s), bits(expected))


def test_a_graph_of_the_other_device():
    with cuda.device(1):
        x, g = tt.ones(64, device="cuda"), cuda.CUDAGraph()
        with cuda.graph(g):
            y = x * 2 + tt.rand(64, device="cuda")
        g.replay()
        first = y.clone()
        g.replay()
        assert y.get_device() == 1 and not tt.equal(first, y) and bool((y >= 2).all())


@tt.config(cuda_caching=1)  # whoever makes a segment looks, too
def test_another_library_changes_what_is_current(gpu, monkeypatch):
    """A launch that is kept does not look before; where it fails, it is made once more on its own device."""
    driver = runtime.driver()
    monkeypatch.setattr(runtime, "_several", True)
    x = [tt.arange(40.0, device=f"cuda:{k}") for k in range(2)]
    wanted = np.arange(40, dtype=np.float32) * 3
    for _ in range(3):
        assert [np.array_equal((y * 3).cpu().numpy(), wanted) for y in x] == [True, True]
    if isinstance(gpu, Emulator):

        class Refused(Exception):
            pass

        refusals, opened = [], []
        for index in range(2):
            for key, launch in list(runtime._devices[index].loaded[False].functions.items()):

                def refuse(*how, launch=launch):
                    if not opened:
                        refusals.append(how)
                        raise Refused
                    return launch(*how)

                monkeypatch.setitem(runtime._devices[index].loaded[False].functions, key, refuse)
        monkeypatch.setattr(driver, "failures", (Refused,))
        lib.tt_cuda_keep_launches(1)
        opened.append(0)
        (x[0] * 3).cpu()
        opened.clear()
        monkeypatch.setattr(driver, "is_current", lambda index: bool(opened))
        monkeypatch.setattr(driver, "open", lambda index: opened.append(index))
        y = x[0] * 3
        assert len(refusals) == 1 and np.array_equal(y.cpu().numpy(), wanted)
        opened.clear()
        monkeypatch.setattr(driver, "is_current", lambda index: True)
        monkeypatch.setattr(driver, "open", lambda index: None)
        with pytest.raises(RuntimeError, match="CUDA error"):
            x[0] * 3
    else:
        for _ in range(3):
            for k in range(2):
                driver.open(1 - k)
                driver._thread.device = k  # as if another library had done it
                y = x[k] * 3
                assert driver.is_current(k) and np.array_equal(y.cpu().numpy(), wanted)
    lib.tt_cuda_keep_launches(1)
