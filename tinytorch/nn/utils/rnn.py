"""Sequences of several lengths: padded into one tensor, or packed, their rows step by step. Follows
``torch.nn.utils.rnn``."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable

from ...dtypes import int64
from ...ops.create import empty, full
from ...ops.create import tensor as make_tensor
from ...ops.join import cat, stack
from ...ops.ranges import arange
from ...tensor import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes ``permutation``; None of None."""
    if permutation is None:
        return None
    if not isinstance(permutation, Tensor):
        raise TypeError(
            f"invert_permutation(): argument 'permutation' must be Tensor, not {type(permutation).__name__}"
        )
    places = arange(permutation.numel(), dtype=permutation.dtype, device=permutation.device)
    return empty(permutation.shape, dtype=permutation.dtype, device=permutation.device).scatter_(0, permutation, places)


class PackedSequence(
    namedtuple("PackedSequence_", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])  # noqa: PYI024
):
    """The rows of sequences, sorted by falling length, step by step: ``data`` (rows, *), ``batch_sizes``, how many
    there are of each step, on the CPU; where they were sorted first, ``sorted_indices``, where each came from, and
    ``unsorted_indices``, where each went. Follows ``torch.nn.utils.rnn.PackedSequence``."""

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:  # a pair
            data, batch_sizes = data
        if not isinstance(batch_sizes, Tensor):
            raise TypeError(f"PackedSequence: batch_sizes must be a Tensor, not {type(batch_sizes).__name__}")
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in "
                "nn.utils.rnn."
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def __getnewargs__(self):
        return tuple(self)

    def to(self, *args, **kwargs) -> PackedSequence:
        """``data.to(...)``, and the indices on its device; this object where nothing changes."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        indices = (None if i is None else i.to(data.device) for i in (self.sorted_indices, self.unsorted_indices))
        return type(self)(data, self.batch_sizes, *indices)

    def cuda(self, *args, **kwargs) -> PackedSequence:
        """On a CUDA device."""
        return self.to(self.data.cuda(*args, **kwargs).device)

    def cpu(self, *args, **kwargs) -> PackedSequence:
        """On the CPU."""
        return self.to("cpu")

    def pin_memory(self) -> PackedSequence:
        """With ``data`` in page-locked memory."""
        return type(self)(self.data.pin_memory(), self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    @property
    def is_cuda(self) -> bool:
        """Is ``data`` on a CUDA device?"""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Is ``data`` in page-locked memory?"""
        return self.data.is_pinned()


def _in_dtype(name: str):
    def convert(self) -> PackedSequence:
        return self.to(getattr(self.data, name)().dtype)

    convert.__name__ = name
    convert.__qualname__ = f"PackedSequence.{name}"
    convert.__doc__ = f"With ``data.{name}()``."
    return convert


for _name in ("double", "float", "half", "long", "int", "short", "char", "byte"):
    setattr(PackedSequence, _name, _in_dtype(_name))


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | list[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs the first ``lengths[k]`` steps of each sequence k of ``input`` (L, N, *), or (N, L, *) with
    ``batch_first``. Follows ``torch.nn.utils.rnn.pack_padded_sequence``.

    Args:
        lengths: of each sequence
        enforce_sorted: whether longer sequences have to come first; else they are sorted
    Raises:
        RuntimeError: lengths are not sorted, or do not fit
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"pack_padded_sequence(): argument 'input' must be Tensor, not {type(input).__name__}")
    lengths = [int(n) for n in lengths]
    x = input.transpose(0, 1) if batch_first else input
    order = None
    if not enforce_sorted:
        order = sorted(range(len(lengths)), key=lambda k: -lengths[k])
        lengths = [lengths[k] for k in order]
        order = make_tensor(order, dtype=int64, device=x.device)
        if len(lengths) == x.shape[1]:
            x = x.index_select(1, order)
    if len(lengths) != x.shape[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} (batch_size={x.shape[1]})"
        )
    if any(n <= 0 for n in lengths):
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if lengths != sorted(lengths, reverse=True):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement."
        )
    if not lengths:
        raise RuntimeError("Cannot pack empty tensors.")
    if lengths[0] > x.shape[0]:
        raise RuntimeError(f"Expected lengths of at most {x.shape[0]}, the length of input, but got {lengths[0]}")
    sizes = [sum(n > t for n in lengths) for t in range(lengths[0])]
    steps, batch = lengths[0], len(lengths)
    rows = x[:steps].reshape(steps * batch, *x.shape[2:])
    if sizes[-1] != batch:  # they have several lengths
        places = [t * batch + k for t, size in enumerate(sizes) for k in range(size)]
        rows = rows.index_select(0, make_tensor(places, dtype=int64, device=rows.device))
    return PackedSequence(rows, make_tensor(sizes, dtype=int64), order)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The sequences in one tensor (L, N, *), or (N, L, *) with ``batch_first``, in their own order, and their lengths.
    Follows ``torch.nn.utils.rnn.pad_packed_sequence``.

    Args:
        padding_value: stands behind the ends
        total_length: L; the longest length by default
    Raises:
        ValueError: ``total_length`` is less than the longest length
    """
    data, sizes = sequence.data, sequence.batch_sizes.tolist()
    steps, batch = len(sizes), sizes[0]
    total = steps if total_length is None else total_length
    if total < steps:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {steps}"
        )
    if sizes[-1] == batch and total == steps:
        padded = data.unflatten(0, (steps, batch))
    else:
        places = [t * batch + k for t, size in enumerate(sizes) for k in range(size)]
        shape = total * batch, *data.shape[1:]
        padded = full(shape, padding_value, dtype=data.dtype, device=data.device).index_copy(
            0, make_tensor(places, dtype=int64, device=data.device), data
        )
        padded = padded.unflatten(0, (total, batch))
    lengths = make_tensor([sum(size > k for size in sizes) for k in range(batch)], dtype=int64)
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.cpu()]
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def pad_sequence(
    sequences: Tensor | list[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Tensors (L_k, *) in one (L, N, *), or (N, L, *) with ``batch_first``. Follows
    ``torch.nn.utils.rnn.pad_sequence``.

    Args:
        padding_value: stands behind the ends, or with ``padding_side`` "left" before the beginnings
    Raises:
        TypeError: one is no tensor
        RuntimeError: there are none, or their other sizes differ
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    for i, x in enumerate(sequences):
        if not isinstance(x, Tensor):
            raise TypeError(f"pad_sequence: expected Tensor as element {i} of sequences, but got {type(x).__name__}")
    longest, rest = max(len(x) for x in sequences), sequences[0].shape[1:]

    def padded(x):
        if tuple(x.shape[1:]) != tuple(rest):
            raise RuntimeError(
                f"pad_sequence: expected sizes {tuple(rest)} after the first, but got {tuple(x.shape[1:])}"
            )
        if len(x) == longest:
            return x
        filler = x.new_full((longest - len(x), *rest), padding_value)
        return cat([x, filler] if padding_side == "right" else [filler, x])

    return stack([padded(x) for x in sequences], 0 if batch_first else 1)


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs tensors (L_k, *). Follows ``torch.nn.utils.rnn.pack_sequence``.

    Args:
        enforce_sorted: whether longer ones have to come first; else they are sorted
    Raises:
        RuntimeError: they are not sorted, or there are none
    """
    return pack_padded_sequence(pad_sequence(sequences), [len(x) for x in sequences], enforce_sorted=enforce_sorted)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded tensor (L, N, *), or (N, L, *) with ``batch_first``. Follows
    ``torch.nn.utils.rnn.unpad_sequence``."""
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(n)] for row, n in zip(x, lengths, strict=True)]


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences, in their own order. Follows ``torch.nn.utils.rnn.unpack_sequence``."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
