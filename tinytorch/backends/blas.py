"""Where BLAS is: the package scipy-openblas32. The C side opens it when it first needs it."""

from __future__ import annotations

import importlib.util
import os

from .cpu import check, lib


def library() -> str:
    """The path of OpenBLAS, found without importing its package; "" when it is not installed."""
    spec = importlib.util.find_spec("scipy_openblas32")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        folder = os.path.join(folder, "lib")
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if name.startswith("libscipy_openblas") and ".so" in name:
                return os.path.join(folder, name)
    return ""


def is_open() -> bool:
    """Has a product of matrices been computed yet?"""
    return bool(lib.tt_blas_is_open())


def announce() -> None:
    """Tells the C side where the library is, without opening it."""
    check(lib.tt_blas_library(os.fsencode(library())))
