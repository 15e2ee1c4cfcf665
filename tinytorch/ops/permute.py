"""Views with their dimensions in another order."""

from __future__ import annotations

import warnings

from ..backends.cpu import ffi, lib
from ..tensor import FUNCTIONS, Tensor
from .declare import alias, both, c_view, ints, primitive, publish
from .shape import show


def _inverse(dims):
    dims = ints(dims)
    inverse = [0] * len(dims)
    for k, d in enumerate(dims):
        inverse[d] = k
    return tuple(inverse)


@primitive(view=True, title="PermuteBackward0", input=lambda g, dims: permute(g, _inverse(dims)))
def _permute(input, dims):
    h = input._h
    return show(input, [h.shape[d] for d in dims], [h.strides[d] for d in dims], lib.tt_offset(h))


@primitive(view=True, title="TransposeBackward0", input=lambda g, a, b: transpose(g, a, b))
def _transpose(input, a, b):
    h = input._h
    shape, strides = ffi.unpack(h.shape, h.ndim), ffi.unpack(h.strides, h.ndim)
    if shape:
        shape[a], shape[b] = shape[b], shape[a]
        strides[a], strides[b] = strides[b], strides[a]
    return show(input, shape, strides, lib.tt_offset(h))


@c_view(
    lib.tt_view_permuted, _permute, params="input, dims, *rest", arguments="len(sizes), sizes", saves="(tuple(sizes),)"
)
def permute(input, dims, *rest):
    """The dimensions in the order ``dims``. Follows ``torch.permute``.

    Args:
        dims: the dimensions, each once
    Returns:
        A view.
    Raises:
        RuntimeError: a dimension is missing, or named twice
    """
    dims = ints((dims, *rest))
    if len(dims) != input._h.ndim:
        raise RuntimeError(
            f"permute: number of dimensions in the tensor input does not match the length of "
            f"the desired ordering of dimensions i.e. input.dim() = {input._h.ndim} is not equal to "
            f"len(dims) = {len(dims)}"
        )
    dims = tuple(input._dim(d) for d in dims)
    if len(set(dims)) != len(dims):
        raise RuntimeError(f"permute(): duplicate dims are not allowed, got {dims}")
    return _permute(input, dims)


permute = publish(permute.of_sequence, method=permute)


@both
@c_view(lib.tt_view_transposed, _transpose, params="input, dim0, dim1", arguments="dim0, dim1", saves="(dim0, dim1)")
def transpose(input, dim0, dim1):
    """Two dimensions exchanged.

    Args:
        dim0: a dimension
        dim1: another
    Returns:
        A view.
    Raises:
        IndexError: a dimension is out of range
    """
    return _transpose(input, input._dim(dim0), input._dim(dim1))


@both
def swapaxes(input, axis0, axis1):
    """``transpose`` by NumPy's names. Follows ``torch.swapaxes``."""
    return transpose(input, axis0, axis1)


@primitive(view=True, title="TBackward0", input=lambda g: t(g))
def _t(input):
    h = input._h
    return show(input, ffi.unpack(h.shape, h.ndim)[::-1], ffi.unpack(h.strides, h.ndim)[::-1], lib.tt_offset(h))


@both
@c_view(lib.tt_view_t, _t, params="input", arguments="", saves="()")
def t(input):
    """A matrix transposed; fewer dimensions as they are. RuntimeError beyond two.

    Returns:
        A view.
    Raises:
        RuntimeError: ``input`` has more than two dimensions
    """
    n = input._h.ndim
    if n > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {n}D")
    return _t(input)


@both
def movedim(input, source, destination):
    """Dimensions ``source`` moved to the places ``destination``; the others keep their order.

    Args:
        source: a dimension, or several
        destination: as many places
    Returns:
        A view.
    Raises:
        RuntimeError: a dimension is named twice, or the numbers differ
    """
    source, destination = ints((source,)), ints((destination,))
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)}) should contain the "
            f"same number of dims as destination ({list(destination)})"
        )
    source, destination = [input._dim(d) for d in source], [input._dim(d) for d in destination]
    if len(set(source)) != len(source) or len(set(destination)) != len(destination):
        raise RuntimeError(f"movedim: repeated dim in source ({source}) or destination ({destination})")
    rest = iter(d for d in range(input._h.ndim) if d not in source)
    place = dict(zip(destination, source))
    return _permute(input, tuple(place[d] if d in place else next(rest) for d in range(input._h.ndim)))


@c_view(lib.tt_view_t, _permute, params="input", arguments="", saves="((1, 0),)")
def _reversed(input):
    n = input._h.ndim
    if n == 0:
        return _of_a_number(input, "Tensor.T")
    if n != 2:
        warnings.warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated: use `x.mT` to "
            "transpose batches of matrices, or `x.permute(*range(x.ndim - 1, -1, -1))`.",
            stacklevel=3,
        )
    return _permute(input, tuple(range(n - 1, -1, -1)))


def _of_a_number(input, name: str):
    warnings.warn(f"{name} is deprecated on 0-D tensors, which it gives as they are.", stacklevel=4)
    return input


def _matrices_transposed(input, name: str):
    n = input._h.ndim
    if n == 1:
        raise RuntimeError(f"{name} is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return transpose(input, -2, -1) if n else _of_a_number(input, name)


def _conjugated(input, name: str):
    return FUNCTIONS["conj"](_matrices_transposed(input, name))


def _matrix_adjoint(self):
    n = self._h.ndim
    if n == 0:
        return _of_a_number(self, "Tensor.H")
    if n != 2:
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {n}-D tensor.")
    return FUNCTIONS["conj"](t(self))


@both
def adjoint(input):
    """The matrix, or each of a stack, conjugated and transposed: ``mH``. Follows ``torch.adjoint``.

    Args:
        input: a tensor (*, M, N)
    Returns:
        A tensor (*, N, M): of a real one a view.
    Raises:
        RuntimeError: one dimension
    """
    return _conjugated(input, "tensor.adjoint()")


Tensor.T = property(_reversed, doc="The dimensions in reverse order.")
Tensor.mT = property(lambda self: _matrices_transposed(self, "tensor.mT"), doc="The last two dimensions exchanged.")
Tensor.mH = property(lambda self: _conjugated(self, "tensor.mH"), doc="The same, conjugated.")
Tensor.H = property(_matrix_adjoint, doc="A matrix transposed and conjugated.")

alias("transpose", "swapdims")
alias("movedim", "moveaxis")
