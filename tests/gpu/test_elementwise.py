"""Elementwise operators on a device where operands do not lie one after the other, or are not aligned."""

import pytest
import tinytorch as tt
from gpu.layouts import to_device


def laid(layout: str, dtype, rows: int, n: int):
    """A [rows, n] operand."""
    whole = (tt.randn(rows + 1, 2 * n + 3) * 3).to(dtype)
    return {
        "whole": lambda: whole[:rows, :n].clone(),
        "rows": lambda: whole[:rows, :n],  # the next row is 2 n + 3 elements further
        "even": lambda: (tt.randn(rows, 2 * n) * 3).to(dtype)[:, n:],
        "shifted": lambda: (tt.randn(rows, n + 1) * 3).to(dtype).reshape(-1)[1 : rows * n + 1].view(rows, n),
        "row": lambda: whole[0, :n].clone(),
        "column": lambda: whole[:rows, :1].clone(),
        "apart": lambda: whole[:rows, : 2 * n : 2],
        "transposed": lambda: (tt.randn(n, rows) * 3).to(dtype).t(),
    }[layout]()


def check(compute, *operands):
    expected, found = compute(*operands), compute(*map(to_device, operands))
    assert found.is_cuda and found.dtype is expected.dtype
    here = found.cpu()
    assert bool(((here == expected) | ((here != here) & (expected != expected))).all())


LAYOUTS = ["rows", "even", "shifted", "row", "column", "apart", "transposed"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n", [64, 7])
def test_two_operands(gpu, layout, n):
    for dtype in (tt.float32, tt.float16):
        a, b = laid("whole", dtype, 37, n), laid(layout, dtype, 37, n)
        check(lambda a, b: a * b, a, b)
        check(lambda a, b: b - a, a, b)
    check(lambda a, b: a + b, laid("whole", tt.bfloat16, 37, n), b.float())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_three_operands(gpu, layout):
    a, b, c = laid("rows", tt.float32, 33, 48), laid(layout, tt.float32, 33, 48), laid("column", tt.float32, 33, 48)
    check(lambda a, b, c: tt.where(a > c, b, c), a, b, c)
    check(lambda a, b, c: tt.addcmul(a, b, c, value=2.0), a, b, c)
    check(lambda a, b: tt.where(a > 0, b, 1.5), a, b)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("into", ["even", "shifted", "transposed"])
def test_into_places(gpu, layout, into):
    """Copies, and results in memory that was there before; the elements between are left alone."""
    for dtype in (tt.float32, tt.int8):
        base = tt.zeros(40, 200, dtype=dtype)
        b = laid(layout, dtype, 33, 48)

        def place(base):
            return {
                "rows": lambda: base[:33, 5:53],
                "even": lambda: base[:33, 16:64],
                "shifted": lambda: base.view(-1)[1 : 33 * 48 + 1].view(33, 48),
                "apart": lambda: base[:33, 0:96:2],
                "transposed": lambda: base.view(-1)[: 33 * 48].view(48, 33).t(),
            }[into]()

        def compute(base, b):
            base = base.clone()
            place(base).copy_(b)
            place(base).add_(b)
            return base

        check(compute, base, b)


@pytest.mark.parametrize("n", [46, 47])
def test_rows_of_no_whole_vectors(gpu, n):
    """All rows begin at a multiple of a vector's size, but do not end there: what lies between is left alone."""

    def compute(base, b):
        base = base.clone()
        base[:33, 16 : 16 + n].add_(b[:, :n])
        return base

    for dtype in (tt.float32, tt.int8):
        check(compute, tt.zeros(40, 208, dtype=dtype), (tt.randn(33, 64) * 3).to(dtype))


def test_one_dimension_with_gaps(gpu):
    x = tt.randn(300)
    check(lambda x: x[::2] * x[150:], x)
    check(lambda x: x.clone()[::3].mul_(x[:100]), x)
    check(lambda x: tt.where(x[::2] > 0, x[:150], x[1::2]), x)


def test_more_dimensions(gpu):
    x = tt.randn(5, 6, 7, 32)
    for y in (tt.randn(6, 1, 32), tt.randn(5, 1, 7, 1), tt.randn(7, 1, 6, 32).permute(1, 2, 0, 3), tt.randn(32)):
        check(lambda x, y: x * y, x, y)
        check(lambda x, y: x[:, 1:, ::2] + y.expand(5, 6, 7, 32)[:, 1:, ::2], x, y)


@pytest.mark.parametrize("dtype", [tt.float32, tt.bfloat16, tt.int8])
@pytest.mark.parametrize("first", [1, 2, 4])
def test_unaligned(gpu, dtype, first):
    for n in (5, 1000, 541_003):
        x = (tt.randn(n + first) * 3).to(dtype)
        check(lambda x, n=n: x[first:] + x[:n], x)
        check(lambda x: x[first:].float().exp(), x)


@pytest.mark.parametrize("dtype", [tt.bool, tt.float16, tt.float32, tt.float64])
def test_transposing_copies(gpu, dtype):
    for shape, order in (
        ((40, 70), (1, 0)),
        ((16, 16), (1, 0)),
        ((3, 33, 2, 65), (0, 3, 2, 1)),
        ((20, 3, 40), (2, 1, 0)),
        ((129, 5, 64), (1, 2, 0)),
        ((2, 40, 3, 50), (3, 0, 1, 2)),
    ):
        x = (tt.randn(shape) * 3).to(dtype)
        check(lambda x, order=order: x.permute(order).contiguous(), x)
        check(lambda x, order=order: x.permute(order).to(tt.bfloat16), x)
    into = tt.zeros(70, 90, dtype=dtype)

    def compute(into, x):
        into = into.clone()
        into[:, 7:47].copy_(x.t())
        into.t()[50:, :40].copy_(x[:, 20:60].t())
        return into

    check(compute, into, (tt.randn(40, 70) * 3).to(dtype))


def test_when_copies_go_by_tiles(emulated):
    def launched(x):
        before = len(emulated.launches)
        x.contiguous()
        return emulated.launches[before:]

    x = tt.randn(40, 70).cuda()
    assert launched(x.t()) == ["transpose_f32"]
    assert launched(x[:, 3:50]) == launched(x[:8].t()) == launched(x[:, ::2].t()) == ["copy_f32"]


def test_numbers_of_the_cpu_beside_numbers_of_the_device(gpu):
    """The result is the device's, whichever comes first."""
    x, n = tt.full((), 4.0, device="cuda"), tt.tensor(2.0)
    for result in (n * x, x * n, 2.0 * x, 10 - tt.where(x > 5, n, 2.0 / (x / x)), tt.maximum(n, x) + x):
        assert result.device == x.device and result.item() == 8


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gelu_of_every_half_number_has_the_bits_of_the_cpu(gpu, dtype):
    x = tt.arange(-(1 << 15), 1 << 15).to(tt.int16).view(getattr(tt, dtype))
    wanted, got = tt.nn.functional.gelu(x), tt.nn.functional.gelu(x.to("cuda")).cpu()
    numbers = ~wanted.isnan()
    assert tt.equal(got.isnan(), ~numbers)
    assert tt.equal(got.view(tt.int16)[numbers], wanted.view(tt.int16)[numbers])


def test_lgamma_of_floats_of_every_size(gpu):
    """Where an estimate does it, and where not."""
    all_over = tt.arange(0, 2**32, 40009).to(tt.int32)
    near = tt.tensor([1, 2, 0.5, 1.5, 2.5, 3.5, 4.5], dtype=tt.float32).view(tt.int32)[:, None] + tt.arange(-99, 99)
    for bits in (all_over, near.to(tt.int32)):
        x = bits.view(tt.float32).clone()
        check(tt.lgamma, x)
        check(tt.lgamma, x.bfloat16())
