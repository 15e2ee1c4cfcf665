"""Reductions, scans and the kernels over rows have the CPU's bits on a device. The shapes choose the kernels' forms;
which operators and dtypes there are is the business of the operators' table."""

import threading

import numpy as np
import pytest

import tinytorch
from gpu.layouts import to_device
from tinytorch import cuda
from tinytorch.nn import functional

SHAPES = [
    ((), 0),
    ((33,), 0),
    ((5, 7), 1),
    ((70, 8), 1),
    ((40, 100), 0),
    ((3, 2500), 1),
    ((2500, 3), 0),
    ((1100, 40), 0),
    ((70000,), 0),
]


def numbers(*shape, dtype=tinytorch.float32):
    return (tinytorch.randn(shape) * 3).to(dtype)


def same(a, b) -> bool:
    """Equal in every element, NaNs among them."""
    a, b = a.cpu(), b.cpu()
    return a.dtype is b.dtype and a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())


def compare(compute, *inputs):
    expected = compute(*inputs)
    found = compute(*map(to_device, inputs))
    for e, f in zip(*((r,) if isinstance(r, tinytorch.Tensor) else r for r in (expected, found))):
        assert f.device.type == "cuda"
        assert same(e, f)


@pytest.mark.parametrize("shape, dim", SHAPES)
def test_sums(gpu, shape, dim):
    compare(lambda x: (x.sum(), x.sum(dim)), numbers(*shape))


@pytest.mark.parametrize("dtype", [tinytorch.bool, tinytorch.int16, tinytorch.bfloat16, tinytorch.float64])
def test_dtypes(gpu, dtype):
    x = numbers(37, 70, dtype=dtype)
    compare(lambda x: (x.sum(0), x.sum(1), x.amax(1)), x)


@pytest.mark.parametrize("dtype", [tinytorch.float32, tinytorch.bfloat16, tinytorch.float64])
def test_nanmean(gpu, dtype):
    x = numbers(37, 2500, dtype=dtype)
    x[x > 4], x[:, 7] = float("nan"), float("nan")
    compare(lambda x: (x.nanmean(), x.nanmean(0), x.nanmean(1, keepdim=True), x.nanmean(1, dtype=tinytorch.float64)), x)


def test_layouts(gpu):
    x = numbers(6, 40, 50)
    compare(lambda x: x.permute(2, 0, 1).sum(1), x)
    compare(lambda x: x[:, ::2, ::3].sum((0, 2)), x)
    compare(lambda x: x[:1].expand(30, 40, 50).sum((0, 2)), x)
    compare(lambda x: x.transpose(0, 2).sum((0, 2)), x)


def test_extremes_and_where_they_are(gpu):
    x = numbers(3, 2500)
    x[1, 700], x[1, 2400], x[2, 5], x[2, 2000] = 50, 50, float("nan"), float("nan")
    compare(lambda x: tuple(x.max(1)), x)
    compare(lambda x: (x.argmin(0), x.argmax()), x)


BLOCK = 1024  # of the tree: kernels/cpu/reduce.h
FULL = 1056  # warps, in kernels/cuda/host/reduce.c


def same_bits(a, b) -> bool:
    """Equal, and zeros have one sign."""
    return same(a, b) and (a.dtype in (tinytorch.bool, tinytorch.int64) or same(a.signbit(), b.cpu().signbit()))


@pytest.mark.parametrize("dtype, together", [(tinytorch.float32, 4), (tinytorch.bfloat16, 2), (tinytorch.float64, 2)])
@pytest.mark.parametrize("more", [pytest.param(0, marks=pytest.mark.slow), 2 * BLOCK + 37])
def test_warps_with_several_blocks(gpu, dtype, together, more):
    """Long reductions are read several blocks at a time; the last of them may have few or no elements."""
    n = FULL * together * BLOCK + more
    x = (tinytorch.randn(n) * 3).to(dtype)
    there = x.cuda()
    assert same_bits(x.sum(), there.sum())
    x[n - 1], x[7], x[BLOCK + 7] = 50, 50, 50  # the first of equal ones is meant
    x[n - 1 - together * BLOCK] = -50
    x[n // 2] = -50
    there = x.cuda()
    assert there.argmax().item() == 7 and there.argmin().item() == n // 2
    x[n // 3], x[n - 2] = float("nan"), float("nan")
    there = x.cuda()
    assert there.argmax().item() == n // 3 and there.amax().isnan().item()


def test_zeros_of_both_signs(gpu):
    """Of equal elements the one that comes last in the tree is the result."""
    x = -tinytorch.randint(0, 2, (2 * FULL * BLOCK,)).float()
    x[x == 0] = 0.0
    x[::3] = -0.0
    for a in (x, x[:3000], x.view(-1, 2 * BLOCK)[:9], x[: BLOCK * 64].view(BLOCK, 64).half()):
        for b in (a, -a):
            there = b.cuda()
            assert same_bits(b.amax(0), there.amax(0)) and same_bits(b.amin(0), there.amin(0))
            assert same_bits(b.amax(-1), there.amax(-1))


COUNTERS = 2048  # of a stream, in kernels/cuda/host/last_block.h
LAST = 1 << 17  # TT_RED_LAST in kernels/cuda/device/reduce_args.h


def kernels_of(emulated, compute, run=False):
    """How many kernels reduce, and in how many of them the last thread block joins the parts."""
    with emulated.planning(run) as plans:
        compute()
    variants = [int(p.source.split("TT_VARIANT ")[1].split()[0]) for p in plans if p.family == "reduce"]
    return len(variants), sum(v & LAST != 0 for v in variants)


@pytest.mark.parametrize("n", [9, 17, 2049])
def test_the_last_thread_block_joins(emulated, n):
    """From two of them on; twice, as counters must be 0 again."""
    x = numbers(n * BLOCK - 3)
    x[5] = x[n * BLOCK // 2] = x[n * BLOCK - 9] = 50  # the first of equal ones is meant
    y = x.cuda()
    for f in (tinytorch.sum, tinytorch.argmax, tinytorch.amin):
        for _ in range(2):
            before = len(emulated.launches)
            found = f(y)
            assert same_bits(f(x), found) and len(emulated.launches) == before + 1


@pytest.mark.parametrize(
    "dtype", [tinytorch.float16, tinytorch.bfloat16, tinytorch.float64, tinytorch.int16, tinytorch.bool]
)
def test_the_last_thread_block_of_each_result(gpu, dtype):
    x = numbers(3, 81 * 230, dtype=dtype)
    compare(lambda x: (x.sum(1), *x.max(1)), x)
    compare(lambda x: (x.sum(1), *x.min(1)), x[:, ::2])
    compare(lambda x: (x.sum(0), *x.max(0)), x.view(-1, 81)[:, :40])  # two tiles


def test_where_parts_are_joined(emulated):
    """By the last thread block, unless there are too many results or too many parts of one."""
    assert kernels_of(emulated, lambda: empty(9 * BLOCK).sum()) == (1, 1)
    assert kernels_of(emulated, lambda: empty(8 * BLOCK).sum()) == (1, 0)
    assert kernels_of(emulated, lambda: empty(COUNTERS, 9 * BLOCK + 1).sum(1)) == (1, 1)
    assert kernels_of(emulated, lambda: empty(COUNTERS + 1, 9 * BLOCK + 1).sum(1)) == (2, 0)
    assert kernels_of(emulated, lambda: empty(256 * BLOCK, 8).sum(0)) == (1, 1)
    assert kernels_of(emulated, lambda: empty(257 * BLOCK, 8).sum(0)) == (2, 0)
    assert kernels_of(emulated, lambda: empty(2 * BLOCK, 32 * COUNTERS // 4).half().sum(0)) == (1, 1)
    assert kernels_of(emulated, lambda: empty(8 * COUNTERS * BLOCK).half()[1:].sum()) == (1, 1)
    assert kernels_of(emulated, lambda: empty(8 * COUNTERS * BLOCK + 2).half()[1:].sum()) == (2, 0)


def empty(*shape):
    return tinytorch.empty(*shape, device="cuda")


def test_a_graph_has_no_counters(emulated):
    """It may run beside what its stream does."""
    x = numbers(33 * BLOCK)
    y, g, found = x.cuda(), cuda.CUDAGraph(), []

    def record():
        with cuda.graph(g):
            found.extend((y.sum(), y.argmax()))

    assert kernels_of(emulated, record, run=True) == (4, 0)
    for _ in range(2):
        y.copy_(x)
        g.replay()
        assert same_bits(x.sum(), found[0]) and same_bits(x.argmax(), found[1])
        assert same_bits(x.sum(), y.sum())
        x = -x


def test_each_stream_has_its_counters(emulated):
    """Also one that has no memory for them, which then takes two kernels."""
    x, at = numbers(20 * BLOCK), []
    y = x.cuda()
    with emulated.planning(run=True) as plans:
        for s in (cuda.Stream(), cuda.Stream(), cuda.default_stream()):
            with cuda.stream(s):
                found = y.sum()
            s.synchronize()
            assert same_bits(x.sum(), found)
            at.append(plans[-1].arguments[40:48])
    assert len(set(at)) == 3 and bytes(8) not in at


def test_no_memory_for_counters(emulated, monkeypatch):
    x, allocate = numbers(20 * BLOCK), emulated.allocate
    y = x.to("cuda:1")
    with cuda.stream(cuda.Stream(1)):
        monkeypatch.setattr(emulated, "allocate", lambda d, n: 0 if n == 4 * COUNTERS else allocate(d, n))
        assert kernels_of(emulated, lambda: y.sum()) == (2, 0) and same_bits(x.sum(), y.sum())
        monkeypatch.undo()
        assert kernels_of(emulated, lambda: y.sum()) == (1, 1) and same_bits(x.sum(), y.sum())


def test_threads_reduce_at_the_same_time(gpu):
    """Two to a stream, which find it without counters."""
    xs = [numbers(k * BLOCK) for k in (10, 30, 100, 11)]
    there = [x.cuda() for x in xs]
    streams, wrong = [cuda.Stream() for _ in range(2)], []

    def work(k):
        with cuda.stream(streams[k % 2]):
            for _ in range(20):
                found = there[k].sum(), there[k].argmax()
                if not same_bits(xs[k].sum(), found[0]) or not same_bits(xs[k].argmax(), found[1]):
                    wrong.append(k)

    cuda.synchronize()
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.parametrize("more", [pytest.param(0, marks=pytest.mark.slow), 3 * BLOCK + 5])
def test_integers_in_any_order(gpu, more):
    n = FULL * 16 * BLOCK + more
    x = tinytorch.ones(n, dtype=tinytorch.bool)
    there = x.cuda()
    assert there.all().item() and there.count_nonzero().item() == n
    for k in (0, 70_001, n - 1):
        x[k] = False
        there = x.cuda()
        assert not there.all().item() and there.any().item() and there.logical_not().any().item()
        x[k] = True


@pytest.mark.parametrize("start, stop", [(0, 8192), (0, 4096), (4, 4100), (1, 4097), (8, 2056)])
def test_rows_of_several_blocks(gpu, start, stop):
    """Of whole blocks and aligned: several to a warp; else one."""
    x = numbers(600, 8192, dtype=tinytorch.float16)
    compare(lambda x: (x[:, start:stop].sum(1), *x[:, start:stop].max(1)), x)


@pytest.mark.parametrize("blocks", [128, 129, 133])
def test_rows_of_many_blocks(gpu, blocks):
    """The partial results of more blocks than the lanes of a warp hold are joined in memory."""
    x = numbers(2, blocks * BLOCK - 5)
    compare(lambda x: x.softmax(1), x)
    compare(lambda x: functional.layer_norm(x, x.shape[1:]), x)


@pytest.mark.parametrize("dtype", [tinytorch.float16, tinytorch.bfloat16])
@pytest.mark.parametrize("spread", [1, 30])
def test_softmax_of_long_rows_of_half_types(gpu, dtype, spread):
    """An estimate gives most results, and the function itself those near a rounding boundary and the smallest ones."""
    x = numbers(3, 40_001) * spread
    x[1, ::3] = float("-inf")
    compare(lambda x: x.softmax(1), x.to(dtype))


@pytest.mark.parametrize("dtype", [tinytorch.float32, tinytorch.float16, tinytorch.int8])
def test_blocks_within_a_dimension(gpu, dtype):
    """Of several dimensions, in the innermost of which whole blocks lie together."""
    x = numbers(5, 70, 16384, dtype=dtype)
    compare(lambda x: (x.sum((0, 2)), x.amax((0, 2)), x[:, 3:].sum((0, 2)), x[1:, :, :8192].sum((0, 2))), x)


@pytest.mark.parametrize("dtype", [tinytorch.float16, tinytorch.int8])
@pytest.mark.parametrize(
    "rows, first, columns", [(1100, 0, 256), (127, 0, 130), (129, 4, 128), (90, 1, 200), (1, 0, 128)]
)
def test_several_columns_at_once(gpu, dtype, rows, first, columns):
    x = numbers(rows, 264, dtype=dtype)[:, first : first + columns]
    compare(lambda x: (x.sum(0), *x.max(0), x.argmin(0)), x)


def test_statistics(gpu):
    x = numbers(3, 2500)
    x[1, 3], x[2] = float("inf"), float("-inf")
    compare(lambda x: (x.var(1), x.std(0), x.logsumexp(1), x.norm(2, 0)), x)


def test_nothing_to_reduce(gpu):
    compare(lambda x: (x.sum(0), x.sum(1), x.mean(0)), numbers(0, 3))
    with pytest.raises(IndexError, match="non-zero size"):
        numbers(0, 3).to("cuda").amax(0)


@pytest.mark.parametrize("shape, dim", [((40,), 0), ((3, 2500), 1), ((2500, 3), 0), ((6, 20), 1)])
def test_scans(gpu, shape, dim):
    compare(lambda x: (x.cumsum(dim), *x.cummax(dim)), numbers(*shape))


@pytest.mark.parametrize("shape", [(40_000,), (2, 540_001), (70_000, 3), (1_200_000,), (1_100_000, 1, 2)])
def test_long_scans(gpu, shape):
    """On all levels of blocks, and from both sides: as thread blocks look back, and as one brings totals together."""
    x, dim = numbers(*shape), len(shape) - 1 if shape[-1] > 3 else 0
    compare(lambda x: (x.cumsum(dim), *x.cummax(dim), x.flip(dim).cumsum(dim), x.logcumsumexp(dim)), x)
    compare(lambda x: x.cumsum(dim), x.half() / 8)
    if len(shape) == 1:
        compare(lambda x: x.cumprod(0), 1 + x / 1000)
        y = x.double() / 1000  # whose exponentials and logarithms are those of the device's own library
        np.testing.assert_allclose(y.to("cuda").logcumsumexp(0).cpu(), y.logcumsumexp(0), rtol=1e-12)
        compare(lambda x: tinytorch.complex(x, -x).cumsum(0), x)


def test_scans_of_logarithms_at_the_ends_of_the_range(gpu):
    inf, nan = float("inf"), float("nan")
    x = tinytorch.tensor([-0.0] + [-inf] * 50 + [-1e9, 0, -1e9, 3, inf, 3, nan] + [2.0] * 2000)
    for y in (x, x[1:51], x[1:56], x[51:55].repeat(40)):
        compare(lambda y: y.logcumsumexp(0), y)
        with np.errstate(invalid="ignore"):
            expected = np.logaddexp.accumulate(y.double().numpy())
        np.testing.assert_allclose(y.logcumsumexp(0), expected, rtol=1e-6)


@pytest.mark.parametrize("spread, middle", [(1, -30), (40, 0), (900, 0), (0.001, -8.25)])
def test_scans_of_logarithms_of_all_sizes(gpu, spread, middle):
    """An estimate gives most results; not those near a rounding boundary, near 0, or where a chunk begins far below its
    largest element."""
    compare(lambda x: x.logcumsumexp(1), numbers(3, 5000) * spread + middle)


@pytest.mark.parametrize("dtype", [tinytorch.float16, tinytorch.float32, tinytorch.int64])
@pytest.mark.parametrize("n", [1025, 4097])
def test_many_scans(gpu, dtype, n):
    """A thread block has all of a scan, four blocks of it at a time."""
    x = (numbers(530, n) / 8 + 1).to(dtype)
    compare(lambda x: (x.cumsum(1), x.cumprod(1)), x)
    if dtype is tinytorch.float32:
        x *= 0
        x[::2] *= -1
        assert same_bits(x.cumsum(1), x.cuda().cumsum(1))


@pytest.mark.parametrize("dtype", [tinytorch.float16, tinytorch.bfloat16])
@pytest.mark.parametrize("shape, dim", [((40,), 0), ((3, 2500), 1), ((1100, 3), 0)])
def test_scans_of_half_types(gpu, dtype, shape, dim):
    x = numbers(*shape, dtype=dtype)
    compare(lambda x: (x.cumsum(dim), x.cumprod(dim), *x.cummax(dim), x.logcumsumexp(dim)), x)


def derived(compute):
    """The result, and the gradients of all inputs but the last, which is the result's gradient."""

    def both(*inputs):
        *inputs, g = inputs
        inputs = [x.detach().requires_grad_(x.is_floating_point()) for x in inputs]
        out = compute(*inputs)
        return out.detach(), *tinytorch.autograd.grad(out, [x for x in inputs if x.requires_grad], g)

    return both


@pytest.mark.parametrize("shape, dim", [((5, 7), 1), ((2, 1500), 1), ((2, 40000), 1), ((200, 5), 0)])
def test_softmax(gpu, shape, dim):
    compare(derived(lambda x: x.softmax(dim)), numbers(*shape), numbers(*shape))
    compare(derived(lambda x: x.log_softmax(dim)), numbers(*shape), numbers(*shape))


@pytest.mark.parametrize("rows, n", [(3, 1), (300, 2), (1030, 5), (70, 16), (130, 40)])
def test_narrow_rows(gpu, rows, n):
    """Several to a warp; and where they are many, several to a thread."""
    x, g = numbers(rows, n), numbers(rows, n)
    compare(derived(lambda x: x.log_softmax(1)), x, g)
    compare(derived(lambda x: functional.layer_norm(x, (n,))), x, g)
    compare(lambda x: (x.logsumexp(1), x.var(1)), x.half())
    target = tinytorch.randint(0, n, (rows,))
    compare(derived(lambda x, t: functional.cross_entropy(x, t, reduction="none")), x, target, numbers(rows))


@pytest.mark.parametrize("rows, n", [(33_800, 16), (4300, 128)])
def test_many_narrow_rows(gpu, rows, n):
    compare(lambda x: x.softmax(1), numbers(rows, n))


@pytest.mark.parametrize("n", [40, 1500, 40_000])
def test_softmax_of_half_rows_that_are_not_finite(gpu, n):
    x = numbers(6, n, dtype=tinytorch.bfloat16)
    x[1, 5], x[2], x[3, 7] = float("nan"), -float("inf"), -float("inf")
    x[4, 8], x[5] = float("inf"), -90.0
    x[5, :3] = 0.0  # the others' exponentials are denormal
    compare(lambda x: (x.softmax(1), x.log_softmax(1)), x)
    compare(lambda x: x.softmax(1), x.float())


@pytest.mark.parametrize("dtype", [tinytorch.bfloat16, tinytorch.float32])
def test_long_rows_wherever_they_lie(gpu, dtype):
    """They wait in shared memory, which is filled and read by 16 bytes: here each begins somewhere else."""
    n = 33_001

    def compute(x):
        rows, target = x[3:].view(2, n), tinytorch.arange(2, device=x.device) * 9
        return (
            rows.softmax(1),
            rows.log_softmax(1),
            rows.logsumexp(1),
            rows.var(1),
            functional.layer_norm(rows, (n,)),
            functional.cross_entropy(rows, target),
        )

    compare(compute, numbers(2 * n + 3, dtype=dtype))


def test_many_long_rows(gpu):
    """So many that each processor has two of them at a time."""
    x, target = numbers(264, 16_500, dtype=tinytorch.bfloat16), tinytorch.arange(264)
    compare(derived(lambda x, t: functional.cross_entropy(x, t)), x, target, numbers())
    compare(lambda x: functional.softmax(x, 1), x)


def test_few_long_rows(gpu):
    compare(derived(lambda x: x.softmax(1)), numbers(2, 70000), numbers(2, 70000))


@pytest.mark.parametrize(
    "shape, dtype",
    [
        ((1100, 12), "float32"),
        ((3, 1500), "float32"),
        ((2, 34000), "float32"),
        ((1100, 70), "bfloat16"),
        ((40, 130), "float16"),
    ],
)
def test_layer_norm(gpu, shape, dtype):
    dtype = getattr(tinytorch, dtype)
    inputs = [numbers(*s, dtype=dtype) for s in (shape, shape[1:], shape[1:], shape)]
    compare(derived(lambda x, w, b: functional.layer_norm(x, shape[1:], w, b)), *inputs)


@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_cross_entropy(gpu, reduction):
    x, w = numbers(1030, 5), tinytorch.rand(5)
    target = tinytorch.randint(0, 5, (1030,))
    target[3] = -100
    g = numbers(1030) if reduction == "none" else numbers()
    compare(derived(lambda x, t: functional.cross_entropy(x, t, reduction=reduction)), x, target, g)
    options = {"reduction": reduction, "label_smoothing": 0.1}
    compare(derived(lambda x, t: functional.cross_entropy(x, t, w.to(x.device), **options)), x, target, g)


def test_a_target_that_is_no_class(gpu):
    loss = functional.cross_entropy(numbers(3, 5).to("cuda"), tinytorch.tensor([1, 7, 2]).to("cuda"))
    with pytest.raises(IndexError, match="Target 7 is out of bounds"):
        loss.item()


@pytest.mark.parametrize(
    "shape, dim, once",
    [
        ((40, 100), 1, True),
        ((3, 4, 64), 2, True),
        ((3000,), 0, True),
        ((2, 40_000), 1, True),
        ((33, 4, 50), (1, 2), True),
        ((100, 40), 0, False),
        ((5, 7), 1, True),
    ],
)
def test_statistics_of_rows(emulated, shape, dim, once):
    """Long contiguous rows are read once; whatever the form, the bits are the CPU's."""
    x = numbers(*shape)
    if x.ndim == 2 and shape[1] > 7:  # rows that are not finite
        x[1, 5], x[-1, :3], x[0] = float("nan"), float("inf"), -float("inf")
    there, half = x.cuda(), x.bfloat16()
    for f in (lambda t: t.var(dim), lambda t: t.std(dim, correction=0), lambda t: t.logsumexp(dim)):
        before = len(emulated.launches)
        result = f(there)
        assert same(result, f(x)) and (len(emulated.launches) - before == 1) == once
    assert same(half.cuda().var(dim), half.var(dim))


@pytest.mark.slow
def test_vast_rows(gpu):
    """Rows whose blocks' sums do not fit in shared memory."""
    n = (1 << 22) + 1500
    x, weight, target = numbers(1, n), numbers(n), tinytorch.tensor([n - 3])
    results = []
    for device in ("cpu", "cuda"):
        a, w, t = (v.detach().to(device) for v in (x, weight, target))
        for v in (a, w):
            v.requires_grad_()
        y = functional.layer_norm(a, (n,), w)
        loss = functional.cross_entropy(a, t, label_smoothing=0.1)
        (y.sum() + loss).backward()
        results.append((y, loss, a.grad, w.grad))
    for here, there in zip(*results):
        assert same(here, there)
