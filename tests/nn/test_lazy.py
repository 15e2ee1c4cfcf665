"""Layers whose shapes the first input tells, SyncBatchNorm, fusion, the adaptive softmax: programs that must say the
same with PyTorch and with tinytorch. A program is a function of the library."""

import copy
import functools
import math
import pickle

import pytest
from autograd.rules import agree, outcome, programs

PROGRAMS, program = programs()

LAYERS = {
    "LazyLinear": ("4", (3, 5)),
    "LazyConv1d": ("4, 3, bias=False", (2, 6, 9)),
    "LazyConv2d": ("4, 3, groups=2", (6, 9, 9)),
    "LazyConv3d": ("4, 2, padding=1", (2, 6, 4, 4, 4)),
    "LazyConvTranspose1d": ("4, 3", (2, 6, 9)),
    "LazyConvTranspose2d": ("4, 3, groups=2", (6, 9, 9)),
    "LazyConvTranspose3d": ("4, 2, stride=2", (2, 6, 4, 4, 4)),
    "LazyBatchNorm1d": ("", (4, 3, 5)),
    "LazyBatchNorm2d": ("bias=False", (4, 3, 5, 5)),
    "LazyBatchNorm3d": ("affine=False", (4, 3, 2, 2, 2)),
    "LazyInstanceNorm1d": ("", (4, 3, 5)),
    "LazyInstanceNorm2d": ("track_running_stats=False", (4, 3, 5, 5)),
    "LazyInstanceNorm3d": ("", (4, 3, 2, 2, 2)),
}


def told(m):
    """A module's text, and the names, kinds, shapes and dtypes of what it holds."""
    state = m.state_dict(keep_vars=True)
    known = {k: "no shape" if "Uninitialized" in repr(v) else list(v.shape) for k, v in state.items()}
    return [repr(m), list(known), list(known.values()), [str(v.dtype).rpartition(".")[2] for v in state.values()]]


def layer_of(torch, name):
    return eval(f"nn.{name}({LAYERS[name][0]})", {"nn": torch.nn})


def life_of(name, torch):
    """Made, cast, pickled, loaded, and called."""
    shape = LAYERS[name][1]
    x = (torch.arange(math.prod(shape)) % 7 / 7).reshape(shape)
    lazy, other, third = (layer_of(torch, name) for _ in range(3))
    seen = [told(lazy), told(pickle.loads(pickle.dumps(lazy))), told(lazy.double()), told(lazy.float())]
    seen += [str(other.load_state_dict(third.state_dict())), lazy.has_uninitialized_params()]
    seen += [list(lazy(x).shape), type(lazy).__name__, told(lazy), hasattr(lazy, "_load_hook")]
    seen += [len(lazy._forward_pre_hooks), len(lazy._load_state_dict_pre_hooks)]
    seen += [str(other.load_state_dict(lazy.state_dict())), type(other).__name__, told(other)[1:]]
    seen.append(outcome(lambda: lazy.load_state_dict(third.state_dict())))
    if "Instance" not in name:  # PyTorch's counts no channels then
        other.load_state_dict(lazy.eval().state_dict())
        seen.append(bool((other.eval()(x) == lazy(x)).all()))
    return seen


PROGRAMS |= {name: functools.partial(life_of, name) for name in LAYERS}


@program
def refusals_of_what_has_no_shape(torch):
    p = torch.nn.UninitializedParameter(dtype=torch.float64)
    calls = """p.shape; p + 1; 2 * p; p.sum(); p.share_memory_(); p.view(2); p.numel(); p.detach(); p[0]; p.zero_()
        p.t(); torch.add(p, 1); torch.cat([p, p]); torch.ones(2)[p]; p.requires_grad_(); float(p)
        torch.nn.functional.linear(torch.ones(2, 2), p); torch.nn.UninitializedParameter(dtype=torch.int64)
        p.is_floating_point(); p.requires_grad; p.is_leaf; p.grad; len(p.size()); p.half().dtype == torch.float16
        torch.nn.parameter.is_lazy(p); isinstance(p, torch.nn.Parameter); repr(p); repr(torch.nn.UninitializedBuffer())
        isinstance(torch.nn.UninitializedBuffer(), torch.nn.Buffer); torch.nn.UninitializedBuffer().requires_grad"""
    calls = [c.strip() for line in calls.splitlines() for c in line.split(";")]
    return [(c, outcome(lambda c=c: eval(c, {"torch": torch, "p": p}))) for c in calls]


@program
def materialized(torch):
    p, b = torch.nn.UninitializedParameter(dtype=torch.float64), torch.nn.UninitializedBuffer()
    p.materialize((2,))
    b.materialize((2, 3), dtype=torch.int64)
    with torch.no_grad():
        p.fill_(3)
    (p * p).sum().backward()
    return [type(p).__name__, p, p.grad, p.requires_grad, p.is_leaf, list(b.shape), isinstance(b, torch.nn.Buffer)] + [
        str(t.dtype).rpartition(".")[2] for t in (p, b)
    ]


@program
def trained_from_the_start(torch):
    model = torch.nn.Sequential(torch.nn.LazyLinear(3), torch.nn.ReLU(), torch.nn.LazyLinear(2, bias=False))
    twin = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.zero_grad()
    model(torch.ones(2, 7)).sum().backward()
    before = model[2].weight.detach().clone()
    optimizer.step()
    return [
        told(model),
        told(twin),
        bool((model[2].weight - before).abs().sum() >= 0),
        len(optimizer.param_groups[0]["params"]),
    ]


@program
def refusals_of_lazy_layers(torch):
    nn, mixin = torch.nn, torch.nn.modules.lazy.LazyModuleMixin

    class Undefined(mixin, nn.Module):
        pass

    class Forgetful(mixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.UninitializedParameter()

        def initialize_parameters(self, x):
            pass

    frozen = nn.LazyLinear(3)
    frozen.weight.requires_grad = False
    loaded = nn.LazyLinear(3)
    loaded.load_state_dict(nn.Linear(4, 3).state_dict())
    return [
        outcome(lambda: Undefined()(torch.ones(2))),
        outcome(lambda: Forgetful()(torch.ones(2))),
        outcome(lambda: nn.LazyConv2d(4, 3, groups=4)(torch.ones(1, 6, 5, 5))),
        outcome(lambda: nn.LazyConv2d(4, 3)(torch.ones(6, 5))),
        outcome(lambda: nn.LazyLinear(3).share_memory()),
        outcome(lambda: nn.LazyLinear(3).requires_grad_(False)),
        outcome(lambda: loaded(torch.ones(2, 5))),
        [p.requires_grad for p in frozen.parameters()],
    ]


@program
def sync_batch_norm(torch):
    nn = torch.nn
    inner = nn.Sequential(nn.BatchNorm2d(3, affine=False), nn.ReLU())
    model = nn.Sequential(nn.BatchNorm1d(3, momentum=None), inner).eval()
    made = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    x = torch.arange(12.0).reshape(4, 3)
    layer = nn.SyncBatchNorm(3)
    return [
        *(told(made), told(model), made[0].weight is model[0].weight, made[1] is inner, made[0].training),
        [round(v, 4) for v in layer(x).flatten().tolist()],
        [round(v, 4) for v in layer.eval()(x).flatten().tolist()],
        *(outcome(lambda: layer(torch.ones(3))), outcome(lambda: layer(torch.ones(3, 0)))),
        type(nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm3d(2))).__name__,
    ]


@program
def adaptive_softmax(torch):
    make, t = torch.nn.AdaptiveLogSoftmaxWithLoss, torch.tensor([0, 4, 19, 3, 10])
    layer = make(8, 20, [4, 10], div_value=2.0)
    for k, p in enumerate(layer.parameters()):
        p.data = ((torch.arange(p.numel()) * (k + 3)) % 11 / 11 - 0.5).reshape(p.shape)
    x = (torch.arange(40) % 13 / 13 - 0.4).reshape(5, 8).requires_grad_()
    output, loss = layer(x, t)
    loss.backward()
    values = [
        output,
        x.grad,
        layer.head.weight.grad,
        layer.tail[1][0].weight.grad,
        layer.log_prob(x),
        layer(x[0], t[0])[0],
    ]
    bad = ([], [5, 4], [0], [4, 4], [20], [1.5])
    inputs = ((x, t[:3]), (x[0], t), (x, t[0]), (x, t.reshape(5, 1)), (x, t + 1), (x, t - 1))
    return [
        *(told(layer), layer(x, t)._fields, layer.predict(x), make(8, 20, [4, 10], head_bias=True).head.bias is None),
        [[round(v, 4) for v in value.flatten().tolist()] for value in values],
        [outcome(lambda c=c: make(8, 20, c)) for c in bad],
        [outcome(lambda i=i: layer(*i)) for i in inputs],
    ]


@program
def fused_with_batch_norm(torch):
    nn, utils = torch.nn, torch.nn.utils
    seen = []
    layers = (
        (nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3), (1, 2, 4, 4), utils.fuse_conv_bn_eval),
        (nn.Conv1d(2, 3, 2, bias=False), nn.BatchNorm1d(3, affine=False), (2, 2, 5), utils.fuse_conv_bn_eval),
        (
            nn.ConvTranspose2d(2, 3, 2),
            nn.BatchNorm2d(3),
            (1, 2, 4, 4),
            lambda c, b: utils.fuse_conv_bn_eval(c, b, True),
        ),
        (nn.Linear(4, 3), nn.BatchNorm1d(3), (2, 4), utils.fuse_linear_bn_eval),
        (nn.Linear(4, 3, bias=False), nn.BatchNorm1d(1), (2, 4), utils.fuse_linear_bn_eval),
    )
    for layer, norm, shape, fuse in layers:
        with torch.no_grad():
            for k, p in enumerate((*layer.parameters(), *norm.parameters(), norm.running_mean, norm.running_var)):
                p.copy_(((torch.arange(p.numel()) + k) % 5 / 5 + 0.1).reshape(p.shape))
        x = (torch.arange(math.prod(shape)) % 7 / 7).reshape(shape)
        seen.append(outcome(lambda f=fuse, a=layer, b=norm: f(a, b)))
        made = fuse(layer.eval(), norm.eval())
        seen += [repr(made), made.weight.requires_grad, made.bias.requires_grad, made is layer]
        seen.append([round(v, 3) for v in made(x).flatten().tolist()])
    still = nn.BatchNorm1d(3, track_running_stats=False).eval()
    seen.append(outcome(lambda: utils.fuse_linear_bn_eval(nn.Linear(4, 3).eval(), still)))
    seen.append(outcome(lambda: utils.fuse_linear_bn_eval(nn.Linear(4, 2).eval(), nn.BatchNorm1d(3).eval())))
    return seen


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, torch):
    agree(PROGRAMS[name], torch)
