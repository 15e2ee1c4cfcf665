"""Products of matrices and vectors.

With C = A B the gradients are dA = G B^T and dB = A^T G, each summed over what was broadcast (Giles 2008, "Collected
matrix derivative results"). einsum has a file of its own.
"""

from __future__ import annotations

from ..autograd.node import alias
from ..backends import blas
from ..backends.cpu import lib
from ..tensor import FUNCTIONS, Tensor, attempted
from .declare import attach, both, c_op, computed, function, primitive, refuse, write_out

blas.announce()
_product, _linear_weight = attempted.tt_matmul, attempted.tt_linear_weight
_column_sums = attempted.tt_column_sums

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
        return a.reshape(-1, b_shape[0]).mT @ g.reshape(-1)
    if len(b_shape) == 2 and a.ndim > 2:
        return a.reshape(-1, b_shape[0]).mT @ g.reshape(-1, b_shape[1])
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


_matmul, _mm, _bmm = _products("matmul", "MmBackward0"), _products("mm", None), _products("bmm", None)
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
        raise


def _want(op, t, name, ndim, what):
    if not isinstance(t, Tensor):
        raise TypeError(f"{op}(): argument '{name}' must be Tensor, not {type(t).__name__}")
    if t._h.ndim != ndim:
        raise RuntimeError(f"{op}: {name} must be a {what}, got {t._h.ndim}D tensor of shape {tuple(t.shape)}")


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
        _want("mm", input, "self", 2, "matrix")
        _want("mm", mat2, "mat2", 2, "matrix")
        result = _mm(input, mat2)
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
        _want("bmm", input, "batch1", 3, "3D tensor")
        _want("bmm", mat2, "batch2", 3, "3D tensor")
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
        _want("mv", input, "input", 2, "matrix")
        _want("mv", vec, "vec", 1, "vector")
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
def inner(input, other, *, out=None):
    """Sums of products over the last dimension of both: shape (*input.shape[:-1], *other.shape[:-1]); with a 0-d tensor
    the plain product. Follows ``torch.inner``.

    Args:
        input: a tensor (*, n), or 0-d
        other: a tensor (**, n), or 0-d
    Returns:
        A tensor (*, **).
    Raises:
        RuntimeError: the last sizes differ
    """
    if input._h.ndim == 0 or other._h.ndim == 0:
        result = input * other
    else:
        if input.shape[-1] != other.shape[-1]:
            raise RuntimeError(
                f"inner() the last dimension must match on both input tensors but got shapes "
                f"{list(input.shape)} and {list(other.shape)}"
            )
        result = tensordot(input, other, ([-1], [-1]))
    return write_out("inner", result, out, True)


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
    _want("outer", input, "self", 1, "vector")
    _want("outer", vec2, "vec2", 1, "vector")
    result = input.unsqueeze(1) * vec2
    return write_out("outer", result, out)


# linear.


def _linear_x(g, weight):
    return g @ weight


def _linear_w(g, x):
    return g.reshape(-1, g.shape[-1]).mT @ x.reshape(-1, x.shape[-1])


def _linear_b(g, bias_shape):
    return g.sum_to_size(bias_shape)


_linear = c_op(
    "linear",
    lib.tt_linear,
    params=("x", "weight", "bias"),
    optional=("bias",),
    doc="x @ weight.T + bias.",
    x=_linear_x,
    weight=_linear_w,
    bias=_linear_b,
    first_order={
        "x": lambda g, weight: computed(_product(g._h, weight._h, 0, 0), _linear_x, g, weight),
        "weight": lambda g, x: computed(_linear_weight(g._h, x._h), _linear_w, g, x),
        "bias": lambda g, bias_shape: (
            computed(_column_sums(g._h, 1), _linear_b, g, bias_shape) if bias_shape else g.sum()
        ),
    },
)


def linear(input, weight, bias=None):
    """``input @ weight.T + bias`` over the last dimension: input (*, in), weight (out, in), bias (out) or None; result
    (*, out). Follows ``torch.nn.functional.linear``.

    Args:
        input: a tensor (*, in)
        weight: a matrix (out, in), or a vector (in)
        bias: a vector (out), or None
    Returns:
        A tensor (*, out).
    Raises:
        RuntimeError: sizes or dtypes do not match
    """
    try:
        if weight._h.ndim == 1:
            return _vector_weight(input, weight, bias)
        return _linear(input, weight, bias)
    except Exception as exc:
        refuse(exc)
        raise


def _vector_weight(input, weight, bias):
    out = input @ weight
    return out if bias is None else out + bias


def bilinear(input1, input2, weight, bias=None):
    """x1^T W_k x2 + b_k for each output k: inputs (*, n) and (*, m), weight (out, n, m). Follows
    ``torch.nn.functional.bilinear``."""
    if input1._h.ndim != input2._h.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1._h.ndim} and {input2._h.ndim}")
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            f"bilinear(): input batch dimensions do not match: got {tuple(input1.shape)} and {tuple(input2.shape)}"
        )
    if not input1._h.ndim or weight._h.ndim < 2 or (weight._h.ndim < 3 and weight.shape[1] == input1.shape[-1]):
        raise IndexError(
            f"bilinear(): inputs must have a dimension and weight three, got {input1._h.ndim} and {weight._h.ndim}"
        )
    if weight._h.ndim != 3 or (input1.shape[-1], input2.shape[-1]) != weight.shape[1:]:
        raise RuntimeError(
            f"bilinear(): input sizes do not match weight of shape {tuple(weight.shape)}: got "
            f"{tuple(input1.shape)} and {tuple(input2.shape)}"
        )
    rows = (input1.unsqueeze(-1) * input2.unsqueeze(-2)).flatten(-2)
    return linear(rows, weight.flatten(1), bias)


# Products made of these.


def _dims(t, dims):
    return [t._dim(d) for d in ([dims] if isinstance(dims, int) else dims)]


@function
def tensordot(a, b, dims=2, out=None):
    """Sums of products over ``dims`` dimensions: the last of ``a`` with the first of ``b``, or the pairs of two lists.
    Follows ``torch.tensordot``.

    Args:
        a: a tensor
        b: a tensor
        dims: how many dimensions, or a pair of lists of dimensions
    Returns:
        A tensor of the other sizes of ``a``, then those of ``b``.
    Raises:
        RuntimeError: the sizes that are summed over differ, or ``dims`` is out of range
    """
    if a._h.dtype != b._h.dtype:
        raise RuntimeError(f"tensordot: both inputs should have the same dtype, got {a.dtype!r} and {b.dtype!r}")
    if isinstance(dims, Tensor):
        dims = dims.tolist() if dims._h.numel != 1 else int(dims)
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a._h.ndim, b._h.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        over_a, over_b = list(range(a._h.ndim - dims, a._h.ndim)), list(range(dims))
    else:
        if not isinstance(dims, (tuple, list)):
            raise RuntimeError(f"tensordot expects dims to be int or a pair of lists of ints, but got dims={dims}")
        first, second = dims
        over_a, over_b = _dims(a, first), _dims(b, second)
        for over in (over_a, over_b):
            if len(set(over)) != len(over):
                raise RuntimeError(f"tensordot: a dim appears multiple times in the list of dims {over}")
    if len(over_a) != len(over_b):
        raise RuntimeError("tensordot: both dimension lists should have same length")
    for x, y in zip(over_a, over_b):
        if a.shape[x] != b.shape[y]:
            raise RuntimeError(
                f"tensordot: contracted dimensions need to match, but first has size {a.shape[x]} in "
                f"dim {x} and second has size {b.shape[y]} in dim {y}"
            )
    keep_a = [d for d in range(a._h.ndim) if d not in over_a]
    keep_b = [d for d in range(b._h.ndim) if d not in over_b]
    k = 1
    for d in over_a:
        k *= a.shape[d]
    rows, cols = [a.shape[d] for d in keep_a], [b.shape[d] for d in keep_b]
    left = a.permute(*keep_a, *over_a).reshape(_numel(rows), k)
    right = b.permute(*over_b, *keep_b).reshape(k, _numel(cols))
    result = _mm(left, right).reshape(*rows, *cols) if rows or cols else _mm(left, right).reshape(())
    return write_out("tensordot", result, out)


def _numel(sizes):
    n = 1
    for s in sizes:
        n *= s
    return n


def _cheapest(sizes):
    """Where to split a chain of matrices, by dynamic programming (Cormen et al., section 15.2)."""
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i][j], split[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return split


@function
def chain_matmul(*matrices, out=None):
    """The product of several matrices, in the order that needs the fewest multiplications."""
    matrices = matrices[0] if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)) else matrices
    if not matrices:
        raise ValueError("chain_matmul: Expected one or more matrices")
    for k, m in enumerate(matrices):
        _want("chain_matmul", m, f"matrix {k}", 2, "matrix")
    split = _cheapest([m.shape[0] for m in matrices] + [matrices[-1].shape[1]])

    def product(i, j):
        return matrices[i] if i == j else _mm(product(i, split[i][j]), product(split[i][j] + 1, j))

    result = product(0, len(matrices) - 1)
    return write_out("chain_matmul", result, out)


@both
def cross(input, other, dim=None, *, out=None):
    """The cross product of vectors of 3 along ``dim`` (the first of size 3 if None). Follows ``torch.cross``.

    Args:
        other: a tensor, broadcast with ``input``
    Returns:
        A tensor of the shape that the inputs broadcast to.
    Raises:
        RuntimeError: ``dim`` has another size than 3
    """
    if input._h.ndim != other._h.ndim:
        raise RuntimeError("cross: inputs must have the same number of dimensions")
    if dim is None:
        dim = next((d for d, s in enumerate(input.shape) if s == 3), None)
        if dim is None:
            raise RuntimeError("cross: no dimension of size 3 in input")
    if input.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(
            f"cross: inputs dimension {dim} must have length 3. Got {input.shape[dim]} and {other.shape[dim]}"
        )
    return write_out("cross", _cross(input, other, dim), out)


def _as(g, shape, dtype):
    return g.sum_to_size(shape).to(dtype)


@primitive(
    title="LinalgCrossBackward0",
    input=lambda g, other, input_shape, input_dtype, dim: _as(_cross(other, g, dim), input_shape, input_dtype),
    other=lambda g, input, other_shape, other_dtype, dim: _as(_cross(g, input, dim), other_shape, other_dtype),
)
def _cross(input, other, dim):
    a, b = alias(input), alias(other)
    return (a * b.roll(-1, dim) - a.roll(-1, dim) * b).roll(-1, dim)


@both
def kron(input, other, *, out=None):
    """The Kronecker product: every element of input times the whole of other. Follows ``torch.kron``.

    Args:
        other: a tensor
    Returns:
        A tensor whose sizes are the products of the inputs'.
    """
    n = max(input._h.ndim, other._h.ndim)
    a = (1,) * (n - input._h.ndim) + tuple(input.shape)
    b = (1,) * (n - other._h.ndim) + tuple(other.shape)
    left, right = [], []
    for x, y in zip(a, b):
        if x != 1 and y != 1:
            left += [x, 1]
            right += [1, y]
        elif x != y:  # two sizes of 1 need no dimension
            left.append(x)
            right.append(y)
    left, right = input.reshape(left), other.reshape(right)
    result = (left * right).reshape([x * y for x, y in zip(a, b)])
    return write_out("kron", result, out)


@both
def trace(input):
    """The sum of a matrix's diagonal. Follows ``torch.trace``.

    Args:
        input: a matrix (n, m)
    Returns:
        A 0-d tensor.
    Raises:
        RuntimeError: ``input`` is no matrix
    """
    if input._h.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input._h.ndim}")
    if input._h.dtype == lib.TT_BOOL:
        raise NotImplementedError("trace: not implemented for 'bool'")
    return input.diagonal().sum()
