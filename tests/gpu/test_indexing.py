"""Indexing, joining, rearranging, sorting and counting on a device: the CPU's bits, the same every run."""

import math

import numpy as np
import pytest
import tinytorch as tt
from gpu.emulator import Emulator
from gpu.layouts import to_device
from tinytorch import nn

pytestmark = pytest.mark.usefixtures("gpu")
rng = np.random.default_rng(0)


def floats(*shape, dtype=tt.float32):
    return tt.tensor(rng.standard_normal(shape) * 20).to(dtype)


def numbers(end, *shape, begin=0):
    return tt.tensor(rng.integers(begin, end, shape))


def rounded(*shape, dtype=tt.float32):
    """Few different values, among them zeros of both signs and NaN."""
    x = (floats(*shape) / 8).round().reshape(-1)
    x[:4] = tt.tensor([float("nan"), -0.0, 0.0, float("nan")])
    return x.reshape(shape).to(dtype)


def bits(t):
    a = t.detach().cpu().to(tt.float64 if t.dtype.is_floating_point else t.dtype).numpy()
    return np.where(np.isnan(a), np.nan, a).view(np.int64) if a.dtype == np.float64 else a


def agree(fn, *tensors):
    """fn of tensors on the CPU and on the device: the same results (and so for tuples)."""
    want, got = fn(*tensors), fn(*map(to_device, tensors))
    if isinstance(want, tt.Tensor):
        want, got = (want,), (got,)
    for w, g in zip(want, got, strict=True):
        assert g.is_cuda and g.dtype == w.dtype and g.shape == w.shape
        np.testing.assert_array_equal(bits(g), bits(w))


def put(**options):
    def write(x, index, values):
        return x.clone().index_put_((index,), values, **options)

    return write


# Reading.


def test_subscripts():
    x, i, j = floats(50, 6, 8), numbers(50, 7, begin=-50), numbers(6, 7)
    agree(lambda x, i: x[i], x, i)
    agree(lambda x, i, j: x[i, j], x, i, j)
    agree(lambda x, i, j: x[i[:, None], j], x, i, j)
    agree(lambda x, i, j: x[i, :, j], x, i, j)
    agree(lambda x, j: x[:, j, ::2], x, j)
    agree(lambda x, j: x.transpose(0, 1)[j], x, j)
    agree(lambda x: x[x > 0], x)
    agree(lambda x, i: x.take(i), x.transpose(0, 2), numbers(2400, 33, begin=-2400))


def test_gather():
    agree(lambda x, i: x.gather(1, i), floats(50, 6), numbers(6, 20, 9))
    agree(lambda x, i: x.gather(0, i), floats(6, 50).t(), numbers(50, 6, 7).t()[:, :6])


def test_views_of_parts():
    x = floats(9, 12)
    agree(lambda x, s: tt.select_scatter(x, s, 0, 1), x, floats(12))
    agree(lambda x, s: tt.diagonal_scatter(x, s), x, floats(9))
    agree(lambda x, s: tt.as_strided_scatter(x, s, (3, 4), (2, 1), 1), floats(20), floats(3, 4))  # elements meet


# Writing.


@pytest.fixture(params=[False, True], ids=["", "backwards"])
def either_order(gpu, monkeypatch, request):
    """On the emulated device once more with the last threads first: results do not depend on who is first."""
    if request.param:
        if not isinstance(gpu, Emulator):
            pytest.skip("a GPU has an order of its own")
        monkeypatch.setattr(gpu, "backwards", True)


def test_last_write_stays(either_order):
    agree(put(), floats(5, 6), numbers(5, 300), floats(300, 6))
    agree(put(), floats(9000), numbers(30, 100), floats(100))
    agree(put(), floats(90000), numbers(30, 100), floats(100))  # positions meet in a hash table
    agree(lambda x, i, s: x.scatter(0, i, s), floats(20, 30), numbers(20, 50, 30), floats(50, 30))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "bool"])
def test_sums_in_the_order_of_the_index(dtype):
    dtype = getattr(tt, dtype)
    agree(put(accumulate=True), floats(50, 8, dtype=dtype), numbers(50, 200), floats(200, 8, dtype=dtype))


@pytest.mark.parametrize("n", [5, 6, 7])
@pytest.mark.parametrize("accumulate", [False, True])
def test_rows_that_lie_apart(n, accumulate):
    """Their ends are not those of vectors: what lies between them is neither read nor written."""

    def write(x, i, values):
        x = x.clone()
        x[:, :n].index_put_((i,), values, accumulate=accumulate)
        return x

    agree(lambda x, i: x[:, :n][i], floats(40, 8), numbers(40, 99))
    agree(write, floats(40, 8), numbers(40, 99), floats(99, n))


def test_sums_sorted_by_several_blocks(either_order):
    agree(put(accumulate=True), floats(70000), numbers(70000, 9000), floats(9000))
    agree(lambda x, i, s: x.index_add(1, i, s), floats(4, 30, 8), numbers(30, 5000), floats(4, 5000, 8))


def _spread(n):
    return numbers(70000, n)


SORTED_IN_PART = {  # of a large table, updates of single elements: how the index is spread
    "evenly": lambda: _spread(20000),
    "over a few of the elements": lambda: _spread(9000) % 37,
    "over two": lambda: _spread(5000) % 2 * 65536,
    "on the last": lambda: _spread(5000) * 0 + 69999,
    "over a part": lambda: _spread(3000) % 900 + 69000,
}


@pytest.mark.parametrize("spread", SORTED_IN_PART)
def test_updates_of_single_elements(either_order, spread):
    """Sorted but for the last digit, or wholly where many updates are near each other: the same bits."""
    at = SORTED_IN_PART[spread]()
    n = at.shape[0]
    agree(lambda x, i, s: x.scatter_add(0, i, s), floats(70000), at, floats(n))
    agree(lambda x, i, s: x.scatter_reduce(0, i, s, "amax"), floats(70000), at, floats(n))
    agree(lambda x, i, s: x.clone()[:, 1].index_add_(0, i, s), floats(70000, 2), at, floats(n))


@pytest.mark.parametrize("reduce", ["prod", "amax"])
def test_scatter_reduce(either_order, reduce):
    agree(lambda x, i, s: x.scatter_reduce(0, i, s, reduce), floats(20, 30), numbers(20, 50, 30), floats(50, 30))


def test_embedding_gradient():
    def gradient(weight, index, g):
        weight = weight.clone().requires_grad_()
        tt.embedding(weight, index).backward(g)
        return weight.grad

    agree(gradient, floats(50, 64), numbers(50, 30, 9), floats(30, 9, 64))
    agree(gradient, floats(50, 64, dtype=tt.bfloat16), numbers(50, 30, 9), floats(30, 9, 64, dtype=tt.bfloat16))


def test_index_on_the_cpu():
    x, i = floats(50, 6), numbers(50, 9)
    np.testing.assert_array_equal(bits(x.cuda()[i]), bits(x[i]))
    with pytest.raises(RuntimeError, match="on cpu or on the same device"):
        x[i.cuda()]
    with pytest.raises(RuntimeError, match="same device"):
        x.cuda().index_add(0, i.cuda(), floats(9, 6))


def test_only_subscripts_take_an_index_of_the_cpu():
    x, i = floats(50, 6).cuda(), numbers(50, 9)
    for name, call in {
        "index_select": lambda: x.index_select(0, i),
        "take": lambda: x.take(i),
        "embedding": lambda: tt.embedding(x, i),
        "index_add": lambda: x.index_add(0, i, x[:9]),
        "index_copy": lambda: x.index_copy(0, i, x[:9]),
        "put": lambda: x.put(i, x[0, 0].expand(9)),
        "gather": lambda: x.gather(0, i[:, None]),
    }.items():
        with pytest.raises(RuntimeError, match=f"{name}.*same device, but found at least two devices, cuda:0 and cpu"):
            call()


def test_assigning_under_a_mask_of_the_cpu():
    x = floats(5, 6)
    for value in (2.0, tt.tensor(3.0), tt.tensor(3.0).cuda()):
        y, wanted = x.cuda(), x.clone()
        y[x > 0] = value
        wanted[x > 0] = float(value)
        assert y.tolist() == wanted.tolist()
    with pytest.raises(RuntimeError, match="on cpu or on the same device"):
        x[x.cuda() > 0] = 1.0


# What only a kernel can find wrong.


@pytest.mark.parametrize(
    "read, text",
    [
        (lambda x, i: x[i], "index 20 is out of bounds for dimension 0 with size 5"),
        (lambda x, i: x.index_select(0, i), "index out of range in self: index 20, but dimension 0 has size 5"),
        (lambda x, i: x.take(i), "out of range: tried to access index 20 on a tensor of 5 elements"),
        (lambda x, i: x.gather(0, i), "index 20 is out of bounds for dimension 0 with size 5"),
    ],
)
def test_index_out_of_range(read, text):
    x = floats(5).cuda()
    wrong = read(x, tt.tensor([1, 20, 3]).cuda())
    with pytest.raises(IndexError, match=text + r".*\(found by a CUDA kernel that ran before this point\)"):
        wrong.cpu()
    assert tt.equal(read(x, tt.tensor([1, 2]).cuda()).cpu(), x.cpu()[1:3])  # it was said once, and all goes on


def test_wrong_write_is_found_by_synchronize():
    x = tt.zeros(5).cuda()
    x[tt.tensor([1, -6]).cuda()] = tt.tensor([1.0, 2.0]).cuda()
    with pytest.raises(IndexError, match="index -6 is out of bounds"):
        tt.cuda.synchronize()
    tt.cuda.synchronize()


def test_class_out_of_range():
    wrong = nn.functional.one_hot(tt.tensor([0, 3]).cuda(), 3)
    with pytest.raises(RuntimeError, match="Class values must be smaller than num_classes. Got 3, num_classes is 3"):
        wrong.cpu()


# Joining and rearranging.


def test_joins():
    parts = [floats(3, n % 5, 4) for n in range(100)]
    agree(lambda *x: tt.cat(x, 1), *parts)
    agree(lambda *x: tt.stack(x, 1), *[floats(3, 4) for _ in range(9)])
    agree(lambda x, y: tt.cat([x, y.t()], 0), floats(3, 4), floats(4, 5))
    agree(lambda x, y: tt.cat([x, y]), floats(7, dtype=tt.float16), floats(9))


@pytest.mark.parametrize("x", [floats(5, 6, 7), floats(5, 6, 8).transpose(0, 2), floats(4, 16), floats(70000)])
def test_flip_and_roll(x):
    agree(lambda x: (x.flip(0), x.flip(-1), x.flip(*range(x.dim()))), x)
    agree(lambda x: (x.roll(3, 0), x.roll(3, -1), x.roll((3,) * x.dim(), tuple(range(x.dim())))), x)


@pytest.mark.parametrize("diagonal", [0, -2, 3, 100])
def test_triangles(diagonal):
    agree(lambda x: (x.tril(diagonal), x.triu(diagonal)), floats(3, 6, 5))
    agree(lambda x: (x.tril(diagonal), x.triu(diagonal)), floats(5, 7).t())


# Order.


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
@pytest.mark.parametrize("shape", [(7,), (3, 33), (2, 5000)])
def test_sort(shape, dtype):
    x = rounded(*shape, dtype=getattr(tt, dtype))
    agree(lambda x: tuple(x.sort()), x)
    agree(lambda x: tuple(x.sort(0, descending=True)), x)
    agree(lambda x: tuple(x.topk(3)), x)
    agree(lambda x: tuple(x.topk(x.shape[-1] // 3, largest=False)), x)
    agree(lambda x: tuple(x.kthvalue(2)), x)
    agree(lambda x: tuple(x.median(-1)), x)
    agree(lambda x: tuple(x.nanmedian(-1)), x)
    agree(lambda x: tuple(x.mode(-1)), x)


def keys(kind, *shape):
    if kind == "zeros":
        return floats(*shape) * (numbers(2, *shape) - 0.5).sign() * 0
    if kind == "long":
        return numbers(1 << 60, *shape) * (numbers(2, *shape) * 2 - 1)
    if kind == "nan":
        return tt.where(numbers(3, *shape) == 0, tt.tensor(float("nan")), rounded(*shape))
    return numbers(kind, *shape)


@pytest.mark.parametrize("kind", [5, 200_000, "long", "zeros", "nan"])
@pytest.mark.parametrize("shape", [(200,), (3, 900), (2, 4096), (30_000,), (3, 9000)])
def test_order_of_all_kinds_of_keys(either_order, kind, shape):
    """Bytes that all keys share, ties, both zeros: in a block's registers and shared memory, and by several blocks."""
    x = keys(kind, *shape)
    agree(lambda x: tuple(x.sort(-1, stable=True)), x)
    agree(lambda x: tuple(x.sort(-1, descending=True)), x)
    agree(lambda x: tuple(x.topk(40)), x)
    agree(lambda x: tuple(x.median(-1)), x)
    agree(lambda x: tuple(x.kthvalue(33)), x)


def test_sort_along_strides():
    agree(lambda x: tuple(x.t().sort(0)), floats(3, 5000))
    agree(lambda x: x.argsort(1), floats(4, 33, 5))


@pytest.mark.parametrize("size", [7, 5000])
def test_unique(either_order, size):
    agree(lambda x: x.unique(return_inverse=True, return_counts=True), rounded(size))
    agree(lambda x: x.unique(dim=0, return_inverse=True, return_counts=True), rounded(size, 2, dtype=tt.float16))
    agree(lambda x: x.unique_consecutive(return_inverse=True, return_counts=True), numbers(3, size))
    for x in (rounded(size), numbers(3, size), -floats(size) * 0, rounded(size, dtype=tt.float16)):
        agree(lambda x: (x.unique(), x.unique_consecutive()), x)


# Counting and searching.


@pytest.mark.parametrize("shape", [(), (0,), (33, 5), (9000,)])
def test_nonzero(either_order, shape):
    agree(lambda x: x.nonzero(), rounded(9000)[: max(int(np.prod(shape)), 0)].reshape(shape) if shape else tt.tensor(2))
    agree(lambda x: x.nonzero(as_tuple=True), numbers(2, *shape))


def test_counts(either_order):
    x = numbers(50, 9000)
    agree(lambda x: tt.bincount(x, minlength=60), x)
    agree(lambda x, w: tt.bincount(x, w), x, floats(9000))
    agree(lambda x: tt.bincount(x), numbers(70_000, 90_000))
    agree(lambda x: tt.histc(x), floats(9000))
    agree(lambda x: tt.histc(x, 30, -5, 20), floats(900, dtype=tt.float64))
    agree(lambda x: nn.functional.one_hot(x), x)
    agree(lambda x: tt.repeat_interleave(x), x)


def test_searches():
    sorted_rows = floats(7, 20).sort()[0]
    agree(lambda s, v: tt.searchsorted(s, v, right=True), sorted_rows, floats(7, 9))
    agree(lambda s, v: tt.bucketize(v, s, out_int32=True), sorted_rows[0], floats(3, 9))
    agree(lambda x, y: tt.isin(x, y), rounded(20, 4), rounded(5000)[:9])
    with_nan = tt.cat([sorted_rows[0], tt.tensor([math.inf, math.nan, math.nan])])  # NaN stands behind all numbers
    sought = tt.tensor([math.nan, math.inf, -math.inf, 0.0])
    for right in (False, True):
        agree(lambda s, v, right=right: tt.searchsorted(s, v, right=right), with_nan, sought)


def test_the_first_index_beyond_the_end():
    for index in (4, -5):
        x, at = floats(4, 3).cuda(), tt.tensor([0, index]).cuda()
        with pytest.raises(IndexError, match=f"index {index}"):
            x[at].cpu()
    assert x[tt.tensor([3, -4]).cuda()].shape == (2, 3)


@pytest.mark.parametrize("shape, order, dim", [((3, 40), (1, 0), 0), ((3, 4, 5), (2, 0, 1), 1), ((3, 3000), (1, 0), 0)])
def test_sort_keeps_a_dense_layout(shape, order, dim):
    x = rounded(*shape)

    def sorted_and_strides(t):
        values, indices = t.permute(order).sort(dim)
        assert values.stride() == indices.stride() == t.permute(order).stride()
        return values, indices

    agree(sorted_and_strides, x)
