"""nn, optim and utils.data in their first cut: the same weights, the same numbers as torch's."""

import copy
import io

import numpy as np
import pytest
from compare import assert_same

import tinytorch
from tinytorch import nn


def build(m, name):
    """A module of library m in double precision, with weights that depend on the name alone."""
    make = {
        "linear": lambda: m.nn.Linear(4, 3),
        "linear without bias": lambda: m.nn.Linear(4, 3, bias=False),
        "mlp": lambda: m.nn.Sequential(m.nn.Linear(4, 8), m.nn.ReLU(), m.nn.Linear(8, 3), m.nn.GELU()),
        "tanh gelu": lambda: m.nn.GELU(approximate="tanh"),
        "norm": lambda: m.nn.LayerNorm(4),
        "plain norm": lambda: m.nn.LayerNorm(4, elementwise_affine=False, eps=1e-3),
        "dropout in eval": lambda: m.nn.Sequential(m.nn.Linear(4, 4), m.nn.Dropout(0.5)).eval(),
    }
    module = make[name]().double()
    rng = np.random.default_rng(1)
    with m.no_grad():
        for p in module.parameters():
            p.copy_(m.from_numpy(rng.normal(size=tuple(p.shape))))
    return module


MODULES = (
    "linear",
    "linear without bias",
    "mlp",
    "tanh gelu",
    "norm",
    "plain norm",
    "dropout in eval",
)


@pytest.mark.parametrize("name", MODULES)
def test_module(torch, name):
    x = np.random.default_rng(0).normal(size=(5, 4))
    results = []
    for m in (tinytorch, torch):
        module, inputs = build(m, name), m.from_numpy(x.copy()).requires_grad_()
        y = module(inputs)
        (y * y).sum().backward()
        results.append([y, inputs.grad, *(p.grad for p in module.parameters())])
    for a, e in zip(*results, strict=True):
        assert_same(a, e, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", MODULES)
def test_names_and_repr(torch, name):
    ours, theirs = build(tinytorch, name), build(torch, name)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert [n for n, _ in ours.named_modules()] == [n for n, _ in theirs.named_modules()]
    assert repr(ours) == repr(theirs)


def test_embedding(torch):
    results = []
    for m in (tinytorch, torch):
        module = m.nn.Embedding(6, 3, padding_idx=0)
        assert module.weight[0].tolist() == [0, 0, 0]
        with m.no_grad():
            module.weight.copy_(m.arange(18.0).view(6, 3))
        y = module(m.tensor([[0, 2], [2, 5]]))
        (y * y).sum().backward()
        results.append([y, module.weight.grad])
    for a, e in zip(*results):
        assert_same(a, e)


def test_losses(torch):
    for m in (tinytorch, torch):
        assert m.nn.MSELoss(reduction="sum")(m.ones(3), m.zeros(3)).item() == 3
        loss = m.nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=2)
        assert loss(m.zeros(2, 4), m.tensor([1, 2])).item() == pytest.approx(np.log(4), rel=1e-6)


@pytest.mark.parametrize("fan_in", [4, 100])
def test_linear_starts_within_its_bound(fan_in):
    """Uniform within 1/sqrt(fan_in), as in torch.nn.Linear.reset_parameters."""
    layer = nn.Linear(fan_in, 200)
    bound = fan_in**-0.5
    for p in (layer.weight, layer.bias):
        assert 0.9 * bound < p.abs().max().item() <= bound


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(3, 1))
        self.scale = nn.Parameter(tinytorch.ones(1))
        self.register_buffer("steps", tinytorch.zeros(1))
        self.register_buffer("scratch", tinytorch.zeros(1), persistent=False)
        self.tied = self.first

    def forward(self, x):
        return self.rest(self.first(x)) * self.scale


def test_registration():
    net = Net()
    names = ["scale", "first.weight", "first.bias", "rest.1.weight", "rest.1.bias"]
    assert [name for name, _ in net.named_parameters()] == names
    assert [name for name, _ in net.named_buffers()] == ["steps", "scratch"]
    assert [name for name, _ in net.named_children()] == ["first", "rest"]
    assert all(isinstance(p, nn.Parameter) and p.requires_grad and p.is_leaf for p in net.parameters())
    del net.scale
    assert "scale" not in dict(net.named_parameters())
    with pytest.raises(TypeError):
        net.first = 3
    with pytest.raises(AttributeError, match="nowhere"):
        _ = net.nowhere
    with pytest.raises((AttributeError, KeyError)):
        net.register_parameter("first", nn.Parameter(tinytorch.ones(1)))


def test_attributes_before_init():
    class Early(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match="__init__"):
        Early()


def test_state_dict():
    one, other = Net(), Net()
    state = one.state_dict()
    assert "steps" in state and "scratch" not in state and not any(t.requires_grad for t in state.values())
    other.load_state_dict(state)
    x = tinytorch.randn(4, 2)
    assert one(x).tolist() == other(x).tolist()
    assert other.first.weight.data_ptr() != one.first.weight.data_ptr()
    for broken in ({k: v for k, v in state.items() if k != "scale"}, {**state, "more": tinytorch.ones(1)}):
        with pytest.raises(RuntimeError, match="scale|more"):
            other.load_state_dict(broken)
        other.load_state_dict(broken, strict=False)
    with pytest.raises(RuntimeError, match="(?s)scale.*size|scale.*shape"):
        other.load_state_dict({**state, "scale": tinytorch.ones(2)})
    buffer = io.BytesIO()
    tinytorch.save(state, buffer)
    buffer.seek(0)
    other.load_state_dict(tinytorch.load(buffer))


def test_modes_and_moves():
    net = Net()
    assert net.training and not net.eval().rest.training and net.train().first.training
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())
    net.requires_grad_()
    net(tinytorch.ones(1, 2)).sum().backward()
    assert net.scale.grad is not None
    net.zero_grad()
    assert net.scale.grad is None
    weight = net.first.weight
    net.double()
    assert net.first.weight is weight and weight.dtype == tinytorch.float64 and net.steps.dtype == tinytorch.float64
    twin = copy.deepcopy(net)
    assert twin.tied is twin.first and twin.first.weight is not net.first.weight
    seen = []
    net.apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Linear", "ReLU", "Linear", "Sequential", "Net"]


def test_forward_hooks():
    layer, seen = nn.Linear(2, 2), []
    before = layer.register_forward_pre_hook(lambda module, args: (args[0] * 0,))
    after = layer.register_forward_hook(lambda module, args, result: seen.append(args[0].tolist()) or result + 1)
    x = tinytorch.ones(1, 2)
    assert layer(x).tolist() == (layer.bias + 1).view(1, 2).tolist() and seen == [[[0.0, 0.0]]]
    before.remove()
    after.remove()
    assert layer(x).tolist() == nn.functional.linear(x, layer.weight, layer.bias).tolist()


# ---- optim.

OPTIMIZERS = {
    "sgd": lambda m, p: m.optim.SGD(p, lr=0.1),
    "momentum": lambda m, p: m.optim.SGD(p, lr=0.1, momentum=0.9),
    "nesterov": lambda m, p: m.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "dampening": lambda m, p: m.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5),
    "maximize": lambda m, p: m.optim.SGD(p, lr=0.01, maximize=True),
    "adam": lambda m, p: m.optim.Adam(p, lr=0.05),
    "adam with decay": lambda m, p: m.optim.Adam(p, lr=0.05, betas=(0.8, 0.9), eps=1e-6, weight_decay=0.1),
    "amsgrad": lambda m, p: m.optim.Adam(p, lr=0.05, amsgrad=True),
    "adamw": lambda m, p: m.optim.AdamW(p, lr=0.05, weight_decay=0.1),
    "groups": lambda m, p: m.optim.AdamW([{"params": p[:1], "lr": 0.5}, {"params": p[1:]}], lr=0.01),
}


def parameters(m, dtype):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape) for shape in ((3, 4), (4,), (5, 2))]
    made = [m.from_numpy(a).to(getattr(m, dtype)) for a in arrays]
    made[2] = made[2].t()  # a parameter need not be contiguous
    return [p.requires_grad_() for p in made]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer(torch, name, dtype):
    results = []
    for m in (tinytorch, torch):
        params = parameters(m, dtype)
        optimizer = OPTIMIZERS[name](m, params)
        for i in range(6):
            optimizer.zero_grad()
            active = params if i % 3 else params[:2]  # a parameter without a gradient is left alone
            sum((p.sin() * p).sum() for p in active).backward()
            optimizer.step()
        results.append(params)
    tolerance = {"rtol": 1e-5, "atol": 1e-6} if dtype == "float32" else {"rtol": 1e-10, "atol": 1e-12}
    for a, e in zip(*results, strict=True):
        assert_same(a, e, name, **tolerance)


def test_a_step_bumps_each_version_once():
    params = parameters(tinytorch, "float32")
    optimizer = tinytorch.optim.Adam(params)
    sum(p.sum() for p in params[:2]).backward()
    optimizer.step()
    assert [p._version for p in params] == [1, 1, 0]


@pytest.mark.parametrize("name", ["momentum", "adam", "amsgrad", "groups"])
def test_optimizer_state_travels(name):
    def advance(params, optimizer, steps):
        for _ in range(steps):
            optimizer.zero_grad()
            sum((p.sin() * p).sum() for p in params).backward()
            optimizer.step()
        return [p.tolist() for p in params]

    params = parameters(tinytorch, "float64")
    optimizer = OPTIMIZERS[name](tinytorch, params)
    advance(params, optimizer, 3)
    twins = [p.detach().clone().requires_grad_() for p in params]
    other = OPTIMIZERS[name](tinytorch, twins)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert advance(params, optimizer, 3) == advance(twins, other, 3)


def test_optimizer_refusals():
    with pytest.raises(ValueError, match="empty"):
        tinytorch.optim.SGD([], lr=0.1)
    with pytest.raises(ValueError, match="-1"):
        tinytorch.optim.SGD(parameters(tinytorch, "float32"), lr=-1.0)
    with pytest.raises(ValueError):
        tinytorch.optim.Adam(parameters(tinytorch, "float32"), betas=(1.0, 0.9))
    with pytest.raises(ValueError, match="leaf"):
        tinytorch.optim.SGD([parameters(tinytorch, "float32")[0] * 2], lr=0.1)
    with pytest.raises(TypeError):
        tinytorch.optim.SGD([3.0], lr=0.1)
    with pytest.raises(ValueError):
        tinytorch.optim.SGD(parameters(tinytorch, "float32"), lr=0.1, nesterov=True)


def test_closure():
    params = parameters(tinytorch, "float32")
    optimizer = tinytorch.optim.SGD(params, lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = sum((p * p).sum() for p in params)
        loss.backward()
        return loss

    assert optimizer.step(closure).item() > sum((p * p).sum() for p in params).item()


# ---- utils.data.


def loader(n=10, **options):
    data = tinytorch.utils.data.TensorDataset(tinytorch.arange(n), tinytorch.arange(n) * 10)
    return tinytorch.utils.data.DataLoader(data, **options)


def test_loader():
    batches = list(loader(batch_size=4))
    assert [x.tolist() for x, _ in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert batches[1][1].tolist() == [40, 50, 60, 70]
    assert len(loader(batch_size=4)) == 3 and len(loader(batch_size=4, drop_last=True)) == 2
    assert [len(x) for x, _ in loader(batch_size=4, drop_last=True)] == [4, 4]


def test_shuffle():
    shuffled = loader(100, batch_size=10, shuffle=True, generator=tinytorch.Generator().manual_seed(0))
    first, second = ([i for x, _ in shuffled for i in x.tolist()] for _ in range(2))
    assert sorted(first) == list(range(100)) and first != list(range(100)) and first != second
    again = loader(100, batch_size=10, shuffle=True, generator=tinytorch.Generator().manual_seed(0))
    assert [i for x, _ in again for i in x.tolist()] == first


def test_own_dataset():
    class Squares(tinytorch.utils.data.Dataset):
        def __len__(self):
            return 5

        def __getitem__(self, i):
            return {"x": tinytorch.tensor([float(i)]), "y": i * i, "name": str(i), "pair": (i, np.float32(i))}

    (batch,) = tinytorch.utils.data.DataLoader(Squares(), batch_size=5)
    assert batch["x"].shape == (5, 1) and batch["y"].tolist() == [0, 1, 4, 9, 16]
    assert batch["name"] == ["0", "1", "2", "3", "4"] and batch["pair"][0].tolist() == [0, 1, 2, 3, 4]
    sums = tinytorch.utils.data.DataLoader(Squares(), batch_size=5, collate_fn=lambda items: sum(i["y"] for i in items))
    assert list(sums) == [30]


def test_training_learns():
    tinytorch.manual_seed(0)
    x = tinytorch.randn(256, 2)
    target = (x[:, 0] * x[:, 1] > 0).long()
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = tinytorch.optim.Adam(model.parameters(), lr=0.02)
    data = tinytorch.utils.data.TensorDataset(x, target)
    for _ in range(20):
        for inputs, wanted in tinytorch.utils.data.DataLoader(data, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            nn.CrossEntropyLoss()(model(inputs), wanted).backward()
            optimizer.step()
    assert (model(x).argmax(1) == target).float().mean().item() > 0.95


def test_layers_read_their_attributes():
    """A weight in the instance's dictionary, or that a class gives, is used as PyTorch uses it."""
    x = tinytorch.ones(1, 2)
    layer = nn.Linear(2, 2, bias=False)
    layer.__dict__["weight"] = tinytorch.zeros(2, 2)
    assert layer(x).tolist() == [[0.0, 0.0]]
    del layer.__dict__["weight"]
    assert layer(x).tolist() != [[0.0, 0.0]]
    with_bias = nn.Linear(2, 2)
    with_bias.__dict__["bias"] = tinytorch.ones(2) * 100
    assert (with_bias(x) > 50).all()
    del layer._parameters["weight"]
    layer.weight = tinytorch.ones(2, 2)
    assert layer(x).tolist() == [[2.0, 2.0]]

    class Given(nn.Linear):
        def __getattr__(self, name):
            return tinytorch.ones(2, 2) * 3 if name == "weight" else super().__getattr__(name)

    given = nn.Linear(2, 2, bias=False)
    given.__class__ = Given
    given._parameters["weight"] = None
    assert given(x).tolist() == [[6.0, 6.0]]
    norm = nn.LayerNorm(2)
    norm.__dict__["weight"] = tinytorch.zeros(2)
    assert norm(x).tolist() == [[0.0, 0.0]]
