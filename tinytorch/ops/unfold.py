"""Blocks of images as columns, and back: two kernels, each the other's derivative (kernels/api/conv.h).

``geometry`` is sizes of a block, dilations, paddings and strides, two of each.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..backends.cpu import error
from ..tensor import Tensor, attempted
from .declare import primitive


def _result(op, made):
    if made is None:
        raise error(op)
    return made


@primitive(
    name="im2col", title="Im2ColBackward0", input=lambda g, input_shape, geometry: _fold(g, input_shape[2:], geometry)
)
def _unfold(input, geometry):
    return _result("unfold", attempted.tt_unfold(input._h, geometry))


@primitive(name="col2im", title="Col2ImBackward0", input=lambda g, geometry: _unfold(g, geometry))
def _fold(input, size, geometry):
    return _result("fold", attempted.tt_fold(input._h, size, geometry))


def _pair(op: str, name: str, value) -> tuple[int, int]:
    """A number for both dimensions, or one of each, in anything that can be walked."""
    values = tuple(value) if isinstance(value, Iterable) else (value, value)
    for k, v in enumerate(values):
        flag = k == 0 and type(v).__name__ in ("bool", "bool_")  # PyTorch's parser looks for it at the first place
        if flag or isinstance(v, (str, bytes)) or not hasattr(v, "__index__"):
            raise TypeError(
                f"{op}(): argument '{name}' must be tuple of ints, but found element of type {type(v).__name__} at "
                f"pos {k}"
            )
    values = tuple([v.__index__() for v in values])
    if len(values) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(values)}")
    return values


def _geometry(op: str, kernel_size, dilation, padding, stride) -> tuple[int, ...]:
    given = {"kernel_size": kernel_size, "dilation": dilation, "padding": padding, "stride": stride}
    pairs = {name: _pair(op, name, value) for name, value in given.items()}
    for name, (height, width) in pairs.items():
        if min(height, width) < (name != "padding"):
            wanted = "non-negative" if name == "padding" else "greater than zero"
            raise RuntimeError(f"{name.replace('_', ' ')} should be {wanted}, but got {name}=({height}, {width})")
    return sum(pairs.values(), ())


def _blocks(size, geometry) -> list[int]:
    """How many blocks there are along each dimension; below 1 where none fits."""
    return [
        (n + 2 * geometry[4 + d] - geometry[2 + d] * (geometry[d] - 1) - 1) // geometry[6 + d] + 1
        for d, n in enumerate(size)
    ]


def _batched(op: str, input, n: int) -> bool:
    """Has ``input``, of ``n`` dimensions, a batch? Sizes but the batch's must not be 0."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{op}(): argument 'input' must be Tensor, not {type(input).__name__}")
    shape = list(input.shape)
    if n == 4 and len(shape) < 3 and 0 not in shape[1:]:
        raise IndexError(f"unfold: Dimension out of range: expected a 3D or 4D (batch mode) tensor, but got: {shape}")
    if len(shape) not in (n - 1, n) or 0 in shape[len(shape) - n + 1 :]:
        raise RuntimeError(
            f"Expected {n - 1}D or {n}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions "
            f"for input, but got: {shape}"
        )
    return len(shape) == n


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The blocks that a filter of ``kernel_size`` sees of ``input``, of shape (N, C, H, W) or (C, H, W), as columns.
    Follows ``torch.nn.functional.unfold``.

    Args:
        kernel_size: the size of a block; here and below, a number, or one of each dimension
        dilation: the step between the elements of a block
        padding: how many zeros are put before and behind ``input``
        stride: the step from one block to the next
    Returns:
        A tensor of shape (N, C * elements of a block, blocks), or without N.
    Raises:
        RuntimeError: the sizes do not fit, or there is no block
        IndexError: ``input`` has less than three dimensions
        NotImplementedError: integers
    """
    if isinstance(input, Tensor) and input.requires_grad and not isinstance(kernel_size, Tensor):
        input.size(-2)  # what the derivative needs comes first
    geometry = _geometry("unfold", kernel_size, dilation, padding, stride)
    batched = _batched("unfold", input, 4)
    size = list(input.shape[-2:])
    if min(_blocks(size, geometry)) < 1:
        raise RuntimeError(
            f"Given input with spatial size {tuple(size)}, kernel_size={geometry[:2]}, dilation={geometry[2:4]}, "
            f"padding={geometry[4:6]}, calculated shape of the array of sliding blocks as "
            f"{tuple(_blocks(size, geometry))}, but its components must be at least one."
        )
    if input.dtype.name.strip("u").startswith("int"):
        raise NotImplementedError(f"unfold: not implemented for '{input.dtype.name}'")
    return _unfold(input, geometry) if batched else _unfold(input.unsqueeze(0), geometry).squeeze(0)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """The image of ``output_size`` in which each element is the sum of the elements that columns, ``input`` of shape
    (N, C * elements of a block, blocks), or without N, have for it. Follows
    ``torch.nn.functional.fold``.

    Args:
        output_size: height and width of the image
        kernel_size: the size of a block; here and below, a number, or one of each dimension
        dilation: the step between the elements of a block
        padding: how many elements blocks reach beyond the image at each side
        stride: the step from one block to the next
    Returns:
        A tensor of shape (N, C, H, W), or without N.
    Raises:
        RuntimeError: the sizes do not fit
        NotImplementedError: integers
    """
    geometry = _geometry("fold", kernel_size, dilation, padding, stride)
    size, batched = _pair("fold", "output_size", output_size), _batched("fold", input, 3)
    rows, columns = input.shape[-2:]
    if rows % (geometry[0] * geometry[1]):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={rows} and kernel_size={geometry[:2]}."
        )
    height, width = _blocks(size, geometry)
    if height * width != columns or min(size) < 1 or min(height, width) < 1:
        raise RuntimeError(
            f"Given output_size={size}, kernel_size={geometry[:2]}, dilation={geometry[2:4]}, padding={geometry[4:6]}, "
            f"stride={geometry[6:]}, expected size of input's dimension 2 to match the calculated number of sliding "
            f"blocks {height} * {width} = {height * width}, but got input.size(2)={columns}."
        )
    return _fold(input, size, geometry) if batched else _fold(input.unsqueeze(0), size, geometry).squeeze(0)
