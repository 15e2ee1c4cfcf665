"""Systems of equations, and what goes wrong with a matrix: shapes and messages are torch's; nothing is written then."""

import re

import numpy as np
import pytest
import tinytorch as tt
from compare import allocated
from tinytorch.backends._cpu import lib
from tinytorch.linalg import LinAlgError

SOLVE_SHAPES = [
    ((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3,)), ((2, 3, 3), (2, 3)), ((2, 3, 3), (3, 2)),
    ((2, 3, 3), (2, 3, 2)), ((2, 1, 3, 3), (4, 3, 2)), ((2, 3, 3), (3, 3)), ((3, 3), (2, 3)),
    ((4, 2, 3, 3), (2, 3)), ((3, 3), (4, 3, 2)), ((2, 2, 2), (2, 2)), ((1, 3, 3), (2, 3)), ((1, 1), (1,)),
    ((0, 0), (0,)), ((0, 0), (0, 2)), ((3, 3), (3, 0)), ((0, 3, 3), (0, 3)), ((2, 0, 0), (2, 0)),
    ((3, 3), (2,)), ((3, 3), (2, 2)), ((2, 3), (3,)), ((3, 3), ()), ((3,), (3,)), ((2, 3, 3), (5, 3, 2)),
]  # fmt: skip


def matrices(*shape):
    a = np.random.default_rng(sum(shape)).standard_normal(shape)
    return a + 3 * np.eye(*shape[-2:]) if len(shape) > 1 else a


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("a, b", SOLVE_SHAPES, ids=str)
def test_solve_takes_the_shapes_that_torch_takes(torch, a, b, left):
    """The result's shape, layout and values, or an error for the same reason."""
    A, B = matrices(*a), np.random.default_rng(1).standard_normal(b)
    results = []
    for m in (tt, torch):
        try:
            results.append(m.linalg.solve(m.tensor(A), m.tensor(B), left=left))
        except RuntimeError as exc:
            results.append(str(exc))
    ours, theirs = results
    if isinstance(theirs, str):
        assert isinstance(ours, str)
        if "size of tensor a" in theirs:  # torch takes B for a
            ours, theirs = (re.sub(r"\d", "", text).removeprefix("linalg.solve: ") for text in (ours, theirs))
        assert ours == theirs
    else:
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-10, atol=1e-12)
        assert ours.shape == tuple(theirs.shape)
        if len(b) > 1 and b != a[:-1]:  # a stack of vectors is contiguous here
            assert ours.numel() == 0 or ours.stride() == theirs.stride()


@pytest.mark.parametrize("columns", [1, 3, 20])
@pytest.mark.parametrize("n", [1, 2, 5, 16, 31, 32, 33])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_factors_of_matrices_of_many_exchanges(dtype, n, columns):
    """LU, and solutions by it from both sides, of matrices whose largest elements lie off the diagonal."""
    A = np.random.default_rng(n).standard_normal((7, n, n)).astype(dtype) + 3 * np.eye(n, dtype=dtype)[::-1]
    B = np.random.default_rng(columns).standard_normal((7, n, columns)).astype(dtype)
    LU, pivots = tt.linalg.lu_factor(tt.from_numpy(A))
    P, L, U = tt.lu_unpack(LU, pivots)
    tolerance = {"rtol": 1e-9, "atol": 1e-10} if dtype == "f8" else {"rtol": 2e-3, "atol": 2e-3}
    np.testing.assert_allclose((P @ L @ U).numpy(), A, **tolerance)
    assert L.abs().max() <= 1
    for adjoint in (False, True):
        X = tt.linalg.lu_solve(LU, pivots, tt.from_numpy(B), adjoint=adjoint).numpy()
        np.testing.assert_allclose((A.transpose(0, 2, 1) if adjoint else A) @ X, B, **tolerance)


@pytest.mark.parametrize("threads", [1, 2, 16])
@pytest.mark.parametrize("dtype", [tt.float32, tt.float64])
def test_right_hand_sides_of_several_tasks(dtype, threads):
    """As many to a task as the cache holds, which is no power of two; the last task has fewer."""
    rng, before = np.random.default_rng(0), tt.get_num_threads()
    a = tt.tensor(rng.standard_normal((1100, 1100)) + 100 * np.eye(1100), dtype=dtype)
    b = tt.tensor(rng.standard_normal((1100, 299)), dtype=dtype)
    try:
        tt.set_num_threads(threads)
        x, y = tt.linalg.solve(a, b), tt.linalg.solve_triangular(a.tril(), b, upper=False)
    finally:
        tt.set_num_threads(before)
    bound = 1e-3 if dtype is tt.float32 else 1e-11
    assert float((a.double() @ x.double() - b.double()).abs().max()) < bound
    assert float((a.tril().double() @ y.double() - b.double()).abs().max()) < bound


def test_one_matrix_serves_many_right_hand_sides():
    """A is factored once, whatever batch B has: there is one info for each A."""
    A, B = tt.tensor(matrices(2, 1, 5, 5)), tt.tensor(np.random.default_rng(0).standard_normal((300, 5, 2)))
    result, info = tt.linalg.solve_ex(A, B)
    assert (result.shape, info.shape, info.dtype) == ((2, 300, 5, 2), (2, 1), tt.int32)
    np.testing.assert_allclose((A @ result).numpy(), B.expand(2, 300, 5, 2).numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("left", [True, False])
def test_the_first_derivatives_from_the_factors_are_the_formulas(left):
    """backward solves with the saved factors of A; with create_graph it solves anew."""
    A = tt.tensor(matrices(2, 1, 4, 4), requires_grad=True)
    B = tt.tensor(np.random.default_rng(0).standard_normal((3, 4, 4)), requires_grad=True)
    total = (tt.linalg.solve(A, B, left=left) ** 2).sum()
    fast = tt.autograd.grad(total, (A, B), retain_graph=True)
    for x, y in zip(fast, tt.autograd.grad(total, (A, B), create_graph=True)):
        np.testing.assert_allclose(x.numpy(), y.detach().numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("unitriangular", [True, False])
def test_solve_triangular_reads_one_triangle(upper, left, unitriangular):
    whole = matrices(2, 4, 4)
    A = np.triu(whole) if upper else np.tril(whole)
    given = whole.copy()
    given[:, ~(np.triu(np.ones((4, 4), bool)) if upper else np.tril(np.ones((4, 4), bool)))] = np.nan
    if unitriangular:
        A[:, range(4), range(4)] = 1
        given[:, range(4), range(4)] = np.nan
    B = np.random.default_rng(0).standard_normal((3, 1, 4, 4))
    for how in (tt.tensor(given), tt.tensor(np.swapaxes(given, -1, -2).copy()).mT):
        X = tt.linalg.solve_triangular(how, tt.tensor(B), upper=upper, left=left, unitriangular=unitriangular).numpy()
        assert X.shape == (3, 2, 4, 4)
        np.testing.assert_allclose(A @ X if left else X @ A, np.broadcast_to(B, X.shape), rtol=1e-10, atol=1e-12)


@pytest.fixture(params=[None, b"avx2", b"baseline"], ids=["own", "avx2", "baseline"])
def ways(request):
    """One number of threads after the other, in an instruction set."""
    before, isa = tt.get_num_threads(), lib.tt_isa_name()

    def each():
        for threads in (1, 2) if request.param else (1, 2, 5, 11):
            tt.set_num_threads(threads)
            yield

    if request.param and lib.tt_set_isa(request.param) != 0:
        pytest.skip("no such instruction set")
    yield each
    tt.set_num_threads(before)
    lib.tt_set_isa(isa)


def residual(a, x, b):
    """The largest element of a x - b, in roundings of what was added up."""
    a, x, b = (v.numpy().astype("float64") for v in (a, x, b))
    return np.abs(a @ x - b).max(initial=0) / (np.abs(a).max() * np.abs(x).max(initial=1) * len(a))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "n, columns",
    [
        (1, 16),
        (5, 15),
        (31, 16),
        (32, 17),
        (33, 64),
        (64, 129),
        (97, 300),
        (191, 65),
        (192, 16),
        (193, 128),
        (400, 130),
    ],
)
def test_many_right_hand_sides(n, columns, dtype, ways):
    """Triangles of more rows than one block, right-hand sides of more columns than one thread's: cpu/systems.h."""
    rng, epsilon, results = np.random.default_rng(n), np.finfo(dtype).eps, []
    whole, B = rng.standard_normal((n, n)), tt.tensor(rng.standard_normal((n, columns)).astype(dtype))
    triangle = tt.tensor((np.tril(whole, -1) / n + np.diag(2 + rng.random(n))).astype(dtype))
    A, eye = tt.tensor(whole.astype(dtype)), tt.eye(n, dtype=B.dtype)
    for _ in ways():
        LU, pivots = tt.linalg.lu_factor(A)
        found = [
            (A, tt.linalg.solve(A, B)),
            (A.mT, tt.linalg.solve(A, B.mT, left=False).mT),
            (A, tt.linalg.lu_solve(LU, pivots, B)),
            (A.mT, tt.linalg.lu_solve(LU, pivots, B, adjoint=True)),
        ]
        for t in (triangle, triangle.mT.contiguous().mT, triangle.mT, triangle.mT.contiguous()):
            upper = t[0, -1].item() != 0
            for unit in (False, True):
                strict = t.triu(1) if upper else t.tril(-1)
                how = {"upper": upper, "unitriangular": unit}
                m = strict + (eye if unit else t.diagonal().diag())
                found.append((m, tt.linalg.solve_triangular(t, B, **how)))
                found.append((m.mT, tt.linalg.solve_triangular(t, B.mT, left=False, **how).mT))
        for matrix, X in found:
            assert residual(matrix, X, B) < 3 * epsilon
        results.append([X.numpy() for _, X in found] + [tt.linalg.inv(A).numpy()])
    for other in results[1:]:
        for x, y in zip(results[0], other):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("shape", [(128, 128), (192, 192), (193, 400), (400, 193), (321, 321), (1100, 1030)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_factors_of_large_matrices(shape, dtype, ways):
    a = np.random.default_rng(shape[0]).standard_normal(shape).astype(dtype)
    results = []
    for _ in ways():
        P, L, U = tt.linalg.lu(tt.tensor(a))
        assert residual(P @ L, U, tt.tensor(a)) < np.finfo(dtype).eps and L.abs().max().item() == 1
        results.append(tt.linalg.lu_factor(tt.tensor(np.stack([a, a])))[0].numpy())
        np.testing.assert_array_equal(results[-1][1], tt.linalg.lu_factor(tt.tensor(a))[0].numpy())
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


@pytest.mark.parametrize("bad", [0, 100, 199])
def test_large_singular_matrices_are_named(bad):
    """The first pivot that is zero, wherever it stands."""
    a = np.triu(np.random.default_rng(0).standard_normal((200, 200)))
    a[bad, bad] = a[199, 199] = 0
    assert tt.linalg.lu_factor_ex(tt.tensor(a)).info.item() == bad + 1
    with pytest.raises(LinAlgError, match="singular"):
        tt.linalg.solve(tt.tensor(a), tt.ones(200, 20, dtype=tt.float64))


# Determinants.


@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (2, 3, 5, 5), (40, 40), (0, 2, 2), (2, 0, 0)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_determinants(shape, dtype):
    a = matrices(*shape).astype(dtype)
    sign, logarithm = np.linalg.slogdet(a.astype("float64"))
    rtol = 1e-4 if dtype == "float32" else 1e-10
    ours = tt.linalg.slogdet(tt.tensor(a))
    np.testing.assert_array_equal(ours.sign.numpy(), sign)
    np.testing.assert_allclose(ours.logabsdet.numpy(), logarithm, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(tt.tensor(a).det().numpy(), sign * np.exp(logarithm), rtol=10 * rtol)


def test_a_singular_matrix_has_a_determinant_and_its_gradient():
    """The gradient is the matrix of cofactors: not zero where one singular value is, zero where two are."""
    a = np.array([[[1.0, 2, 3], [4, 5, 6], [5, 7, 9]], [[1, 2, 3], [2, 4, 6], [3, 6, 9]], np.diag([2, 3, 4])])
    x = tt.tensor(a, requires_grad=True)
    det = tt.linalg.det(x)
    np.testing.assert_allclose(det.detach().numpy(), [0, 0, 24], atol=1e-12)
    (g,) = tt.autograd.grad(det.sum(), x)
    np.testing.assert_allclose(g[0].numpy(), [[3, -6, 3], [3, -6, 3], [-3, 6, -3]], atol=1e-9)
    np.testing.assert_allclose(g[1].numpy(), np.zeros((3, 3)), atol=1e-9)
    np.testing.assert_allclose(g[2].numpy(), np.diag([12, 8, 6]), atol=1e-9)
    assert tt.linalg.slogdet(x[1])[0] == 0 and tt.linalg.slogdet(x[1])[1] == -np.inf


def test_the_sign_alone_has_no_gradient():
    x = tt.tensor(matrices(3, 3), requires_grad=True)
    sign, logarithm = tt.linalg.slogdet(x)
    assert sign.requires_grad and logarithm.requires_grad
    assert not tt.autograd.grad(sign + 0 * logarithm, x)[0].any()


# Matrices without a solution.

SPD = "The factorization could not be completed because the input is not positive-definite (the leading minor of order "
NOT_FINITE = "The algorithm failed to converge because the input matrix contained non-finite values."
SINGULAR = "The solver failed because the input matrix is singular."
INV = "The diagonal element 2 is zero, the inversion could not be completed because the input matrix is singular."
eye, indefinite, singular, nan, infinite = (np.eye(3) for _ in range(5))
indefinite[1, 1] = -1
singular[1, 1] = 0
nan[2, 0] = np.nan
infinite[2, 0] = np.inf
FAILURES = [
    ("cholesky", indefinite, f"{SPD}2 is not positive-definite).", True),
    ("cholesky", nan, f"{SPD}3 is not positive-definite).", True),
    ("cholesky_ex", indefinite, f"{SPD}2 is not positive-definite).", True),
    ("inv", singular, INV, True),
    ("inv_ex", singular, INV, True),
    ("solve", singular, SINGULAR, False),
    ("solve_ex", singular, SINGULAR, False),
    ("svd", nan, NOT_FINITE, True),
    ("svdvals", nan, NOT_FINITE, False),
    ("svd", infinite, NOT_FINITE, False),
    ("svdvals", infinite, NOT_FINITE, False),
    ("eigh", nan, NOT_FINITE, False),
    ("eigh", infinite, NOT_FINITE, False),
    ("eigvalsh", nan, NOT_FINITE, False),
]


def failing(m, name, *tensors):
    more = {"check_errors": True} if name.endswith("_ex") else {}
    return getattr(m.linalg, name)(*tensors, **more)


@pytest.mark.parametrize("name, bad, text, same", FAILURES)
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)], ids=str)
def test_the_error_names_the_first_bad_matrix(torch, no_gc, name, bad, text, same, batch):
    a = np.broadcast_to(eye, (*batch, 3, 3)).copy()
    where = ""
    if batch:
        a.reshape(-1, 3, 3)[1:] = bad
        where = "(Batch element 1): "
    else:
        a[...] = bad
    arguments = [a, eye] if name.startswith("solve") else [a]
    tensors = [tt.tensor(x) for x in arguments]
    held = allocated()
    with pytest.raises(LinAlgError) as raised:
        failing(tt, name, *tensors)
    assert str(raised.value) == f"linalg.{name}: {where}{text}"
    del raised  # its traceback holds what the frames held
    assert allocated() == held
    if same:
        with pytest.raises(torch.linalg.LinAlgError) as theirs:
            failing(torch, name, *map(torch.tensor, arguments))
        assert str(theirs.value) == f"linalg.{name}: {where}{text}"


def test_errors_are_runtime_errors():
    assert issubclass(LinAlgError, RuntimeError)
    assert tt.linalg.LinAlgError is LinAlgError


def test_out_is_as_it_was_after_an_error():
    out = tt.ones(3, 3, dtype=tt.float64)
    with pytest.raises(LinAlgError):
        tt.linalg.cholesky(tt.tensor(indefinite), out=out)
    assert (out == 1).all() and out._version == 0


def test_the_ex_functions_tell_by_info(torch):
    stack = np.stack([eye, indefinite, eye, singular])
    for name, args in (("cholesky_ex", ()), ("inv_ex", ()), ("solve_ex", (eye,))):
        ours, theirs = (getattr(m.linalg, name)(m.tensor(stack), *map(m.tensor, args)) for m in (tt, torch))
        assert ours.info.tolist() == theirs.info.tolist()
        np.testing.assert_array_equal(ours[0].numpy()[::2], theirs[0].numpy()[::2])
        x = tt.tensor(stack, requires_grad=True)
        result = getattr(tt.linalg, name)(x, *map(tt.tensor, args))
        assert result[0].requires_grad and not result.info.requires_grad


def test_not_a_number_goes_through_where_nothing_converges():
    assert tt.linalg.qr(tt.tensor(nan)).R.isnan().any()
    assert tt.linalg.inv(tt.tensor(nan)).isnan().any()
    assert tt.linalg.solve(tt.tensor(nan), tt.tensor(eye)).isnan().any()


# Arguments that are no matrices.

SQUARE = ("eigh", "eigvalsh", "cholesky", "cholesky_ex", "inv", "inv_ex", "det", "slogdet")
ONE = (*SQUARE, "svd", "svdvals", "qr")


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: tt.ones(3), "must have at least 2 dimensions"),
        (lambda: tt.ones(3, 3, dtype=tt.int64), "Expected a floating point or complex tensor as input. Got int64"),
        (lambda: tt.ones(3, 3, dtype=tt.bool), "Got bool"),
        (lambda: tt.ones(3, 3, dtype=tt.float16), "not implemented for 'float16'"),
        (lambda: tt.ones(3, 3, dtype=tt.bfloat16), "not implemented for 'bfloat16'"),
    ],
)
def test_what_is_refused(no_gc, name, make, text):
    x = make()
    held = allocated()
    with pytest.raises(RuntimeError, match=f"^linalg.{name}: .*{text}") as raised:
        getattr(tt.linalg, name)(x)
    assert isinstance(raised.value, NotImplementedError) == ("2 dimensions" not in text)
    del raised
    assert allocated() == held


@pytest.mark.parametrize("name", SQUARE)
def test_matrices_that_must_be_square(name):
    with pytest.raises(RuntimeError, match=f"linalg.{name}: A must be batches of square matrices, but they are 2 by 3"):
        getattr(tt.linalg, name)(tt.ones(2, 3))


@pytest.mark.parametrize("name", ONE)
def test_something_that_is_no_tensor(name):
    with pytest.raises(TypeError, match=f"linalg.{name}.*'A' must be Tensor, not list"):
        getattr(tt.linalg, name)([[1.0]])


def test_options():
    a = tt.eye(2)
    with pytest.raises(RuntimeError, match="'L' or 'U', but got x"):
        tt.linalg.eigh(a, "x")
    with pytest.raises(RuntimeError, match="unrecognized mode 'full'"):
        tt.linalg.qr(a, "full")
    with pytest.raises(RuntimeError, match="driver="):
        tt.linalg.svd(a, driver="gesvd")
    with pytest.raises(RuntimeError, match="same dtype, but found A of type float32 and B of type float64"):
        tt.linalg.solve(a, a.double())
    for A, B in ((a, [1.0]), ([1.0], a), (a, None)):
        with pytest.raises(TypeError, match="linalg.solve.*must be Tensor"):
            tt.linalg.solve(A, B)
    with pytest.raises(TypeError, match="'B' must be Tensor"):
        tt.linalg.solve_triangular(a, None, upper=True)
    with pytest.raises(RuntimeError, match="must have at least 2 dimensions"):
        tt.linalg.solve_triangular(a, tt.ones(2), upper=True)
    with pytest.raises(RuntimeError, match="Incompatible shapes of A and B for the equation XA = B"):
        tt.linalg.solve_triangular(a, tt.ones(2, 3), upper=True, left=False)
