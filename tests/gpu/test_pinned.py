"""Page-locked memory, and copies that nobody waits for."""

import gc

import numpy as np
import pytest
import tinytorch as tt
from tinytorch import cuda
from tinytorch.backends._cpu import lib


@pytest.fixture(autouse=True)
def quiet(gpu):
    gc.collect()
    cuda.synchronize()
    cuda.empty_cache()


def test_pinned_copies_are_equal_and_pinned():
    a = tt.arange(12).reshape(3, 4)
    p = a.pin_memory()
    assert p.is_pinned() and not a.is_pinned() and p.pin_memory() is p and p.data_ptr() != a.data_ptr()
    assert bool((p == a).all()) and p.device == tt.device("cpu")
    t = a.t().pin_memory()
    assert t.stride() == (1, 4) and t.is_pinned() and t[1:].is_pinned() and bool((t == a.t()).all())
    assert (p + 1).is_pinned() is False and p.numpy()[1, 1] == 5
    assert tt.empty(0).pin_memory().is_pinned()


def test_pinned_memory_and_gradients():
    a = tt.ones(3, requires_grad=True)
    p = a.pin_memory()
    assert p.is_pinned()
    (p * 2).sum().backward()
    assert a.grad.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: tt.empty(3, **k),
        lambda **k: tt.zeros(3, **k),
        lambda **k: tt.full((3,), 2.0, **k),
        lambda **k: tt.tensor([1, 2], **k),
        lambda **k: tt.rand(3, **k),
        lambda **k: tt.randint(5, (3,), **k),
        lambda **k: tt.randperm(5, **k),
        lambda **k: tt.arange(5, **k),
        lambda **k: tt.eye(3, **k),
        lambda **k: tt.zeros_like(tt.ones(2, 2), **k),
        lambda **k: tt.ones(2).new_full((2,), 1, **k),
        lambda **k: tt.empty_strided((2, 2), (1, 2), **k),
        lambda **k: tt.normal(0.0, 1.0, (3,), **k),
    ],
)
def test_factories_pin(make):
    assert make(pin_memory=True).is_pinned() and not make().is_pinned()


def test_memory_that_was_a_pinned_header_is_not_pinned():
    """A block of the CPU's own memory may lie where headers of pinned storages were."""
    release = tt.ones(1).pin_memory()._h.storage.release
    there = 0
    for _ in range(10):
        pinned = [tt.ones(1).pin_memory() for _ in range(5000)]
        del pinned
        lib.tt_empty_cache()
        tt.ones(5000)  # malloc merges what is free
        plain = [tt.ones(n % 100 + 1) for n in range(5000)]
        there += sum(t._h.storage.release == release for t in plain)
        assert sum(t.is_pinned() for t in plain) == 0
    assert there


def test_a_device_tensor_cannot_be_pinned():
    with pytest.raises(RuntimeError, match="pin_memory: cannot pin a tensor on cuda:0"):
        tt.ones(2, device="cuda").pin_memory()
    with pytest.raises(RuntimeError, match="ones: cannot pin a tensor on cuda:0: only dense CPU tensors"):
        tt.ones(2, device="cuda", pin_memory=True)


@pytest.mark.parametrize("non_blocking", [False, True])
def test_copies_between_pinned_memory_and_the_device(non_blocking):
    a = tt.rand(1000).pin_memory()
    b = a.to("cuda", non_blocking=non_blocking)
    back = (b * 2).to("cpu", non_blocking=non_blocking)
    assert back.is_pinned() is non_blocking
    target = tt.empty(1000).pin_memory()
    target.copy_(b, non_blocking=non_blocking)
    other = tt.empty(1000, device="cuda")
    other.copy_(a, non_blocking=non_blocking)
    cuda.synchronize()
    assert bool((back == a * 2).all()) and bool((target == a).all()) and bool((other.cpu() == a).all())


def test_who_waits(emulated):
    s = cuda.Stream()
    with cuda.stream(s):
        plain, pinned, foreign = tt.rand(100), tt.rand(100).pin_memory(), tt.from_numpy(np.ones(100, np.float32))
        device = tt.ones(100, device="cuda")

        def waits(copy):
            emulated.held.add(s.cuda_stream)
            copy()
            return s.cuda_stream not in emulated.held

        assert not waits(lambda: plain.cuda())  # the driver has taken the values when it returns
        assert waits(lambda: foreign.cuda())  # it may be page-locked, for all we know
        assert waits(lambda: pinned.cuda())
        assert not waits(lambda: pinned.cuda(non_blocking=True))
        assert waits(lambda: device.cpu())
        assert not waits(lambda: device.to("cpu", non_blocking=True))
        assert waits(lambda: plain.copy_(device, non_blocking=True))
        assert not waits(lambda: pinned.copy_(device, non_blocking=True))
        assert waits(lambda: pinned.copy_(device))

        def module():
            made = tt.nn.Linear(3, 2)
            made.weight.data, made.bias.data = made.weight.data.pin_memory(), made.bias.data.pin_memory()
            return made

        assert waits(lambda: module().to("cuda"))
        assert not waits(lambda: module().to("cuda", non_blocking=True))
        assert not waits(lambda: module().to("cuda", tt.float32, True))


def test_pinned_memory_is_not_used_anew_while_a_copy_reads_it(emulated):
    s = cuda.Stream()
    with cuda.stream(s):
        a = tt.rand(1000).pin_memory()
        at = a.data_ptr()
        emulated.held.add(s.cuda_stream)
        b = a.to("cuda", non_blocking=True)
    del a
    other = tt.rand(1000).pin_memory()
    assert other.data_ptr() != at
    emulated.held.clear()
    assert tt.rand(1000).pin_memory().data_ptr() == at
    assert b.numel() == 1000


def test_the_loader_pins_batches():
    data = tt.utils.data.TensorDataset(tt.arange(10), tt.rand(10, 2))
    for x, y in tt.utils.data.DataLoader(data, batch_size=5, pin_memory=True):
        assert x.is_pinned() and y.is_pinned()
    for (x,) in tt.utils.data.DataLoader(
        [{"a": tt.ones(2), "b": "text"}], batch_size=1, pin_memory=True, collate_fn=lambda batch: (batch[0],)
    ):
        assert x["a"].is_pinned() and x["b"] == "text"


def test_what_backward_wants_is_kept_in_page_locked_memory():
    """Activations are offloaded without waiting, and the gradients are those of a pass that keeps them."""
    tt.manual_seed(0)
    net = tt.nn.Sequential(tt.nn.Linear(8, 16), tt.nn.GELU(), tt.nn.Linear(16, 16), tt.nn.GELU(), tt.nn.Linear(16, 1))
    net.to("cuda")
    x = tt.randn(32, 8, device="cuda")
    kept = []

    class Kept(tt.autograd.graph.save_on_cpu):
        def __init__(self, *args):
            super().__init__(*args)
            pack, unpack = self.hooks
            self.hooks = (lambda t: kept.append(pack(t)) or kept[-1], unpack)

    def gradients():
        net.zero_grad()
        net(x).square().mean().backward()
        return [p.grad.tolist() for p in net.parameters()]

    expected = gradients()
    for pinned in (True, False):
        with Kept(pinned):
            out = net(x)
        held = cuda.memory_allocated()
        assert kept and all(t.device == tt.device("cpu") and t.is_pinned() is pinned for _, t in kept)
        net.zero_grad()
        out.square().mean().backward()
        assert [p.grad.tolist() for p in net.parameters()] == expected and held > 0
        kept.clear()


@pytest.mark.parametrize("persistent", [False, True])
def test_batches_of_workers_are_pinned(persistent):
    data = tt.utils.data.TensorDataset(tt.arange(40.0).reshape(20, 2), tt.arange(20))
    loader = tt.utils.data.DataLoader(data, batch_size=3, num_workers=1, pin_memory=True, persistent_workers=persistent)
    for _ in range(2):
        got = []
        for x, y in loader:
            assert x.is_pinned() and y.is_pinned()
            on_device = x.to("cuda", non_blocking=True)
            assert (on_device[:, 0].cpu() == 2 * y).all()
            got += y.tolist()
        assert got == list(range(20))
    loader = tt.utils.data.DataLoader([Unpinnable()], num_workers=1, pin_memory=True, collate_fn=lambda batch: batch[0])
    with pytest.raises(KeyError, match="Caught KeyError in pin memory thread"):
        list(loader)


class Unpinnable:
    """At the top, for pickle."""

    def pin_memory(self):
        raise KeyError("never")


def test_a_selective_checkpoint_keeps_results_in_page_locked_memory():
    from_list = tt.utils.checkpoint.create_selective_checkpoint_contexts
    policies, found = tt.utils.checkpoint.CheckpointPolicy, {}
    offloaded = []

    class Offloading:
        def __call__(self, context, op, *args):
            if op is not tt.ops.aten.mm.default:
                return policies.MUST_RECOMPUTE
            offloaded.append(tuple(context.op_output.shape))
            return policies.MUST_CPU_OFFLOAD

    x, w = tt.randn(64, 32, device="cuda"), tt.randn(32, 128, device="cuda", requires_grad=True)
    for name, policy in (("kept", [tt.ops.aten.mm.default]), ("offloaded", Offloading()), ("recomputed", [])):
        w.grad = None
        cuda.synchronize()
        calls = []

        def part(w, calls=calls):
            calls.append(1)
            return (x @ w * len(calls)).sin().sum()

        before = cuda.memory_allocated()
        y = tt.utils.checkpoint.checkpoint(part, w, use_reentrant=False, context_fn=lambda p=policy: from_list(p))
        held = cuda.memory_allocated() - before
        y.backward()
        found[name] = w.grad.tolist(), held, len(calls)
    assert offloaded == [(64, 128)]
    assert found["offloaded"][0] == found["kept"][0] and [n for _, _, n in found.values()] == [2, 2, 2]
    assert found["kept"][1] - found["offloaded"][1] >= 64 * 128 * 4 and found["offloaded"][1] == found["recomputed"][1]
