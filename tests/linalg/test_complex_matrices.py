"""Complex matrices: decompositions against their definitions, and losses that depend on phases."""

import numpy as np
import pytest
import tinytorch as tt

TOLERANCE = {"complex64": 2e-4, "complex128": 1e-11}
SHAPES = [(4, 4), (5, 3), (3, 5), (1, 1), (2, 3, 4, 2), (60, 50), (0, 3, 3), (2, 0, 3), (2, 3, 0)]


def random(*shape, dtype="complex128"):
    rng = np.random.default_rng(sum(shape))
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def hermitian(*shape, dtype="complex128"):
    a = random(*shape, dtype=dtype)
    return (a @ np.swapaxes(a.conj(), -1, -2) + np.eye(shape[-1])).astype(dtype)


def tensor(a):
    return tt.tensor(a) if a.size else tt.zeros(a.shape, dtype=getattr(tt, a.dtype.name))


def close(x, y, dtype):
    np.testing.assert_allclose(x.numpy() if isinstance(x, tt.Tensor) else x, y, rtol=0, atol=60 * TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rectangular(shape, dtype):
    a = random(*shape, dtype=dtype)
    A, k = tensor(a), min(shape[-2:])
    real = {"complex64": tt.float32, "complex128": tt.float64}[dtype]
    for full in (False, True):
        U, S, Vh = tt.linalg.svd(A, full)
        assert S.dtype is real
        close((U[..., :k] * S.unsqueeze(-2)) @ Vh[..., :k, :], a, dtype)
        Q, R = tt.linalg.qr(A, "complete" if full else "reduced")
        close(Q @ R, a, dtype)
        close(Q.mH @ Q, np.broadcast_to(np.eye(Q.shape[-1]), (*shape[:-2], *Q.shape[-1:] * 2)), dtype)
    P, L, U = tt.linalg.lu(A)
    close(P @ L @ U, a, dtype)
    close(A @ tt.linalg.pinv(A) @ A, a, dtype)
    close(tt.linalg.householder_product(*tt.geqrf(A)) @ tt.linalg.qr(A).R if shape[-2] >= shape[-1] else A, a, dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", [(4, 4), (1, 1), (2, 3, 5, 5), (40, 40), (0, 2, 2), (2, 0, 0)], ids=str)
def test_square(shape, dtype):
    a, h = random(*shape, dtype=dtype), hermitian(*shape, dtype=dtype)
    A, H = tensor(a), tensor(h)
    values, V = tt.linalg.eigh(H)
    assert not values.is_complex()
    close((V * values.unsqueeze(-2)) @ V.mH, h, dtype)
    close(tt.linalg.eigvalsh(H), values.numpy(), dtype)
    values, V = tt.linalg.eig(A)
    close(A @ V, (V * values.unsqueeze(-2)).numpy(), dtype)
    for upper in (False, True):
        L = tt.linalg.cholesky(H, upper=upper)
        close(L.mH @ L if upper else L @ L.mH, h, dtype)
        close(tt.cholesky_inverse(L, upper), tt.linalg.inv(H).numpy(), dtype)
    close(tt.linalg.solve(H, A), np.linalg.solve(h, a), dtype)
    for hermit in (False, True):
        s = h if hermit else (a + np.swapaxes(a, -1, -2) + 9 * np.eye(shape[-1])).astype(dtype)
        X = tt.linalg.ldl_solve(*tt.linalg.ldl_factor(tensor(s), hermitian=hermit), A, hermitian=hermit)
        close(tensor(s) @ X, a, dtype)


def test_only_the_real_part_of_the_diagonal_counts(torch):
    h = hermitian(3, 3) + np.diag([1j, 2j, 3j])
    for name in ("eigvalsh", "cholesky"):
        ours, theirs = [getattr(m.linalg, name)(m.tensor(h)) for m in (tt, torch)]
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-10)


PHASES = {
    "svd, U": lambda m, A: m.linalg.svd(A, False).U,
    "svd, Vh": lambda m, A: m.linalg.svd(A, False).Vh,
    "eigh": lambda m, A: m.linalg.eigh(A @ A.mH).eigenvectors,
    "eig": lambda m, A: m.linalg.eig(A).eigenvectors,
}


@pytest.mark.parametrize("name", PHASES)
def test_a_loss_that_depends_on_phases_is_refused(torch, name):
    for m in (tt, torch):
        x = m.tensor(random(3, 3), requires_grad=True)
        vectors = PHASES[name](m, x)
        w = m.tensor(random(3, 3, 3)[0])
        (g,) = m.autograd.grad((vectors * vectors.conj() * w).real.sum(), x, retain_graph=True)
        assert g.isfinite().all()
        with pytest.raises(RuntimeError, match="ill-defined"):
            m.autograd.grad((vectors * w).real.sum(), x)


def test_both_vectors_may_turn_together(torch):
    """U f(S) V^H does not depend on phases, though U and V do."""
    found = []
    for m in (tt, torch):
        x = m.tensor(random(4, 3), requires_grad=True)
        U, S, Vh = m.linalg.svd(x, False)
        out = ((U * S.exp().unsqueeze(-2)) @ Vh).abs().square().sum() + (U @ Vh).real.sum()
        (g,) = m.autograd.grad(out, x, create_graph=True)
        found.append((g.detach().numpy(), m.autograd.grad(g.abs().square().sum(), x)[0].numpy()))
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8)


@pytest.mark.parametrize(
    "f",
    [
        lambda A: tt.linalg.eigvals(A).abs().square().sum(),
        lambda A: tt.linalg.eig(A).eigenvectors.abs(),
        lambda A: tt.linalg.svd(A).U.abs(),
        lambda A: tt.linalg.qr(A).R,
        lambda A: tt.linalg.cholesky(A @ A.mH + 3 * tt.eye(3)),
        lambda A: tt.linalg.slogdet(A),
        lambda A: tt.linalg.det(A),
        lambda A: tt.linalg.lu(A)[1:],
        lambda A: tt.linalg.pinv(A[:, :2]),
        lambda A: tt.linalg.matrix_exp(A),
        lambda A: tt.linalg.lstsq(A[:, :2], A[:, 2:], driver="gelsd")[:2],
        lambda A: tt.linalg.matrix_norm(A, "nuc"),
        lambda A: tt.logdet(A),
    ],
    ids=["eigvals", "eig", "svd", "qr", "cholesky", "slogdet", "det", "lu", "pinv", "exp", "lstsq", "nuc", "logdet"],
)
def test_derivatives_against_finite_differences(f):
    x = tt.tensor(random(3, 3) + 3 * np.diag([1, 2, 3]), requires_grad=True)
    assert tt.autograd.gradcheck(f, (x,))
    assert tt.autograd.gradgradcheck(f, (x,))
