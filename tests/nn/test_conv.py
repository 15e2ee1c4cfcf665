"""Convolutions where they go wrong, over several threads, in each instruction set, and as modules. Values and
derivatives of small ones: the operators' table."""

import re

import pytest

import tinytorch
from tinytorch import nn
from tinytorch.backends.cpu import lib
from tinytorch.nn import functional

X, W = (2, 3, 5), (4, 3, 2)
X2, W2, BACK = (2, 3, 5, 5), (4, 3, 2, 2), (3, 4, 2, 2)
WRONG = {
    "input 1d": ("conv1d", (5,), W, {}),
    "input 4d": ("conv1d", (1, 1, 3, 5), W, {}),
    "weight 2d": ("conv1d", X, (3, 2), {}),
    "channels": ("conv1d", (2, 4, 5), W, {}),
    "channels of groups": ("conv1d", (2, 4, 5), W, {"groups": 2}),
    "weight does not divide": ("conv1d", (2, 6, 5), (4, 2, 2), {"groups": 3}),
    "too few filters": ("conv1d", (2, 6, 5), (2, 2, 2), {"groups": 3}),
    "groups": ("conv1d", X, W, {"groups": 0}),
    "filter is longer": ("conv1d", (2, 3, 2), (4, 3, 5), {"padding": 1}),
    "dilated filter is longer": ("conv1d", (2, 3, 4), (4, 3, 3), {"dilation": 2}),
    "stride": ("conv1d", X, W, {"stride": 0}),
    "dilation": ("conv1d", X, W, {"dilation": 0}),
    "padding": ("conv1d", X, W, {"padding": -1}),
    "two strides": ("conv1d", X, W, {"stride": (2, 2)}),
    "same with a stride": ("conv1d", X, W, {"padding": "same", "stride": 2}),
    "padding's name": ("conv1d", X, W, {"padding": "full"}),
    "bias": ("conv1d", X, W, {"bias": (3,)}),
    "bias 2d": ("conv1d", X, W, {"bias": (4, 1)}),
    "one image's lines": ("conv2d", (3, 5), W2, {}),
    "three paddings": ("conv2d", X2, W2, {"padding": (1, 2, 3)}),
    "filter is larger": ("conv2d", X2, W2, {"dilation": 9}),
    "same with one stride": ("conv2d", X2, W2, {"padding": "same", "stride": (1, 2)}),
    "nothing to filter": ("conv2d", (2, 3, 0, 5), W2, {"padding": 2}),
    "channels of volumes": ("conv3d", (2, 4, 3, 3, 3), (2, 3, 2, 2, 2), {}),
    "transposed input": ("conv_transpose2d", (3, 5), BACK, {}),
    "transposed channels": ("conv_transpose2d", X2, W2, {}),
    "transposed groups": ("conv_transpose2d", X2, BACK, {"groups": 2}),
    "transposed bias": ("conv_transpose2d", X2, BACK, {"bias": (3,)}),
    "transposed stride": ("conv_transpose2d", X2, BACK, {"stride": 0}),
    "output_padding": ("conv_transpose2d", X2, BACK, {"output_padding": -1}),
    "three output_paddings": ("conv_transpose2d", X2, BACK, {"output_padding": (1, 1, 1)}),
    "nothing transposed": ("conv_transpose2d", (2, 3, 0, 5), BACK, {}),
    "too few filters transposed": ("conv_transpose1d", (2, 0, 5), (0, 4, 2), {}),
}


def call(m, name, x, w, bias=None, **named):
    return getattr(m.nn.functional, name)(m.ones(x), m.ones(w), None if bias is None else m.ones(bias), **named)


@pytest.mark.parametrize("case", WRONG)
def test_messages_are_pytorchs(torch, case):
    name, x, w, named = WRONG[case]
    with pytest.raises(RuntimeError) as theirs:
        call(torch, name, x, w, **named)
    with pytest.raises(RuntimeError, match=f"^{re.escape(str(theirs.value))}$"):
        call(tinytorch, name, x, w, **named)


@pytest.mark.parametrize(
    "named, error",
    [({"output_padding": 1}, RuntimeError), ({"padding": 9}, RuntimeError), ({"padding": "same"}, TypeError)],
)
def test_transposed_sizes_that_do_not_fit(torch, named, error):
    for m in (torch, tinytorch):
        with pytest.raises(error):
            call(m, "conv_transpose2d", X2, BACK, **named)


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
    with pytest.raises(TypeError, match="argument 'stride' must be tuple of ints, not int"):
        tinytorch.convolution(tinytorch.ones(X), tinytorch.ones(W), None, 1, [0], [1], False, [0], 1)


def test_sizes_that_no_integer_counts():
    x, w = tinytorch.ones(1, 1, 3), tinytorch.ones(1, 1, 2)
    with pytest.raises((RuntimeError, OverflowError)):
        functional.conv1d(x, w, padding=2**62)
    with pytest.raises(RuntimeError):
        functional.conv_transpose1d(x, w, stride=2**61)
    with pytest.raises(RuntimeError):
        functional.unfold(tinytorch.ones(1, 1, 3, 3), 2, padding=2**62)


# Large enough for several tiles, slices and tasks: input, weight, and how they meet.
LARGE = {
    "line": ((4, 12, 2000), (8, 6, 5), {"stride": 2, "padding": 3, "dilation": 2, "groups": 2}),
    "one channel": ((2, 1, 900), (1, 1, 300), {"padding": 40}),
    "image": ((3, 35, 19, 23), (70, 35, 3, 3), {"padding": 1}),
    "strided image": ((3, 33, 20, 17), (20, 33, 3, 3), {"padding": 1, "stride": 2}),
    "steps of 3 and 2": ((2, 19, 20, 17), (36, 19, 3, 3), {"padding": 1, "stride": (3, 2)}),
    "steps of 5": ((2, 5, 21, 23), (7, 5, 3, 3), {"stride": 5}),
    "tiles of 2 x 2": ((2, 64, 13, 37), (50, 64, 3, 3), {"padding": 1}),
    "tiles of 2 x 2 in small images": ((18, 50, 5, 5), (66, 50, 3, 3), {"padding": (2, 1)}),
    "one tap": ((2, 70, 15, 13), (51, 70, 1, 1), {}),
    "one tap, many channels and places": ((2, 150, 33, 33), (140, 150, 1, 1), {}),
    "one tap, strided": ((2, 70, 15, 13), (51, 70, 1, 1), {"stride": 2}),
    "each channel": ((2, 37, 18, 21), (37, 1, 3, 3), {"padding": 1, "groups": 37}),
    "each channel, strided": ((2, 37, 18, 21), (37, 1, 3, 3), {"padding": 1, "stride": 2, "groups": 37}),
    "each channel twice": ((2, 20, 18, 21), (40, 1, 3, 2), {"groups": 20, "dilation": 2}),
    "groups": ((2, 32, 16, 15), (64, 8, 3, 3), {"padding": (2, 0), "groups": 4}),
    "volume": ((2, 9, 7, 8, 9), (17, 9, 3, 2, 3), {"padding": (1, 0, 1)}),
    "runs of 15 and 14 places": ((9, 64, 11, 44), (32, 64, 3, 3), {"padding": 1}),
    "runs along a line": ((2, 64, 601), (128, 32, 4), {"padding": 2, "dilation": 3, "groups": 2}),
    "strided runs": ((2, 32, 23, 65), (41, 32, 3, 2), {"padding": (2, 1), "stride": (3, 2)}),
    "strided runs of both": ((2, 64, 9, 63), (64, 64, 3, 3), {"padding": 1, "stride": 2}),
    "runs beyond the last tap": ((2, 32, 4, 95), (32, 32, 2, 2), {"stride": 2}),
    "runs of one tap": ((2, 672, 6, 31), (20, 672, 1, 1), {}),
    "runs in a volume": ((1, 32, 5, 4, 16), (32, 32, 3, 2, 3), {"padding": (1, 1, 1), "stride": (2, 1, 1)}),
}


def numbers(*shape):
    return (tinytorch.arange(int(tinytorch.tensor(shape).prod())) * 0.7).sin().reshape(shape)


def run(m, operands, named, g):
    """The result, and the gradients of input, weight and bias, for g, a function of the result's shape."""
    leaves = [t.detach().requires_grad_() for t in operands]
    y = getattr(m.nn.functional, f"conv{operands[0].ndim - 2}d")(*leaves, **named)
    return [y, *m.autograd.grad(y, leaves, g(tuple(y.shape)))]


@pytest.fixture
def every_isa():
    """The instruction sets that this machine has; afterwards the one before is back."""
    before = lib.tt_isa_name()
    found = [isa for isa in (b"baseline", b"avx2", b"avx512") if lib.tt_set_isa(isa) == 0]
    lib.tt_error_clear()
    yield found
    lib.tt_set_isa(before)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("case", LARGE)
def test_large_ones(torch, every_isa, case, dtype):
    """Results and gradients are PyTorch's in each instruction set, and in each layout; bits are those of one thread."""
    shape, size, named = LARGE[case]
    x, w, bias = (numbers(*s).to(getattr(tinytorch, dtype)) for s in (shape, size, size[:1]))

    def g(places):
        return numbers(*places).to(x.dtype)

    def in_float64(t):
        return torch.from_numpy(t.double().numpy())

    expected = run(torch, [in_float64(t) for t in (x, w, bias)], named, lambda places: in_float64(g(places)))
    threads = tinytorch.get_num_threads()
    tolerance = {"float32": 2e-5, "float64": 1e-13, "bfloat16": 1e-2}[dtype]
    last = {4: tinytorch.channels_last, 5: tinytorch.channels_last_3d}.get(len(shape))
    for isa in every_isa:
        lib.tt_set_isa(isa)
        for layout in (tinytorch.contiguous_format, last):
            if layout is None:
                continue
            laid = x.contiguous(memory_format=layout)
            found = []
            try:
                for n in (1, 3, 16):
                    tinytorch.set_num_threads(n)
                    found.append(run(tinytorch, (laid, w, bias), named, g))
            finally:
                tinytorch.set_num_threads(threads)
            for name, one, *more, theirs in zip("yxwb", *found, expected):
                what = f"{name} in {isa}, {layout}"
                assert all(one.equal(other) for other in more), what
                assert one.shape == tuple(theirs.shape), what
                apart = (one.detach().double().numpy() - theirs.detach().numpy()).__abs__().max()
                assert apart <= tolerance * theirs.abs().max(), what
            if layout is last:
                assert found[0][0].is_contiguous(memory_format=last)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("strange", [float("inf"), -float("inf"), float("nan"), 3e38])
def test_what_is_not_finite_stays_where_it_is(torch, every_isa, strange, dtype):
    """Not in the places beside it, which are computed together (Note [Fewer multiplications] in conv_winograd.h)."""
    x, w = (numbers(*shape).to(getattr(tinytorch, dtype)) for shape in ((2, 93, 12, 14), (61, 93, 3, 3)))
    x[1, 5, 6, 7] = strange
    theirs = torch.nn.functional.conv2d(*(torch.from_numpy(t.float().numpy()) for t in (x, w)), padding=1)
    near = {"rtol": 1e-4, "atol": 1e-3} if dtype == "float32" else {"rtol": 4e-3, "atol": 1e-3}
    for isa in every_isa:
        lib.tt_set_isa(isa)
        for layout in (tinytorch.contiguous_format, tinytorch.channels_last):
            ours = tinytorch.nn.functional.conv2d(x.contiguous(memory_format=layout), w, padding=1).float()
            torch.testing.assert_close(torch.from_numpy(ours.numpy()), theirs, equal_nan=True, **near)


def test_denormal_sums_are_right(torch, every_isa):
    x, w = numbers(2, 64, 12, 16) * 2.0**-70, numbers(32, 64, 3, 3) * 2.0**-60
    theirs = torch.nn.functional.conv2d(*(torch.from_numpy(t.double().numpy()) for t in (x, w)))
    for isa in every_isa:
        lib.tt_set_isa(isa)
        ours = tinytorch.nn.functional.conv2d(x.contiguous(memory_format=tinytorch.channels_last), w)
        ours, expected = torch.from_numpy(ours.numpy()).double() * 2.0**130, theirs * 2.0**130
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=2.0**-9)


def test_layouts_are_pytorchs(torch):
    """Strides of the result and of both gradients: channels stay next to each other where they are in one operand."""
    for x_last in (False, True):
        for w_last in (False, True):
            strides = []
            for m in (torch, tinytorch):
                formats = {False: m.contiguous_format, True: m.channels_last}
                x = m.ones(2, 3, 5, 6).contiguous(memory_format=formats[x_last]).requires_grad_()
                w = m.ones(4, 3, 2, 3).contiguous(memory_format=formats[w_last]).requires_grad_()
                y = m.nn.functional.conv2d(x, w)
                strides.append([t.stride() for t in (y, *m.autograd.grad(y, (x, w), m.ones_like(y)))])
            assert strides[0] == strides[1]


def test_a_gradient_of_a_gradient_is_one_of_the_three():
    x, w = tinytorch.ones(X, requires_grad=True), tinytorch.ones(W, requires_grad=True)
    y = functional.conv1d(x, w)
    of_x, of_w = tinytorch.autograd.grad(y.sum(), (x, w), create_graph=True)
    assert {t.grad_fn.name() for t in (y, of_x, of_w)} == {"ConvolutionBackward0"}


MODULES = {
    "Conv1d": ((4, 6, 3), {"padding": "same", "groups": 2}, (2, 4, 9)),
    "Conv2d": ((4, 6, (3, 2)), {"stride": 2, "bias": False, "dilation": (1, 2)}, (4, 9, 8)),
    "Conv3d": ((2, 3, 2), {"padding": (1, 0, 1)}, (2, 2, 4, 4, 4)),
    "ConvTranspose1d": ((4, 6, 3), {"stride": 2, "output_padding": 1}, (2, 4, 9)),
    "ConvTranspose2d": ((4, 6, (3, 2)), {"stride": 2, "groups": 2}, (4, 5, 4)),
    "ConvTranspose3d": ((2, 3, 2), {"bias": False, "dilation": 2}, (2, 2, 3, 3, 3)),
    "Unfold": ((2,), {"padding": 1}, (2, 3, 4, 5)),
    "Fold": (((4, 5), 2), {"stride": 1}, (2, 12, 12)),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules(torch, name):
    """Representation, names and shapes of the state, and results with PyTorch's parameters."""
    args, named, shape = MODULES[name]
    theirs, ours = getattr(torch.nn, name)(*args, **named), getattr(nn, name)(*args, **named)
    assert repr(ours) == repr(theirs)
    ours.load_state_dict({k: tinytorch.from_numpy(v.numpy()) for k, v in theirs.state_dict().items()})
    x = numbers(*shape)
    expected = theirs(torch.from_numpy(x.numpy())).detach().numpy()
    assert abs(ours(x).detach().numpy() - expected).max() < 1e-5 * abs(expected).max()


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("padding", [1, (2, 1), "same", "valid"])
def test_padding_modes(torch, mode, padding):
    named = {"padding": padding, "padding_mode": mode, "dilation": (1, 2)}
    theirs, ours = torch.nn.Conv2d(2, 3, (2, 3), **named), nn.Conv2d(2, 3, (2, 3), **named)
    assert repr(ours) == repr(theirs)
    ours.load_state_dict({k: tinytorch.from_numpy(v.numpy()) for k, v in theirs.state_dict().items()})
    x = numbers(2, 2, 7, 6)
    expected = theirs(torch.from_numpy(x.numpy())).detach().numpy()
    assert abs(ours(x).detach().numpy() - expected).max() < 1e-5 * abs(expected).max()


@pytest.mark.parametrize("name", [name for name in MODULES if name.startswith("Conv")])
def test_initial_values(torch, name):
    """Those of PyTorch's range; a filter's elements decide."""
    args, named, _ = MODULES[name]
    named = named | {"bias": True}
    theirs, ours = getattr(torch.nn, name)(*args, **named), getattr(nn, name)(*args, **named)
    for (_, a), (_, b) in zip(ours.named_parameters(), theirs.named_parameters()):
        assert tuple(a.shape) == tuple(b.shape)
        bound = 1 / (ours.weight[0].numel()) ** 0.5
        assert 0.5 * bound < a.abs().max().item() <= bound
        assert b.abs().max().item() <= bound


def test_a_size_chosen_among_those_that_one_stride_gives(torch):
    for m in (torch, tinytorch):
        layer, x = m.nn.ConvTranspose2d(1, 1, 2, stride=3), m.ones(1, 1, 2, 2)
        assert tuple(layer(x, output_size=(6, 7)).shape) == (1, 1, 6, 7)
        assert tuple(layer(x, output_size=[1, 1, 5, 5]).shape) == (1, 1, 5, 5)
        for wrong in ((8, 8), (5,)):
            with pytest.raises(ValueError):
                layer(x, output_size=wrong)


IMPOSSIBLE = (
    {"groups": 3},
    {"groups": 0},
    {"padding": "full"},
    {"padding": "same", "stride": 2},
    {"padding_mode": "ones"},
)


@pytest.mark.parametrize("named", IMPOSSIBLE)
def test_modules_that_cannot_be(torch, named):
    for m in (torch, tinytorch):
        with pytest.raises(ValueError):
            m.nn.Conv2d(4, 6, 3, **named)


def test_sums_in_runs_are_rounded_to_the_nearest():
    """Of two channels: exact in float32, and half of them halfway between two numbers of bfloat16."""
    high = tinytorch.arange(-(1 << 15), 1 << 15, dtype=tinytorch.int16).view(tinytorch.bfloat16)
    low = high * 2**-8 * tinytorch.tensor([1, -1, 3, 0.75]).repeat(1 << 14).to(tinytorch.bfloat16)
    none = tinytorch.zeros(30 << 16, dtype=tinytorch.bfloat16)
    w = tinytorch.zeros(16, 32, 1, 1, dtype=tinytorch.bfloat16)
    w[:, :2] = 1
    y = tinytorch.nn.functional.conv2d(tinytorch.cat([high, low, none]).reshape(1, 32, 4096, 16), w)[0, 7].flatten()
    expected = (high.float() + low.float()).to(tinytorch.bfloat16)
    normal = (high.float().abs() > 1e-30) | high.isnan()  # and so is its part; denormal numbers count as 0
    assert normal.sum() > 50000
    tinytorch.testing.assert_close(y[normal], expected[normal], rtol=0, atol=0, equal_nan=True)
