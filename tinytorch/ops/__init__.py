"""Operators, one file per family. Importing a family registers its functions and methods."""

from . import (
    activation,
    convert,
    create,
    create_like,
    index,
    join,
    linalg,
    loss,
    overwrite,
    pointwise,
    random,
    ranges,
    reduce,
    scan,
    shape,
    sort,
    statistics,
)
from .declare import FUNCTIONS

__all__ = [
    "FUNCTIONS",
    "activation",
    "convert",
    "create",
    "create_like",
    "index",
    "join",
    "linalg",
    "loss",
    "overwrite",
    "pointwise",
    "random",
    "ranges",
    "reduce",
    "scan",
    "shape",
    "sort",
    "statistics",
]
