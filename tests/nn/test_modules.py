"""Every module of nn against PyTorch's: values, gradients, parameters and their names, repr, state; the random ones by
what must hold of their numbers. A module or a function of nn.functional that no table here or in optable/ has is a
failure."""

import copy
import os
import pickle
import types

import numpy as np
import pytest
from compare import assert_same, to_numpy
from image_layers import LAYERS as IMAGE_LAYERS
from optable import OPS

import tinytorch as tt
from tinytorch import nn
from tinytorch.nn import functional as F

CLASSES = np.array([0, 2, 1, 2, 0])
BITS = np.array([[1, 0, 1], [0, 0, 1], [1, 1, 1], [0, 1, 0], [1, 0, 0]], "float64")
WEIGHT = [0.5, 2.0, 1.0]


def floats(*shape, low=-2.0, high=2.0, seed=0):
    return np.random.default_rng(seed).uniform(low, high, shape)


def shares(*shape, seed=1):
    """Rows that sum to 1."""
    values = floats(*shape, low=0.1, high=1.0, seed=seed)
    return values / values.sum(1, keepdims=True)


X = floats(5, 6)
LOGITS = floats(5, 3)
SHARES = shares(5, 3)

ROWS = floats(3, 4, 6)
CAUSAL = np.triu(np.full((4, 4), -np.inf), 1)


class Twice:
    """A module of query, key and value, called with the same tensor as all three."""

    def __init__(self, module):
        self.module = module

    def double(self):
        self.module.double()
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.module, name)

    def __call__(self, x):
        return self.module(x, x, x)

    def __repr__(self):
        return repr(self.module)


# The constructor's call in library m, and the inputs. Those of floating point are differentiated.
LAYERS = {
    "Linear": (lambda m: m.nn.Linear(6, 4), X),
    "LinearCrossEntropyLoss": (lambda m: m.nn.LinearCrossEntropyLoss(6, 3, bias=True), X, CLASSES),
    "LinearCrossEntropyLoss, features": (
        lambda m: m.nn.LinearCrossEntropyLoss(6, 3, out_features=(2,), label_smoothing=0.1, weight=m.tensor(WEIGHT)),
        X,
        CLASSES[:, None] % np.array([3, 2]),
    ),
    "Linear, bias=False": (lambda m: m.nn.Linear(6, 4, bias=False), X),
    "Bilinear": (lambda m: m.nn.Bilinear(6, 3, 4), X, LOGITS),
    "Bilinear, bias=False": (lambda m: m.nn.Bilinear(6, 3, 4, bias=False), X, LOGITS),
    "Identity": (lambda m: m.nn.Identity(54, unused=3), X),
    "Flatten": (lambda m: m.nn.Flatten(), floats(2, 3, 4)),
    "Flatten, some": (lambda m: m.nn.Flatten(1, 2), floats(2, 3, 4, 5)),
    "Unflatten": (lambda m: m.nn.Unflatten(1, (2, 3)), X),
    "Unflatten, one inferred": (lambda m: m.nn.Unflatten(-1, (-1, 2)), X),
    "Embedding": (lambda m: m.nn.Embedding(3, 4), CLASSES),
    "Embedding, padding": (lambda m: m.nn.Embedding(3, 4, padding_idx=2), CLASSES),
    "Sequential": (lambda m: m.nn.Sequential(m.nn.Linear(6, 4), m.nn.Tanh(), m.nn.Linear(4, 2)), X),
    "LayerNorm": (lambda m: m.nn.LayerNorm(6), X),
    "LayerNorm, plain": (lambda m: m.nn.LayerNorm(6, eps=1e-2, elementwise_affine=False), X),
    "LayerNorm, no bias": (lambda m: m.nn.LayerNorm((3, 2), bias=False), floats(5, 3, 2)),
    "RMSNorm": (lambda m: m.nn.RMSNorm(6), X),
    "RMSNorm, plain": (lambda m: m.nn.RMSNorm((3, 2), eps=1e-2, elementwise_affine=False), floats(5, 3, 2)),
    "CELU": (lambda m: m.nn.CELU(), X),
    "CELU, alpha": (lambda m: m.nn.CELU(0.5), X),
    "ELU": (lambda m: m.nn.ELU(), X),
    "ELU, alpha": (lambda m: m.nn.ELU(alpha=0.5), X),
    "GELU": (lambda m: m.nn.GELU(), X),
    "GELU, tanh": (lambda m: m.nn.GELU(approximate="tanh"), X),
    "GLU": (lambda m: m.nn.GLU(), X),
    "GLU, dim": (lambda m: m.nn.GLU(dim=0), floats(4, 3)),
    "SELU": (lambda m: m.nn.SELU(), X),
    "Hardshrink": (lambda m: m.nn.Hardshrink(), X),
    "Hardshrink, lambd": (lambda m: m.nn.Hardshrink(1.0), X),
    "Hardsigmoid": (lambda m: m.nn.Hardsigmoid(), 3 * X),
    "Hardswish": (lambda m: m.nn.Hardswish(), 3 * X),
    "Hardtanh": (lambda m: m.nn.Hardtanh(), X),
    "Hardtanh, bounds": (lambda m: m.nn.Hardtanh(-0.5, 1.5), X),
    "LeakyReLU": (lambda m: m.nn.LeakyReLU(), X),
    "LeakyReLU, slope": (lambda m: m.nn.LeakyReLU(0.3), X),
    "LogSigmoid": (lambda m: m.nn.LogSigmoid(), X),
    "LogSoftmax": (lambda m: m.nn.LogSoftmax(dim=1), X),
    "Mish": (lambda m: m.nn.Mish(), X),
    "PReLU": (lambda m: m.nn.PReLU(), X),
    "PReLU, channels": (lambda m: m.nn.PReLU(6, init=0.1), X),
    "ReLU": (lambda m: m.nn.ReLU(), X),
    "ReLU6": (lambda m: m.nn.ReLU6(), 4 * X),
    "RReLU": (lambda m: m.nn.RReLU(0.1, 0.5).eval(), X),
    "SiLU": (lambda m: m.nn.SiLU(), X),
    "Sigmoid": (lambda m: m.nn.Sigmoid(), X),
    "Softmax": (lambda m: m.nn.Softmax(dim=0), X),
    "Softmin": (lambda m: m.nn.Softmin(dim=1), X),
    "Softplus": (lambda m: m.nn.Softplus(), X),
    "Softplus, beta": (lambda m: m.nn.Softplus(2.0, 1.5), X),
    "Softshrink": (lambda m: m.nn.Softshrink(), X),
    "Softshrink, lambd": (lambda m: m.nn.Softshrink(0.2), X),
    "Softsign": (lambda m: m.nn.Softsign(), X),
    "Tanh": (lambda m: m.nn.Tanh(), X),
    "Tanhshrink": (lambda m: m.nn.Tanhshrink(), X),
    "Threshold": (lambda m: m.nn.Threshold(0.5, 20.0), X),
    "Dropout, evaluation": (lambda m: m.nn.Dropout(0.3).eval(), X),
    "Dropout of everything": (lambda m: m.nn.Dropout(1.0), X),
    "Dropout1d, evaluation": (lambda m: m.nn.Dropout1d().eval(), floats(2, 3, 4)),
    "Dropout2d, evaluation": (lambda m: m.nn.Dropout2d().eval(), floats(2, 3, 2, 2)),
    "Dropout3d, evaluation": (lambda m: m.nn.Dropout3d().eval(), floats(2, 3, 2, 2, 1)),
    "AlphaDropout, evaluation": (lambda m: m.nn.AlphaDropout(0.2).eval(), X),
    "FeatureAlphaDropout, evaluation": (lambda m: m.nn.FeatureAlphaDropout(0.2).eval(), X),
    "L1Loss": (lambda m: m.nn.L1Loss(), X, X[::-1]),
    "L1Loss, sum": (lambda m: m.nn.L1Loss(reduction="sum"), X, X[::-1]),
    "MSELoss": (lambda m: m.nn.MSELoss(), X, X[::-1]),
    "MSELoss, none": (lambda m: m.nn.MSELoss(reduction="none"), X, X[::-1]),
    "MSELoss, as of old": (lambda m: m.nn.MSELoss(size_average=False), X, X[::-1]),
    "SmoothL1Loss": (lambda m: m.nn.SmoothL1Loss(), X, X[::-1]),
    "SmoothL1Loss, beta": (lambda m: m.nn.SmoothL1Loss(beta=0.3, reduction="sum"), X, X[::-1]),
    "HuberLoss": (lambda m: m.nn.HuberLoss(), X, X[::-1]),
    "HuberLoss, delta": (lambda m: m.nn.HuberLoss(delta=0.3, reduction="sum"), X, X[::-1]),
    "KLDivLoss": (lambda m: m.nn.KLDivLoss(reduction="batchmean"), np.log(shares(5, 3, seed=2)), SHARES),
    "KLDivLoss, logarithms": (
        lambda m: m.nn.KLDivLoss(reduction="sum", log_target=True),
        np.log(shares(5, 3, seed=2)),
        np.log(SHARES),
    ),
    "NLLLoss": (lambda m: m.nn.NLLLoss(), LOGITS, CLASSES),
    "NLLLoss, weight": (lambda m: m.nn.NLLLoss(m.tensor(WEIGHT), ignore_index=1), LOGITS, CLASSES),
    "CrossEntropyLoss": (lambda m: m.nn.CrossEntropyLoss(), LOGITS, CLASSES),
    "CrossEntropyLoss, weight": (lambda m: m.nn.CrossEntropyLoss(m.tensor(WEIGHT), ignore_index=1), LOGITS, CLASSES),
    "CrossEntropyLoss, smoothing": (
        lambda m: m.nn.CrossEntropyLoss(m.tensor(WEIGHT), label_smoothing=0.2, reduction="sum"),
        LOGITS,
        CLASSES,
    ),
    "CrossEntropyLoss, probabilities": (lambda m: m.nn.CrossEntropyLoss(label_smoothing=0.1), LOGITS, SHARES),
    "BCELoss": (lambda m: m.nn.BCELoss(), SHARES, BITS),
    "BCELoss, weight": (lambda m: m.nn.BCELoss(m.tensor(WEIGHT), reduction="sum"), SHARES, BITS),
    "BCEWithLogitsLoss": (lambda m: m.nn.BCEWithLogitsLoss(), LOGITS, BITS),
    "BCEWithLogitsLoss, weights": (
        lambda m: m.nn.BCEWithLogitsLoss(m.tensor(WEIGHT), pos_weight=m.tensor([3.0, 1.0, 0.5])),
        LOGITS,
        BITS,
    ),
    "MultiheadAttention": (lambda m: m.nn.MultiheadAttention(6, 2), ROWS, ROWS[:2], ROWS[:2]),
    "MultiheadAttention, of itself": (lambda m: Twice(m.nn.MultiheadAttention(6, 3, batch_first=True)), ROWS),
    "MultiheadAttention, without a batch": (lambda m: m.nn.MultiheadAttention(6, 2, bias=False), X, X[:3], X[:3]),
    "MultiheadAttention, all": (
        lambda m: m.nn.MultiheadAttention(6, 3, add_bias_kv=True, add_zero_attn=True, kdim=4, vdim=5, batch_first=True),
        ROWS,
        floats(3, 5, 4),
        floats(3, 5, 5),
        np.arange(15).reshape(3, 5) % 4 == 1,
    ),
    "RNN": (lambda m: m.nn.RNN(6, 4, 2, bidirectional=True), ROWS),
    "RNN, relu": (lambda m: m.nn.RNN(6, 4, 1, "relu", bias=False, batch_first=True), ROWS),
    "LSTM": (lambda m: m.nn.LSTM(6, 5, 2), ROWS),
    "LSTM, projected": (lambda m: m.nn.LSTM(6, 5, 2, proj_size=3, batch_first=True, bidirectional=True), ROWS),
    "LSTM, without a batch": (lambda m: m.nn.LSTM(6, 70), X),
    "GRU": (lambda m: m.nn.GRU(6, 5, 2, bidirectional=True, dropout=0.5).eval(), ROWS, floats(4, 4, 5)),
    "GRU, no bias": (lambda m: m.nn.GRU(6, 5, bias=False), ROWS),
    "RNNCell": (lambda m: m.nn.RNNCell(6, 4, nonlinearity="relu"), X, floats(5, 4)),
    "LSTMCell": (lambda m: m.nn.LSTMCell(6, 4), X),
    "GRUCell": (lambda m: m.nn.GRUCell(6, 4, bias=False), X[0], floats(4)),
    "TransformerEncoderLayer": (lambda m: m.nn.TransformerEncoderLayer(6, 2, 8, 0.0), ROWS),
    "TransformerEncoderLayer, norm first": (
        lambda m: m.nn.TransformerEncoderLayer(6, 2, 8, 0.0, "gelu", batch_first=True, norm_first=True),
        ROWS,
        CAUSAL < 0,
        np.arange(12).reshape(3, 4) % 4 == 3,
    ),
    "TransformerDecoderLayer": (
        lambda m: m.nn.TransformerDecoderLayer(6, 2, 8, 0.0, bias=False, batch_first=True),
        ROWS,
        floats(3, 5, 6),
        CAUSAL,
    ),
    "TransformerEncoder": (
        lambda m: m.nn.TransformerEncoder(
            m.nn.TransformerEncoderLayer(6, 2, 8, 0.0, batch_first=True), 2, m.nn.LayerNorm(6)
        ),
        ROWS,
        CAUSAL,
    ),
    "TransformerDecoder": (
        lambda m: m.nn.TransformerDecoder(m.nn.TransformerDecoderLayer(6, 2, 8, 0.0), 2),
        floats(4, 3, 6),
        floats(5, 3, 6),
    ),
    "Transformer": (
        lambda m: m.nn.Transformer(6, 2, 1, 2, 8, 0.0, batch_first=True),
        floats(3, 4, 6),
        floats(3, 5, 6),
    ),
}
LAYERS |= IMAGE_LAYERS
for n in (1, 2, 3):
    GRID = floats(2, 4, *(5, 6, 4)[:n])
    LAYERS |= {
        f"Conv{n}d": (lambda m, n=n: getattr(m.nn, f"Conv{n}d")(4, 6, 3, padding=1), GRID),
        f"Conv{n}d, groups": (
            lambda m, n=n: getattr(m.nn, f"Conv{n}d")(4, 6, 2, 2, "valid", groups=2, bias=False),
            GRID,
        ),
        f"Conv{n}d, same": (
            lambda m, n=n: getattr(m.nn, f"Conv{n}d")(4, 2, 3, dilation=2, padding="same", padding_mode="circular"),
            GRID,
        ),
        f"Conv{n}d, reflected": (
            lambda m, n=n: getattr(m.nn, f"Conv{n}d")(4, 2, 3, 2, 1, padding_mode="reflect"),
            GRID,
        ),
        f"ConvTranspose{n}d": (lambda m, n=n: getattr(m.nn, f"ConvTranspose{n}d")(4, 6, 3), GRID),
        f"ConvTranspose{n}d, wider": (
            lambda m, n=n: getattr(m.nn, f"ConvTranspose{n}d")(4, 6, 3, 2, 1, 1, 2, False),
            GRID[0],
        ),
    }
LAYERS |= {
    "Unfold": (lambda m: m.nn.Unfold((2, 3), 1, 1, 2), floats(2, 4, 5, 6)),
    "Fold": (lambda m: m.nn.Fold((4, 5), (2, 3), padding=1), floats(2, 12, 25)),
}
# Tested by themselves: containers and parameters (test_module.py).
ELSEWHERE = {
    "AdaptiveLogSoftmaxWithLoss",
    "Buffer",
    "LinearCrossEntropyOptions",
    "RNNBase",
    "RNNCellBase",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "SyncBatchNorm",
    *("Container", "CrossMapLRN2d", "NLLLoss2d"),  # test_utils.py
}
ELSEWHERE |= {name for name in nn.__all__ if name.startswith(("Lazy", "Uninitialized"))}
ELSEWHERE |= {name for name in nn.__all__ if isinstance(getattr(nn, name), types.ModuleType)}


def build(m, name):
    """The module in double precision, its parameters the same in both libraries."""
    module = LAYERS[name][0](m).double()
    with m.no_grad():
        for k, p in enumerate(module.parameters()):
            p.copy_(m.from_numpy(floats(*p.shape, low=-1, high=1, seed=k)))
    return module


def inputs(m, name):
    made = [m.from_numpy(np.ascontiguousarray(x)) for x in LAYERS[name][1:]]
    differentiated = name.partition(",")[0] not in ("BCELoss", "BCEWithLogitsLoss")
    return [x.requires_grad_(x.is_floating_point() and (k == 0 or differentiated)) for k, x in enumerate(made)]


def tensors(result):
    """What a module returns, as a list."""
    return [t for part in result for t in tensors(part)] if isinstance(result, tuple) else [result]


@pytest.mark.filterwarnings("ignore:size_average and reduce args will be deprecated")
@pytest.mark.parametrize("name", LAYERS)
def test_module(torch, name):
    results = []
    for m in (tt, torch):
        module, given = build(m, name), inputs(m, name)
        y = tensors(module(*given))
        weights = [m.from_numpy(floats(*t.shape, low=0.5, high=1.5)) for t in y]
        sum((t * w.reshape(t.shape)).sum() for t, w in zip(y, weights, strict=True)).backward()
        grads = [
            m.zeros_like(t) if t.grad is None else t.grad for t in (*given, *module.parameters()) if t.requires_grad
        ]
        results.append([*y, *grads])
        twin = copy.deepcopy(module)
        for a, e in zip(tensors(twin(*given)), y, strict=True):
            assert_same(a, e, rtol=0, atol=0)
    for a, e in zip(*results, strict=True):
        assert_same(a, e, name, rtol=1e-7 if "Hardsigmoid" in name else 1e-9, atol=1e-11)
    ours, theirs = build(tt, name), build(torch, name)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    back = pickle.loads(pickle.dumps(ours))
    for a, e in zip(tensors(back(*inputs(tt, name))), tensors(ours(*inputs(tt, name))), strict=True):
        assert_same(a, e, rtol=0, atol=0)


def test_every_module_and_function_is_in_a_table():
    missing = set(nn.__all__) - ELSEWHERE - {name.partition(",")[0] for name in LAYERS}
    assert not missing, missing
    entries = {op.name.removeprefix("F.") for op in OPS}
    with_indices = {f"{name}_with_indices" for name in entries}
    functions = {name.removesuffix("_") for name in F.__all__}  # those in place: test_inplace
    missing = functions - entries - with_indices - set(RANDOM) - {"gumbel_softmax", "grouped_mm"}
    assert not missing, missing


# The activations that may overwrite their input: their arguments, and whether the derivative wants the old values.
INPLACE = {
    "ReLU": ((), False),
    "ReLU6": ((), False),
    "Hardtanh": ((-0.5, 0.7), False),
    "LeakyReLU": ((0.2,), False),
    "RReLU": ((0.1, 0.3), False),
    "Threshold": ((0.5, -2.0), False),
    "Threshold, to above": ((0.5, 2.0), True),
    "ELU": ((), True),
    "CELU": ((0.7,), True),
    "SELU": ((), True),
    "SiLU": ((), True),
    "Mish": ((), True),
    "Hardswish": ((), True),
    "Hardsigmoid": ((), True),
}


def inplace(m, name):
    return getattr(m.nn, name.partition(",")[0])(*INPLACE[name][0], inplace=True).eval()


@pytest.mark.parametrize("name", INPLACE)
@pytest.mark.skipif(bool(os.environ.get("TINYTORCH_FUSE")), reason="fused mode writes later")
def test_inplace_keeps_no_more_than_the_derivative_wants(name):
    """One pass: no copy of the input; a single one where the derivative wants it."""
    module, x = inplace(tt, name), tt.ones(1 << 16, requires_grad=True)
    for y, copies in ((x.detach(), 0), (x * 1, INPLACE[name][1])):
        module(y[:0])  # what the first call imports or caches
        before = tt.cpu.memory_allocated()
        tt.cpu.reset_peak_memory_stats()
        module(y)
        assert (tt.cpu.max_memory_allocated() - before) // 1000 == copies * 4 * len(x) // 1000


@pytest.mark.parametrize("dtype", [tt.float16, tt.bfloat16])
@pytest.mark.parametrize("fn", [lambda x: F.hardtanh(x, -0.1, 0.1, True), lambda x: F.threshold(x, 0.1, 0.1, True)])
def test_bounds_in_place_that_are_no_numbers_of_the_dtype(fn, dtype):
    """A result that has been rounded to the other side of its bound tells nothing."""
    x = tt.tensor([-1.0, 0.05, 1.0], dtype=dtype, requires_grad=True)
    y = fn(x * 1)
    y.sum().backward()
    assert x.grad.tolist() == ([0, 1, 0] if y[0] < 0 else [0, 0, 1])


def test_leaky_relu_in_place_with_a_negative_slope():
    """The result does not tell the sign then; PyTorch refuses to differentiate that."""
    x = tt.tensor([-2.0, 3.0], requires_grad=True)
    F.leaky_relu(x * 1, -0.5, inplace=True).sum().backward()
    assert x.grad.tolist() == [-0.5, 1]


@pytest.mark.parametrize("name", [*INPLACE, "Dropout"])
def test_inplace(torch, name):
    """inplace=True writes the input, and gives its gradient all the same."""
    results = []
    for m in (tt, torch):
        module = m.nn.Dropout(1.0, inplace=True) if name == "Dropout" else inplace(m, name)
        x = m.from_numpy(X.copy()).requires_grad_()
        y = x * 1
        assert module(y) is y
        y.backward(m.from_numpy(floats(5, 6, seed=5)))
        results.append([y, x.grad])
    for a, e in zip(*results):
        assert_same(a, e, rtol=1e-7, atol=1e-9)  # Hardsigmoid's sixth and CELU's 1 / alpha are float32's there


# ---- Random: what must hold of the numbers.

# Of each function: the shape it is given, and which elements share their fate.
RANDOM = {
    "dropout": ((40, 50), (2000, 1)),
    "dropout1d": ((20, 50, 7), (1000, 7)),
    "dropout2d": ((20, 50, 3, 2), (1000, 6)),
    "dropout3d": ((20, 50, 3, 2, 2), (1000, 12)),
    "alpha_dropout": ((40, 50), (2000, 1)),
    "feature_alpha_dropout": ((20, 50, 7), (1000, 7)),
    "rrelu": ((40, 50), (2000, 1)),
}
MODULES = {
    "dropout": nn.Dropout,
    "dropout1d": nn.Dropout1d,
    "dropout2d": nn.Dropout2d,
    "dropout3d": nn.Dropout3d,
    "alpha_dropout": nn.AlphaDropout,
    "feature_alpha_dropout": nn.FeatureAlphaDropout,
}


@pytest.mark.parametrize("how", ["function", "module", "in place"])
@pytest.mark.parametrize("name", MODULES)
def test_dropouts(name, how):
    """Whole groups are dropped, as often as p says; what stays is scaled, and its gradient by the same number."""
    shape, groups = RANDOM[name]
    tt.manual_seed(3)
    x = tt.ones(shape, dtype=tt.float64, requires_grad=True)
    if how == "module":
        y = MODULES[name](0.3)(x)
    else:
        y = x.clone()
        result = getattr(F, name)(y, 0.3, True, how == "in place")
        assert (result is y) == (how == "in place")
        y = result
    kept = y.detach().reshape(groups)
    levels = kept.unique().tolist()
    assert len(levels) == 2
    assert bool((kept == kept[:, :1]).all()), "a group has one fate"
    share = (kept[:, 0] == levels[1]).double().mean().item()
    assert share == pytest.approx(0.7, abs=0.06)
    y.sum().backward()
    gradient = x.grad.reshape(groups)
    slope = gradient.max().item()
    assert set(gradient.unique().tolist()) == {0.0, slope}
    assert bool(((gradient != 0) == (kept == levels[1])).all())
    if "alpha" in name:  # mean 0 and variance 1 stay what they are: Klambauer et al. 2017, arXiv:1706.02515
        low = -1.7580993408473766
        a = (0.7 + low**2 * 0.7 * 0.3) ** -0.5
        assert slope == pytest.approx(a, rel=1e-6)
        assert levels == pytest.approx([a * low - a * low * 0.3, a - a * low * 0.3], rel=1e-6)
    else:
        assert levels == pytest.approx([0, 1 / 0.7]) and slope == pytest.approx(1 / 0.7)


@pytest.mark.parametrize("inplace", [False, True])
def test_rrelu_in_training(inplace):
    """Slopes are drawn from [lower, upper); positive elements stay. The gradient is the slope."""
    tt.manual_seed(0)
    x = tt.full((4000,), -1.0, dtype=tt.float64)
    x[:1000] = 2.0
    x.requires_grad_()
    y = F.rrelu(x.clone(), 0.2, 0.4, training=True, inplace=inplace)
    slopes = -y.detach().numpy()[1000:]
    assert (y.detach().numpy()[:1000] == 2).all()
    assert 0.2 <= slopes.min() < 0.202 and 0.398 < slopes.max() < 0.4 and abs(slopes.mean() - 0.3) < 0.005
    y.sum().backward()
    np.testing.assert_allclose(to_numpy(x.grad), np.concatenate([np.ones(1000), slopes]))


def test_gumbel_softmax():
    """Rows of shares; the winners come as often as softmax says; hard ones are one-hot with the soft gradient."""
    tt.manual_seed(0)
    logits = tt.tensor([0.0, 1.0, 2.0], dtype=tt.float64)
    rows = logits.expand(4000, 3).clone().requires_grad_()
    soft = F.gumbel_softmax(rows, tau=0.5)
    np.testing.assert_allclose(to_numpy(soft).sum(1), 1)
    winners = np.bincount(to_numpy(soft).argmax(1), minlength=3) / 4000
    np.testing.assert_allclose(winners, to_numpy(logits.softmax(0)), atol=0.03)
    assert to_numpy(F.gumbel_softmax(rows, tau=1e6)).std() < 1e-4  # all alike, and each one alone
    assert to_numpy(F.gumbel_softmax(rows, tau=1e-4)).max(1).mean() > 0.99
    tt.manual_seed(1)
    soft = F.gumbel_softmax(rows, tau=0.5)
    tt.manual_seed(1)
    hard = F.gumbel_softmax(rows, tau=0.5, hard=True)
    assert set(to_numpy(hard).round(9).reshape(-1).tolist()) == {0.0, 1.0}
    assert (to_numpy(hard).argmax(1) == to_numpy(soft).argmax(1)).all()
    weights = tt.from_numpy(floats(4000, 3))
    expected, actual = (tt.autograd.grad((y * weights).sum(), rows)[0] for y in (soft, hard))
    assert_same(actual, expected, rtol=1e-12)
    across = F.gumbel_softmax(rows.detach().t(), dim=0, hard=True)
    np.testing.assert_allclose(to_numpy(across).sum(0), 1)
