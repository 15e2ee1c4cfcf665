"""Operators, one file per family. Importing a family registers its functions and methods."""

from . import activation, create, gather, index, join, linalg, loss, pointwise, random, rearrange, reduce, scan, shape, sort
from .declare import FUNCTIONS

__all__ = ["FUNCTIONS", "activation", "create", "gather", "index", "join", "linalg", "loss", "pointwise", "random",
           "rearrange", "reduce", "scan", "shape", "sort"]
