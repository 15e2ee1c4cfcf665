"""Operators: random variates that are drawn by rejection, of kernels/scalar/variates.h: gamma and Dirichlet's, with
derivatives by their parameters, and counts."""

from __future__ import annotations

import math

from ..autograd.formulas import not_implemented
from ..backends.cpu import ffi, lib
from ..dtypes import FLOATING, finfo, float64
from ..generator import pointer
from ..tensor import Tensor, attempted
from .create import finish
from .declare import function, primitive, ternary
from .shape import broadcast_shapes

NULL = ffi.NULL
_GAMMA, _LOG_GAMMA, _POISSON, _BINOMIAL = (
    lib.tt_variate_kind(kind) for kind in (b"gamma", b"log_gamma", b"poisson", b"binomial")
)


def _draw(op: str, kind: int, generator, a: Tensor, b: Tensor | None = None, least: float = -math.inf) -> Tensor:
    """Variates of the parameters, which have one shape and dtype; not below ``least``."""
    own = pointer(generator, op, a._h.storage.device)
    a, b = (None if x is None else x.detach().contiguous() for x in (a, b))
    return finish(attempted.tt_variates(kind, a._h, NULL if b is None else b._h, least, own), op)


def _check_floating(op: str, *tensors: Tensor) -> None:
    for t in tensors:
        if not FLOATING[t._h.dtype]:
            raise NotImplementedError(f"{op}: not implemented for {t.dtype!r}")


# Derivatives of variates: kernels/scalar/implicit_gradients.h.

_gamma_slope = ternary(
    "standard_gamma_grad",
    not_implemented("_standard_gamma_grad"),
    not_implemented("_standard_gamma_grad"),
    params=("input", "output"),
    doc="The derivative of a standard gamma variate ``output`` by its shape ``input``.",
)
_dirichlet_slope = ternary(
    "dirichlet_grad",
    *[not_implemented("_dirichlet_grad")] * 3,
    params=("x", "alpha", "total"),
    doc="The derivative of a beta variate ``x`` by its first shape ``alpha``, of ``total``, over 1 - x.",
)


def _standard_gamma_grad(input, output):
    """The derivative of a standard gamma variate ``output`` by its shape ``input``. Follows
    ``torch._standard_gamma_grad``."""
    _check_floating("_standard_gamma_grad", input, output)
    return _gamma_slope(input, output)


def _dirichlet_grad(x, alpha, total):
    """The derivative of a variate ``x`` of Beta(alpha, total - alpha) by ``alpha``, over 1 - x: what a gradient of
    Dirichlet's distribution is made of. Follows ``torch._dirichlet_grad``."""
    _check_floating("_dirichlet_grad", x, alpha, total)
    return _dirichlet_slope(x, alpha, total)


# Variates that have such derivatives.


@primitive(title="StandardGammaBackward0", input=lambda g, input, out: g * _gamma_slope(input, out))
def _gamma(input, generator):
    return _draw("_standard_gamma", _GAMMA, generator, input, least=finfo(input.dtype).tiny)


def _standard_gamma(input, generator=None):
    """Gamma variates of the shapes ``input`` and of rate 1, not below the dtype's least normal number. A gradient flows
    to the shapes. Follows ``torch._standard_gamma``."""
    _check_floating("_standard_gamma", input)
    return _gamma(input, generator)


def _dirichlet_formula(g, input, out):
    total = input.sum(-1, keepdim=True)
    return _dirichlet_slope(out, input, total) * (g - (out * g).sum(-1, keepdim=True))


@primitive(title="DirichletBackward0", input=_dirichlet_formula)
def _dirichlet(input, generator):
    # Gamma variates over their sum; by their logarithms, since those of small shapes are below all floats.
    drawn = _draw("_sample_dirichlet", _LOG_GAMMA, generator, input.detach().to(float64)).softmax(-1)
    return drawn.clamp_(min=finfo(input.dtype).tiny).to(input.dtype)


def _sample_dirichlet(input, generator=None):
    """Vectors of Dirichlet's distribution, of the concentrations along the last dimension of ``input``. A gradient
    flows to these. Follows ``torch._sample_dirichlet``."""
    _check_floating("_sample_dirichlet", input)
    return _dirichlet(input, generator)


# Counts.


def _no_gradient(g):
    return g.new_zeros(()).expand(g.shape)


@primitive(title="PoissonBackward0", input=_no_gradient)
def _poisson(input, generator):
    if input.is_cpu and not bool((input.detach() >= 0).all()):
        raise RuntimeError("poisson: invalid Poisson rate, expected rate to be non-negative")
    return _draw("poisson", _POISSON, generator, input)


@function(pure=False)
def poisson(input, generator=None):
    """Numbers of events, where ``input`` holds how many there are on average. No gradient flows. Nobody waits for a
    device's rates to see whether they are some: NaN where they are not. Follows ``torch.poisson``.

    Args:
        input: rates, floating, not negative
    Returns:
        A tensor of the shape and dtype of ``input``.
    Raises:
        RuntimeError: a rate is negative or NaN
        NotImplementedError: the dtype is not floating
    """
    _check_floating("poisson", input)
    return _poisson(input, generator)


@function(pure=False)
def binomial(count: Tensor, prob: Tensor, generator=None):
    """How many of ``count`` trials succeed, each with the probability ``prob``. No gradient flows. Follows
    ``torch.binomial``.

    Args:
        count: numbers of trials, floating
        prob: probabilities, broadcast with ``count``, of its dtype
    Returns:
        A tensor of the dtype of ``count``, NaN where one of them is.
    Raises:
        ValueError: ``count`` is not floating
        RuntimeError: the dtypes differ
    """
    if not FLOATING[count._h.dtype]:
        raise ValueError(f"binomial only supports floating-point dtypes for count, got: {count.dtype!r}")
    if count.dtype is not prob.dtype:
        raise RuntimeError(f"binomial: found prob of dtype {prob.dtype!r}, expected {count.dtype!r}")
    shape = broadcast_shapes(count.shape, prob.shape)
    return _draw("binomial", _BINOMIAL, generator, count.expand(shape), prob.expand(shape))
