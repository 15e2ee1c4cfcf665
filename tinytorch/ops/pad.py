"""Padding: with a constant, or with the tensor's own elements.

Padding with a constant by negative amounts crops, so that its derivative is itself, of the negated amounts. The other
modes copy slices along one dimension after the other; their derivative adds what these received to where they came
from, in the opposite order, and the derivative of that is padding again.

``pads`` holds (before, behind) for each dimension.
"""

from __future__ import annotations

from ..backends.cpu import error, ffi, lib
from ..layouts import contiguous_format, strides_of, suggested
from ..tensor import Tensor, owned
from .declare import function, number_parts, primitive, scalar_kind
from .fitting import check_fits


def _part(h, begins, sizes) -> Tensor:
    """The block of these sizes from ``begins`` on, in the same memory."""
    strides = ffi.unpack(h.strides, h.ndim)
    start = lib.tt_offset(h) + sum(b * s for b, s in zip(begins, strides))
    return owned.tt_view(h, h.ndim, sizes, strides, start)


def _write(to: Tensor, a: Tensor) -> None:
    if lib.tt_copy(to._h, a._h, -1) < 0:
        raise error("pad")


def _fresh(input: Tensor, shape, form) -> Tensor:
    return input.detach().new_empty_strided(shape, strides_of(shape, form, "pad"))


def _negated(pads):
    return tuple((-before, -behind) for before, behind in pads)


@primitive(title="ConstantPadNdBackward0", input=lambda g, pads: _constant(g, _negated(pads), 0))
def _constant(input, pads, value):
    strides, form = ffi.NULL, suggested(input)
    if form is not contiguous_format:
        strides = strides_of([n + sum(around) for n, around in zip(input.shape, pads)], form, "pad")
    if isinstance(value, Tensor):
        value = value.item()
    kind = scalar_kind(value)
    if value:
        check_fits(input._h.dtype, kind, value)
    return owned.tt_pad(input._h, [n for around in pads for n in around], strides, *number_parts(kind, value))


# What padding copies in a dimension of n elements that begin at `at`: (to, from, how many, how).

_AS_IS, _BACKWARDS, _OVER_AND_OVER = range(3)


def _mirrored(n, at, before, behind):
    return (at - before, at + 1, before, _BACKWARDS), (at + n, at + n - 1 - behind, behind, _BACKWARDS)


def _repeated(n, at, before, behind):
    return (at - before, at, before, _OVER_AND_OVER), (at + n, at + n - 1, behind, _OVER_AND_OVER)


def _wrapped(n, at, before, behind):
    return (at - before, at + n - before, before, _AS_IS), (at + n, at, behind, _AS_IS)


_SLICES = {"reflect": _mirrored, "replicate": _repeated, "circular": _wrapped}


def _slices(h, shape, pads, mode):
    """(new, old, dim, how): the slices of a padded array in the order in which they are filled, and what they are
    copies of. What has been filled grows with every dimension."""
    begins, sizes = [before for before, _ in pads], list(shape)
    found = []
    for dim, (before, behind) in enumerate(pads):
        for to, source, length, how in _SLICES[mode](shape[dim], before, before, behind):
            if length:
                begins[dim], sizes[dim] = to, length
                new = _part(h, begins, sizes)
                begins[dim], sizes[dim] = source, 1 if how == _OVER_AND_OVER else length
                found.append((new, _part(h, begins, sizes), dim, how))
        begins[dim], sizes[dim] = 0, shape[dim] + before + behind
    return found


def _flipped(a: Tensor, dim: int) -> Tensor:
    return owned.tt_flip(a._h, 1, [dim])


# The names of Nodes, by the parameter `padded`: how many dimensions a call has padded.
_TITLES = {
    f"{kind}Pad{n}DBackward0": f"mode == '{mode}' and padded == {n}"
    for kind, mode in (("Reflection", "reflect"), ("Replication", "replicate"))
    for n in (1, 2, 3)
} | {"PadCircularBackward0": ""}


@primitive(
    name="pad_with_own", title=_TITLES, input=lambda g, input_shape, pads, mode: _added_back(g, input_shape, pads, mode)
)
def _extended(input, pads, mode, padded):
    shape = [n + before + behind for n, (before, behind) in zip(input.shape, pads)]
    out = _fresh(input, shape, contiguous_format if mode == "circular" else suggested(input))
    _write(_part(out._h, [before for before, _ in pads], input.shape), input)
    for new, old, dim, how in _slices(out._h, input.shape, pads, mode):
        _write(new, _flipped(old, dim) if how == _BACKWARDS else old)
    return out


@primitive(name="pad_with_own_backward", g=lambda g, pads, mode: _extended(g, pads, mode, 0))
def _added_back(g, shape, pads, mode):
    whole = g.detach().clone()
    for new, old, dim, how in reversed(_slices(whole._h, shape, pads, mode)):
        old += _flipped(new, dim) if how == _BACKWARDS else new.sum(dim, True) if how == _OVER_AND_OVER else new
    return _part(whole._h, [before for before, _ in pads], shape).clone()


def _own(input: Tensor, pads, mode: str, padded: int) -> Tensor:
    """Padded by elements of its own. Reflections are of the whole; a circle is closed after what is taken away."""
    added = tuple((max(before, 0), max(behind, 0)) for before, behind in pads)
    taken = tuple((min(before, 0), min(behind, 0)) for before, behind in pads)
    cropped = any(map(any, taken))
    if cropped and mode == "circular":
        return _extended(_constant(input, taken, 0), added, mode, padded)
    out = _extended(input, added, mode, padded)
    return _constant(out, taken, 0) if cropped else out


def _check_own(input: Tensor, pads, padded: int, mode: str) -> None:
    shape = input.shape
    if mode == "circular":
        for n, (before, behind) in zip(shape[-padded:], pads[-padded:]):
            if before > n or behind > n:
                raise RuntimeError("pad: Padding value causes wrapping around more than once.")
            kept = n + min(before, 0) + min(behind, 0)
            if kept < 0 or before > kept or behind > kept:
                raise RuntimeError("pad: Negative padding value is resulting in an empty dimension")
        return
    if input.dtype.kind == lib.TT_KIND_BOOL:
        raise NotImplementedError(f"pad: mode '{mode}' is not implemented for 'Bool'")
    if 0 in shape[1 if len(shape) == padded + 2 else 0 :]:
        raise RuntimeError(
            f"pad: Expected {padded + 1}D or {padded + 2}D (batch mode) tensor with possibly 0 batch size and other "
            f"non-zero dimensions for input, but got: {list(shape)}"
        )
    for dim in range(len(shape) - padded, len(shape)):
        n, (before, behind) = shape[dim], pads[dim]
        if mode == "reflect" and (before >= n or behind >= n):
            raise RuntimeError(
                f"pad: Padding size should be less than the corresponding input dimension, but got: padding "
                f"({before}, {behind}) at dimension {dim} of input {list(shape)}"
            )
        if n + before + behind < 1:
            raise RuntimeError(
                f"pad: input of size {n} at dimension {dim} is too small. Calculated output size: {n + before + behind}"
            )


@function(namespace="nn.functional")
def pad(input, pad, mode="constant", value=None):
    """``input`` with elements added before and behind it. Follows ``torch.nn.functional.pad``.

    Args:
        pad: how many, as (before, behind) of the last dimension, then of the one before it, and so on; negative numbers
            take elements away
        mode: ``"constant"``; or, in the last one to three dimensions of a tensor that has one or two more,
            ``"reflect"`` (mirrored at its first and last elements), ``"replicate"`` (these repeated) or ``"circular"``
        value: the constant; 0 unless given
    Returns:
        A new tensor.
    Raises:
        RuntimeError: more dimensions than there are, more elements than a mode can add, or a size below 0
        NotImplementedError: an unknown mode, or one that does not go with so many dimensions
    """
    amounts, dims = tuple([n.__index__() for n in pad]), input._h.ndim
    if mode != "constant" and mode not in _SLICES:
        raise NotImplementedError(f"pad: Unrecognised padding mode {mode}")
    if len(amounts) % 2:
        raise RuntimeError("pad: Padding length must be divisible by 2")
    if len(amounts) > 2 * dims:
        raise RuntimeError(
            "pad: Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(amounts)} and input of dimension {dims}"
        )
    padded = len(amounts) // 2
    pads = ((0, 0),) * (dims - padded) + tuple(zip(amounts[::2], amounts[1::2]))[::-1]
    if mode == "constant":
        for n, (before, behind) in zip(input.shape, pads) if min(amounts, default=0) < 0 else ():
            if n + min(before, 0) + min(behind, 0) < 0 or n + before + behind < 0:
                raise RuntimeError(
                    f"pad: the input size {n}, plus negative padding {before} and {behind} resulted in a negative size"
                )
        return _constant(input, pads, 0 if value is None else value)
    if value:
        raise RuntimeError(f'pad: Padding mode "{mode}" doesn\'t take in value argument')
    if not 1 <= padded <= 3 or dims - padded not in (1, 2):
        raise NotImplementedError(f"pad: Padding size {len(amounts)} is not supported for {dims}D input tensor.")
    _check_own(input, pads, padded, mode)
    return _own(input, pads, mode, padded)
