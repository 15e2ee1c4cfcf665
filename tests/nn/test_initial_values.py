"""Initial values have PyTorch's distributions: Kolmogorov and Smirnov's statistic of each parameter, pooled over
modules, and of each function of nn.init."""

import math
import numpy as np
import pytest

import tinytorch as tt

torch = pytest.importorskip("torch")
LAYERS = {
    "Linear": (40, 60),
    "Bilinear": (7, 9, 20),
    "Conv1d": (20, 30, 5),
    "Conv2d": (10, 20, 3),
    "Conv3d": (6, 10, 3),
    "ConvTranspose2d": (10, 20, 3),
    "Embedding": (50, 20, 3),
    "EmbeddingBag": (50, 20),
    "RNN": (20, 30),
    "LSTM": (20, 30, 2),
    "GRU": (20, 30),
    "LSTMCell": (20, 30),
    "MultiheadAttention": (32, 4),
    "TransformerEncoderLayer": (32, 4, 50),
    "TransformerDecoderLayer": (32, 4, 50),
    "Transformer": (32, 4, 1, 1, 50),
    "BatchNorm2d": (30,),
    "LayerNorm": (30,),
    "GroupNorm": (3, 30),
    "PReLU": (30,),
    "AdaptiveLogSoftmaxWithLoss": (16, 40, [10, 20]),
}
INITS = {
    "uniform_": {"a": -1.0, "b": 2.0},
    "normal_": {"mean": 1.0, "std": 2.0},
    "trunc_normal_": {"std": 1.5},
    "xavier_uniform_": {"gain": 2.0},
    "xavier_normal_": {},
    "kaiming_uniform_": {"a": 0.2},
    "kaiming_normal_": {"mode": "fan_out", "nonlinearity": "relu"},
    "orthogonal_": {"gain": 3.0},
    "sparse_": {"sparsity": 0.25},
}


def alike(ours, theirs, what):
    """Two samples of one distribution, but for one time in 10^6."""
    ours, theirs = np.sort(ours), np.sort(theirs)
    places = np.concatenate((ours, theirs))
    shares = (np.searchsorted(sample, places, side="right") / len(sample) for sample in (ours, theirs))
    distance = abs(next(shares) - next(shares)).max()
    assert distance <= 2.7 * (2 / len(ours)) ** 0.5, f"{what}: {distance}"


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    pooled = []
    for m in (tt, torch):
        m.manual_seed(1)
        layers = [getattr(m.nn, name)(*LAYERS[name]) for _ in range(max(4, 3000 // 60 // 4))]
        named = [dict(layer.named_parameters()) for layer in layers]
        pooled.append({k: np.concatenate([n[k].detach().numpy().ravel() for n in named]) for k in named[0]})
    assert list(pooled[0]) == list(pooled[1])
    for key, values in pooled[0].items():
        alike(values, pooled[1][key], key)


@pytest.mark.parametrize("bounds", [(-2, 2), (0.5, 0.7), (3, 9), (-7, -4), (-50, 50)])
@pytest.mark.filterwarnings("ignore:mean is more than 2 std")
def test_truncated(bounds):
    """Within narrow bounds, and in the tails, too."""
    a, b = bounds
    results = []
    for m in (tt, torch):
        m.manual_seed(1)
        results.append(m.nn.init.trunc_normal_(m.empty(5000), 0.1, 1.0, a, b).numpy())
        assert results[-1].min() >= a and results[-1].max() <= b
    alike(*results, bounds)
    for dtype in ("float16", "bfloat16", "float64"):
        x = tt.nn.init.trunc_normal_(tt.empty(999, dtype=getattr(tt, dtype)), 0.1, 1.0, a, b)
        assert (x >= tt.tensor(a, dtype=x.dtype)).all() and (x <= tt.tensor(b, dtype=x.dtype)).all() and x.std() > 0.01


def test_a_tail_without_an_end():
    """For which PyTorch draws for hours, and raises where the bound is infinite: the mean is phi(1) / Phi(-1)."""
    tt.manual_seed(1)
    for b in (1e9, math.inf):
        x = tt.nn.init.trunc_normal_(tt.empty(50000), 0.0, 1.0, 1.0, b)
        assert x.min() >= 1 and abs(x.mean().item() - 1.5251) < 0.02


@pytest.mark.parametrize("name", INITS)
def test_functions(name):
    for shape in ((60, 90), (90, 60)):
        results = []
        for m in (tt, torch):
            m.manual_seed(1)
            results.append(getattr(m.nn.init, name)(m.empty(shape), **INITS[name]).numpy())
        alike(*(x.ravel() for x in results), name)
        if name == "orthogonal_":
            x = results[0] if shape[0] < shape[1] else results[0].T
            np.testing.assert_allclose(x @ x.T, 9 * np.eye(60), atol=1e-5)
        if name == "sparse_":
            assert ((results[0] == 0).sum(0) == (results[1] == 0).sum(0)).all()
