"""Kernels beyond one block: sizes around a vector, a block of sums, a thread's share and a cache, against NumPy in
float64. (The operator table has two dozen elements at most.)"""

import numpy as np
import pytest
from compare import to_numpy

import tinytorch as tt
from tinytorch.nn import functional as F

SIZES = (31, 32, 33, 1023, 1025, 8191, 8193, 100_003)
DTYPES = ("float32", "float64")
RTOL = {"float32": 5e-6, "float64": 1e-11}


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def logsumexp(x, axis):
    top = x.max(axis, keepdims=True)
    return (top + np.log(np.exp(x - top).sum(axis, keepdims=True))).squeeze(axis)


def normalized(x, axis):
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + 1e-5)


# Of a tensor and a dimension: what tinytorch computes, and what NumPy does.
ROWS = {
    "sum": (lambda x, d: x.sum(d), np.sum),
    "mean": (lambda x, d: x.mean(d), np.mean),
    "nansum": (lambda x, d: x.nansum(d), np.sum),
    "prod": (lambda x, d: (1 + (x - 1) * 1e-2).prod(d), lambda x, a: (1 + (x - 1) * 1e-2).prod(a)),
    "var": (lambda x, d: x.var(d), lambda x, a: x.var(a, ddof=1)),
    "std": (lambda x, d: x.std(d, correction=0), np.std),
    "norm": (lambda x, d: x.norm(2, d), lambda x, a: np.sqrt((x * x).sum(a))),
    "norm of 1": (lambda x, d: (-x).norm(1, d), np.sum),
    "norm of 3": (lambda x, d: x.norm(3, d), lambda x, a: np.cbrt((x**3).sum(a))),
    "norm of infinity": (lambda x, d: x.norm(float("inf"), d), np.max),
    "amax": (lambda x, d: x.amax(d), np.max),
    "amin": (lambda x, d: x.amin(d), np.min),
    "argmax": (lambda x, d: x.argmax(d), np.argmax),
    "argmin": (lambda x, d: x.argmin(d), np.argmin),
    "count_nonzero": (lambda x, d: tt.count_nonzero(x > 1, d), lambda x, a: (x > 1).sum(a)),
    "any": (lambda x, d: (x == x.amax()).any(d), lambda x, a: (x == x.max()).any(a)),
    "all": (lambda x, d: (x != x.amax()).all(d), lambda x, a: (x != x.max()).all(a)),
    "logsumexp": (lambda x, d: x.logsumexp(d), logsumexp),
    "cumsum": (lambda x, d: x.cumsum(d), np.cumsum),
    "cumprod": (lambda x, d: (1 + (x - 1) * 1e-2).cumprod(d), lambda x, a: (1 + (x - 1) * 1e-2).cumprod(a)),
    "cummax": (lambda x, d: x.cummax(d)[0], np.maximum.accumulate),
    "cummin": (lambda x, d: x.cummin(d)[0], np.minimum.accumulate),
    "logcumsumexp": (lambda x, d: x.logcumsumexp(d), np.logaddexp.accumulate),
    "softmax": (lambda x, d: x.softmax(d), softmax),
    "log_softmax": (lambda x, d: x.log_softmax(d), lambda x, a: x - np.expand_dims(logsumexp(x, a), a)),
    "sort": (lambda x, d: x.sort(d)[0], np.sort),
    "argsort": (lambda x, d: x.argsort(d, stable=True), lambda x, a: np.argsort(x, a, kind="stable")),
    "median": (lambda x, d: x.median(d)[0], lambda x, a: np.sort(x, a).take((x.shape[a] - 1) // 2, a)),
    "topk": (lambda x, d: x.topk(9, d)[0], lambda x, a: -np.sort(-x, a).take(range(9), a)),
    "kthvalue": (lambda x, d: x.kthvalue(17, d)[0], lambda x, a: np.sort(x, a).take(16, a)),
    "flip": (lambda x, d: x.flip(d), np.flip),
    "roll": (lambda x, d: x.roll(7, d), lambda x, a: np.roll(x, 7, a)),
    "diff": (lambda x, d: x.diff(dim=d), lambda x, a: np.diff(x, axis=a)),
    "layer_norm": (
        lambda x, d: F.layer_norm(x.transpose(d, -1), (x.shape[d],)).transpose(d, -1),
        normalized,
    ),
    "rms_norm": (
        lambda x, d: F.rms_norm(x.transpose(d, -1), (x.shape[d],), eps=0.0).transpose(d, -1),
        lambda x, a: x / np.sqrt((x * x).mean(a, keepdims=True)),
    ),
    "product with ones": (
        lambda x, d: x.transpose(d, -1) @ tt.ones(x.shape[d], dtype=x.dtype),
        np.sum,
    ),
    "copy": (lambda x, d: x.transpose(0, -1).contiguous().transpose(0, -1), lambda x, a: x),
    "exp": (lambda x, d: x.exp(), lambda x, a: np.exp(x)),
    "cat": (lambda x, d: tt.cat([x, x], d), lambda x, a: np.concatenate([x, x], a)),
}
LAYOUTS = {  # a shape of n elements along a dimension, the dimension, and how the base is seen
    "a vector": (lambda n: (n,), 0, lambda t: t),
    "every second": (lambda n: (2 * n,), 0, lambda t: t[::2]),
    "rows": (lambda n: (3, n), 1, lambda t: t),
    "columns": (lambda n: (n, 3), 0, lambda t: t),
    "columns of longer rows": (lambda n: (n, 72), 0, lambda t: t[:, :70]),
    "transposed rows": (lambda n: (n, 2), 1, lambda t: t.T),
}


def numbers(dtype, *shape, low=0.5, high=1.5, seed=0):
    """Positive, so that one element too few or too many is more than rounding; as float64, and as a tensor."""
    array = np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)
    return array.astype("float64"), tt.from_numpy(array)


def close(actual, expected, dtype, message="", factor=1):
    """Equal, but for rounding of the largest; `factor` more of it."""
    actual, rtol = to_numpy(actual), RTOL[dtype] * factor
    if actual.dtype.kind == "f":
        np.testing.assert_allclose(actual, expected, rtol, rtol * np.abs(expected).max(), err_msg=message)
    else:
        np.testing.assert_array_equal(actual, expected, message)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ROWS)
def test_along_a_dimension(name, layout):
    compute, reference = ROWS[name]
    shape, dim, view = LAYOUTS[layout]
    for n in SIZES:
        if np.prod(shape(n)) > 300_009:
            continue
        for dtype in DTYPES:
            array, tensor = numbers(dtype, *shape(n))
            factor = 20 if "prod" in name else 1  # each factor is rounded
            close(compute(view(tensor), dim), reference(view(array), dim), dtype, f"{n} of {dtype}", factor)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "argmax", "var", "norm", "any", "logsumexp"])
def test_over_everything(name):
    """All dimensions at once, of a matrix and of one that is transposed."""
    whole = {
        "argmax": (lambda x: x.argmax(), np.argmax),
        "any": (lambda x: (x > 1.4).any(), lambda x: (x > 1.4).any()),
        "logsumexp": (lambda x: x.logsumexp((0, 1)), lambda x: logsumexp(x.reshape(-1), 0)),
        "var": (lambda x: x.var(), lambda x: x.var(ddof=1)),
        "norm": (lambda x: x.norm(), lambda x: np.sqrt((x * x).sum())),
        "prod": (lambda x: (1 + (x - 1) * 1e-2).prod(), lambda x: (1 + (x - 1) * 1e-2).prod()),
        "mean": (lambda x: x.mean(), np.mean),
        "sum": (lambda x: x.sum(), np.sum),
        "amax": (lambda x: x.amax(), np.max),
    }
    compute, reference = whole[name]
    for shape in ((31, 33), (33, 31), (129, 257), (1025, 97), (3, 8193)):
        for dtype in DTYPES:
            array, tensor = numbers(dtype, *shape)
            factor = 20 if "prod" in name else 1
            close(compute(tensor), reference(array), dtype, f"{shape} of {dtype}", factor)
            close(compute(tensor.t()), reference(array.T), dtype, f"{shape} of {dtype}, transposed", factor)
            middle = numbers(dtype, shape[0], 4, shape[1])
            close(middle[1].sum((0, 2)), middle[0].sum((0, 2)), dtype, f"{shape} of {dtype}, two of three")
            close(middle[1].mean(1), middle[0].mean(1), dtype, f"{shape} of {dtype}, the middle one")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_sums_do_not_stick(dtype):
    """Sums of a half type are taken in float32: 100,003 ones are more than its steps can count."""
    for n in SIZES:
        ones = tt.ones(n, dtype=getattr(tt, dtype))
        assert ones.sum(dtype=tt.float32).item() == n and ones.mean().item() == 1
        assert ones.reshape(1, n).softmax(1).sum(dtype=tt.float32).item() == pytest.approx(1, rel=2e-2)
        assert ones.norm().item() == pytest.approx(n**0.5, rel=1e-2)


LOSSES = {
    "mse_loss": (lambda x, y: F.mse_loss(x, y), lambda x, y: ((x - y) ** 2).mean()),
    "l1_loss": (lambda x, y: F.l1_loss(x, y, reduction="sum"), lambda x, y: np.abs(x - y).sum()),
    "huber_loss": (
        lambda x, y: F.huber_loss(x, y, delta=0.25),
        lambda x, y: np.where(abs(x - y) < 0.25, (x - y) ** 2 / 2, 0.25 * (abs(x - y) - 0.125)).mean(),
    ),
    "smooth_l1_loss": (
        lambda x, y: F.smooth_l1_loss(x, y, beta=0.25),
        lambda x, y: np.where(abs(x - y) < 0.25, (x - y) ** 2 / 0.5, abs(x - y) - 0.125).mean(),
    ),
    "binary_cross_entropy": (
        lambda x, y: F.binary_cross_entropy(x / 2, y / 2),
        lambda x, y: -(y / 2 * np.log(x / 2) + (1 - y / 2) * np.log(1 - x / 2)).mean(),
    ),
    "binary_cross_entropy_with_logits": (
        lambda x, y: F.binary_cross_entropy_with_logits(x, y / 2),
        lambda x, y: (np.log1p(np.exp(x)) - x * y / 2).mean(),
    ),
    "kl_div": (
        lambda x, y: F.kl_div(x.log(), y, reduction="batchmean"),
        lambda x, y: (y * (np.log(y) - np.log(x))).sum() / len(x),
    ),
    "dot": (lambda x, y: x.reshape(-1) @ y.reshape(-1), lambda x, y: (x * y).sum()),
    "dist": (lambda x, y: tt.dist(x, y), lambda x, y: np.sqrt(((x - y) ** 2).sum())),
    "cosine_similarity": (
        lambda x, y: F.cosine_similarity(x, y, -1),
        lambda x, y: (x * y).sum(-1) / np.sqrt((x * x).sum(-1) * (y * y).sum(-1)),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    compute, reference = LOSSES[name]
    for n in SIZES:
        for dtype in DTYPES:
            (x, tx), (y, ty) = numbers(dtype, n), numbers(dtype, n, seed=1)
            close(compute(tx, ty), reference(x, y), dtype, f"{n} of {dtype}")


@pytest.mark.parametrize("classes", [31, 33, 1025, 8193])
@pytest.mark.parametrize("dtype", DTYPES)
def test_cross_entropy(dtype, classes):
    rng = np.random.default_rng(0)
    for rows in (1, 33, 129, 2500) if classes < 100 else (1, 33, 129):  # their losses are summed in blocks
        x, tx = numbers(dtype, rows, classes, low=-3, high=3)
        target = rng.integers(0, classes, rows)
        target[::5] = -100
        chosen = target >= 0
        logs = np.log(softmax(x, 1))
        picked = logs[np.arange(rows), np.maximum(target, 0)]
        loss = F.cross_entropy(tx, tt.from_numpy(target), reduction="none")
        close(loss, np.where(chosen, -picked, 0), dtype)
        smooth = -(0.9 * picked + 0.1 * logs.mean(1))
        if chosen.any():
            close(F.cross_entropy(tx, tt.from_numpy(target)), -picked[chosen].mean(), dtype)
            close(F.nll_loss(tx.log_softmax(1), tt.from_numpy(target)), -picked[chosen].mean(), dtype)
            close(F.cross_entropy(tx, tt.from_numpy(target), label_smoothing=0.1), smooth[chosen].mean(), dtype)


GRADIENTS = {
    "sum": lambda m, x: x.sum(-1),
    "mean": lambda m, x: x.mean(-1),
    "prod": lambda m, x: (1 + (x - 1) * 1e-2).prod(-1),
    "var": lambda m, x: x.var(-1),
    "norm": lambda m, x: x.norm(2, -1),
    "amax": lambda m, x: x.amax(-1),
    "logsumexp": lambda m, x: x.logsumexp(-1),
    "cumsum": lambda m, x: x.cumsum(-1),
    "cumprod": lambda m, x: (1 + (x - 1) * 1e-2).cumprod(-1),
    "softmax": lambda m, x: x.softmax(-1),
    "log_softmax": lambda m, x: x.log_softmax(-1),
    "layer_norm": lambda m, x: m.nn.functional.layer_norm(x, (x.shape[-1],), x[0].detach() + 1, x[0].detach()),
    "layer_norm's weight": lambda m, x: m.nn.functional.layer_norm(x.detach(), (x.shape[-1],), x[0], x[-1]),
    "rms_norm": lambda m, x: m.nn.functional.rms_norm(x, (x.shape[-1],), x[0]),
    "group_norm": lambda m, x: m.nn.functional.group_norm(x.unsqueeze(1), 1),
    "mse_loss": lambda m, x: m.nn.functional.mse_loss(x, x.detach().flip(-1)),
    "cross_entropy": lambda m, x: m.nn.functional.cross_entropy(x, m.arange(x.shape[0])),
    "smoothed cross_entropy": lambda m, x: m.nn.functional.cross_entropy(x, m.arange(x.shape[0]), label_smoothing=0.2),
    "gelu": lambda m, x: m.nn.functional.gelu(x),
    "bias": lambda m, x: m.zeros(65, x.shape[-1], dtype=x.dtype) + x[0],
    "column": lambda m, x: m.zeros(x.shape[0], 1025, dtype=x.dtype) * 2 + x[:, :1],
    "index_select": lambda m, x: x.index_select(-1, m.arange(x.shape[-1] - 1, -1, -3)),
    "sort": lambda m, x: x.sort(dim=-1, stable=True)[0],
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(torch, name):
    """Against PyTorch in float64, the outputs weighted by other numbers."""
    for n in (33, 1025, 8193):
        array = np.random.default_rng(n).uniform(0.5, 1.5, (5, n)).astype("float32")
        expected = None
        for m, dtype in ((torch, "float64"), (tt, "float64"), (tt, "float32")):
            x = m.from_numpy(array).to(getattr(m, dtype)).requires_grad_()
            y = GRADIENTS[name](m, x)
            weights = np.random.default_rng(1).uniform(0.5, 1.5, tuple(y.shape)).astype("float32")
            y.backward(m.from_numpy(weights).to(y.dtype))
            grad = to_numpy(x.grad).astype("float64")
            if expected is None:
                expected, scale = grad, np.abs(grad).max()
            rtol = 3e-5 if dtype == "float32" else 1e-10
            np.testing.assert_allclose(grad, expected, rtol, rtol * scale, err_msg=f"{n} of {dtype}")


@pytest.mark.parametrize("n", [33, 1500, 2049])
def test_where_the_largest_is(n):
    """At every place of a row, and of a column."""
    ones, places = tt.eye(n), list(range(n))
    for dim in (0, 1):
        for found in (ones.argmax(dim), (-ones).argmin(dim), ones.max(dim)[1], (-ones).min(dim)[1]):
            assert found.tolist() == places
        assert ones.cummax(dim)[1].select(dim, n - 1).tolist() == places
        assert ones.topk(1, dim)[1].reshape(n).tolist() == places
    for k in {*range(0, n, 97), n - 2, n - 1}:
        assert ones[k].argmax().item() == (-ones[k]).argmin().item() == k
