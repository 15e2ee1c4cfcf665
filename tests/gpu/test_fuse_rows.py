"""Fused kernels that reduce give the bits of eager mode, whatever a row's length, layout and values."""

import contextlib
import itertools

import pytest

import tinytorch as tt
from tinytorch.nn import functional as F

HOT = 3


def softmax(x):
    return (x * 2).softmax(-1)


def normalised(x):
    c = x - x.mean(-1, keepdim=True)
    return c / ((c * c).mean(-1, keepdim=True) + 1e-5).sqrt()


def weighted(x, w, b):
    c = x - x.mean(-1, keepdim=True)
    return c * ((c * c).mean(-1, keepdim=True) + 1e-5).rsqrt() * w + b


def several(x):
    """Two reductions in one stage, values of several kinds across stages, several outputs."""
    top, low, double = x.amax(-1, keepdim=True), x.amin(-1, keepdim=True), x.double()
    y = ((x - low) / (top - low + 1)).exp()
    total = double.sum(-1, keepdim=True)
    z = double / total
    return y, z.sum(-1), (y * z).amax(-1), (y - x).half(), x > 0


def odd(x):
    """Arguments that the functions for usual ones do not take."""
    y = (x * 60).exp()
    z = x.sqrt() + 1 / (x - x)
    return y.sum(-1), (y / (x * 1e-38)).amax(-1), z.amin(-1), x.log().logsumexp(-1), (x * 1e38).softmax(-1)


def many(x):
    """More than registers hold: values wait in shared memory."""
    kept = [(x * k).exp() for k in range(1, 9)]
    total = sum(kept).sum(-1, keepdim=True)
    return tuple(v / total for v in kept)


def spread(x):
    """A value that a later stage reduces too."""
    return (x * 2).exp().var(-1)


def columns(x, y):
    z = (x * y).exp()
    return z.sum(0), z.amax(0), z


def agree(gpu, run, *arguments, kernels=True):
    """Are the results of eager and fused mode the same, to the bit? Gives the names of the kernels launched."""

    def results(mode):
        given = [a.clone() if a.is_contiguous() else a for a in arguments]
        before = len(getattr(gpu, "launches", ()))
        with mode:
            made = run(*given)
        return made if isinstance(made, tuple) else (made,), set(getattr(gpu, "launches", ())[before:])

    eager, _ = results(contextlib.nullcontext())
    for _ in range(HOT + 2):
        results(tt.fuse())
    assert tt.fuse.wait(120)
    fused, launched = results(tt.fuse())
    assert "fused" in launched or not (kernels and hasattr(gpu, "launches"))
    for a, b in zip(eager, fused):
        a, b = a.cpu(), b.cpu()
        assert a.dtype is b.dtype and a.shape == b.shape
        assert bool(((a == b) | (a.isnan() & b.isnan())).all())
        assert a.dtype.is_floating_point is False or bool((a.signbit() == b.signbit()).logical_or(a.isnan()).all())
    return launched


def normal(*shape, dtype="float32"):
    tt.manual_seed(1)
    return tt.randn(*shape).to("cuda", getattr(tt, dtype))


ROWS = [31, 33, 100, 512, 1000, 1023, 1024, 1025, 2048, 4096, 8192, 10000]


@pytest.mark.parametrize("n", ROWS)
@pytest.mark.parametrize("run", [softmax, normalised])
def test_row_lengths(gpu, run, n):
    agree(gpu, run, normal(5, n))


@pytest.mark.parametrize("n", [70, 1024, 2500])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_types(gpu, dtype, n):
    agree(gpu, softmax, normal(5, n, dtype=dtype))
    agree(gpu, lambda x: (x * 2).sum(1), normal(5, n, dtype=dtype))


@pytest.mark.parametrize("n", [70, 1024, 4500])
@pytest.mark.parametrize("run", [several, odd, many])
def test_what_waits_between_stages(gpu, run, n):
    agree(gpu, run, normal(3, n))


def test_rows_that_only_shared_memory_holds(gpu):
    def run(x):
        y, z = (x * 2).exp(), (x * 3).exp()
        total = (y + z).sum(-1, keepdim=True)
        return y / total, z / total

    agree(gpu, run, normal(2, 20000))


LONGEST = 32768  # of rows that one thread block takes


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_operands_that_a_later_stage_uses_do_not_wait_for_it(gpu, dtype):
    w, b = normal(LONGEST, dtype=dtype), normal(1, LONGEST, dtype=dtype)
    assert agree(gpu, weighted, normal(2, LONGEST, dtype=dtype), w, b) <= {"fused"}


@pytest.mark.parametrize("run, dtype", [(many, "float32"), (softmax, "float64"), (spread, "float64")])
def test_what_does_not_fit_is_computed_again(gpu, run, dtype):
    assert agree(gpu, run, normal(1, LONGEST, dtype=dtype)) <= {"fused"}


def test_what_was_written_over_is_not_read_again(gpu):
    def run(x):
        y = x.exp()
        x.mul_(0.5)
        return x, y / y.sum(-1, keepdim=True)

    agree(gpu, run, normal(1, LONGEST, dtype="float64"), kernels=False)  # eager kernels run it
    agree(gpu, run, normal(2, 70, dtype="float64"))


@pytest.mark.parametrize("n", [70, 2500])
def test_operands_of_other_layouts(gpu, n):
    x = normal(6, n)
    agree(gpu, weighted, x, normal(n), normal(1, n))
    agree(gpu, weighted, x[:, 1:], normal(n)[1:], normal(1, n)[:, 1:])  # unaligned, and rows apart
    agree(gpu, weighted, normal(n, 6).t(), normal(n), normal(2 * n)[::2])
    agree(gpu, lambda x, y: (x * y).softmax(-1), normal(2, 3, n), normal(2, 1, n))
    agree(gpu, lambda x, y: (x * y).sum((1, 2)), normal(4, 5, n), normal(5, 1))  # rows of two dimensions


@pytest.mark.parametrize("n", [40000, 70003, 8 * 1024 * 5])
def test_long_rows(gpu, n):
    agree(gpu, lambda x: ((x * 2).sum(), (x * 3).amax()), normal(n))
    agree(gpu, lambda x: ((x * 2 + 1).sum(1), x * 2 + 1), normal(2, n))
    agree(gpu, lambda x, y: (x * y).exp().sum(1), normal(2, n, dtype="float16"), normal(n, dtype="float16"))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("rows, inner", list(itertools.product((40, 1024, 2500), (3, 16, 70))))
def test_columns(gpu, rows, inner, dtype):
    agree(gpu, columns, normal(rows, inner, dtype=dtype), normal(inner, dtype=dtype))


@pytest.mark.parametrize("dtype, rows, fuses", [("float32", 31, False), ("float32", 32, True), ("bfloat16", 40, False)])
def test_few_rows_of_many_columns_are_left_to_the_eager_kernel(gpu, dtype, rows, fuses):
    x, y = (normal(rows, 1 << 15, dtype=dtype) for _ in range(2))
    launched = agree(gpu, lambda x, y: (x + y).sum(0), x, y, kernels=fuses)
    assert ("sum" in " ".join(launched)) is not fuses or not launched


def paired(x, y):
    """Of operands of half types that follow each other: with stores, several reductions and unusual arguments."""
    z = x * 2 + y
    return z, z.sum(0), (x * 60).exp().sum(0), (y.float() / x.float()).amin(0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("rows, inner", [(40, 6), (1024, 64), (2500, 70), (1100, 33)])
def test_two_columns_at_a_time(gpu, rows, inner, dtype):
    x, y = normal(rows * inner + 1, dtype=dtype), normal(rows, inner, dtype=dtype) * 3
    agree(gpu, paired, x[1:].view(rows, inner).clone(), y)
    agree(gpu, lambda x, y: paired(x[1:].view(rows, inner), y), x, y)  # unaligned
    agree(gpu, lambda x, y: (x > y).sum(0), x[1:].view(rows, inner).clone(), y)


def test_columns_inside(gpu):
    agree(gpu, lambda x, y: (x * y).sum(1), normal(3, 1100, 40), normal(3, 1, 40))
    agree(gpu, lambda x, y: (x * y).sum(0), normal(40, 1100).t(), normal(1100, 1), kernels=False)
    agree(gpu, lambda x, y: (x * y).sum(0), normal(1500, 300), normal(1500, 1))


@pytest.mark.parametrize(
    "dim, whole, part",
    [
        (0, (40, 6), (slice(None), slice(1, 6, 2))),  # the reduced dimension with the columns,
        (0, (1100, 6), (slice(None), slice(0, 6, 2))),
        (1, (3, 40, 12), (..., slice(0, 12, 2))),  # ... all three,
        (1, (3, 40, 8), (..., slice(0, 5))),  # ... and with the rows
    ],
)
def test_columns_whose_dimensions_merge(gpu, dim, whole, part):
    def run(x):
        y = x[part].exp()
        return y, y.sum(dim)

    agree(gpu, run, normal(*whole))


def test_a_total_beside_rows(gpu):
    def run(x):
        y = (x * 2).softmax(1)
        return y, (y * x).sum()

    agree(gpu, run, normal(64, 1500))


def test_losses(gpu):
    target = tt.arange(7, device="cuda")
    agree(gpu, lambda x: F.cross_entropy(x * 2, target), normal(7, 1500), kernels=False)
    agree(gpu, lambda x: (x * 2).logsumexp(1), normal(7, 1500))
