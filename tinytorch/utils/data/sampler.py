"""Samplers: in which order samples are taken, and in what batches."""

from __future__ import annotations

import itertools

from ...dtypes import float64, int64
from ...generator import Generator
from ...ops.create import as_tensor, empty
from ...ops.random import multinomial, randint, randperm

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

PIECE = 32  # draws at a time, as PyTorch's


class Sampler:
    """Numbers of samples: a subclass defines ``__iter__``, and ``__len__`` if it is known. Follows
    ``torch.utils.data.Sampler``."""

    def __init__(self, data_source=None):
        """A base without state."""

    def __class_getitem__(cls, item):
        return cls

    def __iter__(self):
        raise NotImplementedError


def check_positive(name: str, value) -> None:
    """ValueError for what is not an integer above zero."""
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


def check_bool(name: str, value) -> None:
    """ValueError for what is not a bool."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} should be a boolean value, but got {name}={value}")


class SequentialSampler(Sampler):
    """0, 1, 2, ..."""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler):
    """A permutation of all samples, or with ``replacement`` as many draws."""

    def __init__(self, data_source, replacement: bool = False, num_samples: int | None = None, generator=None):
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.data_source, self.replacement = data_source, replacement
        self._num_samples, self.generator = num_samples, generator
        check_positive("num_samples", int(self.num_samples) if self.num_samples is True else self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many numbers an iteration gives."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def pieces(self):
        """The numbers of one iteration, as tensors of some of them, each drawn when it is asked for. Draws what PyTorch
        draws, in its order: a seed of its own unless there is a generator, and a permutation too many."""
        n, wanted, generator = len(self.data_source), self.num_samples, self.generator
        if generator is None:
            generator = Generator().manual_seed(empty((), dtype=int64).random_().item())
        if self.replacement:
            for _ in range(wanted // PIECE):
                yield randint(0, n, (PIECE,), generator=generator)
            yield randint(0, n, (wanted % PIECE,), generator=generator)
            return
        for _ in range(wanted // n):
            yield randperm(n, generator=generator)
        yield randperm(n, generator=generator)[: wanted % n]

    def __iter__(self):
        for piece in self.pieces():
            yield from piece.tolist()

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """A permutation of ``indices``."""

    def __init__(self, indices, generator=None):
        self.indices, self.generator = indices, generator

    def __iter__(self):
        for i in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """``num_samples`` draws with probabilities in proportion to ``weights``."""

    def __init__(self, weights, num_samples: int, replacement: bool = True, generator=None):
        check_positive("num_samples", num_samples)
        check_bool("replacement", replacement)
        self.weights = as_tensor(weights, dtype=float64)
        if self.weights.ndim != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self):
        yield from multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator).tolist()

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of ``batch_size`` numbers of another sampler; a shorter one at the end unless ``drop_last``."""

    def __init__(self, sampler, batch_size: int, drop_last: bool):
        check_positive("batch_size", batch_size)
        check_bool("drop_last", drop_last)
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self):
        numbers = iter(self.sampler)
        while batch := list(itertools.islice(numbers, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self):
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
