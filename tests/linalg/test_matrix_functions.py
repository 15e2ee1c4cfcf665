"""Norms, condition numbers, powers and exponentials where the table's samples do not reach."""

import math

import numpy as np
import pytest
import tinytorch as tt


def normal(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_exponentials_of_any_size(torch, dtype):
    """Small and large matrices in one batch, each scaled by itself."""
    a = normal(8, 4, 4) * np.array([0, 1e-12, 1e-3, 0.1, 0.7, 2, 10, 40])[:, None, None]
    a = (a * (1 + 0.5j if "complex" in dtype else 1)).astype(dtype)
    ours, theirs = tt.matrix_exp(tt.tensor(a)).numpy(), torch.matrix_exp(torch.tensor(a)).numpy()
    rtol = 1e-12 if dtype in ("float64", "complex128") else 1e-4
    for x, y in zip(ours, theirs):
        np.testing.assert_allclose(x, y, rtol=0, atol=rtol * 10 * np.abs(y).max())


def test_the_exponential_of_what_is_not_finite():
    for bad in (math.nan, math.inf):
        assert not tt.matrix_exp(tt.tensor([[bad, 0.0], [0.0, 1.0]])).isfinite().all()


@pytest.mark.parametrize("p", [None, 2, -2, "fro", "nuc", 1, -1, math.inf, -math.inf])
def test_condition_numbers(p):
    """PyTorch's derivative fails for most norms."""
    a = normal(3, 3) + 3 * np.eye(3)
    x = tt.tensor(a, requires_grad=True)
    np.testing.assert_allclose(tt.linalg.cond(x, p).item(), np.linalg.cond(a, p), rtol=1e-10)
    assert tt.autograd.gradcheck(lambda x: tt.linalg.cond(x, p), (x,))


def test_condition_numbers_of_singular_matrices():
    a = tt.tensor([[1.0, 1.0], [1.0, 1.0]])
    for p in (None, "fro", 1, math.inf):
        assert tt.linalg.cond(a, p).item() > 1e6


def test_powers():
    a = normal(3, 3)
    for n in range(-4, 9):
        np.testing.assert_allclose(
            tt.linalg.matrix_power(tt.tensor(a), n).numpy(), np.linalg.matrix_power(a, n), rtol=1e-8
        )
    whole = tt.tensor([[1, 2], [3, 4]])
    assert tt.matrix_power(whole, 3).tolist() == [[37, 54], [81, 118]]
    for n in (1.0, True, "2"):
        with pytest.raises(TypeError):
            tt.matrix_power(whole, n)


def test_orders_and_dimensions_that_there_are_not(torch):
    """PyTorch refuses the same."""
    x = normal(2, 3, 4)
    for call in (
        lambda m, x: m.linalg.norm(x, 2),
        lambda m, x: m.linalg.norm(x, "fro", 0),
        lambda m, x: m.linalg.norm(x, 2, (0, 1, 2)),
        lambda m, x: m.linalg.matrix_norm(x, 3),
        lambda m, x: m.linalg.matrix_norm(x, "other"),
        lambda m, x: m.linalg.matrix_norm(x, "fro", (0, 0)),
        lambda m, x: m.linalg.matrix_norm(x, "fro", (0,)),
        lambda m, x: m.linalg.matrix_norm(x[0, 0]),
        lambda m, x: m.linalg.matrix_norm(x.long()),
        lambda m, x: m.linalg.vector_norm(x.long()),
        lambda m, x: m.linalg.vector_norm(x, dtype=m.float32),
        lambda m, x: m.linalg.vector_norm(x, dtype=m.int64),
        lambda m, x: m.linalg.vector_norm(x[:0], math.inf),
        lambda m, x: m.linalg.cond(x[0], 1),
        lambda m, x: m.linalg.cond(x[0], 5),
        lambda m, x: m.linalg.matrix_rank(x[0, 0]),
        lambda m, x: m.linalg.pinv(x[0, 0]),
        lambda m, x: m.linalg.multi_dot([x[0]]),
        lambda m, x: m.linalg.multi_dot([x[0], x[0]]),
        lambda m, x: m.linalg.multi_dot([x, x]),
        lambda m, x: m.linalg.vecdot(x, x.float()),
        lambda m, x: m.linalg.vander(x, N=1),
        lambda m, x: m.linalg.tensorinv(x, 0),
        lambda m, x: m.linalg.tensorinv(x, 1),
        lambda m, x: m.linalg.tensorsolve(x, x[0]),
        lambda m, x: m.linalg.matrix_exp(x[0]),
        lambda m, x: m.linalg.matrix_exp(x.long()),
        lambda m, x: m.linalg.householder_product(x[0], x[0, 0]),
        lambda m, x: m.ormqr(x[0], x[0, 0, :2], x[0, :1]),
        lambda m, x: m.renorm(x, 0, 0, 1.0),
        lambda m, x: m.renorm(x, 2, 0, -1.0),
        lambda m, x: m.renorm(x[0, 0], 2, 0, 1.0),
        lambda m, x: m.linalg.lstsq(x[0], x[1], driver="other"),
        lambda m, x: m.linalg.lstsq(x[0], x[0, :1]),
        lambda m, x: m.linalg.lstsq(x[0], x[0].float()),
        lambda m, x: m.linalg.lu_factor(x[0], pivot=False),
        lambda m, x: m.lu_unpack(x[0], m.ones(2, dtype=m.int64)),
        lambda m, x: m.linalg.cross(x, x),
        lambda m, x: m.linalg.cross(x, x[0]),
        lambda m, x: m.tensordot(x, x, ([0], [1])),
        lambda m, x: m.addr(x[0].long(), x[0, :, 0].long(), x[0, 0].long(), alpha=0.5),
    ):
        for m in (torch, tt):
            with pytest.raises((RuntimeError, IndexError, ValueError)):
                call(m, m.tensor(x))


def test_integers_times_fractions(torch):
    """Fractions are cut off, but in addr."""
    i = np.arange(1, 5).reshape(2, 2)
    for beta, alpha in ((1.7, 1), (1, 1.7), (0.2, 0.6), (-1.7, 2), (2, 3)):
        for call in (
            lambda x, **by: x[0].addmv(x, x[1], **by),
            lambda x, **by: x.addmm(x, x, **by),
            lambda x, **by: x[None].baddbmm(x[None], x[None], **by),
            lambda x, **by: x.addbmm(x[None], x[None], **by),
            lambda x, **by: x[0].clone().addmv_(x, x[1], **by),
        ):
            ours, theirs = [call(m.tensor(i), beta=beta, alpha=alpha).tolist() for m in (tt, torch)]
            assert ours == theirs


@pytest.mark.parametrize("hermitian", [False, True])
def test_ranks_and_tolerances(torch, hermitian):
    a = np.stack([np.diag([3.0, 2.0, 1e-3]), np.diag([1.0, 1e-9, 0.0])])
    for how in (
        {},
        {"atol": 1e-2},
        {"rtol": 0.9},
        {"atol": 2.5, "rtol": 0.1},
        {"atol": np.array([0.0, 2.0])},
        {"rtol": np.array([0.5, 1e-12])},
        {"tol": 0.5},
    ):
        results = []
        for m in (tt, torch):
            by = {k: m.tensor(v) if isinstance(v, np.ndarray) else v for k, v in how.items()}
            results.append(m.linalg.matrix_rank(m.tensor(a), hermitian=hermitian, **by).tolist())
            if "tol" not in by:
                results[-1] += m.linalg.pinv(m.tensor(a), hermitian=hermitian, **by).round(decimals=6).tolist()
        assert results[0] == results[1], how


def test_low_rank_approximations_are_close():
    a = normal(40, 5) @ normal(5, 30)
    U, S, V = tt.svd_lowrank(tt.tensor(a), 8)
    np.testing.assert_allclose(((U * S) @ V.mH).numpy(), a, atol=1e-9)
    U, S, V = tt.pca_lowrank(tt.tensor(a), 8)
    np.testing.assert_allclose(((U * S) @ V.mH).numpy(), a - a.mean(0), atol=1e-9)
    assert [tuple(x.shape) for x in (U, S, V)] == [(40, 8), (8,), (30, 8)]
    for q, niter in ((31, 2), (-1, 2), (2, -1)):
        with pytest.raises(ValueError):
            tt.pca_lowrank(tt.tensor(a), q, niter=niter)
