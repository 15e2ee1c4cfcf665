"""How far the functions of kernels/scalar/special.h are from the true values, in float64, beside mpmath. (float32 gets
their rounded results.)"""

import math

import numpy as np
import pytest

import tinytorch
from tinytorch.scalar import ELEMENTWISE

mpmath = pytest.importorskip("mpmath")
mp = mpmath.mp

CHEBYSHEV = {"t": mpmath.chebyt, "u": mpmath.chebyu}


def log_ndtr(x):
    return mpmath.log(mpmath.ncdf(x)) if x < 0 else mpmath.log1p(-mpmath.ncdf(-x))


def ndtri(p):
    if p > 1e-12:
        return mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)
    wanted = mpmath.log(p)
    return -mpmath.findroot(lambda z: mpmath.log(mpmath.ncdf(-z)) - wanted, mpmath.sqrt(-2 * wanted))


def zeta(s, q):
    with mpmath.workdps(90):  # its error is an absolute one
        return mpmath.zeta(s, q)


def slope_of_samples(tail, density, a, sign):
    """-dF / da over the density, by the distribution function below the sample or above it (sign -1)."""
    with mpmath.workdps(60):
        h = a * mpmath.mpf(10) ** -20
        return -sign * (tail(a + h) - tail(a - h)) / (2 * h) / density


def standard_gamma_grad(a, x):
    ends = (0, x, 1) if x < a else (x, mpmath.inf, -1)
    density = x ** (a - 1) * mpmath.exp(-x) / mpmath.gamma(a)
    return slope_of_samples(lambda a: mpmath.gammainc(a, *ends[:2], regularized=True), density, a, ends[2])


def dirichlet_grad(x, a, total):
    b, below = total - a, x < a / total
    density = x ** (a - 1) * (1 - x) ** (b - 1) / mpmath.beta(a, b)

    def tail(a):
        return mpmath.betainc(*((a, b, 0, x) if below else (b, a, 0, 1 - x)), regularized=True)

    return slope_of_samples(tail, density, a, 1 if below else -1) / (1 - x)


# Each function's true values; where its arguments lie (uniformly, or as powers of ten between two exponents); and the
# error allowed there, relative and absolute.
EPS = 2.0**-53
NEAR, FAR, TINY = ((-9, 9),), ((-700, 700),), (("10^", -9, 1),)
MODERATE, LARGE = ((0.1, 14), (0.1, 40)), ((10, 300), (10, 300))
REFERENCES = {
    "i0": (lambda x: mpmath.besseli(0, x), [(NEAR, 8, 0), (FAR, 8, 0)]),
    "i0e": (lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)), [(NEAR, 8, 0), (FAR, 8, 0)]),
    "i1": (lambda x: mpmath.besseli(1, x), [(NEAR, 24, 0), (FAR, 8, 0), (TINY, 12, 0)]),
    "i1e": (lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)), [(NEAR, 24, 0), (FAR, 8, 0), (TINY, 12, 0)]),
    "modified_bessel_k0": (lambda x: mpmath.besselk(0, x), [(((0, 4),), 16, 0), ((("10^", -9, 2.7),), 400, 0)]),
    "modified_bessel_k1": (lambda x: mpmath.besselk(1, x), [(((0, 4),), 16, 0), ((("10^", -9, 2.7),), 400, 0)]),
    "scaled_modified_bessel_k0": (
        lambda x: mpmath.besselk(0, x) * mpmath.exp(x),
        [(((0, 4),), 20, 0), ((("10^", -9, 4),), 12, 0)],
    ),
    "scaled_modified_bessel_k1": (
        lambda x: mpmath.besselk(1, x) * mpmath.exp(x),
        [(((0, 4),), 20, 0), ((("10^", -9, 4),), 12, 0)],
    ),
    "bessel_j0": (lambda x: mpmath.besselj(0, x), [(((-100, 100),), 8, 8)]),
    "bessel_j1": (lambda x: mpmath.besselj(1, x), [(((-100, 100),), 8, 8)]),
    "bessel_y0": (lambda x: mpmath.bessely(0, x), [(((0, 100),), 8, 8)]),
    "bessel_y1": (lambda x: mpmath.bessely(1, x), [(((0, 100),), 8, 8)]),
    "spherical_bessel_j0": (lambda x: mpmath.sin(x) / x, [(NEAR, 4, 0), (TINY, 4, 0)]),
    "airy_ai": (mpmath.airyai, [(((-5, 2),), 40, 8), (((2, 20),), 200, 0), (((-50, -5),), 0, 100)]),
    "erfcx": (
        lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
        [(((-26, 1),), 8, 0), (((0, 10),), 8, 0), ((("10^", 0, 1.4),), 8, 0)],
    ),
    "ndtr": (mpmath.ncdf, [(((-37, 30),), 8, 0)]),
    "log_ndtr": (log_ndtr, [(((-2, 2),), 8, 0), (((-40, 30),), 8, 0)]),
    "ndtri": (ndtri, [(((0, 1),), 8, 0), ((("10^", -300, -2),), 8, 0)]),
    "zeta": (zeta, [(((1.01, 40), (0.1, 40)), 199, 0)]),
    "igamma": (
        lambda a, x: mpmath.gammainc(a, 0, x, regularized=True),
        [
            ((("10^", -3, 1), ("10^", -3, 1.5)), 64, 0),
            (((10, 300), (10, 300)), 4000, 0),
            (((0.1, 14), (0.1, 40)), 99, 0),
        ],
    ),
    "igammac": (
        lambda a, x: mpmath.gammainc(a, x, mpmath.inf, regularized=True),
        [
            ((("10^", -8, 1), ("10^", -3, 1.5)), 400, 0),
            (((10, 300), (10, 300)), 4000, 0),
            (((0.1, 14), (0.1, 40)), 99, 0),
        ],
    ),
    "standard_gamma_grad": (
        standard_gamma_grad,
        [
            ((("10^", -3, 1), ("10^", -3, 1.5)), 400, 0),
            (((30, 300), (30, 300)), 40000, 0),
            (((1e6, 1.0001e6), (0.999e6, 1.001e6)), 4000, 0),
        ],
    ),
    "dirichlet_grad": (
        dirichlet_grad,
        [(((0, 1), (0.01, 3), (3.1, 40)), 4000, 0), (((0, 1), ("10^", -4, 0), (1.01, 2)), 4000, 0)],
    ),
    **{
        f"chebyshev_polynomial_{kind}": (
            lambda x, n, of=of: of(int(n), x),
            [(((-1.5, 1.5), (0, 40)), 400, 400), (((-1, 1), (65, 200)), 0, 4000)],
        )
        for kind, of in CHEBYSHEV.items()
    },
    **{
        f"shifted_chebyshev_polynomial_{kind}": (
            lambda x, n, of=of: of(int(n), 2 * x - 1),
            [(((0, 1), (0, 40)), 0, 4000), (((0, 1), (65, 200)), 0, 40000)],
        )
        for kind, of in CHEBYSHEV.items()
    },
    "hermite_polynomial_h": (lambda x, n: mpmath.hermite(int(n), x), [(((-3, 3), (0, 8)), 16, 4e4)]),
    "hermite_polynomial_he": (
        lambda x, n: mpmath.hermite(int(n), x / mpmath.sqrt(2)) * mpmath.mpf(2) ** (-mpmath.mpf(int(n)) / 2),
        [(((-3, 3), (0, 8)), 16, 4e3)],
    ),
    "laguerre_polynomial_l": (lambda x, n: mpmath.laguerre(int(n), 0, x), [(((-3, 3), (0, 20)), 64, 400)]),
    "legendre_polynomial_p": (lambda x, n: mpmath.legendre(int(n), x), [(((-1.2, 1.2), (0, 20)), 64, 64)]),
}
# By the second kind's values; those of the third and fourth differ from theirs by their start alone.
BY_OTHERS = {f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "vw"}


def test_every_special_function_is_here():
    assert {op.name for op in ELEMENTWISE if op.special} <= REFERENCES.keys() | BY_OTHERS


def drawn(rng, where, count):
    if where[0] == "10^":
        return 10.0 ** rng.uniform(*where[1:], count)
    return rng.uniform(*where, count)


@pytest.mark.parametrize("name", REFERENCES)
def test_accuracy(name):
    reference, ranges = REFERENCES[name]
    function = (
        getattr(tinytorch.special, name, None) or getattr(tinytorch, name, None) or getattr(tinytorch, "_" + name)
    )
    rng = np.random.default_rng(7)
    with mpmath.workdps(40):
        for places, relative, absolute in ranges:
            arguments = [drawn(rng, where, 100) for where in places]
            results = function(*map(tinytorch.from_numpy, arguments)).tolist()
            for *given, result in zip(*arguments, results):
                true = reference(*map(mpmath.mpf, given))
                if abs(true) < 1e-290:
                    continue
                allowed = EPS * (relative * abs(true) + absolute)
                assert abs(result - true) <= allowed, (name, given, result, float((result - true) / true / EPS))


@pytest.mark.parametrize("kind", ["v", "w"])
@pytest.mark.parametrize("n", [0, 1, 7, 64, 65, 130])
def test_chebyshev_polynomials_of_the_third_and_fourth_kind(kind, n):
    """V_n = U_n - U_(n-1), W_n = U_n + U_(n-1); both for 2 x - 1 too."""
    x = tinytorch.linspace(-1.001, 1.001, 41, dtype=tinytorch.float64)
    of = tinytorch.special.chebyshev_polynomial_u
    sign = -1 if kind == "v" else 1
    expected = of(x, n) + sign * of(x, n - 1)
    actual = getattr(tinytorch.special, f"chebyshev_polynomial_{kind}")(x, n)
    shifted = getattr(tinytorch.special, f"shifted_chebyshev_polynomial_{kind}")((x + 1) / 2, n)
    np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(shifted.numpy(), expected.numpy(), rtol=1e-8, atol=1e-8)


def test_degrees_that_would_take_forever_do_not():
    x, most = tinytorch.tensor([0.5, 1.0, 2.0], dtype=tinytorch.float64), 2.0**62
    assert tinytorch.special.chebyshev_polynomial_t(x, most)[1:].tolist() == [1.0, math.inf]
    assert tinytorch.special.legendre_polynomial_p(x, most).isnan().tolist() == [True, False, True]
    assert tinytorch.special.laguerre_polynomial_l(x, most).isnan().all()
    assert tinytorch.special.hermite_polynomial_h(x, most).isnan().all()


def test_nan_stays_nan():
    """PyTorch's igamma(nan, 0) is 0."""
    nan, other = tinytorch.tensor(math.nan), tinytorch.tensor([0.0, 1.0, math.inf])
    for function in (tinytorch.igamma, tinytorch.igammac):
        assert function(nan, other).isnan().all() and function(other, nan)[1:2].isnan().all()
