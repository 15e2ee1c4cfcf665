"""Datasets: what has samples by number, or gives them one after another."""

from __future__ import annotations

import bisect
import math
import warnings
from itertools import accumulate

from ...ops.random import randperm
from ...tensor import Tensor

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]


class Dataset:
    """Samples by number: a subclass defines ``__getitem__``, and ``__len__`` if it is known. Follows
    ``torch.utils.data.Dataset``."""

    def __getitem__(self, index):
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __class_getitem__(cls, item):
        return cls

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Samples one after another: a subclass defines ``__iter__``. Follows ``torch.utils.data.IterableDataset``."""

    def __iter__(self):
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Tensors of one length: sample ``i`` is row ``i`` of each."""

    def __init__(self, *tensors: Tensor):
        if any(t.shape[0] != tensors[0].shape[0] for t in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple([t[index] for t in self.tensors])

    def __len__(self):
        return self.tensors[0].shape[0]


class StackDataset(Dataset):
    """Datasets side by side: sample ``i`` is a tuple, or with keywords a dictionary, of sample ``i`` of each.
    ValueError for datasets of different lengths, none, or both by position and by keyword."""

    def __init__(self, *args, **kwargs):
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both "
                "types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = args or kwargs
        parts = self._parts()
        self._length = len(parts[0])
        if any(len(d) != self._length for d in parts):
            raise ValueError("Size mismatch between datasets")

    def _parts(self) -> list:
        return list(self.datasets.values()) if isinstance(self.datasets, dict) else list(self.datasets)

    def _sample(self, parts):
        return dict(zip(self.datasets, parts)) if isinstance(self.datasets, dict) else tuple(parts)

    def __getitem__(self, index):
        return self._sample([d[index] for d in self._parts()])

    def __getitems__(self, indices: list) -> list:
        return [self._sample(parts) for parts in zip(*[self._many(d, indices) for d in self._parts()])]

    @staticmethod
    def _many(dataset, indices: list) -> list:
        if not callable(getattr(dataset, "__getitems__", None)):
            return [dataset[i] for i in indices]
        items = dataset.__getitems__(indices)
        if len(items) != len(indices):
            raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}")
        return items

    def __len__(self):
        return self._length


class ConcatDataset(Dataset):
    """Datasets one behind the other."""

    @staticmethod
    def cumsum(sequence) -> list[int]:
        """The lengths of datasets, each added to those before."""
        return list(accumulate(len(d) for d in sequence))

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @property
    def cummulative_sizes(self) -> list[int]:
        """An old name of ``cumulative_sizes``, with a FutureWarning."""
        warnings.warn("`cummulative_sizes` attribute is renamed to `cumulative_sizes`", FutureWarning, stacklevel=2)
        return self.cumulative_sizes

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        at = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[at][index - (self.cumulative_sizes[at - 1] if at else 0)]


class ChainDataset(IterableDataset):
    """Iterable datasets one after the other."""

    def __init__(self, datasets):
        self.datasets = datasets

    def __iter__(self):
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from d

    def __len__(self):
        if any(not isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ChainDataset only supports IterableDataset")
        return sum(len(d) for d in self.datasets)


class Subset(Dataset):
    """The samples of a dataset that ``indices`` name. NotImplementedError in a subclass that has its own
    ``__getitem__``, and not its own ``__getitems__``, which loaders ask."""

    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, indices
        cls = type(self)
        if cls.__getitem__ is not Subset.__getitem__ and cls.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{cls.__name__} overrides __getitem__ but not __getitems__. When subclassing Subset and overriding "
                "__getitem__, you must also override __getitems__ to ensure DataLoader works correctly with your "
                "custom logic. A simple implementation:\n\n"
                "def __getitems__(self, indices):\n"
                "    return [self.__getitem__(idx) for idx in indices]"
            )

    def __getitem__(self, index):
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list) -> list:
        chosen = [self.indices[i] for i in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(chosen)
        return [self.dataset[i] for i in chosen]

    def __len__(self):
        return len(self.indices)


def random_split(dataset, lengths, generator=None) -> list[Subset]:
    """Splits at random into subsets of the given lengths, or of fractions that add up to 1: what is left over goes to
    the first ones, one sample each. ValueError when the lengths do not add up. Follows
    ``torch.utils.data.random_split``."""
    n = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, part in enumerate(lengths):
            if not 0 <= part <= 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        sizes = [math.floor(n * part) for part in lengths]
        for i in range(n - sum(sizes)):
            sizes[i % len(sizes)] += 1
        lengths = sizes
        for i, length in enumerate(lengths):
            if not length:
                warnings.warn(
                    f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=2
                )
    if sum(lengths) != n:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = randperm(n, generator=generator).tolist()
    return [Subset(dataset, order[end - length : end]) for end, length in zip(accumulate(lengths), lengths)]
