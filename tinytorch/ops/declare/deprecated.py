"""PyTorch's deprecated overloads, in which factors stand between the tensors: ``add(input, alpha, other)``."""

from __future__ import annotations

import warnings

from ...tensor import Tensor
from ...warn_once import first_time

_NUMBERS_LAST = {"add", "add_", "sub", "sub_"}  # whose last operand may be a number, too


def old_order(op: str, count: int, factors: dict, *given) -> tuple:
    """The ``count`` tensors among the positional arguments ``given``, of which the signature has fewer, then the
    ``factors``, by name, with the numbers among them in the place of their defaults. Warns once for each operator, as
    PyTorch does. TypeError where other things are given."""
    *given, last = given
    if sum(isinstance(x, Tensor) for x in given) >= count:  # a factor is a 0-d tensor
        given = [x.item() if isinstance(x, Tensor) and not (x.ndim or x.requires_grad) else x for x in given]
    tensors = [*[x for x in given if isinstance(x, Tensor)], last]
    numbers = [x for x in given if not isinstance(x, Tensor)]
    if (
        len(tensors) != count
        or any(type(x) is not int or x != 1 for x in factors.values())  # given by name, too
        or len(numbers) > len(factors)
        or any(not isinstance(x, (bool, int, float)) for x in numbers)
        or not isinstance(last, (Tensor, bool, int, float) if op in _NUMBERS_LAST else Tensor)
    ):
        kinds = ", ".join(type(x).__name__ for x in (*given, last))
        raise TypeError(f"{op}() received an invalid combination of arguments: ({kinds})")
    if first_time(f"{op}: numbers between the tensors"):
        names = ", ".join(f"{name}=" for name in factors)
        warnings.warn(f"{op}: numbers between the tensors are deprecated: give {names} instead", stacklevel=3)
    return *tensors, *numbers, *[*factors.values()][len(numbers) :]
