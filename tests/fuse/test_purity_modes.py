"""Functions that are seen to be pure, under the modes of autograd, of fused mode, and with listeners."""

import pytest

import tinytorch as torch
from fuse.helpers import pending
from fuse.test_purity import agree, bits, learned, one, replayed
from tinytorch import fuse
from tinytorch.backends.cpu import lib


def test_grad_modes():
    fn = lambda x: (x * x).sin()  # noqa: E731
    fast = learned(fn, one)
    needing = lambda: (torch.randn(4, 6, requires_grad=True),)  # noqa: E731
    with torch.no_grad():
        agree(fast, fn, needing)
    for _ in range(6):
        agree(fast, fn, needing, calls=1)
        agree(fast, fn, one, calls=1)
        with torch.no_grad():
            agree(fast, fn, needing, calls=1)
            agree(fast, fn, one, calls=1)
        with torch.inference_mode():
            assert fast(*one()).is_inference()
    (x,) = needing()
    (g,) = torch.autograd.grad(fast(x).sum(), x)
    assert torch.allclose(g, 2 * x * (x * x).cos())
    assert replayed(fast, *one()) == 1 and not fast(*one()).is_inference()
    with torch.no_grad():
        assert replayed(fast, *needing()) == 1
    fast = fuse(fn)
    for mode in (torch.inference_mode, torch.no_grad, torch.inference_mode):
        with mode():
            for _ in range(6):
                assert fast(*one()).is_inference() == fn(*one()).is_inference()
            assert replayed(fast, *one()) == 1


def gradient(x):
    y = (x * x).sin()
    return torch.autograd.grad(y.sum(), x)[0] * 2


def needing_grad():
    return (torch.randn(4, 6, requires_grad=True),)


def test_modes_of_autograd():
    fast = learned(gradient, needing_grad)
    with torch.no_grad(), pytest.raises(RuntimeError, match="does not require grad"):
        fast(*needing_grad())
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(1) or t, lambda t: t):
        assert replayed(fast, *needing_grad()) == 0 and packed
    with pytest.warns(UserWarning, match="Anomaly"), torch.autograd.detect_anomaly():
        assert replayed(fast, *needing_grad()) == 0
    assert replayed(fast, *needing_grad()) == 1


def test_inference_tensors():
    fn = lambda x, w: torch.autograd.grad((x * w).sum(), w)[0] * 2  # noqa: E731
    make = lambda: (*one(), *needing_grad())  # noqa: E731
    fast = learned(fn, make)
    with torch.inference_mode():
        (x,) = one()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
        fast(x, *needing_grad())


def test_which_arguments_require_grad():
    fn = lambda x, y: torch.autograd.grad((x * x * y).sum(), x)[0] * 2  # noqa: E731
    make = lambda: (*needing_grad(), *one())  # noqa: E731
    fast = learned(fn, make)
    with pytest.raises(RuntimeError, match="does not require grad"):
        fast(*make()[::-1])
    agree(fast, fn, lambda: (*needing_grad(), *needing_grad()))


def test_hooks_and_graphs_of_arguments():
    fast = learned(gradient, needing_grad)
    (x,) = needing_grad()
    seen = []
    x.register_hook(lambda g: seen.append(1) or g * 3)
    for _ in range(6):
        assert bits(fast(x)) == bits(gradient(x))
    assert len(seen) == 12
    through = lambda y, x: torch.autograd.grad(y.sum(), x)[0] + 1  # noqa: E731
    fast = fuse(through)
    for k in range(10):  # a graph from outside, which is another one each time
        (x,) = needing_grad()
        y, z = (x * 2, x * 2) if k < 6 else (x.exp(), x.exp())
        assert bits(fast(y, x)) == bits(through(z, x))


def test_inside_of_the_mode():
    fn = lambda x: x.exp() * 2  # noqa: E731
    fast = learned(fn, one)
    x = torch.randn(4, 6)
    with fuse():
        before = fuse.stats()
        y = fast(x + 1) - 1
        assert pending() == 4 and fuse.stats() == before
    assert bits(y) == bits(fn(x + 1) - 1)
    with torch.config(fuse=1):
        assert replayed(fast, x) == 0
    assert lib.tt_fuse_depth() == 0 and replayed(fast, x) == 1
    assert not fuse(fn, step=True).purity.hopeful


def test_inside_of_the_mode_only():
    fast = fuse(lambda x: x.exp() * 2)
    with fuse():
        for _ in range(9):
            fast(torch.randn(3))
    assert fast.purity.hopeful and fast.purity.calls == 0


def test_a_listener_sees_recordings():
    fast = learned(lambda x: x.exp() * 2, one)
    found = fuse.explain(fast, *one())
    assert found.recorded == 2 and found.programs[0].kernels[0].nodes and "seen to be pure" in str(found)
    with torch.profiler.profile() as profile:
        assert replayed(fast, *one()) == 0
    assert "exp" in profile.key_averages().table()
    assert replayed(fast, *one()) == 1


def test_explained():
    def prints(x):
        print(end="")
        return x * 2

    found = fuse.explain(fuse(prints), *one())  # before anyone else asked
    assert "not seen to be pure: test_purity_modes.py, line " in str(found) and "calls print" in found.purity
    assert "promised" in fuse.explain(fuse(prints, pure=True), *one()).purity
    assert fuse.explain(prints, *one()).purity == ""
    same = fuse(lambda x: x)
    for _ in range(9):
        same(*one())
    assert "could not be replayed" in fuse.explain(same, *one()).purity
