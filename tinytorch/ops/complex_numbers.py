"""Complex numbers: made of parts, seen as parts, conjugated.

A gradient of complex numbers is that of PyTorch: the derivative by the conjugate, times 2. Note [Complex gradients] in
autograd/complex_nodes.py.
"""

from __future__ import annotations

from ..backends.cpu import lib
from ..tensor import Tensor, owned
from .declare import both, broadcast_shape, function, primitive, tensors_only, write_out
from .join import stack
from .pointwise import _conj_physical


def _both_parts(g):
    return _view_as_real(g if g.is_complex() else g.to(g.dtype.to_complex()))


@primitive(
    view=True, name="view_as_real", title="ViewAsRealBackward0", input=lambda g: _view_as_complex(g.contiguous())
)
def _view_as_real(input):
    return owned.tt_view_as_real(input._h)


@primitive(view=True, name="view_as_complex", title="ViewAsComplexBackward0", input=_both_parts)
def _view_as_complex(input):
    return owned.tt_view_as_complex(input._h)


@primitive(view=True, name="real", title="RealBackward0", input=lambda g: g.to(g.dtype.to_complex()))
def _real(input):
    return owned.tt_view_part(input._h, 0)


@primitive(view=True, name="imag", title="ImagBackward0", input=lambda g: g * 1j)
def _imag(input):
    return owned.tt_view_part(input._h, 1)


@function
def view_as_real(input):
    """The real and imaginary parts of complex numbers, along a new last dimension. Follows ``torch.view_as_real``.

    Args:
        input: a complex tensor
    Returns:
        A real view of shape (\\*, 2).
    Raises:
        RuntimeError: ``input`` is not complex
    """
    return _view_as_real(input)


@function
def view_as_complex(input):
    """Pairs of numbers, the last dimension, as complex numbers. Follows ``torch.view_as_complex``.

    Args:
        input: a tensor of float16, float32 or float64 whose last dimension has size 2 and stride 1, the others even
            strides
    Returns:
        A complex view without the last dimension.
    Raises:
        RuntimeError: the dtype, a size or a stride is another
    """
    return _view_as_complex(input)


@function
def real(input):
    """The real parts: a view; ``input`` itself if it is real. Follows ``torch.real``.

    Returns:
        A real tensor of the shape of ``input`` that shares its memory.
    """
    return _real(input) if input.is_complex() else input


@function
def imag(input):
    """The imaginary parts: a view. Follows ``torch.imag``.

    Args:
        input: a complex tensor
    Returns:
        A real tensor of the shape of ``input`` that shares its memory.
    Raises:
        RuntimeError: ``input`` is real
    """
    return _imag(input)


def _set_real(self, value):
    real(self).copy_(value)


def _set_imag(self, value):
    imag(self).copy_(value)


Tensor.real = property(real, _set_real, doc="The real parts: a view; a real tensor itself.")
Tensor.imag = property(imag, _set_imag, doc="The imaginary parts of complex numbers: a view.")


@function
def complex(real, imag, *, out=None):
    """Complex numbers of these parts, broadcast. Follows ``torch.complex``.

    Args:
        real: a tensor of float16, float32 or float64
        imag: a tensor of the same dtype
    Returns:
        A complex tensor of the shape that the parts broadcast to.
    Raises:
        RuntimeError: the dtypes differ, or are others
    """
    _check_parts("complex", real, imag)
    return write_out("complex", _joined("complex", real, imag), out, True)


def _check_parts(op, a, b):
    for t in (a, b):
        if not isinstance(t, Tensor):
            raise TypeError(f"{op}(): expected Tensors, but got {type(t).__name__}")
        if t._h.dtype not in (lib.TT_F16, lib.TT_F32, lib.TT_F64):
            raise RuntimeError(
                f"{op}: Expected both inputs to be Half, Float or Double tensors but got {a.dtype!r} and {b.dtype!r}"
            )
    if a.dtype is not b.dtype:
        raise RuntimeError(f"{op}: Expected object of scalar type {a.dtype!r} but got scalar type {b.dtype!r}")


def _joined(op, real, imag):
    if real.shape != imag.shape:
        shape = broadcast_shape(op, [real._h, imag._h])
        real, imag = real.expand(shape), imag.expand(shape)
    return _view_as_complex(stack((real, imag), -1))


@function
def polar(abs, angle, *, out=None):
    """Complex numbers of these sizes and angles: ``abs (cos angle + i sin angle)``. Follows ``torch.polar``.

    Args:
        abs: a tensor of float32 or float64
        angle: a tensor of the same dtype
    Returns:
        A complex tensor of the shape that the two broadcast to.
    Raises:
        RuntimeError: the dtypes differ, or are others
    """
    _check_parts("polar", abs, angle)
    return write_out("polar", _joined("polar", abs * angle.cos(), abs * angle.sin()), out, True)


@both
def conj(input):
    """The complex conjugate: a copy; ``input`` itself if it is real. Follows ``torch.conj``.

    Returns:
        A tensor of the shape and dtype of ``input``.
    """
    return _conj_physical(input) if input.is_complex() else input


@both
def conj_physical(input, *, out=None):
    """The complex conjugate, in memory of its own; ``input`` itself if it is real. Follows ``torch.conj_physical``.
    Otherwise like ``conj``."""
    return write_out("conj_physical", conj(input), out)


@both(kind="update")
def conj_physical_(input):
    """``conj_physical`` in place."""
    return _conj_physical.op.write(input, (input,), "conj_physical_") if input.is_complex() else input


@both
def resolve_conj(input):
    """``input``: no tensor is conjugated only when it is read. Follows ``torch.resolve_conj``."""
    tensors_only("resolve_conj", input=input)
    return input


@both
def resolve_neg(input):
    """``input``: no tensor is negated only when it is read. Follows ``torch.resolve_neg``."""
    tensors_only("resolve_neg", input=input)
    return input


@both(kind="query")
def is_conj(input) -> bool:
    """False: no tensor is conjugated only when it is read. Follows ``torch.is_conj``."""
    tensors_only("is_conj", input=input)
    return False


@both(kind="query")
def is_neg(input) -> bool:
    """False: no tensor is negated only when it is read. Follows ``torch.is_neg``."""
    tensors_only("is_neg", input=input)
    return False


@function(kind="query")
def is_complex(input) -> bool:
    """Has ``input`` a complex dtype?"""
    return input.is_complex()


@both
def isreal(input):
    """Where the imaginary part is 0; bool.

    Returns:
        A bool tensor of the shape of ``input``.
    """
    return imag(input) == 0 if input.is_complex() else input.new_ones(input.shape, dtype=bool)
