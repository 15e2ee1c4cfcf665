"""Modules of pooling, normalisation, padding and resampling beside PyTorch's: repr, state, results, running statistics,
errors."""

import numpy as np
import pytest

import tinytorch

# Module, input's shape.
MODULES = {
    "MaxPool1d(2)": (1, 2, 6),
    "MaxPool2d((2, 3), ceil_mode=True)": (1, 2, 6, 7),
    "MaxPool3d(2, 1, 1)": (1, 2, 3, 4, 3),
    "AvgPool1d(2)": (1, 2, 6),
    "AvgPool2d(2, padding=1, count_include_pad=False)": (1, 2, 6, 6),
    "AvgPool3d(2, divisor_override=3)": (1, 2, 4, 4, 4),
    "LPPool2d(2, 3, stride=2)": (1, 2, 6, 6),
    "AdaptiveAvgPool2d((None, 2))": (1, 2, 5, 6),
    "AdaptiveMaxPool1d(3)": (1, 2, 7),
    "ConstantPad2d(1, 2.5)": (1, 2, 3, 3),
    "ZeroPad1d((1, 2))": (1, 2, 3),
    "ReflectionPad2d((1, 0, 2, 1))": (1, 2, 3, 3),
    "ReplicationPad3d(1)": (1, 2, 2, 3, 2),
    "CircularPad1d(2)": (1, 2, 4),
    "Upsample(scale_factor=(2, 3))": (1, 2, 3, 3),
    "Upsample(5, mode='linear')": (1, 2, 3),
    "UpsamplingBilinear2d(5)": (1, 2, 3, 3),
    "UpsamplingNearest2d(scale_factor=2)": (1, 2, 3, 3),
    "PixelShuffle(2)": (1, 8, 2, 3),
    "PixelUnshuffle(2)": (1, 2, 4, 6),
    "ChannelShuffle(2)": (1, 4, 2, 2),
    "BatchNorm1d(3)": (4, 3),
    "BatchNorm2d(3, momentum=None)": (2, 3, 4, 4),
    "BatchNorm3d(3, affine=False)": (2, 3, 2, 2, 2),
    "BatchNorm2d(3, track_running_stats=False, bias=False)": (2, 3, 4, 4),
    "InstanceNorm1d(3)": (2, 3, 4),
    "InstanceNorm2d(3, affine=True, track_running_stats=True)": (2, 3, 4, 4),
    "InstanceNorm2d(3, affine=True, bias=False)": (3, 4, 4),
    "GroupNorm(2, 4)": (2, 4, 3),
    "LocalResponseNorm(2, alpha=0.1)": (2, 4, 3, 3),
    "Softmax2d()": (2, 3, 2, 2),
}


def made(m, source):
    return eval(source, vars(m.nn).copy())


@pytest.mark.parametrize("source", MODULES)
def test_module(torch, source):
    found = []
    x = np.random.default_rng(0).standard_normal((3, *MODULES[source]))
    for m in (torch, tinytorch):
        module = made(m, source).to(m.float64)
        outs = [module(m.tensor(a)).detach().numpy() for a in x]
        module.eval()
        outs.append(module(m.tensor(x[0])).detach().numpy())
        state = {name: t.detach().numpy() for name, t in module.state_dict().items()}
        found.append((repr(module), outs, state))
    (theirs, expected, state), (ours, actual, own) = found
    assert ours == theirs
    assert list(own) == list(state)
    for a, b in zip([*actual, *own.values()], [*expected, *state.values()]):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    "source, shape",
    [
        ("BatchNorm1d(3)", (3,)),
        ("BatchNorm2d(3)", (2, 3)),
        ("BatchNorm1d(3)", (1, 3)),
        ("InstanceNorm2d(3, affine=True)", (2, 4, 3, 3)),
        ("GroupNorm(2, 4)", (2, 3)),
        ("GroupNorm(2, 3)", (2, 3)),
        ("CircularPad1d(1)", (2, 2, 2, 2)),
        ("FractionalMaxPool2d(2)", (1, 1, 4, 4)),
        ("FractionalMaxPool2d(2, output_ratio=2.0)", (1, 1, 4, 4)),
        ("MultiMarginLoss(p=3)", None),
        ("TripletMarginLoss(margin=0)", None),
        ("EmbeddingBag(3, 2, padding_idx=3)", None),
        ("Softmax2d()", (2, 2)),
    ],
)
def test_errors(torch, source, shape):
    for m in (torch, tinytorch):
        try:
            made(m, source)(m.ones(shape))
        except Exception as exc:
            kind = type(exc)
        if m is torch:
            expected = kind
    assert kind is expected


def test_unpooling_takes_back_what_pooling_found(torch):
    x = np.random.default_rng(1).standard_normal((1, 2, 4, 6))
    results = []
    for m in (torch, tinytorch):
        out, places = m.nn.MaxPool2d(2, return_indices=True)(m.tensor(x))
        results.append(m.nn.MaxUnpool2d(2)(out, places).numpy())
    np.testing.assert_array_equal(*results)


def test_old_state_without_the_number_of_batches():
    module = tinytorch.nn.BatchNorm1d(2)
    state = module.state_dict()
    del state["num_batches_tracked"]
    state._metadata[""]["version"] = 1
    module.load_state_dict(state)
    state._metadata[""]["version"] = 2
    with pytest.raises(RuntimeError, match="num_batches_tracked"):
        module.load_state_dict(state)


def test_embedding_bag_from_pretrained(torch):
    table = np.random.default_rng(2).standard_normal((4, 3))
    results = []
    for m in (torch, tinytorch):
        bag = m.nn.EmbeddingBag.from_pretrained(m.tensor(table), mode="sum", padding_idx=1)
        assert not bag.weight.requires_grad
        results.append(bag(m.tensor([[0, 1, 2], [3, 3, 1]])).numpy())
    np.testing.assert_allclose(*results)
