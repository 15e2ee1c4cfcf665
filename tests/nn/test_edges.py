"""Where layers' formulas change: windows that begin behind the end, coordinates on an edge, targets that do not fit.
Programs that are run with both libraries."""

import math

import numpy as np
import pytest

import tinytorch as tt


def numbers(m, *shape, dtype="float32"):
    n = math.prod(shape)
    return (((m.arange(n) * 37 + 11) % 101).reshape(shape).float() / 50 - 1).to(getattr(m, dtype))


def windows_behind_the_end(m, F):
    """With ceil_mode, a last window that would begin in the padding is left out."""
    x = numbers(m, 1, 1, 5, 6)
    line = x.reshape(1, 1, 30)[..., :5]
    yield F.max_pool1d(line, 2, 3, 1, ceil_mode=True)
    yield F.avg_pool1d(line, 2, 3, 1, ceil_mode=True)
    for size in (5, 6):
        yield F.max_pool2d(x[..., :size], 2, 3, 1, ceil_mode=True)
        yield F.avg_pool2d(x[..., :size], 2, 3, 1, ceil_mode=True, count_include_pad=False)


def coordinates_on_an_edge(m, F):
    """No gradient goes to a coordinate that stands on the border, or beyond it."""
    for padding in ("border", "reflection", "zeros"):
        for align in (True, False):
            x = numbers(m, 1, 2, 3, 4).requires_grad_()
            places = m.tensor(
                [[[[-1.0, -1.0], [1.0, 0.3], [0.25, 1.0], [1.5, -1.25], [2.75, -0.5]]]], requires_grad=True
            )
            y = F.grid_sample(x, places, padding_mode=padding, align_corners=align)
            (y * y).sum().backward()
            yield from (y, x.grad, places.grad)


def targets_that_do_not_fit(m, F):
    """With zero_infinity, a target longer than its input costs nothing, and gives no gradient."""
    for zero_infinity in (True, False):
        scores = numbers(m, 3, 2, 4).requires_grad_()
        loss = F.ctc_loss(scores.log_softmax(2), m.tensor([[1, 1, 2, 3], [1, 2, 0, 0]]), (3, 3), (4, 2),
                          reduction="none", zero_infinity=zero_infinity)  # fmt: skip
        yield loss
        if zero_infinity:
            loss.sum().backward()
            yield scores.grad


def bags_with_nan(m, F):
    """The largest of a bag that begins with NaN is NaN."""
    weight = numbers(m, 5, 3)
    weight[0, 1] = weight[2, 0] = math.nan
    yield F.embedding_bag(m.tensor([0, 1, 2, 3, 4]), weight, m.tensor([0, 2, 4]), mode="max")


def slopes_at_zero(m, F):
    """Of Bessel functions, whose formulas divide by x."""
    for f in (m.special.i0, m.special.i0e, m.special.i1, m.special.i1e):
        x = m.tensor([0.0, -0.0, 1e-3, -2.0], requires_grad=True)
        f(x).sum().backward()
        yield x.grad


def sizes_left_to_the_transform(m, F):
    """-1 for a size is the one that is there: of a half, what the whole has."""
    x = m.complex(numbers(m, 3, 4), numbers(m, 3, 4).flip(0))
    yield from (m.fft.irfftn(x, (-1, -1)), m.fft.irfft2(x, (2, -1)), m.fft.hfft2(x, (-1, 5)), m.fft.irfftn(x, (3, 7)))


def sparse_rows_of_large_numbers(m, F):
    """softmax of numbers of which exp overflows."""
    s = (numbers(m, 3, 4) * 1000).relu().to_sparse()
    yield from (m.sparse.softmax(s, 1).to_dense(), m.sparse.log_softmax(s, 0).to_dense())


PROGRAMS = [f for f in globals().values() if getattr(f, "__module__", None) == __name__ and f is not numbers]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_edges(torch, program):
    wanted = [x.detach().numpy() for x in program(torch, torch.nn.functional)]
    got = [x.detach().numpy() for x in program(tt, tt.nn.functional)]
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["max", "sum", "mean"])
def test_what_lies_behind_the_last_offset_is_in_no_bag(mode):
    """PyTorch gives it to the last bag, or memory that nobody has written."""
    weight = numbers(tt, 5, 3).requires_grad_()
    ends = tt.tensor([0, 2, 4])
    out = tt.nn.functional.embedding_bag(tt.arange(5), weight, ends, mode=mode, include_last_offset=True)
    wanted = tt.nn.functional.embedding_bag(tt.arange(4).reshape(2, 2), weight, mode=mode)
    assert out.tolist() == wanted.tolist()
    out.sum().backward()
    assert weight.grad[4].tolist() == [0.0] * 3 and weight.grad[:4].sum().item() == pytest.approx(
        {"max": 6, "sum": 12, "mean": 6}[mode]
    )


@pytest.mark.parametrize("how", [{"mode": "bilinear"}, {"mode": "bicubic"}, {"mode": "bilinear", "antialias": True}])
def test_bytes_are_rounded(torch, how):
    """Not cut off: the mean of many errors is small."""
    pixels = (numbers(tt, 1, 3, 16, 16) * 100 + 128).round().to(tt.uint8)
    exact = tt.nn.functional.interpolate(pixels.double(), (11, 23), **how).clamp(0, 255)
    found = tt.nn.functional.interpolate(pixels, (11, 23), **how)
    assert found.dtype is tt.uint8 and abs((found.double() - exact).mean().item()) < 0.1
    theirs = torch.nn.functional.interpolate(torch.from_numpy(pixels.numpy()), (11, 23), **how).numpy()
    assert np.abs(theirs.astype(int) - found.numpy().astype(int)).max() <= 2


NORMS = {
    "layer_norm": lambda F, x, w, b: F.layer_norm(x, (4,), w, b),
    "rms_norm": lambda F, x, w, b: F.rms_norm(x, (4,), w),
    "group_norm": lambda F, x, w, b: F.group_norm(x, 2, w, b),
}
TYPES = ("float16", "bfloat16", "float32", "float64")


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("of_input", TYPES)
@pytest.mark.parametrize("of_weight", TYPES)
def test_parameters_of_another_dtype(torch, device, name, of_input, of_weight):
    """Half types with float32 parameters, as in a model under autocast, are normalised in float32."""

    def run(m, device):
        x, w, b = (
            numbers(m, *shape, dtype=dtype).to(device).requires_grad_()
            for shape, dtype in (((3, 4), of_input), ((4,), of_weight), ((4,), of_weight))
        )
        y = NORMS[name](m.nn.functional, x, w, b)
        y.backward(numbers(m, 3, 4, dtype=of_input).to(device))
        return [t.detach().cpu() for t in (y, x.grad, w.grad)]

    try:
        wanted = run(torch, "cpu")
    except RuntimeError:
        with pytest.raises(RuntimeError, match=name):
            run(tt, device)
        return
    rough = {"float16": 2e-3, "bfloat16": 2e-2}
    for a, b in zip(run(tt, device), wanted):
        kind = str(b.dtype).partition(".")[2]
        assert a.dtype.name == kind
        tolerance = max(rough.get(of_input, 1e-5), rough.get(of_weight, 1e-5))
        np.testing.assert_allclose(a.double().numpy(), b.double().numpy(), rtol=tolerance, atol=tolerance)
