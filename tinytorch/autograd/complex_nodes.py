"""Gradients of complex numbers.

Note [Complex gradients]
The gradient of a real loss by z = x + iy is dL/dx + i dL/dy, as in PyTorch. Where w = f(z) has a complex derivative it
is then g conj(f'(z)), g being that of w. Formulas are written for real numbers, g f'(z), and are linear in g: so what
is wanted is the conjugate of the formula for conj(g). That holds for every derivative that is a formula of this kind,
of functions, products and sums alike, and in two steps for the second derivative. So a result of complex dtype has a
Node of another class (``Node.of_complex``), which conjugates before and after; real numbers do not meet it.

It must not be done where the derivative is not complex-linear: conjugates, what depends on |z|, real and imaginary
parts (``conjugates = False``; a real result of complex numbers has the plain class anyway); and it need not for views,
which only move numbers. A real argument's gradient is the real part: engine.unbroadcast, and ops/convert.in_dtype.
"""

from __future__ import annotations

import functools

from ..tensor import Tensor


def _conjugated(x):
    if isinstance(x, Tensor):
        return x.conj()
    return [_conjugated(part) for part in x] if isinstance(x, (list, tuple)) else x


@functools.cache
def conjugating(cls: type) -> type:
    """The class of the same Nodes for complex results."""

    def backward(g, saved, edges):
        return _conjugated(cls.backward(_conjugated(g), saved, edges))

    def first_order(g, saved, edges):
        return _conjugated(cls.first_order(_conjugated(g), saved, edges))

    functions = {"backward": staticmethod(backward), "first_order": staticmethod(first_order)}
    return type(cls.__name__, (cls,), {"__slots__": (), "__module__": cls.__module__, "conjugates": False, **functions})
