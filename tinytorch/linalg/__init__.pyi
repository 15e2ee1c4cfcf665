"""Functions of tinytorch.linalg. Written by .ci/stubs.py: do not edit."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, overload

import numpy

from .. import return_types
from ..dtypes import Size
from ..generator import Generator
from ..tensor import Tensor
from ..types import Device, Number, _bool, _complex, _device, _dtype, _float, _int, _layout, _memory_format
from ..backends.cpu import LinAlgError as LinAlgError

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "eigh", "eigvalsh", "inv", "inv_ex", "qr", "solve", "solve_ex",
    "solve_triangular", "svd", "svdvals",
]

def cholesky(A: Tensor, *, upper: _bool = False, out: Tensor | None = None) -> Tensor: ...
def cholesky_ex(
    A: Tensor, *, upper: _bool = False, check_errors: _bool = False, out: tuple[Tensor, Tensor] | None = None
) -> return_types.linalg_cholesky_ex: ...
def eigh(A: Tensor, UPLO: str = 'L', *, out: tuple[Tensor, Tensor] | None = None) -> return_types.linalg_eigh: ...
def eigvalsh(A: Tensor, UPLO: str = 'L', *, out: Tensor | None = None) -> Tensor: ...
def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def inv_ex(
    A: Tensor, *, check_errors: _bool = False, out: tuple[Tensor, Tensor] | None = None
) -> return_types.linalg_inv_ex: ...
def qr(A: Tensor, mode: str = 'reduced', *, out: tuple[Tensor, Tensor] | None = None) -> return_types.linalg_qr: ...
def solve(A: Tensor, B: Tensor, *, left: _bool = True, out: Tensor | None = None) -> Tensor: ...
def solve_ex(
    A: Tensor, B: Tensor, *, left: _bool = True, check_errors: _bool = False, out: tuple[Tensor, Tensor] | None =
    None
) -> return_types.linalg_solve_ex: ...
def solve_triangular(
    A: Tensor, B: Tensor, *, upper: _bool, left: _bool = True, unitriangular: _bool = False, out: Tensor | None =
    None
) -> Tensor: ...
def svd(
    A: Tensor, full_matrices: _bool = True, *, driver: str | None = None, out: tuple[Tensor, Tensor, Tensor] | None
    = None
) -> return_types.linalg_svd: ...
def svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor: ...
