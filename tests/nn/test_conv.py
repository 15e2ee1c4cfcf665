"""conv1d where it goes wrong, and over several threads. Values and derivatives: the operators' table."""

import re

import pytest

import tinytorch
from tinytorch.nn import functional

X, W = (2, 3, 5), (4, 3, 2)
WRONG = {
    "input 1d": ((5,), W, {}),
    "input 4d": ((1, 1, 3, 5), W, {}),
    "weight 2d": (X, (3, 2), {}),
    "channels": ((2, 4, 5), W, {}),
    "channels of groups": ((2, 4, 5), W, {"groups": 2}),
    "weight does not divide": ((2, 6, 5), (4, 2, 2), {"groups": 3}),
    "too few filters": ((2, 6, 5), (2, 2, 2), {"groups": 3}),
    "groups": (X, W, {"groups": 0}),
    "filter is longer": ((2, 3, 2), (4, 3, 5), {"padding": 1}),
    "dilated filter is longer": ((2, 3, 4), (4, 3, 3), {"dilation": 2}),
    "nothing to filter": ((2, 3, 0), (4, 3, 1), {}),
    "stride": (X, W, {"stride": 0}),
    "dilation": (X, W, {"dilation": 0}),
    "padding": (X, W, {"padding": -1}),
    "two strides": (X, W, {"stride": (2, 2)}),
    "same with a stride": (X, W, {"padding": "same", "stride": 2}),
    "padding's name": (X, W, {"padding": "full"}),
    "bias": (X, W, {"bias": (3,)}),
    "bias 2d": (X, W, {"bias": (4, 1)}),
}


def call(m, x, w, bias=None, **named):
    return m.nn.functional.conv1d(m.ones(x), m.ones(w), None if bias is None else m.ones(bias), **named)


@pytest.mark.parametrize("case", WRONG)
def test_messages_are_pytorchs(torch, case):
    x, w, named = WRONG[case]
    with pytest.raises(RuntimeError) as theirs:
        call(torch, x, w, **named)
    with pytest.raises(RuntimeError, match=f"^{re.escape(str(theirs.value))}$"):
        call(tinytorch, x, w, **named)


@pytest.mark.parametrize(
    "x, w, bias", [("float32", "float64", "float32"), ("float64", "float64", "float16"), ("int64", "int32", "int64")]
)
def test_dtypes_are_one(x, w, bias):
    tensors = [tinytorch.ones(shape, dtype=getattr(tinytorch, d)) for shape, d in ((X, x), (W, w), ((4,), bias))]
    with pytest.raises(RuntimeError, match=rf"Input type \({x}\) and (weight|bias) type .* should be the same"):
        functional.conv1d(*tensors)


@pytest.mark.parametrize("args, name", [((3, W), "input"), ((X, None), "weight"), ((X, W, 2), "bias")])
def test_types(args, name):
    with pytest.raises(TypeError, match=rf"conv1d\(\): argument '{name}' must be Tensor"):
        functional.conv1d(*(tinytorch.ones(a) if isinstance(a, tuple) else a for a in args))
    with pytest.raises(TypeError, match="argument 'stride' must be tuple of ints, not float"):
        functional.conv1d(tinytorch.ones(X), tinytorch.ones(W), stride=1.5)


def test_threads_do_not_change_bits(torch):
    """Large enough to be shared out: results and gradients are those of one thread, and PyTorch's."""
    x, w = tinytorch.randn(4, 12, 2000, requires_grad=True), tinytorch.randn(8, 6, 5, requires_grad=True)
    found, before = [], tinytorch.get_num_threads()
    try:
        for threads in (1, 3):
            tinytorch.set_num_threads(threads)
            y = functional.conv1d(x, w, stride=2, padding=3, dilation=2, groups=2)
            found.append([y, *tinytorch.autograd.grad(y.square().sum(), (x, w))])
    finally:
        tinytorch.set_num_threads(before)
    assert all(a.equal(b) for a, b in zip(*found))
    a, b = (torch.from_numpy(t.detach().numpy()).double().requires_grad_() for t in (x, w))
    y = torch.nn.functional.conv1d(a, b, stride=2, padding=3, dilation=2, groups=2)
    for ours, theirs in zip(found[0], [y, *torch.autograd.grad(y.square().sum(), (a, b))]):
        assert ours.shape == tuple(theirs.shape)
        assert (ours.detach().double().numpy() - theirs.detach().numpy()).__abs__().max() < 1e-5 * theirs.abs().max()


def test_a_gradient_of_a_gradient_is_one_of_the_three():
    x, w = tinytorch.ones(X, requires_grad=True), tinytorch.ones(W, requires_grad=True)
    y = functional.conv1d(x, w)
    of_x, of_w = tinytorch.autograd.grad(y.sum(), (x, w), create_graph=True)
    assert type(y.grad_fn).__name__ == "ConvolutionBackward0"
    assert of_x.grad_fn.name() == "Conv1dInputBackward0" and of_w.grad_fn.name() == "Conv1dWeightBackward0"
