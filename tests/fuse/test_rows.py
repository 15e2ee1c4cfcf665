"""Softmax, normalisation, variances and logsumexp, which fused mode records as elementwise operators and reductions:
the same bits as their eager kernels, and as few programs and kernels as they need."""

import itertools
import math

import numpy as np
import pytest

import tinytorch
from fuse.helpers import pending
from fuse.snapshot import bits
from tinytorch.backends.cpu import lib
from tinytorch.nn import functional as F

FLOATS = ("float32", "float64", "float16", "bfloat16")
LENGTHS = (1, 2, 7, 8, 16, 31, 32, 33, 64, 511, 512, 513, 1000, 1023, 1024, 1025, 2048, 40000)

# f(x, weight, bias), all of whose rows are as long as weight.
OPERATORS = {
    "softmax": lambda x, w, b: F.softmax(x, -1),
    "log_softmax": lambda x, w, b: F.log_softmax(x, -1),
    "layer_norm": lambda x, w, b: F.layer_norm(x, w.shape),
    "layer_norm weight": lambda x, w, b: F.layer_norm(x, w.shape, w),
    "layer_norm bias": lambda x, w, b: F.layer_norm(x, w.shape, None, b),
    "layer_norm both": lambda x, w, b: F.layer_norm(x, w.shape, w, b),
    "rms_norm": lambda x, w, b: F.rms_norm(x, w.shape),
    "rms_norm weight": lambda x, w, b: F.rms_norm(x, w.shape, w),
    "var": lambda x, w, b: x.var(-1),
    "std": lambda x, w, b: x.std(-1, correction=0, keepdim=True),
    "logsumexp": lambda x, w, b: x.logsumexp(-1),
}


def normal(shape, dtype, seed):
    a = np.random.default_rng(seed).standard_normal(shape)
    return tinytorch.tensor(a).to(getattr(tinytorch, dtype))


def agree(run, message=""):
    """run() gives the same bits eagerly and fused, shapes and strides too."""
    eager = run()
    with tinytorch.fuse():
        fused = run()
    assert len(eager) == len(fused)
    for k, (e, f) in enumerate(zip(eager, fused)):
        assert (e.dtype, e.shape, e.stride()) == (f.dtype, f.shape, f.stride()), f"{message}: output {k}"
        assert bits(e) == bits(f), f"{message}: output {k} differs"


def derivatives(f, x, w, b, order):
    """f's value and gradients, of second order too."""
    leaves = [t.detach().clone().requires_grad_() for t in (x, w, b)]
    y = f(*leaves)
    g = normal(tuple(y.shape), str(y.dtype).rpartition(".")[2], 5) * 2  # recorded, so that what works with it is, too
    grads = tinytorch.autograd.grad(y, leaves, g, create_graph=order == 2, allow_unused=True)
    found = [t for t in grads if t is not None]
    if order == 2:
        total = sum((t.float() ** 2).sum() for t in found)
        found += [t for t in tinytorch.autograd.grad(total, leaves, allow_unused=True) if t is not None]
    return [y, *found]


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", LENGTHS)
def test_rows_of_any_length(n, dtype):
    rows = (3,) if n > 5000 else (2, 9)
    x, w, b = (normal(shape, dtype, k) for k, shape in enumerate([(*rows, n), (n,), (n,)]))
    for name, f in OPERATORS.items():
        for order in (1, 2):
            agree(lambda f=f, order=order: derivatives(f, x, w, b, order), f"{name}, order {order}")


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", OPERATORS)
def test_what_is_no_number(name, dtype):
    """NaN, infinities, signed zeros, numbers that overflow; rows of nothing else; both kinds of zero as the largest."""
    x = normal((14, 40), dtype, 0)
    w, b = normal((40,), dtype, 1), normal((40,), dtype, 2)
    for row, values in enumerate(
        [
            (math.nan,),
            (math.inf,),
            (-math.inf,),
            (math.inf, -math.inf),
            (math.nan, math.inf),
            (0.0, -0.0),
            (-0.0, 0.0),
            (6e4, -6e4),
            (1e-8,),
        ]
    ):
        for k, value in enumerate(values):
            x[row, 3 + 30 * k] = value
    for row, value in ((9, -math.inf), (10, math.inf), (11, 0.0), (12, -0.0), (13, math.nan)):
        x[row] = value
    x[5], x[6] = -abs(x[5]), -abs(x[6])
    x[5, 3], x[5, 33], x[6, 3], x[6, 33] = 0.0, -0.0, -0.0, 0.0
    agree(lambda: derivatives(OPERATORS[name], x, w, b, 1))


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0,), (3, 0, 4), (1,), (1, 1), ()], ids=str)
def test_few_elements_or_none(shape, dtype):
    x = normal(shape, dtype, 0)

    def run():
        dims = range(len(shape)) if shape else [0]
        results = [f(x, d) for d in dims for f in (F.softmax, F.log_softmax)]
        results += [f(x, d) for d in dims for f in (tinytorch.var, tinytorch.std, tinytorch.logsumexp)]
        return results + [f(x, shape[d:]) for d in range(len(shape)) for f in (F.layer_norm, F.rms_norm)]

    agree(run)


SHAPES = [(37, 64), (5, 7), (1025, 3), (3, 4, 33), (2, 3, 1030), (4, 1, 6), (2, 3, 4, 5)]
LAYOUTS = {
    "contiguous": lambda t: t.contiguous(),
    "transposed": lambda t: t.permute(*reversed(range(t.ndim))).contiguous().permute(*reversed(range(t.ndim))),
    "strided": lambda t: tinytorch.stack([t, t], -1).flatten(-2)[..., ::2],
    "offset": lambda t: tinytorch.stack([t, t])[1],
    "expanded": lambda t: t[:1].expand(t.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_dimensions_and_layouts(dtype, shape, layout):
    """Over every dimension and set of last dimensions; of an operand in memory and of one that is still recorded; with
    a gradient of the same layout."""
    x, g = (LAYOUTS[layout](normal(shape, dtype, k)) for k in range(2))
    assert layout != "transposed" or not x.is_contiguous()
    sets = [None, *range(len(shape)), *itertools.combinations(range(len(shape)), 2)]

    def run():
        results = []
        for y in (x, x * 1.5):
            results += [f(y, d, keepdim=k) for f in (tinytorch.var, tinytorch.std) for d in sets for k in (False, True)]
            results += [tinytorch.logsumexp(y, d, keepdim=k) for d in sets[1:] for k in (False, True)]
            y = y.detach().requires_grad_()
            outs = [f(y, d) for d in range(len(shape)) for f in (F.softmax, F.log_softmax)]
            outs += [f(y, shape[-k:]) for k in range(1, len(shape) + 1) for f in (F.layer_norm, F.rms_norm)]
            results += outs
            results += [t for out in outs for t in tinytorch.autograd.grad(out, y, g)]
        return results

    agree(run)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("rows", [1, 31, 33, 1025])
def test_gradients_of_weights_over_many_rows(rows, dims):
    """They go down the columns, where the rows make the tree."""
    shape = (rows, 2, 5, 3)
    x, w, b = normal(shape, "float32", 0), normal(shape[-dims:], "float32", 1), normal(shape[-dims:], "float32", 2)
    agree(lambda: derivatives(OPERATORS["layer_norm both"], x, w, b, 1))
    agree(lambda: derivatives(OPERATORS["rms_norm weight"], x, w, b, 1))


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_any_number_of_threads(threads):
    before = tinytorch.get_num_threads()
    x, w, b = normal((300, 700), "float32", 0), normal((700,), "float32", 1), normal((700,), "float32", 2)
    wanted = [derivatives(f, x, w, b, 1) for f in OPERATORS.values()]
    try:
        tinytorch.set_num_threads(threads)
        with tinytorch.fuse():
            got = [derivatives(f, x, w, b, 1) for f in OPERATORS.values()]
    finally:
        tinytorch.set_num_threads(before)
    assert [bits(t) for ts in wanted for t in ts] == [bits(t) for ts in got for t in ts]


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("shape", [(1024, 2048), (257, 2049), (1033, 700), (2, 1030, 600), (40, 5000)], ids=str)
def test_threads_share_sums_over_rows(shape, threads):
    x, bias = normal(shape, "float32", 1), normal(shape[-1:], "float32", 2)

    def run():
        y = (x + bias).tanh()
        return y, y.sum(-2), (y * y).sum(-2), (y * 2).amax(-2)

    before = tinytorch.get_num_threads()
    try:
        tinytorch.set_num_threads(threads)
        agree(run)
    finally:
        tinytorch.set_num_threads(before)


@pytest.mark.parametrize("n", [40, 700])
def test_compiled(n):
    x, w, b = normal((50, n), "float32", 0), normal((n,), "float32", 1), normal((n,), "float32", 2)
    some = [OPERATORS[name] for name in ("softmax", "log_softmax", "layer_norm both", "rms_norm weight", "std")]
    wanted = [derivatives(f, x * 2, w, b, 1) for f in some]
    for _ in range(5):
        with tinytorch.fuse():
            got = [derivatives(f, x * 2, w, b, 1) for f in some]
        assert [bits(t) for ts in wanted for t in ts] == [bits(t) for ts in got for t in ts]
        assert tinytorch.fuse.wait(200)


# ---- What is recorded.


def kernels(run):
    """How many programs and kernels run() becomes, once its results are there."""
    with tinytorch.fuse():
        lib.tt_fuse_flush()
        before = tinytorch.fuse.stats()
        kept = run()
        waiting = pending()
        lib.tt_fuse_flush()
        after = tinytorch.fuse.stats()
        del kept
    made = {key: after[key] - before[key] for key in after}
    assert waiting == made["recorded"] > 0
    return made["programs"], made["interpreted"] + made["compiled"]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [8, 64, 1000, 5000])
def test_one_kernel_with_what_stands_around(n, dtype):
    x, y, w, b = (normal(shape, dtype, k) for k, shape in enumerate([(2, 6, n), (2, 6, n), (n,), (n,)]))
    mask = normal((6, n), "float32", 9) > 0.5
    attention = {
        "softmax": lambda: F.softmax((x * 0.125).masked_fill(mask, -math.inf), -1) * y,
        "log_softmax": lambda: F.log_softmax(x * 0.125 + y, -1).exp(),
        "layer_norm by hand": lambda: (lambda d: d * ((d * d).mean(-1, keepdim=True) + 1e-5).rsqrt() * w + b)(
            x - x.mean(-1, keepdim=True)
        ),
        "var": lambda: (x * y).var(-1) + 1,
        "std": lambda: x / ((x * y).std(-1, keepdim=True) + 1e-5),
        "logsumexp": lambda: x - (x * 2).logsumexp(-1, keepdim=True),
    }
    for name, run in attention.items():
        assert kernels(run) == (1, 1), name
        agree(lambda run=run: [run()], name)


def test_backward_is_recorded_with_forward():
    x = normal((20, 64), "float32", 0).requires_grad_()
    mask = normal((20, 64), "float32", 9) > 0.5

    def attention():
        p = F.softmax((x * 0.125).masked_fill(mask, -math.inf), -1)
        return p, tinytorch.autograd.grad((p * p).sum(), x)

    assert kernels(attention) == (1, 1)


def test_what_is_left_to_eager_kernels():
    """Softmax down columns, normalisation, and losses of classes: Note [Rows, recorded] in kernels/fuse/nn_record.c."""
    x, target = normal((6, 5, 4), "float32", 0), tinytorch.tensor([1, 0, 3, 2, 1, 0])
    for run in (
        lambda y: F.softmax(y, 1),
        lambda y: F.log_softmax(y, 0),
        lambda y: F.cross_entropy(y[:, 0], target),
        lambda y: F.layer_norm(y, (4,)),
        lambda y: F.rms_norm(y, (5, 4)),
    ):
        agree(lambda run=run: [run(x * 2)])
        with tinytorch.fuse():
            run(x * 2)
            assert pending() == 0


def test_rows_that_are_there_already():
    """A kernel of its own is faster than a recording of nothing else."""
    x = normal((6, 50), "float32", 0)
    with tinytorch.fuse():
        F.softmax(x, -1), x.logsumexp(1), x.var(1)
        assert pending() == 0


def test_memory_is_touched_once():
    """Temporaries stay in registers."""
    x = normal((64, 512), "float32", 0)
    size = 64 * 512 * 4
    for run in (lambda y: F.softmax(y * 3, -1), lambda y: F.log_softmax(y * 2, -1)):
        explained = tinytorch.fuse.explain(run, x)
        assert (explained.bytes_read, explained.bytes_written) == (size, size)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [8, 31, 48, 80, 544, 1024, 1536, 3072])
def test_a_total_goes_along_with_rows(n, dtype):
    """Blocks of a sum over everything do not begin where rows do, and the last one is shorter."""
    before = tinytorch.get_num_threads()
    try:
        for rows, threads in itertools.product((3, 70001 // n), (1, 2, 7)):
            tinytorch.set_num_threads(threads)
            x = normal((rows, n), dtype, n)

            def run(x=x):
                e = (x - x.amax(1, keepdim=True)).exp()
                p = e / e.sum(1, keepdim=True)
                return [p, (p * x).sum(), p.max(), (p * 3).mean()]

            if rows > 3:
                assert kernels(run) == (1, 2)  # the other divides a sum
            agree(run, f"{rows} rows of {n}, {threads} threads")
    finally:
        tinytorch.set_num_threads(before)


def test_a_loss_and_its_gradient_are_one_walk():
    """By hand, with labels that are compared: what depends on the total alone stands apart."""
    x, labels = normal((2048, 1000), "float32", 0).requires_grad_(), tinytorch.arange(2048)[:, None]
    classes = tinytorch.arange(1000)

    def run():
        shifted = x - x.detach().amax(1, keepdim=True)
        total = shifted.exp().sum(1, keepdim=True)
        loss = tinytorch.where(classes == labels, total.log() - shifted, 0.0).sum() / 2048
        return [loss, *tinytorch.autograd.grad(loss, x)]

    agree(run)
    explained = tinytorch.fuse.explain(run)
    assert explained.bytes_written < 4 * 2048 * 1000 + 100  # the gradient


def test_what_has_nothing_in_common_is_not_joined():
    """Large tensors, that is: their kernels would only have more streams of memory to follow."""
    for size, expected in ((100_000, 3), (100, 1)):
        tensors = [normal((size,), "float32", k) for k in range(6)]

        def run(tensors=tensors):
            for m, g in zip(tensors[:3], tensors[3:]):
                m.mul_(0.9).add_(g * 0.1)
            return tensors[0]

        assert kernels(run)[1] == expected
