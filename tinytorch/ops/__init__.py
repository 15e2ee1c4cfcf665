"""Operators, one file per family. Importing a family registers its functions and methods."""

from . import activation, create, index, join, linalg, loss, pointwise, random, reduce, scan, shape, sort, statistics
from .declare import FUNCTIONS

__all__ = ["FUNCTIONS", "activation", "create", "index", "join", "linalg", "loss", "pointwise", "random",
           "reduce", "scan", "shape", "sort", "statistics"]
