"""Products of matrices and vectors.

With C = A B the gradients are dA = G B^T and dB = A^T G, each summed over what was broadcast (Giles 2008, "Collected
matrix derivative results"). einsum has a file of its own.
"""

from __future__ import annotations

from ..backends import blas
from ..backends.cpu import lib
from ..dtypes import bool as _bool
from ..tensor import FUNCTIONS, Tensor, attempted
from .declare import alias, attach, both, c_op, computed, refuse, write_out

blas.announce()
_product, _linear_weight = attempted.tt_matmul, attempted.tt_linear_weight

# matmul and its special cases.


def _matmul_a(g, a_shape, b):
    """The gradient of a in a @ b."""
    if b.ndim == 1:
        return g.unsqueeze(-1) * b if len(a_shape) > 1 else g * b
    if len(a_shape) == 1:
        return (b @ g.unsqueeze(-1)).squeeze(-1).sum_to_size(a_shape)
    return (g @ b.mT).sum_to_size(a_shape)


def _matmul_b(g, a, b_shape):
    """The gradient of b in a @ b."""
    if a.ndim == 1:
        return (a.unsqueeze(-1) * g.unsqueeze(-2)).sum_to_size(b_shape) if len(b_shape) > 1 else g * a
    if len(b_shape) == 1:
        return a.flatten(0, -2).mT @ g.flatten()
    if len(b_shape) == 2 and a.ndim > 2:
        return a.flatten(0, -2).mT @ g.flatten(0, -2)
    return (a.mT @ g).sum_to_size(b_shape)


def _matmul_a_first_order(g, a_shape, b):
    n = len(a_shape)
    if n < 2 or b._h.ndim < 2 or n < b._h.ndim:
        return _matmul_a(g, a_shape, b)
    out = computed(_product(g._h, b._h, 0, 1), _matmul_a, g, a_shape, b)
    return out if n == 2 or out.shape == a_shape else out.sum_to_size(a_shape)


def _matmul_b_first_order(g, a, b_shape):
    n = len(b_shape)
    if n == 2 and a._h.ndim >= 2:
        return computed(_linear_weight(a._h, g._h), _matmul_b, g, a, b_shape)
    if n < 2 or a._h.ndim < 2 or n < a._h.ndim:
        return _matmul_b(g, a, b_shape)
    out = computed(_product(a._h, g._h, 1, 0), _matmul_b, g, a, b_shape)
    return out if out.shape == b_shape else out.sum_to_size(b_shape)


def _products(name, title):
    return c_op(
        name,
        lib.tt_matmul,
        params=("a", "b"),
        constants=", 0, 0",
        title=title,
        doc="a @ b.",
        a=_matmul_a,
        b=_matmul_b,
        first_order={"a": _matmul_a_first_order, "b": _matmul_b_first_order},
    )


_matmul, mm_kernel, _bmm = _products("matmul", "MmBackward0"), _products("mm", None), _products("bmm", None)
_mv, _dot = _products("mv", None), _products("dot", None)


def _operator(self, other):
    """``self @ other``: see ``matmul``."""
    return _matmul(self, other) if isinstance(other, Tensor) else NotImplemented


def _reflected(self, other):
    """``other @ self``: see ``matmul``."""
    return _matmul(other, self) if isinstance(other, Tensor) else NotImplemented


attach(_operator, "__matmul__", _matmul.op)
attach(_reflected, "__rmatmul__", _matmul.op)


@both
def matmul(input, other, *, out=None):
    """The product of matrices, vectors or stacks of matrices: the last two dimensions are multiplied, those before
    them broadcast; a vector is a row on the left and a column on the right. RuntimeError when shapes or dtypes do not
    match. Follows ``torch.matmul``.

    Args:
        input: a tensor (*, n, m), or a vector (m)
        other: a tensor (*, m, p), or a vector (m)
    Returns:
        A tensor (*, n, p), without the dimension of a vector; of two vectors, 0-d.
    Raises:
        RuntimeError: the inner sizes, the batches or the dtypes do not match, or an input is 0-d
    """
    try:
        return _matmul(input, other) if out is None else write_out("matmul", _matmul(input, other), out, True)
    except Exception as exc:
        refuse(exc)
        if input.dtype is _bool and input._h.ndim and other._h.ndim > 2:
            raise NotImplementedError("matmul: stacks of matrices are not implemented for 'bool'") from None
        raise


def want(op, t, name, ndim, what):
    if not isinstance(t, Tensor):
        raise TypeError(f"{op}(): argument '{name}' must be Tensor, not {type(t).__name__}")
    if t._h.ndim != ndim:
        kind = IndexError if op == "mv" and name == "input" and not t._h.ndim else RuntimeError  # its size is asked for
        raise kind(f"{op}: {name} must be a {what}, got {t._h.ndim}D tensor of shape {tuple(t.shape)}")


@both
def mm(input, mat2, *, out=None):
    """The product of the matrices (n, m) and (m, p). Follows ``torch.mm``.

    Args:
        input: a matrix (n, m)
        mat2: a matrix (m, p)
    Returns:
        A matrix (n, p).
    Raises:
        RuntimeError: an input is no matrix, or sizes or dtypes do not match
    """
    try:
        want("mm", input, "self", 2, "matrix")
        want("mm", mat2, "mat2", 2, "matrix")
        result = mm_kernel(input, mat2)
        return write_out("mm", result, out, True)
    except Exception as exc:
        refuse(exc)
        raise


@both
def bmm(input, mat2, *, out=None):
    """The products of two stacks of matrices, (b, n, m) and (b, m, p), without broadcasting. Follows ``torch.bmm``.

    Args:
        input: matrices (b, n, m)
        mat2: matrices (b, m, p)
    Returns:
        Matrices (b, n, p).
    Raises:
        RuntimeError: an input is not 3-dimensional, or sizes or dtypes do not match
    """
    try:
        want("bmm", input, "batch1", 3, "3D tensor")
        want("bmm", mat2, "batch2", 3, "3D tensor")
        a, b = input._h.shape, mat2._h.shape
        if a[0] != b[0] or a[2] != b[1]:
            raise RuntimeError(
                f"bmm: Expected size for first two dimensions of batch2 tensor to be: [{a[0]}, {a[2]}] but "
                f"got: [{b[0]}, {b[1]}]."
            )
        result = _bmm(input, mat2)
        return write_out("bmm", result, out, True)
    except Exception as exc:
        refuse(exc)
        raise


@both
def mv(input, vec, *, out=None):
    """The product of the matrix (n, m) and the vector (m). Follows ``torch.mv``.

    Args:
        input: a matrix (n, m)
        vec: a vector (m)
    Returns:
        A vector (n).
    Raises:
        RuntimeError: an input has another number of dimensions, or sizes or dtypes do not match
    """
    try:
        want("mv", input, "input", 2, "matrix")
        want("mv", vec, "vec", 1, "vector")
        result = _mv(input, vec)
        return write_out("mv", result, out, True)
    except Exception as exc:
        refuse(exc)
        raise


@both
def dot(input, tensor, *, out=None):
    """The sum of the products of two vectors' elements. Follows ``torch.dot``.

    Args:
        input: a vector (n)
        tensor: a vector (n)
    Returns:
        A 0-d tensor.
    Raises:
        RuntimeError: an input is no vector, or sizes or dtypes do not match
    """
    try:
        for t in (input, tensor):
            if t._h.ndim != 1:
                raise RuntimeError(f"dot: 1D tensors expected, but got {input._h.ndim}D and {tensor._h.ndim}D tensors")
        result = _dot(input, tensor)
        return write_out("dot", result, out, True)
    except Exception as exc:
        refuse(exc)
        raise


@both
def vdot(input, other, *, out=None):
    """``dot`` of the conjugate of ``input`` with ``other``. Follows ``torch.vdot``."""
    return dot(FUNCTIONS["conj"](input), other, out=out)


@both
def outer(input, vec2, *, out=None):
    """The products of every two elements of two vectors: shape (n, m). Follows ``torch.outer``.

    Args:
        input: a vector (n)
        vec2: a vector (m)
    Returns:
        A matrix (n, m).
    Raises:
        RuntimeError: an input is no vector
    """
    want("outer", input, "self", 1, "vector")
    want("outer", vec2, "vec2", 1, "vector")
    result = input.unsqueeze(1) * vec2
    return write_out("outer", result, out)


alias("outer", "ger")
