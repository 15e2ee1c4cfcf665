"""Pruning, layouts of weights, names of old, PyTorch's paths: each program runs on both libraries."""

import importlib
import io
import warnings

import numpy as np
import pytest
from compare import assert_same

import tinytorch as tt

torch = pytest.importorskip("torch")
importlib.import_module("torch.nn.utils.prune")
BOTH = (tt, torch)
each = pytest.mark.parametrize("m", BOTH, ids=["tinytorch", "torch"])


def layer(m, kind="Linear", *sizes):
    made = getattr(m.nn, kind)(*(sizes or (4, 6)))
    rng = np.random.RandomState(0)
    with m.no_grad():
        for p in made.parameters():
            p.copy_(m.tensor(rng.randn(*p.shape)))
    return made


def mask(m, *shape):
    return m.tensor((np.random.RandomState(1).rand(*shape) > 0.5).astype(np.float32))


PRUNINGS = {
    "identity": lambda m, p, x: p.identity(x, "weight"),
    "l1": lambda m, p, x: p.l1_unstructured(x, "weight", 0.3),
    "l1, a number": lambda m, p, x: p.l1_unstructured(x, name="weight", amount=5),
    "l1, none": lambda m, p, x: p.l1_unstructured(x, "bias", 0),
    "l1, all": lambda m, p, x: p.l1_unstructured(x, "bias", 1.0),
    "l1 by scores": lambda m, p, x: p.l1_unstructured(x, "weight", 3, importance_scores=x.weight.detach().cos()),
    "rows": lambda m, p, x: p.ln_structured(x, "weight", 2, n=2, dim=0),
    "columns": lambda m, p, x: p.ln_structured(x, "weight", 0.5, n=float("-inf"), dim=-1),
    "rows by scores": lambda m, p, x: p.ln_structured(x, "weight", 1, 1, 0, importance_scores=x.weight.detach().sin()),
    "a mask": lambda m, p, x: p.custom_from_mask(x, "weight", mask(m, 6, 4)),
    "l1 twice": lambda m, p, x: p.l1_unstructured(p.l1_unstructured(x, "weight", 4), "weight", 0.5),
    "l1, then rows": lambda m, p, x: p.ln_structured(p.l1_unstructured(x, "weight", 9), "weight", 2, 2, 0),
    "rows, then l1": lambda m, p, x: p.l1_unstructured(p.ln_structured(x, "weight", 2, 2, 0), "weight", 0.5),
    "a mask, then columns": lambda m, p, x: p.ln_structured(
        p.custom_from_mask(x, "weight", mask(m, 6, 4)), "weight", 1, 1, 1
    ),
    "globally": lambda m, p, x: p.global_unstructured([(x, "weight"), (x, "bias")], p.L1Unstructured, amount=10),
    "globally by scores": lambda m, p, x: p.global_unstructured(
        [(x, "weight"), (x, "bias")], p.L1Unstructured, {(x, "bias"): x.bias.detach() * 0}, amount=6
    ),
    "globally, after another": lambda m, p, x: p.global_unstructured(
        [(p.l1_unstructured(x, "weight", 4), "weight"), (x, "bias")], p.L1Unstructured, amount=0.4
    ),
}


@pytest.mark.parametrize("name", PRUNINGS)
def test_pruning(name):
    results = []
    for m in BOTH:
        p = m.nn.utils.prune
        x = layer(m)
        assert not p.is_pruned(x)
        PRUNINGS[name](m, p, x)
        assert p.is_pruned(m.nn.Sequential(x))
        facts = [list(x.state_dict()), [n for n, _ in x.named_parameters()], sorted(x.__dict__.get("_buffers"))]
        for _ in range(2):  # a step between: the hook applies the mask to the new values
            x(m.ones(3, 4)).square().sum().backward()
            with m.no_grad():
                for q in x.parameters():
                    q.sub_(q.grad, alpha=0.125)
        y = x(m.ones(3, 4))
        kept = [t.clone() for t in x.state_dict().values()]
        for which in {n.removesuffix("_orig") for n, _ in x.named_parameters() if n.endswith("_orig")}:
            assert p.remove(x, which) is x
        assert not p.is_pruned(x) and isinstance(x.weight, m.nn.Parameter)
        assert {n for n, _ in x.named_parameters()} == {"weight", "bias"}
        results.append((facts, [y, *kept, x.weight, x.bias]))
    assert results[0][0] == results[1][0]
    for a, b in zip(results[0][1], results[1][1], strict=True):
        assert_same(a, b, rtol=1e-5, atol=1e-5)


@each
def test_pruning_at_random(m):
    p = m.nn.utils.prune
    x = p.random_unstructured(layer(m, "Linear", 20, 30), "weight", 0.25)
    assert int((x.weight_mask == 0).sum()) == 150
    x = p.random_structured(layer(m, "Conv2d", 4, 8, 3), "weight", 3, dim=0)
    rows = x.weight_mask.flatten(1)
    assert int((rows == 0).all(1).sum()) == 3 and int((rows == 1).all(1).sum()) == 5
    t = m.ones(3, 4)
    assert int(p.RandomUnstructured(5).prune(t).sum()) == 7 and int(t.sum()) == 12


@each
def test_methods_of_ones_own(m):
    p = m.nn.utils.prune

    class EveryOther(p.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, default_mask):
            made = default_mask.clone()
            made.view(-1)[::2] = 0
            return made

    x = layer(m)
    EveryOther.apply(x, "bias")
    assert x.bias_mask.tolist() == [0, 1, 0, 1, 0, 1]
    container = EveryOther.apply(x, "bias")
    assert isinstance(container, p.PruningContainer) and len(container) == 2 and container[0] is next(iter(container))
    assert x.bias_mask.tolist() == [0, 0, 0, 1, 0, 0]
    with pytest.raises(TypeError):
        container.add_pruning_method(3)
    other = p.Identity()
    other._tensor_name = "weight"
    with pytest.raises(ValueError):
        container.add_pruning_method(other)
    with pytest.raises(TypeError):
        p.BasePruningMethod()


@each
def test_refused_prunings(m):
    p = m.nn.utils.prune
    for kind, wrong in (
        (ValueError, lambda x: p.l1_unstructured(x, "weight", 1.5)),
        (ValueError, lambda x: p.l1_unstructured(x, "weight", -1)),
        (ValueError, lambda x: p.l1_unstructured(x, "weight", 100)),
        (TypeError, lambda x: p.l1_unstructured(x, "weight", "much")),
        (ValueError, lambda x: p.ln_structured(x, "bias", 1, 2, 0)),
        (IndexError, lambda x: p.ln_structured(x, "weight", 1, 2, 2)),
        (AttributeError, lambda x: p.l1_unstructured(x, "missing", 1)),
        (AssertionError, lambda x: p.custom_from_mask(x, "weight", m.ones(3))),
        (AssertionError, lambda x: p.l1_unstructured(x, "weight", 1, importance_scores=m.ones(3))),
        (ValueError, lambda x: p.remove(x, "weight")),
        (TypeError, lambda x: p.global_unstructured(3, p.L1Unstructured, amount=1)),
        (TypeError, lambda x: p.global_unstructured([(x, "weight")], p.LnStructured, amount=1, n=2)),
        (TypeError, lambda x: p.global_unstructured([(x, "weight")], p.L1Unstructured, [3], amount=1)),
    ):
        x = layer(m)
        with pytest.raises(kind):
            wrong(x)
        assert list(x.state_dict()) in (["weight", "bias"], ["bias", "weight"]) and x(m.ones(4)).shape == (6,)


@each
def test_a_pruned_module_in_a_file(m):
    x = m.nn.utils.prune.l1_unstructured(layer(m), "weight", 0.5)
    file = io.BytesIO()
    m.save(x.state_dict(), file)
    file.seek(0)
    y = m.nn.utils.prune.identity(layer(m), "weight")
    y.load_state_dict(m.load(file))
    assert bool((y(m.ones(4)) == x(m.ones(4))).all()) and int((y.weight_mask == 0).sum()) == 12


@each
def test_skip_init(m):
    before = m.get_rng_state()
    x = m.nn.utils.skip_init(m.nn.Linear, 3, out_features=5, dtype=m.float64)
    assert bool((m.get_rng_state() == before).all())
    assert isinstance(x, m.nn.Linear) and x.weight.shape == (5, 3) and x.weight.dtype == m.float64
    assert x.weight.requires_grad and x.weight.device.type == "cpu"
    for wrong in (lambda: m.nn.utils.skip_init(m.nn.Tanh), lambda: m.nn.utils.skip_init(int)):
        with pytest.raises(RuntimeError):
            wrong()


@each
def test_layouts_of_weights(m):
    net = m.nn.Sequential(m.nn.Conv2d(4, 5, 3), m.nn.Conv3d(2, 3, 3), m.nn.ConvTranspose2d(4, 5, 3), m.nn.Linear(2, 2))
    values = [p.detach().clone() for p in net.parameters()]
    assert m.nn.utils.convert_conv2d_weight_memory_format(net, m.channels_last) is net
    assert net[0].weight.stride() == (36, 1, 12, 4) and net[2].weight.stride() == (45, 1, 15, 5)
    assert net[1].weight.is_contiguous()
    m.nn.utils.convert_conv3d_weight_memory_format(net, m.channels_last_3d)
    assert net[1].weight.stride() == (54, 1, 18, 6, 2)
    assert all(bool((a == b).all()) for a, b in zip(values, net.parameters(), strict=True))


OF_OLD = (
    "uniform normal constant eye dirac xavier_uniform xavier_normal kaiming_uniform kaiming_normal orthogonal sparse"
)


@each
def test_names_of_old(m):
    for name in OF_OLD.split():
        t = m.empty((3, 4, 5) if name == "dirac" else (3, 4))
        with pytest.warns(FutureWarning, match=f"nn.init.{name}_"):
            assert getattr(m.nn.init, name)(t, *((0.5,) if name in ("constant", "sparse") else ())) is t
    p = m.nn.Parameter(m.ones(4))
    p.grad = m.ones(4)
    with pytest.warns(FutureWarning):
        assert float(m.nn.utils.clip_grad_norm(p, 1.0)) == 2
    with pytest.warns(FutureWarning):
        assert list(m.nn.Container(a=m.nn.Tanh())._modules) == ["a"]
    with pytest.warns(FutureWarning):
        assert m.nn.NLLLoss2d(reduction="sum")(m.zeros(1, 2, 3, 3), m.zeros(1, 3, 3, dtype=m.long)).shape == ()


def test_cross_map_normalization():
    for size in (5, 7, 9):  # of so few channels: PyTorch's sums never let go of the first one
        x = np.random.RandomState(0).randn(2, 3, 3, 3)
        results = []
        for m in BOTH:
            t = m.tensor(x)
            norm = m.nn.CrossMapLRN2d(size, alpha=0.1, beta=0.6, k=2)
            results.append(norm(t))
            assert repr(norm) == f"CrossMapLRN2d({size}, alpha=0.1, beta=0.6, k=2)"
            with pytest.raises((ValueError, RuntimeError)):
                norm(t[0])
        assert_same(*results, rtol=1e-9)


def test_gradients_of_convolutions():
    for n in (1, 2, 3):
        for how in ({}, {"stride": 2, "padding": 1}, {"dilation": (2,) * n, "groups": 2}):
            results = []
            for m in BOTH:
                rng = np.random.RandomState(0)
                x, w = m.tensor(rng.randn(2, 4, *[7] * n)), m.tensor(rng.randn(6, 4 // how.get("groups", 1), *[3] * n))
                y = getattr(m.nn.functional, f"conv{n}d")(x, w, **how)
                g = m.tensor(rng.randn(*y.shape))
                results.append(
                    (
                        getattr(m.nn.grad, f"conv{n}d_input")(x.shape, w, g, **how),
                        getattr(m.nn.grad, f"conv{n}d_weight")(x, w.shape, g, **how),
                    )
                )
            for a, b in zip(*results, strict=True):
                assert_same(a, b, rtol=1e-9, atol=1e-9)


def layers(path):
    found = importlib.import_module(f"torch.nn.modules.{path}")
    return [name for name in found.__all__ if isinstance(getattr(found, name), type)]


PATHS = (
    *("activation", "adaptive", "batchnorm", "channelshuffle", "container", "conv", "distance", "dropout", "flatten"),
    *("fold", "instancenorm", "lazy", "linear", "loss", "module", "normalization", "padding", "pixelshuffle"),
    *("pooling", "rnn", "sparse", "transformer", "upsampling"),
)


@pytest.mark.parametrize("path", PATHS)
def test_paths_to_layers(path):
    ours = importlib.import_module(f"tinytorch.nn.modules.{path}")
    for name in layers(path):
        assert getattr(ours, name) is getattr(tt.nn.modules, name, getattr(tt.nn, name, getattr(ours, name)))
    assert not set(layers(path)) - set(dir(ours))


@each
def test_bases_of_layers(m):
    paths = m.nn.modules
    for kind, args, base in (
        ("BatchNorm2d", (3,), paths.batchnorm._BatchNorm),
        ("SyncBatchNorm", (3,), paths.batchnorm._BatchNorm),
        ("InstanceNorm1d", (3,), paths.batchnorm._NormBase),
        ("InstanceNorm1d", (3,), paths.instancenorm._InstanceNorm),
        ("Conv2d", (3, 3, 3), paths.conv._ConvNd),
        ("ConvTranspose2d", (3, 3, 3), paths.conv._ConvNd),
        ("ConvTranspose2d", (3, 3, 3), paths.conv._ConvTransposeNd),
        ("Dropout2d", (), paths.dropout._DropoutNd),
        ("MSELoss", (), paths.loss._Loss),
        ("CrossEntropyLoss", (), paths.loss._WeightedLoss),
        ("MaxPool2d", (2,), paths.pooling._MaxPoolNd),
        ("AvgPool2d", (2,), paths.pooling._AvgPoolNd),
        ("AdaptiveAvgPool2d", (2,), paths.pooling._AdaptiveAvgPoolNd),
        ("LSTM", (2, 2), paths.rnn.RNNBase),
    ):
        assert isinstance(getattr(m.nn, kind)(*args), base), kind
    assert not isinstance(m.nn.GroupNorm(1, 1), paths.batchnorm._NormBase)
    assert type(m.nn.MultiheadAttention(4, 1).out_proj) is paths.linear.NonDynamicallyQuantizableLinear


@each
def test_tuples_and_prefixes(m):
    utils = m.nn.modules.utils
    assert utils._pair(3) == (3, 3) and utils._triple([1, 2, 3]) == (1, 2, 3) and utils._single(2) == (2,)
    assert utils._ntuple(5)(1) == (1,) * 5 and utils._reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    net = m.nn.Sequential(m.nn.Linear(1, 1))
    state = m.nn.ModuleDict({"module": net}).state_dict()
    utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["0.weight", "0.bias"] and set(state._metadata) == {"", "0"}
    net.load_state_dict(state)


def test_warnings_are_the_same():
    told = []
    for m in BOTH:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            m.nn.init.uniform(m.empty(2))
            m.nn.Container()
            m.nn.NLLLoss2d()
            m.nn.utils.clip_grad_norm([m.nn.Parameter(m.ones(1))], 1.0)
        told.append([(w.category, str(w.message)) for w in seen])
    assert told[0] == told[1]
