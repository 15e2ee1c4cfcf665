"""LU, LDL^H, least squares and eigenvalues of any matrix: definitions, bad pivots, errors with the batch's index."""

import numpy as np
import pytest
import tinytorch as tt
from tinytorch.linalg import LinAlgError

EYE = np.eye(2)
BAD = np.stack([EYE, EYE, np.zeros((2, 2))])  # the third one is singular
NAN = np.stack([EYE, np.full((2, 2), np.nan)])


def normal(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda m: m.linalg.lu_factor(m.tensor(BAD)), r"Batch element 2\): U\[1,1\] is zero"),
        (lambda m: m.linalg.lu_factor(m.tensor(BAD[2])), r"U\[1,1\] is zero"),
        (lambda m: m.linalg.ldl_factor(m.tensor(BAD)), "ldl_factor"),
        (lambda m: m.linalg.tensorinv(m.tensor(BAD[2]), 1), "singular"),
        (lambda m: m.linalg.matrix_power(m.tensor(BAD), -1), "Batch element 2"),
        (lambda m: m.cholesky(m.tensor(BAD - EYE)), "Batch element 0"),
        (lambda m: m.cholesky_inverse(m.tensor(BAD)), "Batch element 2"),
        (lambda m: m.linalg.pinv(m.tensor(NAN)), "Batch element 1"),
        (lambda m: m.linalg.matrix_rank(m.tensor(NAN)), "Batch element 1"),
        (lambda m: m.linalg.cond(m.tensor(NAN)), "Batch element 1"),
        (lambda m: m.linalg.eig(m.tensor(NAN)), "infs or NaNs|Batch element 1.*non-finite"),
    ],
)
def test_the_message_names_the_matrix(torch, call, words):
    with pytest.raises(RuntimeError, match=words):
        call(torch)
    with pytest.raises(LinAlgError, match=words):
        call(tt)


def test_eigenvalues_of_what_is_not_finite():
    """PyTorch leaves that to LAPACK, which may not return."""
    with pytest.raises(LinAlgError, match="Batch element 1.*non-finite"):
        tt.linalg.eigvals(tt.tensor(NAN))


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
def test_least_squares_refuses_what_is_not_finite(driver):
    with pytest.raises(LinAlgError, match="Batch element 1.*non-finite"):
        tt.linalg.lstsq(tt.tensor(NAN), tt.tensor(NAN[:, :, :1]), driver=driver)


def test_codes_without_errors():
    for name in ("lu_factor_ex", "ldl_factor_ex"):
        assert getattr(tt.linalg, name)(tt.tensor(BAD)).info.tolist() == [0, 0, 1]
        with pytest.raises(LinAlgError, match="Batch element 2"):
            getattr(tt.linalg, name)(tt.tensor(BAD), check_errors=True)


@pytest.mark.parametrize("pivots", [[0, 2, 3], [1, 2, 4], [-1, -1, 3], [2**31 - 1, 2, 3], [-(2**31), 2, 3]])
def test_pivots_that_are_no_rows_are_refused(pivots):
    LU = tt.tensor(normal(3, 3))
    pivots = tt.tensor(pivots, dtype=tt.int32)
    for call in (
        lambda: tt.linalg.lu_solve(LU, pivots, LU),
        lambda: tt.lu_solve(LU, LU, pivots),
        lambda: tt.lu_unpack(LU, pivots),
    ):
        with pytest.raises(RuntimeError, match="pivots must be between 1"):
            call()


@pytest.mark.parametrize("pivots", [[0, 2, 3], [1, 2, 4], [1, 2, -3], [1, -2, 3], [-1, -4, 3], [-9, -2, 3]])
def test_pivots_of_blocks_come_in_pairs(pivots):
    LD = tt.tensor(normal(3, 3))
    with pytest.raises(RuntimeError, match="pivots must be between 1"):
        tt.linalg.ldl_solve(LD, tt.tensor(pivots, dtype=tt.int32), LD)


def test_pivots_of_another_shape_or_dtype_are_refused():
    LU = tt.tensor(normal(2, 3, 3))
    for pivots in (tt.ones(2, 3, dtype=tt.int64), tt.ones(3, dtype=tt.int32), tt.ones(2, 2, dtype=tt.int32)):
        for call in (tt.linalg.lu_solve, tt.linalg.ldl_solve):
            with pytest.raises(RuntimeError, match="pivots must be int32"):
                call(LU, pivots, LU)


def test_symmetric_systems_broadcast():
    """PyTorch crashes there."""
    a = normal(2, 1, 3, 3)
    a, b = a + np.swapaxes(a, -1, -2), normal(4, 3, 2)
    X = tt.linalg.ldl_solve(*tt.linalg.ldl_factor(tt.tensor(a)), tt.tensor(b))
    np.testing.assert_allclose(a @ X.numpy(), np.broadcast_to(b, (2, 4, 3, 2)), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(5, 5), (1, 1), (2, 3, 4, 4), (50, 50), (0, 2, 2), (2, 0, 0)], ids=str)
def test_eigenvalues_of_any_matrix(shape, dtype):
    """Of real matrices some are pairs of conjugates."""
    a = normal(*shape).astype(dtype)
    values, V = tt.linalg.eig(tt.tensor(a) if a.size else tt.zeros(shape, dtype=getattr(tt, dtype)))
    tolerance = {"rtol": 0, "atol": 1e-3 if dtype == "float32" else 1e-11}
    np.testing.assert_allclose(a @ V.numpy(), (V * values.unsqueeze(-2)).numpy(), **tolerance)
    np.testing.assert_allclose((V.abs() ** 2).sum(-2).numpy(), np.ones(shape[:-1]), rtol=1e-5)
    if a.size:
        again = tt.linalg.eigvals(tt.tensor(a)).numpy()
        np.testing.assert_allclose(np.sort_complex(again), np.sort_complex(values.numpy()), **tolerance)


def test_least_squares_of_less_than_full_rank():
    a = normal(5, 2) @ normal(2, 4)
    b = normal(5, 3)
    for driver in ("gelsy", "gelsd", "gelss"):
        X, residuals, rank, _ = tt.linalg.lstsq(tt.tensor(a), tt.tensor(b), driver=driver)
        np.testing.assert_allclose(X.numpy(), np.linalg.lstsq(a, b, rcond=1e-9)[0], rtol=1e-8, atol=1e-10)
        assert (rank.item(), tuple(residuals.shape)) == (2, (0,))


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
def test_least_squares_of_nothing(driver):
    for m, n, k in ((3, 2, 0), (2, 3, 0), (0, 2, 1), (2, 0, 1), (0, 0, 0)):
        solution, *_ = tt.linalg.lstsq(tt.ones(2, m, n), tt.ones(2, m, k), driver=driver)
        assert tuple(solution.shape) == (2, n, k) and not (solution if not m else solution[:0]).any()


def test_results_have_torchs_names(torch):
    a = np.stack([EYE + 1, EYE * 2])
    calls = {
        "linalg_eig": lambda m: m.linalg.eig(m.tensor(a)),
        "linalg_lu": lambda m: m.linalg.lu(m.tensor(a)),
        "linalg_lu_factor": lambda m: m.linalg.lu_factor(m.tensor(a)),
        "linalg_lu_factor_ex": lambda m: m.linalg.lu_factor_ex(m.tensor(a)),
        "linalg_ldl_factor": lambda m: m.linalg.ldl_factor(m.tensor(a)),
        "linalg_ldl_factor_ex": lambda m: m.linalg.ldl_factor_ex(m.tensor(a)),
        "linalg_lstsq": lambda m: m.linalg.lstsq(m.tensor(a), m.tensor(a)),
        "geqrf": lambda m: m.geqrf(m.tensor(a)),
        "qr": lambda m: m.qr(m.tensor(a)),
        "svd": lambda m: m.svd(m.tensor(a)),
        "lu_unpack": lambda m: m.lu_unpack(*m.linalg.lu_factor(m.tensor(a))),
        "triangular_solve": lambda m: m.triangular_solve(m.tensor(a), m.tensor(a)),
        "_lu_with_info": lambda m: m.lu(m.tensor(a), get_infos=True),
    }
    for name, call in calls.items():
        ours, theirs = call(tt), call(torch)
        assert type(ours).__name__ == type(theirs).__name__ == name
        assert all(getattr(theirs, field) is theirs[i] for i, field in enumerate(ours._fields))
        assert len(ours) == len(theirs)


def test_what_pytorch_has_no_derivative_of_has_none():
    x = tt.tensor(EYE + 1, requires_grad=True)
    for result in (tt.geqrf(x).a, tt.linalg.ldl_factor(x).LD):
        assert result.requires_grad
        with pytest.raises(NotImplementedError, match="the derivative for .* is not implemented"):
            result.sum().backward()
