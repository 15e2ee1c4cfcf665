"""Steps of samples by number. Follows ``torch.utils.data.datapipes.map``."""

from __future__ import annotations

import copy

from .datapipe import DataChunk, MapDataPipe, Shuffling, functional_datapipe, joined

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]


class SequenceWrapper(MapDataPipe):
    """The samples of a sequence; of a copy of it, unless ``deepcopy`` is False."""

    def __init__(self, sequence, deepcopy: bool = True):
        self.sequence = copy.deepcopy(sequence) if deepcopy else sequence

    def __getitem__(self, index):
        return self.sequence[index]

    def __len__(self):
        return len(self.sequence)


@functional_datapipe("map")
class Mapper(MapDataPipe):
    """``fn`` of each sample."""

    def __init__(self, datapipe, fn):
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index):
        return self.fn(self.datapipe[index])

    def __len__(self):
        return len(self.datapipe)


@functional_datapipe("batch")
class Batcher(MapDataPipe):
    """Batches of samples. IndexError beyond the last."""

    def __init__(self, datapipe, batch_size: int, drop_last: bool = False, wrapper_class=DataChunk):
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        first = index * self.batch_size
        return self.wrapper_class(
            self.datapipe[k] for k in range(first, min(first + self.batch_size, len(self.datapipe)))
        )

    def __len__(self):
        n = len(self.datapipe)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


class _OfSeveral(MapDataPipe):
    def __init__(self, *datapipes):
        self.datapipes = joined(self, MapDataPipe, datapipes)


@functional_datapipe("concat")
class Concater(_OfSeveral):
    """One pipe after another. IndexError beyond the last."""

    def __getitem__(self, index):
        offset = 0
        for pipe in self.datapipes:
            if index - offset < len(pipe):
                return pipe[index - offset]
            offset += len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self):
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class Zipper(_OfSeveral):
    """Tuples of a sample of each pipe. IndexError beyond the shortest."""

    def __getitem__(self, index):
        return tuple([pipe[index] for pipe in self.datapipes])

    def __len__(self):
        return min(map(len, self.datapipes))


class Shuffler(Shuffling):
    """The samples, or those of ``indices``, in an order of its own each round: drawn by the seed that ``set_seed``
    gave for one round, else by one that is drawn from the default generator."""

    def __init__(self, datapipe, *, indices: list | None = None):
        self.datapipe, self.indices = datapipe, list(range(len(datapipe))) if indices is None else indices

    def __iter__(self):
        order = self.indices
        if self._enabled:
            order = self._numbers().sample(order, len(order))[::-1]  # PyTorch's order
        return (self.datapipe[index] for index in order)

    def __len__(self):
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", Shuffler)
