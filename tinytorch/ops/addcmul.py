"""``input + value * tensor1 * tensor2``, and the quotient likewise."""

from __future__ import annotations

from ..tensor import Tensor
from .arithmetic import in_common_dtype
from .declare import both, method, old_order, refuse
from .fitting import fitted
from .pointwise import _addcdiv, _addcmul


def _times(value, tensor1, *others):
    if value == 1:
        return tensor1
    tensor1 = in_common_dtype(tensor1, *others)
    return tensor1 * fitted(value, tensor1._h.dtype, computing=True)


@both
def addcmul(input, tensor1, tensor2, *rest, value=1, out=None):
    """``input + value tensor1 tensor2``.

    Args:
        tensor1: a tensor
        tensor2: a tensor
        value: a number
    Returns:
        A tensor of the shape that the inputs broadcast to.
    Raises:
        RuntimeError: the shapes do not broadcast, or all are bool
    """
    try:
        if rest:
            input, tensor1, tensor2, value = old_order("addcmul", 3, {"value": value}, input, tensor1, tensor2, *rest)
        if not (input._h.dtype or tensor1._h.dtype or tensor2._h.dtype):
            raise NotImplementedError("addcmul: not implemented for 'bool'")
        return _addcmul(input, _times(value, tensor1, input, tensor2), tensor2, out=out)
    except Exception as exc:
        refuse(exc)
        raise


@both
def addcdiv(input, tensor1, tensor2, *rest, value=1, out=None):
    """``input + value tensor1 / tensor2``. Otherwise like ``addcmul``.

    Raises:
        RuntimeError: the shapes do not broadcast, or integers are divided
    """
    try:
        if rest:
            input, tensor1, tensor2, value = old_order("addcdiv", 3, {"value": value}, input, tensor1, tensor2, *rest)
        _refuse_integers(tensor1, tensor2)
        return _addcdiv(input, _times(value, tensor1, input, tensor2), tensor2, out=out)
    except Exception as exc:
        refuse(exc)
        raise


def _refuse_integers(tensor1, tensor2) -> None:
    if isinstance(tensor1, Tensor) and isinstance(tensor2, Tensor) and tensor1.dtype.is_differentiable:
        return
    for name, t in (("tensor1", tensor1), ("tensor2", tensor2)):
        if not isinstance(t, Tensor):
            raise TypeError(f"addcdiv(): argument '{name}' must be Tensor, not {type(t).__name__}")
    if not (tensor1.dtype.is_differentiable or tensor2.dtype.is_differentiable):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported: use (input + value * trunc(tensor1 / tensor2)), or "
            "(input + value * (tensor1 / tensor2)) for a true division"
        )


@method
def addcmul_(self, tensor1, tensor2, *rest, value=1):
    """``addcmul`` in place."""
    try:
        if rest:
            self, tensor1, tensor2, value = old_order("addcmul_", 3, {"value": value}, self, tensor1, tensor2, *rest)
        return _addcmul.op.write(self, (self, _times(value, tensor1, self, tensor2), tensor2), "addcmul_")
    except Exception as exc:
        refuse(exc)
        raise


@method
def addcdiv_(self, tensor1, tensor2, *rest, value=1):
    """``addcdiv`` in place."""
    try:
        if rest:
            self, tensor1, tensor2, value = old_order("addcdiv_", 3, {"value": value}, self, tensor1, tensor2, *rest)
        _refuse_integers(tensor1, tensor2)
        return _addcdiv.op.write(self, (self, _times(value, tensor1, self, tensor2), tensor2), "addcdiv_")
    except Exception as exc:
        refuse(exc)
        raise
