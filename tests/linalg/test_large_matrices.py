"""Decompositions of matrices that several threads work on: with the same bits for any number of them."""

import numpy as np
import pytest
import tinytorch as tt

each_dtype = pytest.mark.parametrize("dtype", ["float32", "float64"])


def for_every_number_of_threads(function, a, dtype):
    """The results as float64, and the bound of errors."""
    before, found = tt.get_num_threads(), []
    for threads in (1, 2, 5, 11):
        tt.set_num_threads(threads)
        found.append([t.numpy() for t in function(tt.from_numpy(a))])
    tt.set_num_threads(before)
    for other in found[1:]:
        for x, y in zip(found[0], other):
            np.testing.assert_array_equal(x, y)
    return [x.astype("float64") for x in found[0]], 50 * np.finfo(dtype).eps


def assert_eigenvectors(a, values, vectors, bound):
    assert (np.diff(values) >= 0).all()
    assert np.abs(a.astype("float64") @ vectors - vectors * values).max() <= bound * np.abs(values).max()
    assert np.abs(vectors.T @ vectors - np.eye(len(a))).max() <= bound


@each_dtype
@pytest.mark.parametrize("n", [191, 192, 257, 320])
@pytest.mark.parametrize("scale", [1.0, 1e-20, 1e18])
@pytest.mark.parametrize("part", "LU")
def test_eigenvectors(n, dtype, scale, part):
    """Of one triangle: what the other one has does not count."""
    x = np.random.default_rng(0).standard_normal((n, n))
    a = ((x + x.T) * scale).astype(dtype)
    given = np.tril(a) + np.triu(np.full_like(a, 7), 1) if part == "L" else np.triu(a) + np.tril(np.full_like(a, 7), -1)
    (values, vectors), bound = for_every_number_of_threads(lambda t: tt.linalg.eigh(t, part), given, dtype)
    assert_eigenvectors(a, values, vectors, bound)


def spectra(n):
    """Symmetric matrices whose blocks merge in every way: Note [Divide and conquer] in cpu/tridiagonal.h."""
    rng = np.random.default_rng(n)
    half, off = n // 2, np.ones(n - 1)
    q, one, few = np.linalg.qr(rng.standard_normal((n, n)))[0], 0 * off, 0 * off
    one[half - 1] = -3
    few[half - 2 : half + 1] = 1
    first = np.zeros((n, n))
    first[:half, :half] = q[:half, :half]

    def tridiagonal(d, e):
        return np.diag(d) + np.diag(e, 1) + np.diag(e, -1)

    kinds = {
        "nothing is coupled": tridiagonal(np.arange(n) - half, 0 * off),
        "two are coupled": tridiagonal(np.arange(n), one),
        "two equal ones are coupled": tridiagonal(np.ones(n), one),
        "four are coupled": tridiagonal(np.arange(n), few),
        "all are equal": 2.5 * np.eye(n),
        "rank one": np.ones((n, n)),
        "negative couplings": tridiagonal(2 * np.ones(n), -off),
        "pairs": tridiagonal(np.abs(np.arange(n) - half), off),
        "three values": (q * np.arange(n).clip(1, 3)) @ q.T,
        "near one another": (q * (1 + 1e-6 * rng.standard_normal(n))) @ q.T,
        "of all sizes": (q * np.logspace(-12, 0, n)) @ q.T,
        "of random signs": (q * rng.choice([-1, 1], n)) @ q.T,
        "half of it is 0": first,
    }
    return {name: (a + a.T) / 2 for name, a in kinds.items()}


@each_dtype
@pytest.mark.parametrize("kind", spectra(4))
@pytest.mark.parametrize("n", [200, 300])
def test_eigenvectors_of_every_spectrum(kind, n, dtype):
    """Two blocks, and four."""
    a = spectra(n)[kind].astype(dtype)
    (values, vectors), bound = for_every_number_of_threads(tt.linalg.eigh, a, dtype)
    assert_eigenvectors(a, values, vectors, bound)


def assert_singular_vectors(a, u, s, v, bound):
    assert (s[:-1] >= s[1:]).all() and s[-1] >= 0
    assert np.abs(u * s @ v - a).max() <= bound * s.max()
    assert max(np.abs(q.T @ q - np.eye(len(a))).max() for q in (u, v.T)) <= bound
    np.testing.assert_allclose(s, np.linalg.svd(a.astype("float64"))[1], rtol=0, atol=bound * s.max())


@each_dtype
@pytest.mark.parametrize("n", [191, 192, 257, 320])
@pytest.mark.parametrize("scale,corner", [(1.0, None), (1e-20, None), (1e18, None), (1.0, (0, -1)), (1.0, (-1, 0))])
def test_singular_vectors(n, dtype, scale, corner):
    """Of a matrix with a row of zeros and two that are equal, too. The square of the corner overflows."""
    a = (np.random.default_rng(n).standard_normal((n, n)) * scale).astype(dtype)
    a[3], a[5] = 0, a[4]
    if corner:
        a[corner] = np.finfo(dtype).max / 1000
    (u, s, v), bound = for_every_number_of_threads(tt.linalg.svd, a, dtype)
    assert_singular_vectors(a, u, s, v, bound)
    assert s[-1] <= bound * s.max()


def singular_spectra(n):
    """The same of matrices with singular values: Note [Divide and conquer]."""
    rng = np.random.default_rng(n)
    half, off = n // 2, np.ones(n - 1)
    (q, p), one, d = np.linalg.qr(rng.standard_normal((2, n, n)))[0], 0 * off, np.ones(n)
    one[half] = -2
    d[half] = 0
    rows = rng.standard_normal((n, n))
    rows[:half] = 0

    def bidiagonal(d, e):
        return np.diag(d) + np.diag(e, 1)

    return {
        "diagonal": np.diag(np.arange(n) - half),
        "all are equal": 2.5 * np.eye(n),
        "of both signs": np.diag((-1.0) ** np.arange(n)),
        "one is negative": np.diag((-1.0) ** (np.arange(n) == half - 1)),
        "rank one": np.ones((n, n)),
        "two are coupled": bidiagonal(np.arange(n), one),
        "orthogonal": q,
        "three values": (q * np.arange(n).clip(1, 3)) @ p,
        "near one another": (q * (1 + 1e-6 * rng.standard_normal(n))) @ p,
        "of all sizes": (q * np.logspace(-12, 0, n)) @ p,
        "Jordan's": bidiagonal(np.ones(n), off),
        "nilpotent": bidiagonal(np.zeros(n), off),
        "pairs": bidiagonal(np.abs(np.arange(n) - half), off),
        "singular in the middle": bidiagonal(d, off / 2),
        "rows of zeros": rows,
        "columns of zeros": rows.T,
        "zeros": np.zeros((n, n)),
    }


@each_dtype
@pytest.mark.parametrize("kind", singular_spectra(4))
@pytest.mark.parametrize("n", [200, 300])
def test_singular_vectors_of_every_spectrum(kind, n, dtype):
    """Two blocks, and four. Where most values are zero, LAPACK's errors are no smaller."""
    a = singular_spectra(n)[kind].astype(dtype)
    (u, s, v), bound = for_every_number_of_threads(tt.linalg.svd, a, dtype)
    assert_singular_vectors(a, u, s, v, 6 * bound)


@each_dtype
@pytest.mark.parametrize("m,n", [(191, 191), (192, 192), (321, 200), (200, 321), (257, 193)])
@pytest.mark.parametrize("scale", [1.0, 1e-20, 1e18])
def test_qr(m, n, dtype, scale):
    """Of a matrix with a column of zeros and two that are equal, too."""
    a = (np.random.default_rng(m).standard_normal((m, n)) * scale).astype(dtype)
    a[:, 70], a[:, 150] = 0, a[:, 20]

    def every_mode(t):
        return [x for mode in ("complete", "reduced", "r") for x in tt.linalg.qr(t, mode)]

    results, bound = for_every_number_of_threads(every_mode, a, dtype)
    for q, r in (results[:2], results[2:4]):
        assert np.abs(q @ r - a).max() <= bound * np.abs(a).max() and np.array_equal(r, np.triu(r))
        assert np.abs(q.T @ q - np.eye(q.shape[1])).max() <= bound
    np.testing.assert_array_equal(results[5], results[3])


@each_dtype
@pytest.mark.parametrize("n", [191, 192, 257, 450])
@pytest.mark.parametrize("upper", [False, True], ids=["lower", "upper"])
def test_cholesky(n, dtype, upper):
    """Of one triangle: what the other one has does not count."""
    x = np.random.default_rng(n).standard_normal((n, n))
    a = (x @ x.T + n * np.eye(n)).astype(dtype)
    given = np.triu(a) if upper else np.tril(a)
    (factor,), bound = for_every_number_of_threads(lambda t: [tt.linalg.cholesky(t, upper=upper)], given, dtype)
    expected = np.linalg.cholesky(a.astype("float64"))
    np.testing.assert_allclose(factor, expected.T if upper else expected, rtol=0, atol=bound * np.abs(expected).max())


@each_dtype
@pytest.mark.parametrize("at", [0, 63, 64, 200, 299])
@pytest.mark.parametrize("pivot", [-1.0, np.nan])
def test_a_large_matrix_that_is_not_positive(at, pivot, dtype):
    a = np.eye(300, dtype=dtype)
    a[at, at] = pivot
    assert tt.linalg.cholesky_ex(tt.from_numpy(a)).info.item() == at + 1
    with pytest.raises(tt.linalg.LinAlgError, match=f"leading minor of order {at + 1}"):
        tt.linalg.cholesky(tt.from_numpy(a))
