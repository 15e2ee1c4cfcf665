"""Samplers: in which order samples are taken, and in what batches."""

from __future__ import annotations

from ...dtypes import float64
from ...ops.create import as_tensor
from ...ops.random import multinomial, randint, randperm


PIECE = 1 << 16  # draws at a time


class Sampler:
    """Numbers of samples: a subclass defines ``__iter__``, and ``__len__`` if it is known. Follows
    ``torch.utils.data.Sampler``."""

    def __init__(self, data_source=None):
        """A base without state."""

    def __class_getitem__(cls, item):
        return cls

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__} must define __iter__")


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
        check_bool("replacement", replacement)
        if num_samples is not None:
            check_positive("num_samples", num_samples)
        self.data_source, self.replacement = data_source, replacement
        self._num_samples, self.generator = num_samples, generator

    @property
    def num_samples(self) -> int:
        """How many numbers an iteration gives."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def pieces(self):
        """The numbers of one iteration, as tensors of some of them, each drawn when it is asked for."""
        n, wanted = len(self.data_source), self.num_samples
        while wanted > 0 and n:
            if self.replacement:
                piece = randint(0, n, (min(wanted, PIECE),), generator=self.generator)
            else:
                piece = randperm(n, generator=self.generator)[:wanted]
            wanted -= len(piece)
            yield piece

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
        batch = []
        for i in self.sampler:
            batch.append(i)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self):
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
