"""Special functions: Bessel's, Airy's, the normal distribution's, incomplete gamma functions, orthogonal polynomials.

Their kernels are in kernels/scalar/special.h and the headers it includes. What PyTorch does not differentiate is not
differentiable here; the other derivatives are in Abramowitz and Stegun, chapters 6, 7, 9 and 26.
"""

from __future__ import annotations

import math
import operator

from ..autograd.formulas import not_implemented
from ..dtypes import bool as _bool
from ..dtypes import get_default_dtype
from ..tensor import Tensor
from .declare import binary, composite, primitive, real_only, unary
from .pointwise import digamma, lgamma
from .ranges import arange

_ROOT_2, _ROOT_PI = math.sqrt(2), math.sqrt(math.pi)

# Modified Bessel functions of the first kind. I1(x) / x is 1/2 at 0.


def _over(y, x, at_zero):
    """y / x, and ``at_zero`` where x is 0."""
    zero = x == 0
    return (y / x.masked_fill(zero, 1)).masked_fill(zero, at_zero)


i0 = unary("i0", lambda g, input: g * i1(input), doc="The modified Bessel function of the first kind of order 0.")
i0e = unary(
    "i0e",
    lambda g, input, out: g * (i1e(input) - input.sgn() * out),
    title="SpecialI0EBackward0",
    namespace="special",
    doc="exp(-|x|) i0(x).",
)
i1 = unary(
    "i1",
    lambda g, input, out: g * (i0(input) - _over(out, input, 0.5)),
    title="SpecialI1Backward0",
    namespace="special",
    doc="The modified Bessel function of the first kind of order 1.",
)
i1e = unary(
    "i1e",
    lambda g, input, out: g * (i0e(input) - out * input.sgn() - _over(out, input, 0.5)),
    title="SpecialI1EBackward0",
    namespace="special",
    doc="exp(-|x|) i1(x).",
)

# Without derivatives.

modified_bessel_i0 = unary(
    "modified_bessel_i0",
    namespace="special",
    kernel="i0",
    doc="The modified Bessel function of the first kind of order 0.",
)
modified_bessel_i1 = unary(
    "modified_bessel_i1",
    namespace="special",
    kernel="i1",
    doc="The modified Bessel function of the first kind of order 1.",
)
modified_bessel_k0 = unary(
    "modified_bessel_k0", namespace="special", doc="The modified Bessel function of the second kind of order 0."
)
modified_bessel_k1 = unary(
    "modified_bessel_k1", namespace="special", doc="The modified Bessel function of the second kind of order 1."
)
scaled_modified_bessel_k0 = unary(
    "scaled_modified_bessel_k0", namespace="special", first="x", doc="exp(x) modified_bessel_k0(x)."
)
scaled_modified_bessel_k1 = unary(
    "scaled_modified_bessel_k1", namespace="special", first="x", doc="exp(x) modified_bessel_k1(x)."
)
bessel_j0 = unary("bessel_j0", namespace="special", doc="The Bessel function of the first kind of order 0.")
bessel_j1 = unary("bessel_j1", namespace="special", doc="The Bessel function of the first kind of order 1.")
bessel_y0 = unary("bessel_y0", namespace="special", doc="The Bessel function of the second kind of order 0.")
bessel_y1 = unary("bessel_y1", namespace="special", doc="The Bessel function of the second kind of order 1.")
spherical_bessel_j0 = unary("spherical_bessel_j0", namespace="special", first="x", doc="sin(x) / x, and 1 at 0.")
airy_ai = unary("airy_ai", namespace="special", first="x", doc="Airy's function Ai.")


def _polynomial(name, doc):
    doc = f"{doc} of degree n, the integer part of it; 0 where n is negative."
    return binary(name, namespace="special", first="x", second="n", doc=doc)


chebyshev_polynomial_t = _polynomial("chebyshev_polynomial_t", "Chebyshev's polynomial of the first kind")
chebyshev_polynomial_u = _polynomial("chebyshev_polynomial_u", "Chebyshev's polynomial of the second kind")
chebyshev_polynomial_v = _polynomial("chebyshev_polynomial_v", "Chebyshev's polynomial of the third kind")
chebyshev_polynomial_w = _polynomial("chebyshev_polynomial_w", "Chebyshev's polynomial of the fourth kind")
shifted_chebyshev_polynomial_t = _polynomial(
    "shifted_chebyshev_polynomial_t", "Chebyshev's polynomial of the first kind, of 2 x - 1,"
)
shifted_chebyshev_polynomial_u = _polynomial(
    "shifted_chebyshev_polynomial_u", "Chebyshev's polynomial of the second kind, of 2 x - 1,"
)
shifted_chebyshev_polynomial_v = _polynomial(
    "shifted_chebyshev_polynomial_v", "Chebyshev's polynomial of the third kind, of 2 x - 1,"
)
shifted_chebyshev_polynomial_w = _polynomial(
    "shifted_chebyshev_polynomial_w", "Chebyshev's polynomial of the fourth kind, of 2 x - 1,"
)
hermite_polynomial_h = _polynomial("hermite_polynomial_h", "The physicists' Hermite polynomial")
hermite_polynomial_he = _polynomial("hermite_polynomial_he", "The probabilists' Hermite polynomial")
laguerre_polynomial_l = _polynomial("laguerre_polynomial_l", "Laguerre's polynomial")
legendre_polynomial_p = _polynomial("legendre_polynomial_p", "Legendre's polynomial")

# The normal distribution, and its relatives.

ndtr = unary(
    "ndtr",
    lambda g, input: g * ((input * input * -0.5).exp() * (1 / (_ROOT_2 * _ROOT_PI))),
    title="SpecialNdtrBackward0",
    namespace="special",
    doc="The standard normal distribution's function: the area below its density left of x.",
)
log_ndtr = unary(
    "log_ndtr",
    lambda g, input: g * (_ROOT_2 / _ROOT_PI) / erfcx(input * (-1 / _ROOT_2)),
    title="SpecialLogNdtrBackward0",
    namespace="special",
    doc="log(ndtr(x)), accurate far left too.",
)
ndtri = unary(
    "ndtri",
    lambda g, out: g * (_ROOT_2 * _ROOT_PI) * (out * out * 0.5).exp(),
    title="SpecialNdtriBackward0",
    namespace="special",
    doc="The inverse of ndtr.",
)
erfcx = unary(
    "erfcx",
    lambda g, input, out: g * (2 * input * out - 2 / _ROOT_PI),
    title="SpecialErfcxBackward0",
    namespace="special",
    doc="exp(x^2) erfc(x).",
)
entr = unary(
    "entr",
    lambda g, input: g * -(1 + input.log()),
    title="SpecialEntrBackward0",
    namespace="special",
    doc="-x log x, 0 at 0, and -inf below.",
)
xlog1py = binary(
    "xlog1py",
    lambda g, a, b: (
        (g * b.log1p()).masked_fill((a == 0) & (b <= -1), 0) if isinstance(b, Tensor) else g * math.log1p(b)
    ),
    lambda g, a, b: g * a / (b + 1),
    title={
        "SpecialXlog1PyBackward1": "not isinstance(a, Tensor)",
        "SpecialXlog1PyBackward0": "isinstance(b, Tensor)",
        "SpecialXlog1PyBackward2": "",
    },
    namespace="special",
    doc="input log(1 + other), and 0 where input is 0.",
)

# Gamma functions.

igamma = binary(
    "igamma",
    not_implemented("igamma: input"),
    lambda g, a, b: g * ((a - 1) * b.log() - b - lgamma(a)).exp(),
    doc="The regularised lower incomplete gamma function P(input, other).",
)
igammac = binary(
    "igammac",
    not_implemented("igammac: input"),
    lambda g, a, b: -g * ((a - 1) * b.log() - b - lgamma(a)).exp(),
    doc="The regularised upper incomplete gamma function Q(input, other) = 1 - P(input, other).",
)


def _shifted(x, p):
    """x, x - 1/2, ..., x - (p-1)/2, in a last dimension"""
    return x.unsqueeze(-1) + arange(p, dtype=x.dtype, device=x.device) * -0.5


@primitive(name="mvlgamma", input=lambda g, input, p: g * digamma(_shifted(input, p)).sum(-1))
def _mvlgamma(input, p):
    return lgamma(_shifted(input.detach(), p)).sum(-1) + 0.25 * p * (p - 1) * math.log(math.pi)


@composite
def mvlgamma(input, p):
    """The logarithm of the multivariate gamma function of dimension ``p``.

    Args:
        p: the dimension, at least 1
    Returns:
        A floating tensor of the shape of ``input``.
    Raises:
        RuntimeError: ``p`` is not positive, or ``input`` is a bool or complex
    """
    p = operator.index(p)
    real_only("mvlgamma", input=input)
    if input.dtype is _bool:
        raise RuntimeError("mvlgamma is not supported for bool tensors.")
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    return _mvlgamma(input if input.dtype.is_floating_point else input.to(get_default_dtype()), p)
