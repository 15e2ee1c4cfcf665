"""A diagonal filled; Python's functions of elements; questions to a tensor."""

from __future__ import annotations

from .create import tensor
from .declare import both, function, method


@both(kind="read")
def is_nonzero(input) -> bool:
    """Is the one element not zero? RuntimeError for several. Follows ``torch.is_nonzero``."""
    if input._h.numel != 1:
        amount = "more than one" if input._h.numel else "no"
        raise RuntimeError(f"is_nonzero: Boolean value of Tensor with {amount} value is ambiguous")
    return bool(input)


@function(kind="query")
def is_signed(input) -> bool:
    """Has the dtype of ``input`` negative numbers?"""
    return input.is_signed()


@function(kind="query")
def is_inference(input) -> bool:
    """Was ``input`` made in inference mode?"""
    return input.is_inference()


@function(kind="query")
def get_device(input) -> int:
    """The number of the CUDA device of ``input``; -1 for the CPU."""
    return input.get_device()


@method
def fill_diagonal_(self, fill_value, wrap=False):
    """``fill_value`` on the main diagonal of all dimensions, in place; with ``wrap`` the diagonal of a tall matrix
    begins again below its end. Follows ``torch.Tensor.fill_diagonal_``.

    Args:
        fill_value: a number
        wrap: whether to begin again
    Returns:
        ``self``.
    Raises:
        RuntimeError: fewer than two dimensions, or more than two that are not of one size
    """
    shape = self.shape
    if len(shape) < 2:
        raise RuntimeError(f"fill_diagonal_: dimensions must be larger than 1, got {len(shape)}")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError(f"fill_diagonal_: all dimensions of input must be of equal length, got {tuple(shape)}")
    step, n = sum(self.stride()), min(shape)
    self.as_strided((n,), (step,)).fill_(fill_value)
    rows, columns = shape[0], shape[1]
    if wrap and len(shape) == 2:
        for first in range(columns + 1, rows, columns + 1):
            self[first:].fill_diagonal_(fill_value)
    return self


def _by_python(name: str, self, tensors, fn):
    if self.requires_grad:
        raise RuntimeError(f"Can't call {name}() on a tensor that requires grad. Use detach() first.")
    for t in tensors:
        if t.dtype is not self.dtype:
            raise TypeError(f"{name}(): expected tensors of {self.dtype!r}, got {t.dtype!r}")
    rows = [t.expand(self.shape).reshape(-1).tolist() for t in (self, *tensors)]
    return self.copy_(tensor([fn(*values) for values in zip(*rows)], dtype=self.dtype).reshape(self.shape))


@method(pure=False)
def apply_(self, callable):
    """Each element replaced by what ``callable`` gives for it, a function of Python's: slow. Follows
    ``torch.Tensor.apply_``."""
    return _by_python("apply_", self, (), callable)


@method(pure=False)
def map_(self, other, callable):
    """``apply_`` with a function of two: this tensor's elements, and those of ``other``, which is expanded. Follows
    ``torch.Tensor.map_``."""
    return _by_python("map_", self, (other,), callable)


@method(pure=False)
def map2_(self, x, y, callable):
    """``map_`` with two other tensors. Follows ``torch.Tensor.map2_``."""
    return _by_python("map2_", self, (x, y), callable)
