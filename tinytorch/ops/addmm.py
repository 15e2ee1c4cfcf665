"""Products added to something: addmm, addmv, addr, baddbmm, addbmm."""

from __future__ import annotations

from ..backends.cpu import error, lib
from ..dtypes import DIFFERENTIABLE
from ..tensor import Tensor, attempted
from .declare import both, method, old_order, primitive, same_parameters, write_out, refuse
from .arithmetic import in_common_dtype
from .fitting import fitted
from .matmul import bmm, mm, mv, outer


def _scaled(x, factor):
    if factor == 1:
        return x
    return x & bool(factor) if x._h.dtype == lib.TT_BOOL else x * factor


@primitive(
    title="AddmmBackward0",
    input=lambda g, input_shape, beta: _scaled(g.sum_to_size(input_shape), beta),
    mat1=lambda g, mat2, alpha: _scaled(g @ mat2.mT, alpha),
    mat2=lambda g, mat1, alpha: _scaled(mat1.mT @ g, alpha),
)
def _addmm(input, mat1, mat2, beta, alpha):
    out = attempted.tt_addmm(input._h, mat1._h, mat2._h, beta, alpha)
    if out is None:
        raise error("addmm")
    return out


def _factors(op, t, beta, alpha):
    """beta and alpha for products of ``t``; of integers, integers."""
    if not isinstance(t, Tensor):
        raise TypeError(f"{op}(): expected Tensors, but got {type(t).__name__}")
    if op == "addr" and (isinstance(beta, complex) or isinstance(alpha, complex)) and not t.is_complex():
        raise RuntimeError(f"{op}: For non-complex input tensors, beta and alpha must not be complex numbers.")
    if op == "addr" and not DIFFERENTIABLE[t._h.dtype]:
        for name, factor in (("beta", beta), ("alpha", alpha)):
            if isinstance(factor, float):
                raise RuntimeError(
                    f"{op}: For integral input tensors, argument {name} must not be a floating point number."
                )
    computing = op not in ("addmv", "addr")
    return fitted(beta, t._h.dtype, computing), fitted(alpha, t._h.dtype, computing)


def _takes(t, beta, alpha) -> bool:
    """Does the C kernel take these factors?"""
    if DIFFERENTIABLE[t._h.dtype]:
        return not (isinstance(beta, complex) or isinstance(alpha, complex))
    return beta == 1 and alpha == 1


def _plus(op, input, product, beta, alpha):
    """beta * input + alpha * product, where input's NaNs do not count if beta is 0."""
    product = _scaled(product, alpha)
    shape = product.shape
    if not isinstance(input, Tensor):
        raise TypeError(f"{op}(): argument 'input' must be Tensor, not {type(input).__name__}")
    if input._h.ndim > len(shape):
        raise RuntimeError(
            f"{op}: The expanded size of the tensor must match the existing size: input of shape "
            f"{tuple(input.shape)} does not broadcast to {tuple(shape)}"
        )
    input = input.expand(shape)
    if beta == 0:
        return product + (input * beta).masked_fill(input == input, 0).masked_fill(input != input, 0)
    return _scaled(input, beta) + product


def _in_order(op, beta, alpha, *given):
    """The three tensors, beta and alpha of a call that may have numbers between the tensors."""
    return old_order(op, 3, {"beta": beta, "alpha": alpha}, *given)


def _sum(op, multiply, given, beta, alpha, out):
    """``beta * input + alpha * multiply(a, b)``, where ``given`` are input, a and b."""
    input, a, b, beta, alpha = (*given, beta, alpha) if len(given) == 3 else _in_order(op, beta, alpha, *given)
    if multiply not in (mv, outer) and (a._h.ndim < 2 or b._h.ndim < 3):
        raise IndexError(f"{op}: expected 3D tensors, got {a._h.ndim}D and {b._h.ndim}D")
    if multiply is mv and isinstance(a, Tensor) and isinstance(b, Tensor):
        if a._h.ndim != 2 or b._h.ndim != 1:
            raise RuntimeError(f"{op}: vector + matrix @ vector expected, got {a._h.ndim}D and {b._h.ndim}D")
        if a.shape[1] != b.shape[0]:
            input.size(0)  # IndexError for a 0-d tensor
    beta, alpha = _factors(op, a, beta, alpha)
    return write_out(op, _plus(op, input, multiply(a, b), beta, alpha), out, True)


def _sum_of_products(batch1, batch2):
    return bmm(batch1, batch2).sum(0, dtype=batch1.dtype)


@both
def addmm(input, mat1, mat2, *rest, beta=1, alpha=1, out=None):
    """``beta * input + alpha * mat1 @ mat2``; input broadcasts to the product. With beta 0 the input's values do not
    count. Follows ``torch.addmm``.

    Args:
        input: a tensor that broadcasts to (n, p)
        mat1: a matrix (n, m)
        mat2: a matrix (m, p)
        beta: a number
        alpha: a number
    Returns:
        A matrix (n, p).
    Raises:
        RuntimeError: sizes or dtypes do not match, or real numbers are multiplied by a complex one
    """
    try:
        added, a, b, by, times = input, mat1, mat2, beta, alpha  # parameters keep what they were given: refusals.py
        if rest:
            added, a, b, by, times = _in_order("addmm", beta, alpha, input, mat1, mat2, *rest)
        by, times = _factors("addmm", a, by, times)
        if _takes(a, by, times):
            result = _addmm(added, a, b, by, times)
        else:
            result = _plus("addmm", added, mm(a, b), by, times)
        return write_out("addmm", result, out, True)
    except Exception as exc:
        refuse(exc)
        raise


@both
def addmv(input, mat, vec, *rest, beta=1, alpha=1, out=None):
    """``beta * input + alpha * mat @ vec``. Follows ``torch.addmv``."""
    return _sum("addmv", mv, (input, mat, vec, *rest), beta, alpha, out)


@both
def addr(input, vec1, vec2, *rest, beta=1, alpha=1, out=None):
    """``beta * input + alpha * outer(vec1, vec2)``. Follows ``torch.addr``."""
    if rest:
        input, vec1, vec2, beta, alpha = _in_order("addr", beta, alpha, input, vec1, vec2, *rest)
    if all(isinstance(t, Tensor) for t in (input, vec1, vec2)):
        input, vec1, vec2 = (
            in_common_dtype(input, vec1, vec2),
            in_common_dtype(vec1, input, vec2),
            in_common_dtype(vec2, input, vec1),
        )
    return _sum("addr", outer, (input, vec1, vec2), beta, alpha, out)


@both
def baddbmm(input, batch1, batch2, *rest, beta=1, alpha=1, out=None):
    """``beta * input + alpha * bmm(batch1, batch2)``. Follows ``torch.baddbmm``. Otherwise like ``addmm``.

    Args:
        input: a tensor that broadcasts to (b, n, p)
        batch1: matrices (b, n, m)
        batch2: matrices (b, m, p)
    Returns:
        Matrices (b, n, p).
    """
    try:
        return _sum("baddbmm", bmm, (input, batch1, batch2, *rest), beta, alpha, out)
    except Exception as exc:
        refuse(exc)
        raise


@both
def addbmm(input, batch1, batch2, *rest, beta=1, alpha=1, out=None):
    """``beta * input + alpha * bmm(batch1, batch2).sum(0)``. Follows ``torch.addbmm``."""
    return _sum("addbmm", _sum_of_products, (input, batch1, batch2, *rest), beta, alpha, out)


def _in_place(fn):
    """``Tensor.<name>_``: the result computed, then written over ``self``."""

    def inplace(self, *args, beta=1, alpha=1):
        result = fn(self, *args, beta=beta, alpha=alpha)
        if result.shape != self.shape:
            raise RuntimeError(
                f"{inplace.__name__}: output with shape {tuple(self.shape)} doesn't match the broadcast "
                f"shape {tuple(result.shape)}"
            )
        return self.copy_(result)

    inplace.__name__ = inplace.__qualname__ = fn.__name__ + "_"
    inplace.__doc__ = f"``{fn.__name__}`` in place."
    method(inplace)
    same_parameters(inplace, fn)


for _fn in (addmm, addmv, addr, baddbmm, addbmm):
    _in_place(_fn)
