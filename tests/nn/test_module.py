"""Module, Parameter, containers: what a PyTorch user expects of them."""

import copy
import gc
import pickle
import weakref
from collections import OrderedDict

import numpy as np
import pytest

import tinytorch as tt
from tinytorch import nn
from tinytorch.nn.hooks import register_module_forward_pre_hook


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2, bias=False))
        self.scale = nn.Parameter(tt.ones(2))
        self.register_buffer("count", tt.zeros(1))
        self.register_buffer("scratch", tt.zeros(1), persistent=False)
        self.register_parameter("absent", None)

    def forward(self, x, factor=1.0):
        return self.body(x) * self.scale * factor


NAMES = ["scale", "body.0.weight", "body.0.bias", "body.2.weight"]


def test_parameter():
    data = tt.tensor([1.0, 2.0])
    p = nn.Parameter(data)
    assert isinstance(p, tt.Tensor) and p.requires_grad and p.is_leaf and p.grad is None
    assert p.data_ptr() == data.data_ptr() and not data.requires_grad
    assert repr(p).startswith("Parameter containing:\ntensor([1., 2.]") and "requires_grad=True" in repr(p)
    (p * p).sum().backward()
    assert p.grad.tolist() == [2.0, 4.0]
    q = copy.deepcopy(p)
    assert type(q) is nn.Parameter and q.tolist() == p.tolist() and q.data_ptr() != p.data_ptr() and q.requires_grad
    r = pickle.loads(pickle.dumps(nn.Parameter(data, requires_grad=False)))
    assert type(r) is nn.Parameter and not r.requires_grad and r.tolist() == [1.0, 2.0]
    assert type(p * 2) is tt.Tensor
    assert nn.Parameter().numel() == 0
    assert not nn.Parameter(tt.tensor([1, 2]), requires_grad=False).requires_grad
    with pytest.raises(RuntimeError, match="floating point"):
        nn.Parameter(tt.tensor([1, 2]))
    with pytest.raises(TypeError):
        nn.Parameter([1.0])


def test_names():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == NAMES
    assert [n for n, _ in net.named_parameters("top", recurse=False)] == ["top.scale"]
    assert [n for n, _ in net.named_buffers()] == ["count", "scratch"]
    assert [n for n, _ in net.named_children()] == ["body"]
    assert [n for n, _ in net.named_modules()] == ["", "body", "body.0", "body.1", "body.2"]
    assert len(list(net.parameters())) == 4 and len(list(net.modules())) == 5
    assert net.get_submodule("body.0") is net.body[0] and net.get_submodule("") is net
    assert net.get_parameter("body.0.weight") is net.body[0].weight and net.get_buffer("count") is net.count
    assert {"body", "scale", "count", "forward"} <= set(dir(net))
    net.tied = net.body
    net.same = net.scale
    assert [n for n, _ in net.named_parameters()] == NAMES
    assert len(list(net.named_parameters(remove_duplicate=False))) == 8
    for call in (lambda: net.get_submodule("nope"), lambda: net.get_parameter("count"), lambda: net.nope):
        with pytest.raises(AttributeError):
            call()


def test_attributes():
    net = Net()
    net.scale = None
    assert net.scale is None and "scale" in net._parameters
    net.scale = nn.Parameter(tt.zeros(2))
    with pytest.raises(TypeError, match="cannot assign 'Tensor' as parameter 'scale'"):
        net.scale = tt.zeros(2)
    with pytest.raises(TypeError, match="as child module 'body'"):
        net.body = 3
    with pytest.raises(TypeError, match="as buffer 'count'"):
        net.count = 3
    net.count = tt.ones(1)
    assert net._buffers["count"].item() == 1
    net.plain = 3
    net.plain = nn.Linear(1, 1)
    assert "plain" in net._modules and "plain" not in net.__dict__
    net.plain = nn.Parameter(tt.zeros(1))
    assert "plain" in net._parameters and "plain" not in net._modules
    del net.plain, net.count
    assert not hasattr(net, "plain") and not hasattr(net, "count")
    with pytest.raises(AttributeError):
        del net.plain
    net.extra = nn.Buffer(tt.zeros(2), persistent=False)
    assert "extra" in net._buffers and "extra" not in net.state_dict()
    for call, kind in [
        (lambda: net.register_buffer("a.b", None), KeyError),
        (lambda: net.register_buffer("", None), KeyError),
        (lambda: net.register_buffer("forward", None), KeyError),
        (lambda: net.register_buffer("x", 3), TypeError),
        (lambda: net.register_parameter("x", tt.zeros(1)), TypeError),
        (lambda: net.add_module("x", 3), TypeError),
        (lambda: net.add_module("a.b", None), KeyError),
        (lambda: net.register_parameter("count", None), None),
    ]:
        if kind is None:
            call()
        else:
            with pytest.raises(kind):
                call()

    class Early(nn.Module):
        def __init__(self):
            self.w = nn.Parameter(tt.zeros(1))

    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
        Early()
    with pytest.raises(NotImplementedError, match="forward"):
        nn.Module()(1)


def test_train_eval_grad():
    net = Net()
    assert net.training and not net.eval().training and not net.body[1].training
    assert net.train().body.training
    net(tt.ones(1, 3)).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.zero_grad(set_to_none=False)
    assert net.scale.grad.tolist() == [0.0, 0.0]
    net.zero_grad()
    assert net.scale.grad is None
    assert not any(p.requires_grad for p in net.requires_grad_(False).parameters())
    with pytest.raises(ValueError):
        net.train("yes")


def test_conversions():
    net = Net()
    net(tt.ones(1, 3)).sum().backward()
    before = list(net.parameters())
    value = net.scale.grad.tolist()
    assert net.double() is net
    assert all(
        a is b and a.dtype is tt.float64 and a.grad.dtype is tt.float64 and a.is_leaf and a.requires_grad
        for a, b in zip(net.parameters(), before)
    )
    assert net.count.dtype is tt.float64 and net.scale.grad.tolist() == pytest.approx(value)
    net(tt.ones(1, 3, dtype=tt.float64)).sum().backward()
    assert net.to(tt.float32).scale.dtype is tt.float32 and net.half().scale.dtype is tt.float16
    assert net.bfloat16().count.dtype is tt.bfloat16 and net.float().scale.dtype is tt.float32
    assert net.to("cpu", tt.float64).scale.dtype is tt.float64 and net.to(tt.zeros(1)).scale.dtype is tt.float32
    assert net.cpu() is net and net.to(device="cpu", dtype=tt.float64).scale.dtype is tt.float64
    with pytest.raises(TypeError, match="floating point"):
        net.to(tt.int64)
    with pytest.raises(RuntimeError):
        net.to("nowhere")


def test_apply():
    seen = []
    assert Net().apply(lambda m: seen.append(type(m).__name__)) is not None
    assert seen == ["Linear", "ReLU", "Linear", "Sequential", "Net"]


def test_state_dict():
    net, other = Net(), Net()
    state = net.state_dict()
    assert list(state) == ["scale", "count", "body.0.weight", "body.0.bias", "body.2.weight"]
    assert not state["scale"].requires_grad and state["scale"].data_ptr() == net.scale.data_ptr()
    assert net.state_dict(keep_vars=True)["scale"] is net.scale
    assert list(net.state_dict(prefix="a."))[0] == "a.scale"
    before = list(other.parameters())
    result = other.load_state_dict(state)
    assert repr(result) == "<All keys matched successfully>"
    assert all(a is b for a, b in zip(before, other.parameters()))
    for a, b in zip(net.parameters(), other.parameters()):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
        assert a.data_ptr() != b.data_ptr()
    state["body.0.weight"] = state["body.0.weight"].double()
    other.load_state_dict(state)
    assert other.body[0].weight.dtype is tt.float32
    given = {k: v.clone() for k, v in net.state_dict().items()}
    other.load_state_dict(given, assign=True)
    assert type(other.scale) is nn.Parameter and other.scale.data_ptr() == given["scale"].data_ptr()
    assert other.scale.requires_grad


def test_state_dict_errors():
    net = Net()
    state = dict(net.state_dict())
    del state["scale"]
    state["more"] = tt.zeros(1)
    state["body.9.weight"] = tt.zeros(1)
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(state)
    text = str(caught.value)
    assert "Error(s) in loading state_dict for Net:" in text
    assert 'Missing key(s) in state_dict: "scale".' in text
    assert 'Unexpected key(s) in state_dict: "more", "body.9.weight".' in text
    result = net.load_state_dict(state, strict=False)
    assert result.missing_keys == ["scale"] and result.unexpected_keys == ["more", "body.9.weight"]
    with pytest.raises(RuntimeError, match="size mismatch for scale: copying a param with shape"):
        net.load_state_dict({"scale": tt.zeros(3)}, strict=False)
    with pytest.raises(TypeError, match="dict-like"):
        net.load_state_dict([1])


def test_state_dict_hooks_and_extra_state():
    class Extra(nn.Module):
        _version = 3

        def __init__(self):
            super().__init__()
            self.note = "made"

        def get_extra_state(self):
            return self.note

        def set_extra_state(self, state):
            self.note = state

    net = nn.Sequential(Extra(), nn.Linear(1, 1))
    seen = []
    net[1].register_state_dict_pre_hook(lambda m, prefix, keep: seen.append(prefix))
    net.register_state_dict_post_hook(lambda m, state, prefix, meta: state.update(stamp=tt.ones(1)))
    net.register_load_state_dict_pre_hook(lambda m, state, *rest: state.pop("stamp"))
    net.register_load_state_dict_post_hook(lambda m, keys: seen.append(keys.missing_keys))
    net[0].note = "saved"
    state = net.state_dict()
    assert state["0._extra_state"] == "saved" and "stamp" in state and state._metadata["0"] == {"version": 3}
    net[0].note = "other"
    net.load_state_dict(state)
    assert net[0].note == "saved" and seen == ["1.", []]


def test_forward_hooks():
    net = nn.Linear(2, 2)
    seen = []
    a = net.register_forward_pre_hook(lambda m, args: seen.append("pre"))
    b = net.register_forward_pre_hook(lambda m, args: (args[0] * 0,), prepend=True)
    c = net.register_forward_hook(lambda m, args, out: out + 1)
    d = net.register_forward_hook(lambda m, args, out: seen.append(out.tolist()))
    out = net(tt.ones(1, 2))
    np.testing.assert_allclose(out.tolist(), (net.bias + 1).unsqueeze(0).tolist())
    assert seen == ["pre", out.tolist()]
    for handle in (a, b, c, d):
        handle.remove()
    assert not net._forward_hooks and net(tt.ones(1, 2)).shape == (1, 2) and len(seen) == 2
    model = Net()
    model.register_forward_pre_hook(lambda m, args, kwargs: (args, {"factor": 0.0}), with_kwargs=True)
    model.register_forward_hook(lambda m, args, kwargs, out: seen.append(kwargs), with_kwargs=True)
    assert model(tt.ones(1, 3), factor=2.0).tolist() == [[0.0, 0.0]] and seen[-1] == {"factor": 0.0}
    failing = nn.Module()
    failing.register_forward_hook(lambda m, args, out: seen.append("always"), always_call=True)
    failing.register_forward_hook(lambda m, args, out: seen.append("never"))
    with pytest.raises(NotImplementedError):
        failing(1)
    assert seen[-1] == "always"
    handle = register_module_forward_pre_hook(lambda m, args: seen.append(type(m).__name__))
    model(tt.ones(1, 3))
    handle.remove()
    assert "Net" in seen and "ReLU" in seen


def torch_pair():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((2, 3)), rng.standard_normal((4, 3))
    mine, theirs = nn.Linear(3, 2).double(), torch.nn.Linear(3, 2).double()
    with tt.no_grad(), torch.no_grad():
        mine.weight.copy_(tt.from_numpy(w))
        theirs.weight.copy_(torch.from_numpy(w))
        mine.bias.zero_()
        theirs.bias.zero_()
    return (mine, tt.from_numpy(x).requires_grad_()), (theirs, torch.from_numpy(x).requires_grad_())


def test_backward_hooks_against_torch():
    results = []
    for net, x in torch_pair():
        seen = []
        net.register_full_backward_pre_hook(lambda m, g: (g[0] * 2,))
        net.register_full_backward_hook(lambda m, gi, go: seen.append([t.tolist() for t in (*gi, *go)]))  # noqa: B023
        net.register_full_backward_hook(lambda m, gi, go: (gi[0] * 3,))
        (net(x) ** 2).sum().backward()
        results.append((seen, x.grad.tolist(), net.weight.grad.tolist()))
    (a_seen, *a), (b_seen, *b) = results
    assert len(a_seen) == len(b_seen) == 1
    for p, q in zip([*a_seen[0], *a], [*b_seen[0], *b]):
        np.testing.assert_allclose(p, q, rtol=1e-12)


def test_backward_hook_without_input_gradient():
    net = nn.Linear(3, 2)
    seen = []
    net.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go[0].shape)))
    with pytest.warns(UserWarning, match="since no inputs require gradients"):
        net(tt.ones(1, 3)).sum().backward()
    assert seen == [((None,), (1, 2))]


def test_copies():
    net = Net()
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        x = tt.ones(1, 3)
        assert other(x).tolist() == net(x).tolist() and other.scale is not net.scale
        assert [n for n, _ in other.named_parameters()] == NAMES and other.scale.requires_grad
    tied = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    tied[1].weight = tied[0].weight
    again = copy.deepcopy(tied)
    assert again[1].weight is again[0].weight


def test_freed_by_reference_counting():
    gc.collect()
    gc.disable()
    try:
        net = Net()
        ref, weight = weakref.ref(net), weakref.ref(net.body[0].weight)
        net(tt.ones(1, 3)).sum().backward()
        del net
        assert ref() is None and weight() is None
    finally:
        gc.enable()


def test_repr_against_torch():
    torch = pytest.importorskip("torch")

    def build(lib):
        n = lib.nn
        return n.Sequential(
            OrderedDict(
                a=n.Linear(2, 3),
                b=n.Sequential(n.ReLU(), n.ReLU(inplace=True), n.Dropout(0.2)),
                c=n.ModuleList([n.Linear(1, 1, bias=False), n.Linear(1, 1, bias=False), n.GELU("tanh")]),
                d=n.ModuleDict({"x": n.LayerNorm(3), "y": n.Embedding(5, 2, padding_idx=1)}),
                e=n.Identity(),
                f=n.Flatten(),
                g=n.LayerNorm((2, 3), elementwise_affine=False),
                h=n.RMSNorm(3),
                i=n.Softmax(dim=1),
                j=n.LeakyReLU(0.2),
                k=n.ELU(),
                l=n.Softplus(),
                m=n.CrossEntropyLoss(),
                n=n.Unflatten(1, (2, 3)),
                o=n.Bilinear(1, 2, 3),
                p=n.Tanh(),
                q=n.PReLU(),
                r=n.Hardtanh(),
                s=n.SiLU(),
                t=n.Sequential(),
                u=n.ModuleList(),
                v=n.Softshrink(),
                w=n.GLU(),
                x=n.Threshold(0.1, 20),
                y=n.MSELoss(),
                z=n.BCEWithLogitsLoss(),
            )
        )

    assert repr(build(tt)) == repr(build(torch))


def test_sequential():
    a, b, c = nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)
    net = nn.Sequential(a, b, c)
    assert len(net) == 3 and net[0] is a and net[-1] is c and list(net) == [a, b, c] and list(net[1:]) == [b, c]
    x = tt.ones(1, 2)
    assert net(x).tolist() == c(b(a(x))).tolist()
    net.append(nn.ReLU()).insert(1, nn.Tanh())
    assert [type(m).__name__ for m in net] == ["Linear", "Tanh", "ReLU", "Linear", "ReLU"]
    assert isinstance(net.pop(1), nn.Tanh) and len(net) == 4
    del net[-1]
    net[1] = nn.GELU()
    assert [type(m).__name__ for m in net] == ["Linear", "GELU", "Linear"] and list(net._modules) == ["0", "1", "2"]
    assert len(net + net) == 6 and len(net * 2) == 6 and len(net.extend([nn.ReLU()])) == 4
    named = nn.Sequential(OrderedDict(first=a, second=b))
    assert named.first is a and named[1] is b
    with pytest.raises(IndexError):
        net[9]
    with pytest.raises(TypeError):
        nn.Sequential(3)


def test_lists_and_dicts():
    modules = nn.ModuleList([nn.Linear(1, 1)])
    modules.append(nn.ReLU())
    modules += [nn.Tanh()]
    modules.insert(0, nn.GELU())
    assert [type(m).__name__ for m in modules] == ["GELU", "Linear", "ReLU", "Tanh"]
    assert isinstance(modules[1:], nn.ModuleList) and isinstance(modules.pop(0), nn.GELU) and len(modules) == 3
    del modules[-1]
    assert list(modules._modules) == ["0", "1"] and modules[-1] is modules[1]
    assert len(list(modules.parameters())) == 2
    named = nn.ModuleDict({"a": nn.Linear(1, 1), "b": nn.ReLU()})
    named["c"] = nn.Tanh()
    assert list(named) == ["a", "b", "c"] and "a" in named and len(named) == 3
    assert isinstance(named.pop("b"), nn.ReLU) and list(named.keys()) == ["a", "c"]
    named.update([("d", nn.ReLU())])
    del named["a"]
    assert [k for k, _ in named.items()] == ["c", "d"]
    values = nn.ParameterList([tt.zeros(2), nn.Parameter(tt.ones(1))])
    values.append(tt.ones(3))
    assert len(values) == 3 and all(isinstance(p, nn.Parameter) for p in values) and values[-1].numel() == 3
    assert [n for n, _ in values.named_parameters()] == ["0", "1", "2"] and len(values[:2]) == 2
    table = nn.ParameterDict({"a": tt.zeros(2)})
    table["b"] = tt.ones(1)
    assert list(table) == ["a", "b"] and isinstance(table["b"], nn.Parameter) and table.get("z") is None
    assert sorted(n for n, _ in table.named_parameters()) == ["a", "b"]
    assert table.pop("a").numel() == 2 and len(table) == 1 and "a" not in table
    assert "Parameter containing: [" in repr(table)


def test_initial_values():
    tt.manual_seed(0)
    a = nn.Linear(100, 50)
    assert abs(a.weight.detach().numpy()).max() <= 0.1 and abs(a.bias.detach().numpy()).max() <= 0.1
    tt.manual_seed(0)
    b = nn.Linear(100, 50)
    np.testing.assert_array_equal(a.weight.detach().numpy(), b.weight.detach().numpy())
    w = tt.empty(200, 300)
    for fill, std in [
        (nn.init.xavier_uniform_, np.sqrt(2 / 500)),
        (nn.init.xavier_normal_, np.sqrt(2 / 500)),
        (nn.init.kaiming_uniform_, np.sqrt(2 / 300)),
        (nn.init.kaiming_normal_, np.sqrt(2 / 300)),
        (nn.init.normal_, 1.0),
        (nn.init.uniform_, np.sqrt(1 / 12)),
        (nn.init.trunc_normal_, 0.8796),
    ]:
        assert fill(w) is w
        assert w.numpy().std() == pytest.approx(std, rel=0.02)
    assert abs(nn.init.trunc_normal_(w, std=5.0).numpy()).max() <= 2.0
    np.testing.assert_array_equal(nn.init.eye_(w).numpy(), np.eye(200, 300))
    assert nn.init.ones_(w).sum().item() == 60000 and nn.init.zeros_(w).sum().item() == 0
    assert nn.init.constant_(w, 3.0)[0, 0].item() == 3
    for shape in ((5, 5), (3, 7), (7, 3), (4, 2, 3)):
        q = nn.init.orthogonal_(tt.empty(shape, dtype=tt.float64), gain=2.0).numpy().reshape(shape[0], -1)
        gram = q @ q.T if q.shape[0] <= q.shape[1] else q.T @ q
        np.testing.assert_allclose(gram, 4 * np.eye(len(gram)), atol=1e-12)
    assert nn.init.calculate_gain("relu") == pytest.approx(2**0.5)
    assert nn.init.calculate_gain("leaky_relu", 0.2) == pytest.approx((2 / 1.04) ** 0.5)
    with pytest.raises(ValueError):
        nn.init.calculate_gain("nope")
    with pytest.raises(ValueError, match="fewer than 2"):
        nn.init.xavier_normal_(tt.empty(3))
    assert (nn.init.sparse_(tt.empty(10, 4), 0.3) == 0).sum().item() >= 12
    assert nn.init.dirac_(tt.empty(3, 3, 5))[1, 1, 2].item() == 1


def test_clipping():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    grads = [rng.standard_normal(s) for s in ((3, 4), (5,), ())]
    for norm_type in (2.0, 1.0, float("inf")):
        for max_norm in (0.5, 100.0):
            a = [tt.zeros(g.shape, dtype=tt.float64).requires_grad_() for g in grads]
            b = [torch.zeros(g.shape, dtype=torch.float64).requires_grad_() for g in grads]
            for p, q, g in zip(a, b, grads):
                p.grad, q.grad = tt.tensor(g), torch.tensor(g)
            x = nn.utils.clip_grad_norm_(a, max_norm, norm_type)
            y = torch.nn.utils.clip_grad_norm_(b, max_norm, norm_type)
            assert x.item() == pytest.approx(y.item(), rel=1e-12)
            for p, q in zip(a, b):
                np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-9)
    nn.utils.clip_grad_value_(a, 0.25)
    assert max(abs(p.grad.numpy()).max() for p in a) == 0.25
    a[0].grad.fill_(float("nan"))
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_(a, 1.0, error_if_nonfinite=True)
    assert nn.utils.clip_grad_norm_([tt.zeros(1)], 1.0).item() == 0.0


def test_vectors():
    net = Net()
    v = nn.utils.parameters_to_vector(net.parameters())
    assert v.shape == (2 + 12 + 4 + 8,) and v.requires_grad
    nn.utils.vector_to_parameters(tt.arange(26, dtype=tt.float32), net.parameters())
    assert net.scale.tolist() == [0.0, 1.0] and net.body[0].bias.tolist() == [14.0, 15.0, 16.0, 17.0]


def test_training_step():
    tt.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
    opt = tt.optim.Adam(net.parameters(), lr=0.02)
    x = tt.randn(64, 4)
    y = x.sum(1, keepdim=True)
    loss_fn = nn.MSELoss()
    losses = []
    for _ in range(100):
        opt.zero_grad()
        loss = loss_fn(net(x), y)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    assert losses[-1] < 0.05 * losses[0]
