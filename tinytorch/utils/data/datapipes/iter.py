"""Steps of samples that come one after another. Follows ``torch.utils.data.datapipes.iter``."""

from __future__ import annotations

import contextlib
import copy
import itertools

from .._utils.collate import default_collate
from ..sampler import SequentialSampler
from .branching import Demultiplexer, Forker
from .datapipe import DataChunk, IterDataPipe, Shuffling, functional_datapipe, joined
from .files import FileLister, FileOpener, StreamReader

__all__ = ["Batcher", "Collator", "Concater", "Demultiplexer", "FileLister", "FileOpener", "Filter", "Forker",
           "Grouper", "IterableWrapper", "Mapper", "Multiplexer", "Sampler", "ShardingFilter", "Shuffler",
           "StreamReader", "UnBatcher", "Zipper"]  # fmt: skip


class IterableWrapper(IterDataPipe):
    """What an iterable gives; each round that of a copy, unless ``deepcopy`` is False."""

    def __init__(self, iterable, deepcopy: bool = True):
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self):
        source = self.iterable
        if self.deepcopy:
            with contextlib.suppress(TypeError):  # generators, files, ...
                source = copy.deepcopy(source)
        yield from source

    def __len__(self):
        return len(self.iterable)


class _Of(IterDataPipe):
    """A pipe with one before it, and as long."""

    def __init__(self, datapipe):
        self.datapipe = datapipe

    def __len__(self):
        return len(self.datapipe)


def _columns(sample, column):
    """The column of a sample, or several."""
    return tuple(sample[c] for c in column) if isinstance(column, (list, tuple)) else sample[column]


@functional_datapipe("map")
class Mapper(_Of):
    """``fn(sample)``; or of the columns ``input_col`` of each sample, put at ``output_col`` (-1: after the last)."""

    def __init__(self, datapipe, fn, input_col=None, output_col=None):
        super().__init__(datapipe)
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.fn, self.input_col, self.output_col = fn, input_col, output_col

    def __iter__(self):
        for sample in self.datapipe:
            yield self._applied(sample)

    def _applied(self, sample):
        column = self.input_col
        if column is None:
            return self.fn(sample)
        several = isinstance(column, (list, tuple))
        value = self.fn(*_columns(sample, column)) if several else self.fn(sample[column])
        changed = list(sample) if isinstance(sample, tuple) else copy.copy(sample)
        if self.output_col == -1:
            changed.append(value)
        elif self.output_col is not None:
            changed[self.output_col] = value
        else:
            changed[column[0] if several else column] = value
            for c in sorted(column[1:], reverse=True) if several else ():
                del changed[c]
        return tuple(changed) if isinstance(sample, tuple) else changed


@functional_datapipe("filter")
class Filter(IterDataPipe):
    """The samples for which ``filter_fn`` (of the columns ``input_col``) is True. ValueError for what is no bool."""

    def __init__(self, datapipe, filter_fn, input_col=None):
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def __iter__(self):
        for sample in self.datapipe:
            if self.input_col is None:
                kept = self.filter_fn(sample)
            elif isinstance(self.input_col, (list, tuple)):
                kept = self.filter_fn(*_columns(sample, self.input_col))
            else:
                kept = self.filter_fn(sample[self.input_col])
            if not isinstance(kept, bool):
                raise ValueError(f"Boolean output is required for `filter_fn` of Filter, got {type(kept)}")
            if kept:
                yield sample


@functional_datapipe("batch")
class Batcher(IterDataPipe):
    """Batches of samples."""

    def __init__(self, datapipe, batch_size: int, drop_last: bool = False, wrapper_class=DataChunk):
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self):
        samples = iter(self.datapipe)
        while batch := list(itertools.islice(samples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.wrapper_class(batch)

    def __len__(self):
        n = len(self.datapipe)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


@functional_datapipe("unbatch")
class UnBatcher(IterDataPipe):
    """The samples of batches, ``unbatch_level`` of them one in another; -1: all."""

    def __init__(self, datapipe, unbatch_level: int = 1):
        if unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self):
        for sample in self.datapipe:
            yield from self._within(sample, self.unbatch_level)

    def _within(self, sample, level: int):
        if level == 0 or (level == -1 and not isinstance(sample, list)):
            yield sample
        elif not isinstance(sample, list):
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")
        else:
            for part in sample:
                yield from self._within(part, level if level == -1 else level - 1)


@functional_datapipe("shuffle")
class Shuffler(Shuffling, _Of):
    """The samples in an order of its own each round: drawn from the next ``buffer_size`` of them, by the seed that
    ``set_seed`` gave for one round, else by one that is drawn from the default generator."""

    def __init__(self, datapipe, *, buffer_size: int = 10000, unbatch_level: int = 0):
        if buffer_size <= 0:
            raise ValueError("buffer_size should be larger than 0")
        super().__init__(datapipe if unbatch_level == 0 else UnBatcher(datapipe, unbatch_level))
        self.buffer_size = buffer_size

    def __iter__(self):
        if not self._enabled:
            yield from self.datapipe
            return
        numbers, waiting = self._numbers(), []
        for sample in self.datapipe:
            if len(waiting) == self.buffer_size:
                k = numbers.randint(0, len(waiting) - 1)
                waiting[k], sample = sample, waiting[k]
                yield sample
            else:
                waiting.append(sample)
        while waiting:
            yield waiting.pop(numbers.randint(0, len(waiting) - 1))


class Sampler(_Of):
    """What a sampler of the pipe gives: ``sampler(datapipe, *sampler_args, **sampler_kwargs)``."""

    def __init__(self, datapipe, sampler=SequentialSampler, sampler_args=None, sampler_kwargs=None):
        super().__init__(datapipe)
        self.sampler = sampler(datapipe, *(sampler_args or ()), **(sampler_kwargs or {}))

    def __iter__(self):
        return iter(self.sampler)

    def __len__(self):
        return len(self.sampler)


@functional_datapipe("collate")
class Collator(Mapper):
    """Batches as tensors: ``collate_fn`` of each."""

    def __init__(self, datapipe, conversion=None, collate_fn=None):
        super().__init__(datapipe, conversion or collate_fn or default_collate)


class _OfSeveral(IterDataPipe):
    def __init__(self, *datapipes):
        self.datapipes = joined(self, IterDataPipe, datapipes)


@functional_datapipe("concat")
class Concater(_OfSeveral):
    """One pipe after another."""

    def __iter__(self):
        return itertools.chain(*self.datapipes)

    def __len__(self):
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class Zipper(_OfSeveral):
    """Tuples of a sample of each pipe, as long as the shortest."""

    def __iter__(self):
        return zip(*self.datapipes)

    def __len__(self):
        return min(map(len, self.datapipes))


@functional_datapipe("mux")
class Multiplexer(_OfSeveral):
    """A sample of each pipe in turn, until one has no more."""

    def __iter__(self):
        return itertools.chain.from_iterable(zip(*self.datapipes))

    def __len__(self):
        return min(map(len, self.datapipes)) * len(self.datapipes)


@functional_datapipe("sharding_filter")
class ShardingFilter(_Of):
    """Every ``num_of_instances``-th sample, once ``apply_sharding`` was called; all before."""

    num_of_instances, instance_id = 1, 0

    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group=None) -> None:
        """Says how many there are that share the samples, and which one this is."""
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})")
        self.num_of_instances, self.instance_id = num_of_instances, instance_id

    def __iter__(self):
        return itertools.islice(self.datapipe, self.instance_id, None, self.num_of_instances)

    def __len__(self):
        return len(range(self.instance_id, len(self.datapipe), self.num_of_instances))


@functional_datapipe("groupby")
class Grouper(IterDataPipe):
    """Batches of the samples with one ``group_key_fn(sample)`` (``keep_key``: with that key), of ``group_size`` at
    most. Where ``buffer_size`` samples wait, the largest group is given, if it is of ``guaranteed_group_size``
    (``group_size`` unless given); else RuntimeError, or with ``drop_remaining`` it is lost."""

    def __init__(
        self,
        datapipe,
        group_key_fn,
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ):
        if group_size is not None and not 0 < group_size <= buffer_size:
            raise AssertionError("group_size must be > 0 and <= buffer_size")
        if guaranteed_group_size is not None and not (group_size and 0 < guaranteed_group_size <= group_size):
            raise AssertionError("guaranteed_group_size must be > 0 and <= group_size and group_size must be set")
        self.datapipe, self.group_key_fn, self.keep_key = datapipe, group_key_fn, keep_key
        self.buffer_size, self.group_size, self.drop_remaining = buffer_size, group_size, drop_remaining
        self.guaranteed_group_size = guaranteed_group_size or group_size

    def __iter__(self):
        groups: dict = {}
        waiting = 0
        for sample in self.datapipe:
            key = self.group_key_fn(sample)
            groups.setdefault(key, []).append(sample)
            waiting += 1
            if len(groups[key]) == self.group_size:
                yield self._given(key, groups[key])
                waiting -= len(groups.pop(key))
            if waiting == self.buffer_size:
                key = max(groups, key=lambda k: len(groups[k]))
                waiting -= len(groups[key])
                if len(groups[key]) >= (self.guaranteed_group_size or 0):
                    yield self._given(key, groups.pop(key))
                elif not self.drop_remaining:
                    raise RuntimeError("Failed to group items", str(groups[key]))
                else:
                    del groups[key]
        for key, group in groups.items():
            yield self._given(key, group)

    def _given(self, key, group: list):
        return (key, DataChunk(group)) if self.keep_key else DataChunk(group)
