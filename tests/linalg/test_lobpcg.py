"""lobpcg against PyTorch's, step by step, and against eigh."""

import numpy as np
import pytest

import tinytorch

RNG = np.random.default_rng(3)


def positive(m, *batch):
    a = RNG.standard_normal((*batch, m, m))
    return a @ a.swapaxes(-1, -2) / m + np.eye(m)


def sought(library, A, B, X, dtype, **options):
    """Eigenvalues, vectors and how many steps it took."""
    A, B, X = (None if a is None else library.tensor(a.astype(dtype)) for a in (A, B, X))
    steps = []
    E, V = library.lobpcg(A, 3, B, X, tracker=lambda state: steps.append(state.ivars["istep"]), **options)
    return np.array(E.tolist()), np.array(V.tolist()), steps


@pytest.mark.parametrize(
    "batch, largest, general, dtype",
    [
        ((), True, False, "float32"),
        ((), True, True, "float64"),
        ((), False, True, "float32"),
        ((2, 2), None, False, "float32"),
        ((2,), None, True, "float64"),
    ],
)
def test_ortho(batch, largest, general, dtype, torch):
    A, B, X = positive(14, *batch), positive(14, *batch) if general else None, RNG.standard_normal((*batch, 14, 3))
    E, V, steps = sought(tinytorch, A, B, X, dtype, largest=largest)
    wanted, _, many = sought(torch, A, B, X, dtype, largest=largest)
    np.testing.assert_allclose(E, wanted, rtol=1e-4 if dtype == "float32" else 1e-10)
    B = np.eye(14) if B is None else B
    atol = 3e-3 if dtype == "float32" else 1e-6
    np.testing.assert_allclose(A @ V, (B @ V) * E[..., None, :], atol=atol)
    np.testing.assert_allclose(V.swapaxes(-1, -2) @ B @ V, np.broadcast_to(np.eye(3), (*batch, 3, 3)), atol=atol / 10)
    assert abs(len(steps) - len(many)) <= len(many) // 3 + 2


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("largest", [True, False])
def test_basic(largest, general):
    A, B, X = positive(14), positive(14) if general else np.eye(14), RNG.standard_normal((14, 3))
    E, V, _ = sought(tinytorch, A, B, X, "float64", largest=largest, method="basic")
    every = np.sort(np.linalg.eigvals(np.linalg.solve(B, A)).real)
    np.testing.assert_allclose(E, every[::-1][:3] if largest else every[:3], rtol=1e-10)
    np.testing.assert_allclose(A @ V, (B @ V) * E, atol=1e-6)


@pytest.mark.parametrize("largest", [True, False])
def test_derivatives(largest, torch):
    A, X, w = positive(6), RNG.standard_normal((6, 2)), RNG.standard_normal((6, 2))
    gradients = []
    for library in (tinytorch, torch):
        a = library.tensor(A, requires_grad=True)
        E, V = library.lobpcg(a, X=library.tensor(X), largest=largest, tol=1e-13, niter=100)
        (((V * library.tensor(w)).sum(0) ** 2).sum() + (E * library.tensor([1.0, -2.0])).sum()).backward()
        gradients.append(np.array(a.grad.tolist()))
    np.testing.assert_allclose(*gradients, rtol=1e-8, atol=1e-9)

    def pairs(a):
        E, V = tinytorch.lobpcg(a, X=tinytorch.tensor(X), largest=largest, tol=1e-14, niter=25)
        return E, V.abs()

    a = tinytorch.tensor(A, requires_grad=True)
    assert tinytorch.autograd.gradcheck(pairs, a, atol=1e-4)
    assert tinytorch.autograd.gradgradcheck(lambda a: pairs(a)[0], a, atol=1e-3)


def test_what_has_no_derivative():
    B = tinytorch.tensor(positive(9))
    a = tinytorch.tensor(positive(9), requires_grad=True)
    with pytest.raises(ValueError, match="B != I"):
        tinytorch.lobpcg(a, 1, B)[0].sum().backward()


def test_sparse():
    A = tinytorch.diag(tinytorch.arange(1.0, 21.0, dtype=tinytorch.float64)).to_sparse()
    for iK in (None, tinytorch.diag(1 / tinytorch.arange(1.0, 21.0, dtype=tinytorch.float64))):
        E, V = tinytorch.lobpcg(A, 2, largest=False, iK=iK)
        np.testing.assert_allclose(E.tolist(), [1, 2], rtol=1e-10)
    E, _ = tinytorch.lobpcg(A, 2, ortho_bparams={"ortho_use_drop": True}, tol=1e-9)
    np.testing.assert_allclose(E.tolist(), [20, 19], rtol=1e-10)


def test_a_tracker_may_stop():
    seen = []

    def tracker(state):
        seen.append((state.ivars["istep"], state.E.clone(), state.tvars["rerr"].shape))
        state.bvars["force_stop"] = len(seen) == 3
        assert "iterations_left" in str(state)

    tinytorch.lobpcg(tinytorch.tensor(positive(40)), 2, n=4, tracker=tracker, tol=0.0)
    assert [step for step, *_ in seen] == [1, 2, 3] and seen[0][2] == (4,)
    assert tinytorch.lobpcg(tinytorch.tensor(positive(40)), 2, niter=2, tracker=tracker)[0].shape == (2,)
    assert len(seen) == 5


@pytest.mark.parametrize("case", ["eye(4), 2", "ones(4, 5), 1", "ones(4, 4), 1, X=m.ones(5, 1)", "eye(9), 1, m.eye(8)"])
def test_errors(case, torch):
    kinds = []
    for m in (tinytorch, torch):
        with pytest.raises((ValueError, AssertionError)) as caught:
            eval(f"m.lobpcg(m.{case})", {"m": m})
        kinds.append(caught.type)
    assert kinds[0] is kinds[1]


def test_derivatives_by_b_are_refused(torch):
    A, B, X = positive(6), positive(6), RNG.standard_normal((6, 2))
    for m in (tinytorch, torch):
        E, _ = m.lobpcg(m.tensor(A), B=m.tensor(B, requires_grad=True), X=m.tensor(X))
        with pytest.raises(ValueError, match="B != I"):
            E.sum().backward()
