"""Parametrizations and functional_call: tests that run on both libraries, and values that are compared."""

import copy
import importlib
import pickle

import numpy as np
import pytest

import tinytorch as tt
from tinytorch.nn.utils import orthogonal as kernels

torch = pytest.importorskip("torch")
BOTH = pytest.mark.parametrize("m", [tt, torch], ids=["tinytorch", "torch"])


def of(m, name="parametrize"):
    return importlib.import_module(f"{m.__name__}.nn.utils.{name}")


def maps(m):
    """Parametrizations to try."""
    nn = m.nn

    class Double(nn.Module):
        def forward(self, x):
            return x * 2

        def right_inverse(self, x):
            return x / 2

    class Skew(nn.Module):
        def forward(self, x):
            return x.tril(-1) - x.tril(-1).mT

    class Product(nn.Module):
        def forward(self, a, b):
            return a * b

        def right_inverse(self, x):
            return m.ones(()) * 2, x / 2

    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.shift = nn.Parameter(m.ones(()))

        def forward(self, x):
            return x + self.shift

    return Double, Skew, Product, Sum


@BOTH
def test_register_assign_and_remove(m):
    p, (Double, _, _, Sum) = of(m), maps(m)
    net = m.nn.Linear(2, 2, bias=False)
    with m.no_grad():
        net.weight.copy_(m.tensor([[1.0, 2.0], [3.0, 4.0]]))
    original, cls = net.weight, type(net)
    assert p.register_parametrization(net, "weight", Double()) is net
    assert net.weight.tolist() == [[1.0, 2.0], [3.0, 4.0]]  # thanks to right_inverse
    assert net.parametrizations.weight.original is original and original.tolist() == [[0.5, 1.0], [1.5, 2.0]]
    assert type(net).__name__ == "ParametrizedLinear" and isinstance(net, cls)
    assert p.type_before_parametrizations(net) is cls and p.is_parametrized(net) and p.is_parametrized(net, "weight")
    assert not p.is_parametrized(net, "bias") and "weight" not in net._parameters
    p.register_parametrization(net, "weight", Sum())
    assert net.weight.tolist() == [[2.0, 3.0], [4.0, 5.0]]
    assert [n for n, _ in net.named_parameters()] == [
        "parametrizations.weight.original", "parametrizations.weight.1.shift"
    ]  # fmt: skip
    assert net(m.ones(1, 2)).tolist() == [[5.0, 9.0]]
    net(m.ones(1, 2)).sum().backward()
    assert original.grad.tolist() == [[2.0, 2.0]] * 2 and net.parametrizations.weight[1].shift.grad.item() == 4.0
    with pytest.raises(RuntimeError, match="does not implement"):
        net.weight = m.zeros(2, 2)
    p.remove_parametrizations(net, "weight")
    assert type(net) is cls and net.weight is original and net.weight.tolist() == [[2.0, 3.0], [4.0, 5.0]]
    assert (
        not p.is_parametrized(net)
        and not hasattr(net, "parametrizations")
        and p.type_before_parametrizations(net) is cls
    )
    p.register_parametrization(net, "weight", Double())
    net.weight = m.ones(2, 2) * 6
    assert net.weight.tolist() == [[6.0] * 2] * 2 and original.tolist() == [[3.0] * 2] * 2
    p.remove_parametrizations(net, "weight", leave_parametrized=False)
    assert net.weight is original and original.tolist() == [[3.0] * 2] * 2


@BOTH
def test_assigning_goes_back_through_them_all(m):
    p, (Double, _, _, Sum) = of(m), maps(m)

    class Both(Sum):
        def right_inverse(self, x):
            return x - self.shift

    net = m.nn.Linear(2, 1, bias=False).eval()
    p.register_parametrization(net, "weight", Double())
    p.register_parametrization(net, "weight", Both())
    assert not net.parametrizations.weight[0].training and not net.parametrizations.weight[1].training
    net.weight = m.tensor([[5.0, 7.0]])
    assert net.weight.tolist() == [[5.0, 7.0]] and net.parametrizations.weight.original.tolist() == [[2.0, 3.0]]


@BOTH
def test_several_originals_and_buffers(m):
    p, (Double, _, Product, _) = of(m), maps(m)
    net = m.nn.Linear(2, 1)
    net.register_buffer("b", m.ones(2))
    p.register_parametrization(net, "weight", Product(), unsafe=True)
    p.register_parametrization(net, "b", Double())
    assert sorted(n for n, _ in net.named_parameters()) == [
        "bias", "parametrizations.weight.original0", "parametrizations.weight.original1"
    ]  # fmt: skip
    assert [n for n, _ in net.named_buffers()] == ["parametrizations.b.original"] and net.b.tolist() == [1.0, 1.0]
    net.weight = m.tensor([[8.0, 4.0]])
    assert net.parametrizations.weight.original1.tolist() == [[4.0, 2.0]] and net.weight.tolist() == [[8.0, 4.0]]
    with pytest.raises(ValueError, match="leave_parametrized=False"):
        p.remove_parametrizations(net, "weight", leave_parametrized=False)
    p.remove_parametrizations(net, "weight")
    assert isinstance(net.weight, m.nn.Parameter) and net.weight.is_leaf and net.weight.tolist() == [[8.0, 4.0]]
    assert p.is_parametrized(net)
    p.remove_parametrizations(net, "b")
    assert "b" in net._buffers and not p.is_parametrized(net)


@BOTH
def test_cached(m):
    p, (_, Skew, _, _) = of(m), maps(m)
    net = m.nn.Linear(3, 3)
    p.register_parametrization(net, "weight", Skew())
    assert net.weight is not net.weight
    with p.cached():
        first = net.weight
        with p.cached():
            assert net.weight is first
        assert net.weight is first
        if m is tt:  # PyTorch's copies share what is cached
            assert copy.deepcopy(net).weight is not first
    assert net.weight is not first


@BOTH
def test_states_and_copies(m):
    p, (Double, Skew, _, _) = of(m), maps(m)
    net = m.nn.Sequential(m.nn.Linear(2, 2))
    p.register_parametrization(net[0], "weight", Skew())
    state = net.state_dict()
    assert list(state) == ["0.bias", "0.parametrizations.weight.original"]
    other = m.nn.Sequential(m.nn.Linear(2, 2))
    p.register_parametrization(other[0], "weight", Skew())
    other.load_state_dict(state)
    assert other[0].weight.tolist() == net[0].weight.tolist()
    copied = copy.deepcopy(net)
    assert p.is_parametrized(copied[0], "weight") and copied[0].weight.tolist() == net[0].weight.tolist()
    with m.no_grad():
        copied[0].parametrizations.weight.original.fill_(1.0)
    assert copied[0].weight.tolist() != net[0].weight.tolist()
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        pickle.dumps(net)
    p.remove_parametrizations(net[0], "weight")
    pickle.dumps(net)
    if m is tt:  # PyTorch's copies share a class
        assert copied[0].weight.tolist() == [[0.0, -1.0], [1.0, 0.0]]
    p.register_parametrization(net[0], "bias", Double())
    assert net[0].bias.shape == (2,)


@BOTH
def test_transfer(m):
    p, (Double, _, Product, Sum) = of(m), maps(m)
    a, b = m.nn.Linear(2, 2), m.nn.Linear(2, 2, bias=False)
    p.register_parametrization(a, "weight", Double())
    p.register_parametrization(a, "weight", Sum())
    p.register_parametrization(a, "bias", Product(), unsafe=True)
    assert p.transfer_parametrizations_and_params(a, b, "weight") is b
    assert b.weight.tolist() == a.weight.tolist() and b.parametrizations.weight[1] is a.parametrizations.weight[1]
    empty = m.nn.Linear(2, 2)
    with m.no_grad():
        empty.bias.zero_()
    try:
        p.transfer_parametrizations_and_params(a, empty, "bias")
    except ValueError:
        pytest.fail("a parametrization of several originals is to be transferred")
    assert empty.bias.tolist() == a.bias.tolist()


def wrong(m):
    """What cannot be registered: a parametrization's forward and right_inverse."""

    def made(forward=None, back=None, count=1):
        class Wrong(m.nn.Module):
            pass

        if forward is not None:
            Wrong.forward = forward
        if back is not None:
            Wrong.right_inverse = back
        return Wrong()

    def same(self, *x):
        return x[0]

    return {
        "text": made(lambda self, x: "text"),
        "dtype": made(lambda self, x: x.double()),
        "shape": made(lambda self, x: x[:1]),
        "arguments": made(lambda self: 3),
        "back text": made(same, lambda self, x: 3),
        "back dtype": made(same, lambda self, x: x.double()),
        "back sequence": made(same, lambda self, x: (x, "text")),
    }


@BOTH
@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("kind", list(wrong(tt)))
def test_refused(m, kind, second):
    p = of(m)
    net = m.nn.Linear(2, 2)
    if second:
        p.register_parametrization(net, "weight", m.nn.Identity())
    before = net.weight.tolist()
    with pytest.raises(TypeError if kind == "arguments" else ValueError):
        p.register_parametrization(net, "weight", wrong(m)[kind])
    assert net.weight.tolist() == before and p.is_parametrized(net) is second


@BOTH
def test_unknown_names(m):
    p = of(m)
    with pytest.raises(ValueError, match="does not have a parameter"):
        p.register_parametrization(m.nn.Linear(1, 1), "foo", m.nn.Identity())
    with pytest.raises(ValueError, match="does not have a parametrization"):
        p.remove_parametrizations(m.nn.Linear(1, 1), "weight")
    for name in ("orthogonal", "spectral_norm"):
        with pytest.raises(ValueError, match="has no parameter or buffer"):
            getattr(of(m, "parametrizations"), name)(m.nn.Linear(1, 1), "foo")
    ready = of(m, "parametrizations")
    with pytest.raises(ValueError, match="Expected a matrix"):
        ready.orthogonal(m.nn.Linear(2, 2), "bias")
    with pytest.raises(ValueError, match="has to be one of"):
        ready.orthogonal(m.nn.Linear(2, 2), orthogonal_map="no")
    with pytest.raises(IndexError):
        ready.spectral_norm(m.nn.Linear(2, 2), dim=2)
    with pytest.raises(ValueError, match="n_power_iterations to be positive"):
        ready.spectral_norm(m.nn.Linear(2, 2), n_power_iterations=0)


# Values.


def array(t):
    return np.asarray(t.detach().tolist(), float).reshape(tuple(t.shape))


def close(a, b, tolerance=1e-10):
    np.testing.assert_allclose(array(a), array(b), rtol=tolerance, atol=tolerance)


def pair(shape, seed=0, scale=1.0):
    x = np.random.default_rng(seed).standard_normal(shape) * scale
    return [m.tensor(x.tolist(), dtype=m.float64).reshape(shape).requires_grad_() for m in (tt, torch)]


@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (3, 5, 5), (2, 0, 0)])
@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 8.0])
def test_matrix_exp(shape, scale):
    a, b = pair(shape, scale=scale)
    x, y = kernels.matrix_exp(a), torch.matrix_exp(b)
    close(x, y, 1e-9 * np.exp(5 * scale))
    close(kernels.matrix_exp(a - a.mT), torch.matrix_exp(b - b.mT), 1e-11)  # of all scales, a rotation
    if a.numel() and scale < 2:
        x.cos().sum().backward(), y.cos().sum().backward()
        close(a.grad, b.grad, 1e-8)


@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (5, 3), (2, 6, 2)])
def test_householder(shape):
    a, b = pair(shape)
    (qr, tau), (want, want_tau) = kernels.householder_qr(a), torch.geqrf(b)
    close(qr, want), close(tau, want_tau)
    (v, w), (s, t) = pair(shape, 1), pair((*shape[:-2], shape[-1]), 2)
    close(kernels.householder_product(v, s), torch.linalg.householder_product(w, t))
    assert tt.autograd.gradcheck(kernels.householder_product, (v, s))
    eye = tt.eye(*shape[-2:], dtype=tt.float64).expand(*shape)
    qr, tau = kernels.householder_qr(eye)
    assert tau.abs().sum().item() == 0.0 and qr.tolist() == eye.tolist()


@pytest.mark.parametrize("trivial", [True, False])
@pytest.mark.parametrize("how", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
def test_orthogonal(shape, how, trivial):
    mine, theirs = (m.nn.Linear(shape[1], shape[0], bias=False).double() for m in (tt, torch))
    q = np.linalg.qr(np.random.default_rng(0).standard_normal((max(shape), min(shape))))[0]
    q = q if shape[0] >= shape[1] else q.T
    nets = list(zip((tt, torch), (mine, theirs)))
    for m, net in nets:
        with m.no_grad():
            net.weight.copy_(m.tensor(q.tolist(), dtype=m.float64))
        of(m, "parametrizations").orthogonal(net, "weight", how, use_trivialization=trivial)
        start = net.parametrizations.weight.original
        if trivial or how == "householder":
            np.testing.assert_allclose(array(net.weight), q, atol=1e-10)
            net.weight = m.tensor((2 * q).tolist(), dtype=m.float64)  # the nearest orthogonal one is taken
            np.testing.assert_allclose(array(net.weight), q, atol=1e-10)
        else:
            with pytest.raises(NotImplementedError):
                net.weight = m.tensor(q.tolist(), dtype=m.float64)
        values = np.random.default_rng(1).standard_normal(shape)
        with m.no_grad():
            if how == "householder":
                start.add_(m.tensor(np.tril(values, -1).tolist(), dtype=m.float64))
            else:
                start.copy_(m.tensor(values.tolist(), dtype=m.float64))
            if trivial:  # one base for both: a wide one was completed with random numbers
                base = np.linalg.qr(np.random.default_rng(2).standard_normal((max(shape),) * 2))[0]
                net.parametrizations.weight[0].base = m.tensor(base.tolist(), dtype=m.float64)
        net(m.ones(2, shape[1], dtype=m.float64)).pow(2).sum().backward()
    w = array(mine.weight)
    gram = w @ w.T if shape[0] <= shape[1] else w.T @ w
    np.testing.assert_allclose(gram, np.eye(min(shape)), atol=1e-10)
    close(mine.weight, theirs.weight, 1e-9)
    close(mine.parametrizations.weight.original.grad, theirs.parametrizations.weight.original.grad, 1e-8)
    with pytest.raises(ValueError, match="matrices of shape"):
        mine.weight = tt.zeros(7, 7, dtype=tt.float64)


@pytest.mark.parametrize("dim", [0, 1, None, -1])
def test_weight_norm(dim):
    nets = []
    for m in (tt, torch):
        net = m.nn.Linear(3, 2).double()
        with m.no_grad():
            net.weight.copy_(m.arange(6.0).reshape(2, 3) + 1)
            net.bias.zero_()
        of(m, "parametrizations").weight_norm(net, dim=dim)
        np.testing.assert_allclose(array(net.weight), np.arange(1.0, 7.0).reshape(2, 3))
        net(m.ones(1, 3, dtype=m.float64)).pow(2).sum().backward()
        nets.append(net)
    a, b = (n.parametrizations.weight for n in nets)
    for name in ("original0", "original1"):
        assert getattr(a, name).shape == getattr(b, name).shape
        close(getattr(a, name).grad, getattr(b, name).grad)
    old = {"bias": tt.zeros(2), "weight_g": a.original0.detach() * 2, "weight_v": a.original1.detach()}
    nets[0].load_state_dict(old)
    np.testing.assert_allclose(array(nets[0].weight), 2 * np.arange(1.0, 7.0).reshape(2, 3))
    of(tt).remove_parametrizations(nets[0], "weight")
    pickle.dumps(nets[0])


@pytest.mark.parametrize("shape, dim", [((4, 3), None), ((4, 3), 1), ((2, 3, 4), 1), ((5,), 0)])
def test_spectral_norm(shape, dim):
    values = np.random.default_rng(0).standard_normal(shape)
    nets = []
    for m in (tt, torch):
        net = m.nn.Module()
        net.weight = m.nn.Parameter(m.tensor(values.tolist(), dtype=m.float64))
        of(m, "parametrizations").spectral_norm(net, dim=dim, n_power_iterations=2)
        nets.append(net)
    a, b = nets
    if len(shape) > 1:
        b.parametrizations.weight[0].load_state_dict(
            {
                k: torch.tensor(v.tolist(), dtype=torch.float64)
                for k, v in a.parametrizations.weight[0].state_dict().items()
            }
        )
    for _ in range(2):
        x, y = a.weight, b.weight
        close(x, y, 1e-9)
    (x.cos().sum() + a.weight.sum()).backward(), (y.cos().sum() + b.weight.sum()).backward()
    close(a.parametrizations.weight.original.grad, b.parametrizations.weight.original.grad, 1e-8)
    if len(shape) == 2:
        assert abs(np.linalg.svd(array(a.weight))[1][0] - 1) < 0.1
    a.eval(), b.eval()
    assert a.weight.tolist() == a.weight.tolist()
    close(a.weight, b.weight, 1e-9)


# The normalizations of old, by hooks.


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_by_a_hook(dim):
    nets = []
    for m in (tt, torch):
        net = m.nn.Linear(3, 2).double()
        with m.no_grad():
            net.weight.copy_(m.arange(6.0).reshape(2, 3) + 1)
            net.bias.zero_()
        with pytest.warns(FutureWarning, match="weight_norm"):
            assert m.nn.utils.weight_norm(net, dim=dim) is net
        assert sorted(n for n, _ in net.named_parameters()) == ["bias", "weight_g", "weight_v"]
        with m.no_grad():
            net.weight_g.mul_(2)
        net(m.ones(1, 3, dtype=m.float64)).pow(2).sum().backward()
        with pytest.raises(RuntimeError, match="Cannot register two"), pytest.warns(FutureWarning):
            m.nn.utils.weight_norm(net)
        nets.append(net)
    a, b = nets
    close(a.weight_g.grad, b.weight_g.grad), close(a.weight_v.grad, b.weight_v.grad), close(a.weight, b.weight)
    for m, net in ((tt, a), (torch, b)):
        assert m.nn.utils.remove_weight_norm(net) is net and isinstance(net.weight, m.nn.Parameter)
        assert sorted(net.state_dict()) == ["bias", "weight"] and not net._forward_pre_hooks
        with pytest.raises(ValueError, match="not found in"):
            m.nn.utils.remove_weight_norm(net)
    close(a.weight, b.weight)


@pytest.mark.parametrize("dim", [None, 1])
def test_spectral_norm_by_a_hook(dim):
    values, x = np.random.default_rng(0).standard_normal((3, 4)), [[1.0, 2.0, 3.0, 4.0]]
    nets = []
    for m in (tt, torch):
        net = m.nn.Linear(4, 3, bias=False).double()
        with m.no_grad():
            net.weight.copy_(m.tensor(values.tolist(), dtype=m.float64))
        m.nn.utils.spectral_norm(net, n_power_iterations=2, dim=dim)
        assert list(net.state_dict()) == ["weight_orig", "weight_u", "weight_v"]
        nets.append(net)
    a, b = nets
    b.load_state_dict(
        {k: torch.tensor(v.tolist(), dtype=torch.float64) for k, v in a.state_dict().items()}, strict=False
    )
    for m, net in ((tt, a), (torch, b)):
        for _ in range(2):
            out = net(m.tensor(x, dtype=m.float64))
        out.pow(2).sum().backward()
        with pytest.raises(RuntimeError, match="Cannot register two"):
            m.nn.utils.spectral_norm(net)
        with pytest.raises(ValueError, match="to be positive"):
            m.nn.utils.spectral_norm(m.nn.Linear(1, 1), n_power_iterations=0)
    close(a.weight, b.weight, 1e-9), close(a.weight_orig.grad, b.weight_orig.grad, 1e-8)
    for net in nets:
        before = net.weight_u.tolist(), net.weight_v.tolist()
        net.eval()(net.weight.detach())
        assert (net.weight_u.tolist(), net.weight_v.tolist()) == before
    for m, net in ((tt, a), (torch, b)):
        m.nn.utils.remove_spectral_norm(net)
        assert list(net.state_dict()) == ["weight"]
        with pytest.raises(ValueError, match="not found in"):
            m.nn.utils.remove_spectral_norm(net)
    close(a.weight, b.weight, 1e-9)


@BOTH
def test_functional_call_of_a_parametrized_module(m):
    p, (Double, *_) = of(m), maps(m)
    net = m.nn.Linear(1, 1, bias=False)
    p.register_parametrization(net, "weight", Double())
    original = net.parametrizations.weight.original
    got = m.func.functional_call(net, {"parametrizations.weight.original": m.ones(1, 1) * 5}, m.ones(1, 1))
    assert got.item() == 10.0 and net.parametrizations.weight.original is original
