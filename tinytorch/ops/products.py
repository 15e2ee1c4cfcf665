"""Products made of products of matrices: tensordot, chains, Kronecker's, cross products."""

from __future__ import annotations

from ..autograd.node import alias
from ..backends.cpu import lib
from ..tensor import Tensor
from .declare import both, function, primitive, publish, write_out
from .matmul import mm_kernel, want


def _pairs(a, b, first, second) -> list[tuple[int, int]]:
    """The dimensions of ``a`` and ``b`` that are summed over together."""
    for dims in (first, second):
        if not isinstance(dims, (tuple, list)):
            raise TypeError(f"tensordot(): argument 'dims' must be a pair of tuples of ints, not {type(dims).__name__}")
    if len(first) != len(second):
        raise RuntimeError("tensordot: both dimension lists should have same length")
    found = []
    for x, y in zip(first, second):
        x, y = a._dim(x), b._dim(y)
        found.append((x, y))
        if a.shape[x] != b.shape[y] and 1 not in (a.shape[x], b.shape[y]):
            raise RuntimeError(
                f"tensordot: contracted dimensions need to match, but first has size {a.shape[x]} in "
                f"dim {x} and second has size {b.shape[y]} in dim {y}"
            )
    return found


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
        dims = dims.tolist() if dims._h.numel > 1 else int(dims.item())
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a._h.ndim, b._h.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        first, second = list(range(a._h.ndim - dims, a._h.ndim)), list(range(dims))
    else:
        if not isinstance(dims, (tuple, list)):
            raise RuntimeError(f"tensordot expects dims to be int or a pair of lists of ints, but got dims={dims}")
        first, second = dims
    pairs = _pairs(a, b, first, second)
    over_a, over_b = [x for x, _ in pairs], [y for _, y in pairs]
    for over in (over_a, over_b):
        if len(set(over)) != len(over):
            raise RuntimeError(f"tensordot: a dim appears multiple times in the list of dims {over}")
    for x, y in pairs:
        if 1 in (a.shape[x], b.shape[y]):  # a size of 1 is broadcast: the other tensor is summed
            a = a if a.shape[x] == 1 else a.sum(x, keepdim=True, dtype=a.dtype)
            b = b if b.shape[y] == 1 else b.sum(y, keepdim=True, dtype=b.dtype)
    keep_a = [d for d in range(a._h.ndim) if d not in over_a]
    keep_b = [d for d in range(b._h.ndim) if d not in over_b]
    k = 1
    for d in over_a:
        k *= a.shape[d]
    rows, cols = [a.shape[d] for d in keep_a], [b.shape[d] for d in keep_b]
    left = a.permute(*keep_a, *over_a).reshape(_numel(rows), k)
    right = b.permute(*over_b, *keep_b).reshape(k, _numel(cols))
    result = mm_kernel(left, right).reshape(*rows, *cols) if rows or cols else mm_kernel(left, right).reshape(())
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


def _chain(matrices):
    """The product of matrices, in the order that needs the fewest multiplications."""
    split = _cheapest([m.shape[0] for m in matrices] + [matrices[-1].shape[1]])

    def product(i, j):
        return matrices[i] if i == j else mm_kernel(product(i, split[i][j]), product(split[i][j] + 1, j))

    return product(0, len(matrices) - 1)


@function
def chain_matmul(*matrices, out=None):
    """The product of several matrices, in the order that needs the fewest multiplications."""
    matrices = matrices[0] if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)) else matrices
    if not matrices:
        raise ValueError("chain_matmul: Expected one or more matrices")
    for k, m in enumerate(matrices):
        want("chain_matmul", m, f"matrix {k}", 2, "matrix")
    result = _chain(matrices)
    return write_out("chain_matmul", result, out)


@function(namespace="linalg")
def multi_dot(tensors, *, out=None):
    """The product of two or more matrices, in the order that needs the fewest multiplications. The first may be a
    vector, a row, and the last one too, a column. Follows ``torch.linalg.multi_dot``.

    Args:
        tensors: matrices, of which the first and the last may be vectors
    Returns:
        A matrix, a vector, or a 0-d tensor.
    Raises:
        RuntimeError: fewer than two tensors, sizes or dtypes do not match, or a tensor has other dimensions
    """
    op = "linalg.multi_dot"
    tensors = list(tensors)
    if len(tensors) < 2:
        raise RuntimeError(f"{op}: expected at least 2 tensors but got {len(tensors)}")
    ends = [tensors[0].ndim, tensors[-1].ndim]
    for end in ends:
        if end not in (1, 2):
            raise RuntimeError(f"{op}: the first and last tensors must be 1D or 2D but got {end}D")
    if ends[0] == 1:
        tensors[0] = tensors[0].unsqueeze(0)
    if ends[1] == 1:
        tensors[-1] = tensors[-1].unsqueeze(-1)
    for k, m in enumerate(tensors):
        want(op, m, f"tensor {k}", 2, "matrix")
        if m.dtype is not tensors[0].dtype:
            raise RuntimeError(f"{op}: all tensors must have the same dtype but got {m.dtype.name} and others")
        if k and tensors[k - 1].shape[1] != m.shape[0]:
            raise RuntimeError(
                f"{op}: tensors {k - 1} and {k} with shapes {list(tensors[k - 1].shape)} and {list(m.shape)} cannot be "
                "multiplied"
            )
    result = _chain(tensors)
    if ends[1] == 1:
        result = result.squeeze(1)
    if ends[0] == 1:
        result = result.squeeze(0)
    return write_out(op, result, out, True)


@function(namespace="linalg")
def vecdot(x, y, *, dim=-1, out=None):
    """Sums of products over ``dim`` of two tensors that broadcast, of which the first is conjugated. Follows
    ``torch.linalg.vecdot``.

    Args:
        x: a tensor
        y: a tensor of the same dtype
        dim: the dimension
    Returns:
        A tensor without the dimension.
    Raises:
        RuntimeError: the dtypes differ or are not floating, or the shapes do not broadcast
    """
    if x.dtype is not y.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {x.dtype.name} and y of type "
            f"{y.dtype.name}"
        )
    if not x.dtype.is_differentiable:
        raise RuntimeError(f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {x.dtype.name}")
    if not x.ndim and not y.ndim:
        raise IndexError("linalg.vecdot: expected a tensor of at least one dimension")
    return write_out("linalg.vecdot", (x.conj() * y).sum(dim), out, True)


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
    return write_out("cross", _along("cross", input, other, dim), out)


def _along(op, input, other, dim):
    dim = input._dim(dim)
    if input.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(
            f"{op}: inputs dimension {dim} must have length 3. Got {input.shape[dim]} and {other.shape[dim]}"
        )
    return _cross(input, other, dim)


def linalg_cross(input, other, *, dim=-1, out=None):
    """The cross product of vectors of 3 along ``dim``. Follows ``torch.linalg.cross``. Otherwise like ``cross``.

    Raises:
        RuntimeError: ``dim`` has another size than 3, or the numbers of dimensions differ
    """
    if input._h.ndim != other._h.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    return write_out("linalg.cross", _along("linalg.cross", input, other, dim), out, True)


linalg_cross = publish(linalg_cross, name="cross", namespace="linalg")


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
    if input._h.dtype == lib.TT_BOOL:
        raise NotImplementedError("trace: not implemented for 'bool'")
    if input._h.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input._h.ndim}")
    return input.diagonal().sum()


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
