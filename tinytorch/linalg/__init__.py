"""Linear algebra: decompositions of matrices and systems of equations, for float32 and float64 on the CPU. Follows
``torch.linalg``."""

from ..backends.cpu import LinAlgError
from ..ops.decompose import cholesky, cholesky_ex, eigh, eigvalsh, qr, svd, svdvals
from ..ops.determinant import det, slogdet
from ..ops.solve import inv, inv_ex, solve, solve_ex, solve_triangular

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "det",
    "eigh",
    "eigvalsh",
    "inv",
    "inv_ex",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
]
