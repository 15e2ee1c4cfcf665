"""Decompositions of matrices against their definitions, NumPy and torch: shapes, layouts, threads, gradients."""

import inspect
import pickle
import re
import threading

import numpy as np
import pytest
import tinytorch as tt
from tinytorch.autograd.node import Port
from tinytorch.backends._cpu import lib
from tinytorch.ops.declare import NAMESPACES

SHAPES = [(4, 4), (5, 3), (3, 5), (1, 1), (2, 3, 4, 2), (3, 2, 6), (60, 50), (0, 3, 3), (2, 0, 3), (2, 3, 0), (0, 0)]
DTYPES = ["float32", "float64"]
TOLERANCE = {"float32": 2e-4, "float64": 1e-11}
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)
each_dtype = pytest.mark.parametrize("dtype", DTYPES)


def normal(*shape, dtype="float64"):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def positive(*shape, dtype="float64"):
    a = normal(*shape, dtype=dtype)
    return (a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1])).astype(dtype)


def close(x, y, dtype="float64"):
    np.testing.assert_allclose(x, y, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def arrays(results):
    return [r.numpy() for r in results]


def assert_orthonormal(q, dtype):
    close(np.swapaxes(q, -1, -2) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], *q.shape[-1:] * 2)), dtype)


ALL = {
    "svd": lambda A: tt.linalg.svd(A, False),
    "svd, full": tt.linalg.svd,
    "svdvals": lambda A: (tt.linalg.svdvals(A),),
    "eigh": tt.linalg.eigh,
    "eigvalsh": lambda A: (tt.linalg.eigvalsh(A),),
    "qr": tt.linalg.qr,
    "qr, complete": lambda A: tt.linalg.qr(A, "complete"),
    "qr, r": lambda A: tt.linalg.qr(A, "r"),
    "cholesky": lambda A: (tt.linalg.cholesky(A),),
    "inv": lambda A: (tt.linalg.inv(A),),
    "solve": lambda A: (tt.linalg.solve(A, A[..., :2]),),
    "solve_triangular": lambda A: (tt.linalg.solve_triangular(A, A[..., :2], upper=False),),
}
every = pytest.mark.parametrize("name", ALL)


@each_dtype
@each_shape
@pytest.mark.parametrize("full", [False, True])
def test_svd(shape, dtype, full):
    a = normal(*shape, dtype=dtype)
    u, s, vh = arrays(tt.linalg.svd(tt.tensor(a), full))
    *batch, m, n = shape
    k = min(m, n)
    assert (u.shape, s.shape, vh.shape) == ((*batch, m, m if full else k), (*batch, k), (*batch, n if full else k, n))
    assert {u.dtype, s.dtype, vh.dtype} == {np.dtype(dtype)}
    close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, dtype)
    close(s, np.linalg.svd(a.astype("float64"), compute_uv=False), dtype)
    close(tt.linalg.svdvals(tt.tensor(a)).numpy(), s, dtype)
    assert_orthonormal(u, dtype)
    assert_orthonormal(np.swapaxes(vh, -1, -2), dtype)


@each_dtype
@each_shape
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_qr(shape, dtype, mode):
    a = normal(*shape, dtype=dtype)
    q, r = arrays(tt.linalg.qr(tt.tensor(a), mode))
    *batch, m, n = shape
    k = m if mode == "complete" else min(m, n)
    assert r.shape == (*batch, k, n)
    assert not np.tril(r, -1).any()
    if mode == "r":
        assert q.shape == (0,)
        close(r, tt.linalg.qr(tt.tensor(a)).R.numpy(), dtype)
        return
    assert q.shape == (*batch, m, k)
    close(q @ r, a, dtype)
    assert_orthonormal(q, dtype)


@each_dtype
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (2, 3, 5, 5), (40, 40), (0, 2, 2), (2, 0, 0)], ids=str)
@pytest.mark.parametrize("uplo", ["L", "U", "l", "u"])
def test_eigh_reads_one_triangle(shape, dtype, uplo):
    a = positive(*shape, dtype=dtype)
    given = a.copy()
    n = shape[-1]
    other = np.triu(np.ones((n, n), bool), 1) if uplo in "Ll" else np.tril(np.ones((n, n), bool), -1)
    given[..., other] = np.nan
    values, vectors = arrays(tt.linalg.eigh(tt.tensor(given), uplo))
    close((vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2), a, dtype)
    close(values, np.linalg.eigvalsh(a.astype("float64")), dtype)
    close(tt.linalg.eigvalsh(tt.tensor(given), UPLO=uplo).numpy(), values, dtype)
    assert_orthonormal(vectors, dtype)


@each_dtype
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (2, 3, 5, 5), (70, 70), (0, 2, 2), (2, 0, 0)], ids=str)
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_reads_one_triangle(shape, dtype, upper):
    a = positive(*shape, dtype=dtype)
    given = np.triu(a) if upper else np.tril(a)
    factor = tt.linalg.cholesky(tt.tensor(given), upper=upper).numpy()
    expected = np.linalg.cholesky(a.astype("float64"))
    close(factor, np.swapaxes(expected, -1, -2) if upper else expected, dtype)


@pytest.mark.parametrize("n", [1, 5, 64])
def test_inverse(n):
    a = positive(3, n, n)
    close(tt.linalg.inv(tt.tensor(a)).numpy() @ a, np.broadcast_to(np.eye(n), a.shape))
    close(tt.tensor(a).inverse().numpy(), tt.inverse(tt.tensor(a)).numpy())


@every
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_layout_gives_the_same_bits_and_no_input_changes(name, dtype):
    a = positive(4, 6, 6, dtype=dtype)
    base = tt.zeros(4, 9, 14, dtype=getattr(tt, dtype))
    sliced = base[:, 1:7, 1:13:2]
    sliced.copy_(tt.tensor(a))
    layouts = {
        "transposed": tt.tensor(np.swapaxes(a, -1, -2).copy()).mT,
        "sliced": sliced,
        "batch last": tt.tensor(np.moveaxis(a, 0, -1).copy()).movedim(-1, 0),
        "reversed batch": tt.tensor(a[::-1].copy()).flip(0),
    }
    expected = arrays(ALL[name](tt.tensor(a)))
    for how, given in layouts.items():
        version = given._version
        for x, y in zip(arrays(ALL[name](given)), expected):
            np.testing.assert_array_equal(x, y, err_msg=how)
        np.testing.assert_array_equal(given.numpy(), a, err_msg=how)
        assert given._version == version, how


@every
def test_same_bits_for_any_number_of_threads_and_in_any_batch(name):
    a = positive(150, 7, 7, dtype="float32")
    before = tt.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 7):
            tt.set_num_threads(threads)
            results.append(arrays(ALL[name](tt.tensor(a))))
    finally:
        tt.set_num_threads(before)
    for other in results[1:]:
        for x, y in zip(results[0], other):
            np.testing.assert_array_equal(x, y)
    alone = arrays(ALL[name](tt.tensor(a[77])))
    for x, y in zip(results[0], alone):
        np.testing.assert_array_equal(x[77] if x.ndim > y.ndim else x, y)


def small_matrices(n, dtype):
    """All kinds of them, and the size of each."""
    rng = np.random.default_rng(n)
    a = rng.standard_normal((37, n, n))
    large = 1e30 if dtype == "float32" else 1e300
    a[0], a[1], a[2], a[3], a[4] = 0, np.eye(n), 1, a[3] * large, a[4] / large
    a[5], a[6] = np.diag(np.arange(n)[::-1]), np.outer(a[6, 0], a[6, 0])
    a[7] = np.diag(10.0 ** -np.arange(n)) + 1e-3 * (np.indices((n, n)).sum(0) == n - 1)
    a = ((a + a.swapaxes(1, 2)) if n % 2 else a).astype(dtype)
    return a, np.abs(a).max((1, 2), keepdims=True) + (a == 0).all((1, 2), keepdims=True)


def on_every_instruction_set(function, a):
    """The results, whose bits are the same on all."""
    before, results = lib.tt_isa_name(), []
    for isa in ("baseline", "avx2", "avx512"):
        if lib.tt_set_isa(isa.encode()) == 0:
            results.append(arrays(function(tt.tensor(a))))
    lib.tt_set_isa(before)
    for other in results[1:]:
        for x, y in zip(results[0], other):
            np.testing.assert_array_equal(x, y)
    return results[0]


small = pytest.mark.parametrize(
    "n, dtype, epsilon",
    [(n, *of) for n in (2, 3, 7, 16, 17) for of in (("float32", 2.0**-24), ("float64", 2.0**-53))],
)


@small
def test_eigh_of_many_small_matrices(n, dtype, epsilon):
    """Up to 16 rows go side by side (Note [Matrices side by side]). One that is not finite disturbs no other."""
    a, scale = small_matrices(n, dtype)
    a = np.tril(a) + np.tril(a, -1).swapaxes(1, 2)
    found = on_every_instruction_set(tt.linalg.eigh, a)
    if n <= 16:
        np.testing.assert_array_equal(tt.linalg.eigvalsh(tt.tensor(a)).numpy(), found[0])
    values, vectors = (x.astype("float64") for x in found)
    tolerance = 8 * n * epsilon
    assert (np.diff(values) >= 0).all()
    np.testing.assert_allclose(vectors.swapaxes(1, 2) @ vectors, np.broadcast_to(np.eye(n), a.shape), atol=tolerance)
    np.testing.assert_allclose(a / scale @ vectors, vectors * (values[:, None] / scale), atol=tolerance)
    a[9, n - 1, 0] = np.nan
    with pytest.raises(tt.linalg.LinAlgError, match="Batch element 9"):
        tt.linalg.eigh(tt.tensor(a))


@small
def test_svd_of_many_small_matrices(n, dtype, epsilon):
    """Likewise; those of which a singular value is 0 are LAPACK's."""
    a, scale = small_matrices(n, dtype)
    found = on_every_instruction_set(tt.linalg.svd, a)
    u, values, v = (x.astype("float64") for x in found)
    tolerance = 8 * n * epsilon
    assert (values >= 0).all() and (np.diff(values) <= 0).all()
    for q in (u, v):
        np.testing.assert_allclose(q.swapaxes(1, 2) @ q, np.broadcast_to(np.eye(n), a.shape), atol=tolerance)
    np.testing.assert_allclose(u * (values[:, None] / scale) @ v, a / scale, atol=tolerance)
    alone = tt.linalg.svdvals(tt.tensor(a)).numpy() / scale[..., 0]
    np.testing.assert_allclose(alone, values / scale[..., 0], atol=tolerance)
    a[9, n - 1, 0] = np.nan
    with pytest.raises(tt.linalg.LinAlgError, match="Batch element 9"):
        tt.linalg.svd(tt.tensor(a))


@every
def test_large_matrices_take_the_same_path(name):
    a = positive(2, 130, 130)
    for x, y in zip(arrays(ALL[name](tt.tensor(a))), arrays(ALL[name](tt.tensor(a[1])))):
        np.testing.assert_array_equal(x[1] if x.ndim > y.ndim else x, y)


@every
def test_python_threads_do_not_disturb_each_other(name):
    a = tt.tensor(positive(40, 9, 9))
    expected, found = arrays(ALL[name](a)), {}

    def work(k):
        found[k] = [arrays(ALL[name](a)) for _ in range(5)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 4
    for results in found.values():
        for result in results:
            for x, y in zip(result, expected):
                np.testing.assert_array_equal(x, y)


@every
def test_results_lie_as_torchs(torch, name):
    for shape in ((3, 3), (2, 4, 4), (2, 0, 0), (0, 3, 3)):
        a = positive(*shape)
        theirs = eval_torch(torch, name, torch.tensor(a))
        for x, y in zip(ALL[name](tt.tensor(a)), theirs):
            assert (tuple(x.shape), x.stride()) == (tuple(y.shape), y.stride()), shape


def eval_torch(torch, name, A):
    op, _, how = name.partition(", ")
    call = getattr(torch.linalg, op)
    if op == "solve":
        return (call(A, A[..., :2]),)
    if op == "solve_triangular":
        return (call(A, A[..., :2], upper=False),)
    result = call(A, how == "full") if op == "svd" else call(A, how) if how else call(A)
    return result if isinstance(result, tuple) else (result,)


# Derivatives. Those of every sample of the operator table are checked in tests/test_ops.py.


def test_a_gradient_of_square_factors_is_that_of_their_first_columns():
    a = normal(4, 2)
    grads = []
    for full in (False, True):
        x = tt.tensor(a, requires_grad=True)
        u, s, vh = tt.linalg.svd(x, full)
        grads.append(tt.autograd.grad((u[:, :2] * tt.tensor(normal(4, 2))).sum() + vh.sum(), x)[0].numpy())
    np.testing.assert_allclose(*grads, rtol=1e-10)


def test_second_derivatives_go_through_the_saved_results(torch):
    """(U f(S) Vh).sum() is a smooth function of A: all three results are saved, and derived again."""
    a, w = normal(3, 4), normal(3, 4)
    seconds = []
    for m in (tt, torch):
        x = m.tensor(a, requires_grad=True)
        u, s, vh = m.linalg.svd(x, False)
        total = ((u * s.exp().unsqueeze(-2)) @ vh * m.tensor(w)).sum()
        del u, s, vh
        (g,) = m.autograd.grad(total, x, create_graph=True)
        seconds.append(m.autograd.grad((g * g).sum(), x)[0].numpy())
    np.testing.assert_allclose(*seconds, rtol=1e-9)


def test_values_have_gradients_where_vectors_have_none():
    x = tt.eye(3, dtype=tt.float64).requires_grad_()
    np.testing.assert_array_equal(tt.autograd.grad(tt.linalg.svdvals(x).sum(), x)[0].numpy(), np.eye(3))
    np.testing.assert_array_equal(tt.autograd.grad(tt.linalg.eigvalsh(x).sum(), x)[0].numpy(), np.eye(3))
    assert tt.autograd.grad(tt.linalg.eigh(x).eigenvectors.sum(), x)[0].isnan().all()
    assert tt.autograd.grad(tt.linalg.svd(x).U.sum(), x)[0].isnan().all()


def test_gradients_of_symmetric_problems_are_symmetric():
    x = tt.tensor(positive(3, 3), requires_grad=True)
    for result in (*tt.linalg.eigh(x), tt.linalg.eigvalsh(x), tt.linalg.cholesky(x), tt.linalg.cholesky(x, upper=True)):
        total = (result * tt.tensor(normal(*result.shape))).sum()
        g = tt.autograd.grad(total, x, retain_graph=True)[0].numpy()
        np.testing.assert_allclose(g, g.T, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mode, shape", [("r", (3, 3)), ("complete", (4, 3))])
def test_qr_without_a_derivative_says_so_in_backward(mode, shape):
    x = tt.tensor(normal(*shape), requires_grad=True)
    r = tt.linalg.qr(x, mode).R
    assert r.requires_grad
    with pytest.raises(RuntimeError, match="mode='r'" if mode == "r" else "mode='complete' and nrows > ncols"):
        r.sum().backward()


def test_a_result_overwritten_before_backward_is_noticed():
    x = tt.tensor(positive(3, 3), requires_grad=True)
    values, vectors = tt.linalg.eigh(x)
    with tt.no_grad():
        vectors.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace.*LinalgEighBackward0"):
        values.sum().backward()


def test_nodes_have_torchs_names(torch):
    for name in ("svd", "eigh", "qr", "cholesky", "inv", "svdvals", "eigvalsh"):
        names = []
        for m in (tt, torch):
            result = getattr(m.linalg, name)(m.tensor(positive(2, 2), requires_grad=True))
            node = (result[0] if isinstance(result, tuple) else result).grad_fn
            names.append((node.edges[0] if type(node) is Port else node).name())
        assert names[0] == names[1]


# The public surface.


# Where PyTorch's documentation does not say what is taken: NumPy's forms, and a keyword that stands alone.
OVERLOADS = {
    "matrix_rank": "A, tol=None, hermitian=False, *, atol=None, rtol=None, out=None",
    "pinv": "A, rcond=None, hermitian=False, *, atol=None, rtol=None, out=None",
    "vander": "x, *, N=None",
}


def test_signatures_are_torchs(torch):
    for name in tt.linalg.__all__:
        if name == "LinAlgError":
            continue
        theirs = next(line for line in getattr(torch.linalg, name).__doc__.splitlines() if "(" in line)
        theirs = re.search(r"\((.*?)\)( ->|$)", theirs).group(1).replace('"', "'").replace("bool ", "")
        theirs = OVERLOADS.get(name, theirs)
        ours = str(inspect.signature(getattr(tt.linalg, name)))
        assert ours == f"({theirs})", name


def test_what_is_published_is_in_the_namespace():
    assert set(NAMESPACES["linalg"]) == set(tt.linalg.__all__) - {"LinAlgError"}
    for name, function in NAMESPACES["linalg"].items():
        assert getattr(tt.linalg, name) is function
        if name == "matmul":  # another name of tinytorch.matmul
            continue
        assert (function.__module__, function.__name__, function.op.qualified) == (
            "tinytorch.linalg",
            name,
            f"linalg.{name}",
        )
        assert f"torch.linalg.{name}" in function.__doc__


def test_named_tuples():
    a = tt.tensor(positive(2, 2))
    for result, fields in (
        (tt.linalg.svd(a), ("U", "S", "Vh")),
        (tt.linalg.qr(a), ("Q", "R")),
        (tt.linalg.eigh(a), ("eigenvalues", "eigenvectors")),
        (tt.linalg.cholesky_ex(a), ("L", "info")),
        (tt.linalg.inv_ex(a), ("inverse", "info")),
    ):
        assert all(getattr(result, f) is r for f, r in zip(fields, result, strict=True))
        assert repr(result).startswith("tinytorch.return_types.linalg_")
        again = pickle.loads(pickle.dumps(result))
        assert type(again) is type(result)
        np.testing.assert_array_equal(again[0].numpy(), result[0].numpy())


def test_out_takes_all_results_or_none():
    a = tt.tensor(normal(3, 2))
    expected = tt.linalg.svd(a, False)
    out = (tt.empty(0, dtype=tt.float64), tt.empty(4, dtype=tt.float64)[::2], tt.empty(2, 2, dtype=tt.float64).mT)
    result = tt.linalg.svd(a, False, out=out)
    assert type(result) is type(expected) and all(r is o for r, o in zip(result, out))
    for x, y in zip(out, expected):
        np.testing.assert_array_equal(x.numpy(), y.numpy())
    out = (tt.zeros(3, 2, dtype=tt.float64), tt.zeros(2, dtype=tt.float64), tt.zeros(2, 2))
    with pytest.raises(RuntimeError, match="dtype"):
        tt.linalg.svd(a, False, out=out)
    with pytest.raises(RuntimeError, match="out="):
        tt.linalg.svd(a, False, out=(*out[:2], tt.zeros(2, 2, dtype=tt.float64, requires_grad=True)))
    assert not any(o.any() for o in out)
    with pytest.raises(TypeError, match="3 elements"):
        tt.linalg.svd(a, False, out=out[:2])
    with pytest.raises(TypeError, match="tuple"):
        tt.linalg.qr(a, out=out[0])


def test_an_operand_may_be_the_out():
    a = positive(3, 3)
    x = tt.tensor(a)
    assert tt.linalg.cholesky(x, out=x) is x
    np.testing.assert_allclose(x.numpy(), np.linalg.cholesky(a), rtol=1e-12)
