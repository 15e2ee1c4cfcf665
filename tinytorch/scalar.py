"""The lists of kernels/scalar as Python sees them: elementwise operators (ops.h), reducers and reductions
(reducers.h)."""

from collections.abc import Callable
from itertools import count, takewhile
from typing import NamedTuple

from .backends.cpu import ffi, lib

CHEAP = 2  # the cost of an operator that is as cheap as an addition


class ScalarOp(NamedTuple):
    """An elementwise operator: what its row of ops.h says."""

    name: str
    arity: int
    gives_bool: bool
    periodic: bool  # in float32 a block without large arguments has a cheaper function
    flops: int  # floating-point operations for an element
    cost: int  # vector instructions for an element in float32
    pair: int  # operators of one pair begin alike; 0: of none
    domain: str  # the dtypes that it is computed in
    special: bool  # is its scalar function one of scalar/special.h?


class Reducer(NamedTuple):
    """What makes one number of many."""

    name: str
    flops: int  # for an element
    reductions: tuple[str, ...]  # that use it: "sum" and "mean" use sum


def _rows(facts: Callable) -> list:
    return list(takewhile(lambda row: row != ffi.NULL, map(facts, count())))


def _text(name) -> str:
    return ffi.string(name).decode()


# By code.
ELEMENTWISE = tuple(
    ScalarOp(
        _text(f.name),
        f.arity,
        f.gives_bool == 1,
        f.periodic == 1,
        f.flops,
        f.cost,
        f.pair,
        _text(f.domain),
        f.special == 1,
    )
    for f in _rows(lib.tt_op_facts)
)
_uses = [(_text(f.name), f.reducer) for f in _rows(lib.tt_reduction_facts)]
REDUCERS = tuple(
    Reducer(_text(f.name), f.flops, tuple(name for name, of in _uses if of == code))
    for code, f in enumerate(_rows(lib.tt_reducer_facts))
)
# By name.
OPERATORS = {op.name: op for op in ELEMENTWISE}
REDUCTIONS = {name: REDUCERS[of] for name, of in _uses}
