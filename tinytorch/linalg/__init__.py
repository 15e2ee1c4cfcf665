"""Linear algebra: norms, products, decompositions of matrices and systems of equations, for real and complex numbers.
What LAPACK does is for the CPU alone so far. Follows ``torch.linalg``."""

from ..backends.cpu import LinAlgError
from ..ops.declare import alias as _alias
from ..ops.declare import names_of as _names_of

_alias("matmul", "matmul", namespace="linalg")
globals().update(_names_of("linalg"))
__all__ = [LinAlgError.__name__, *sorted(_names_of("linalg"))]
