"""Products of matrices in groups of different sizes, as the experts of a mixture have them."""

from __future__ import annotations

from ..dtypes import bfloat16, dtype, float16, float32, int32
from ..tensor import Tensor
from .declare import function
from .join import cat, stack
from .matmul import matmul


def _products(mat_a: Tensor, mat_b: Tensor, offs) -> Tensor:
    ends = offs.tolist()
    parts = list(zip([0, *ends], ends))
    if mat_a.ndim == 2 and mat_b.ndim == 2:  # the groups share the inner dimension
        return stack([mat_a[:, first:end] @ mat_b[first:end] for first, end in parts])
    if mat_a.ndim == 2:  # the rows are dealt out
        made = [mat_a[first:end] @ b for (first, end), b in zip(parts, mat_b.unbind(0))]
        left = mat_a.new_zeros((mat_a.shape[0] - (ends[-1] if ends else 0), mat_b.shape[2]))
        return cat([*made, left])
    made = [a @ mat_b[:, first:end] for (first, end), a in zip(parts, mat_a.unbind(0))]
    left = mat_a.new_zeros((mat_a.shape[1], mat_b.shape[1] - (ends[-1] if ends else 0)))
    return cat([*made, left], 1)


def _check(mat_a: Tensor, mat_b: Tensor, offs, bias, out_dtype) -> None:
    for name, m in (("mat_a", mat_a), ("mat_b", mat_b)):
        if m.dtype not in (float32, bfloat16, float16):
            raise RuntimeError(f"grouped_mm: Expected {name} to be float32, bfloat16 or float16, got {m.dtype.name}")
        if m.ndim not in (2, 3):
            raise RuntimeError(f"grouped_mm: {name} has to be 2 or 3d, got {m.ndim}d")
    if (offs is None) != (mat_a.ndim == mat_b.ndim == 3):
        raise RuntimeError(
            "grouped_mm: Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d"
        )
    if bias is not None:
        raise RuntimeError("grouped_mm: Bias not supported yet")
    if out_dtype is not None and out_dtype is not mat_a.dtype:
        raise RuntimeError("grouped_mm: Grouped gemm output dtype must match `mat_a` dtype")
    if offs is None:
        return
    if offs.dtype is not int32 or offs.ndim != 1:
        raise RuntimeError("grouped_mm: Offsets have to be a vector of int32")
    ends = offs.tolist()
    size = mat_a.shape[1 if mat_b.ndim == 2 else 0] if mat_a.ndim == 2 else mat_b.shape[1]
    if any(a > b for a, b in zip([0, *ends], [*ends, size])):
        raise RuntimeError(f"grouped_mm: Offsets have to ascend from 0 to {size}, got {ends}")
    groups = next((m.shape[0] for m in (mat_a, mat_b) if m.ndim == 3), len(ends))
    if groups != len(ends):
        raise RuntimeError(f"grouped_mm: expected {groups} offsets, got {len(ends)}")


@function(namespace="nn.functional")
def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: dtype | None = None,
):
    """Products of groups of a matrix's rows or columns with matrices of their own. ``offs`` says where each group
    ends. Follows ``torch.nn.functional.grouped_mm``.

    Args:
        mat_a: (M, K), or a matrix for each group (G, M, K)
        mat_b: (K, N), or a matrix for each group (G, K, N)
        offs: the ends (G) of the groups, int32, of the rows of ``mat_a``, of the columns of ``mat_b``, or, where both
            are matrices, of K; None where neither is
        bias: None
        out_dtype: the dtype of ``mat_a``
    Returns:
        (M, N), zeros after the last end; (G, M, N) where both or neither have groups of their own.
    Raises:
        RuntimeError: other dtypes, or offsets that do not fit
    """
    _check(mat_a, mat_b, offs, bias, out_dtype)
    return matmul(mat_a, mat_b) if offs is None else _products(mat_a, mat_b, offs)
