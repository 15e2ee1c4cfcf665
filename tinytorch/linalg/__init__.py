"""Linear algebra: norms, products, decompositions of matrices and systems of equations, for real and complex numbers.
What LAPACK does is for the CPU alone so far. Follows ``torch.linalg``."""

from ..backends.cpu import LinAlgError
from ..ops.declare import alias as _alias
from ..ops.decompose import cholesky, cholesky_ex, qr, svd, svdvals
from ..ops.determinant import det, slogdet
from ..ops.eigen import eig, eigh, eigvals, eigvalsh
from ..ops.householder import householder_product
from ..ops.least_squares import lstsq, matrix_rank, pinv
from ..ops.lu import ldl_factor, ldl_factor_ex, ldl_solve, lu, lu_factor, lu_factor_ex, lu_solve
from ..ops.matmul import matmul
from ..ops.matrix_functions import linalg_matrix_power as matrix_power
from ..ops.matrix_functions import matrix_exp, vander
from ..ops.matrix_norms import cond, matrix_norm, norm, vector_norm
from ..ops.products import linalg_cross as cross
from ..ops.products import multi_dot, vecdot
from ..ops.slicing import linalg_diagonal as diagonal
from ..ops.solve import inv, inv_ex, solve, solve_ex, solve_triangular, tensorinv, tensorsolve

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]

_alias("matmul", "matmul", namespace="linalg")
