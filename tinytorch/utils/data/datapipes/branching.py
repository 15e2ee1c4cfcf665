"""Pipes that share one before them: copies of all samples, or each its part. Follows ``fork`` and ``demux`` of
``torch.utils.data.datapipes.iter``."""

from __future__ import annotations

import copy
from collections import deque

from .datapipe import IterDataPipe, functional_datapipe


class _Source:
    """The pipe that others share. In a round it is gone through once; a branch that begins again begins a new round,
    and the other branches' iterators of the last one are invalid."""

    name: str

    def __init__(self, datapipe, num_instances: int, buffer_size: int):
        if num_instances < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
        self.datapipe, self.num_instances, self.buffer_size = datapipe, num_instances, buffer_size
        self.round, self.samples = 0, None

    def restart(self) -> None:
        """Begins a round."""
        self.round += 1
        self.samples = None
        self.empty()

    def empty(self) -> None:
        """Forgets the samples that wait."""
        raise NotImplementedError

    def take(self, branch: int):
        """The next sample of a branch; StopIteration after the last."""
        raise NotImplementedError

    def pull(self):
        """The next sample of the pipe; StopIteration after the last."""
        if self.samples is None:
            self.samples = iter(self.datapipe)
        return next(self.samples)

    def __getstate__(self) -> dict:
        """Without the round, whose iterator cannot be pickled."""
        return {**vars(self), "samples": None}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self.empty()

    def overflow(self) -> BufferError:
        """What is raised where too many samples wait."""
        return BufferError(f"{self.name}: buffer overflow, buffer size {self.buffer_size} is insufficient.")


class _Copies(_Source):
    name = "fork"

    def __init__(self, datapipe, num_instances, buffer_size, duplicate):
        super().__init__(datapipe, num_instances, buffer_size)
        self.duplicate = duplicate
        self.empty()

    def empty(self):
        self.waiting, self.first, self.given = deque(), 0, [0] * self.num_instances

    def take(self, branch):
        at = self.given[branch] - self.first
        if at == len(self.waiting):
            self.waiting.append(self.pull())
        sample = self.waiting[at]
        self.given[branch] += 1
        while self.waiting and min(self.given) > self.first:
            self.waiting.popleft()
            self.first += 1
        if len(self.waiting) > self.buffer_size >= 0:
            raise self.overflow()
        return self.duplicate(sample)


class _Parts(_Source):
    name = "demux"

    def __init__(self, datapipe, num_instances, classifier_fn, drop_none, buffer_size):
        super().__init__(datapipe, num_instances, buffer_size)
        self.classifier_fn, self.drop_none = classifier_fn, drop_none
        self.empty()

    def empty(self):
        self.waiting = [deque() for _ in range(self.num_instances)]

    def take(self, branch):
        if self.waiting[branch]:
            return self.waiting[branch].popleft()
        while True:
            sample = self.pull()
            to = self.classifier_fn(sample)
            if to is None and self.drop_none:
                continue
            if to is None or not 0 <= to < self.num_instances:
                raise ValueError(
                    f"Output of the classification fn should be between 0 and {self.num_instances - 1}. {to} is "
                    "returned."
                )
            if to == branch:
                return sample
            self.waiting[to].append(sample)
            if sum(map(len, self.waiting)) > self.buffer_size >= 0:
                raise self.overflow()


class _Branch(IterDataPipe):
    """One of several pipes behind one."""

    def __init__(self, source: _Source, number: int):
        self.source, self.number, self.round = source, number, None
        self.datapipe = source.datapipe  # where graph_settings looks for it

    def __iter__(self):
        if self.round == self.source.round:
            self.source.restart()
        self.round = self.source.round
        return self._samples(self.round)

    def _samples(self, round: int):
        while True:
            if self.source.round != round:
                raise RuntimeError(
                    "This iterator has been invalidated, because a new iterator has been created from one of the pipes "
                    "that share its source."
                )
            try:
                sample = self.source.take(self.number)
            except StopIteration:
                return
            yield sample


class _Copy(_Branch):
    def __len__(self):
        return len(self.source.datapipe)


def _same(sample):
    return sample


_COPIES = {None: _same, "shallow": copy.copy, "deep": copy.deepcopy}


@functional_datapipe("fork")
class Forker(IterDataPipe):
    """``num_instances`` pipes of all samples; BufferError where one is more than ``buffer_size`` ahead of another (-1:
    any number). ``copy``: "shallow" or "deep" copies, or the samples themselves (None)."""

    def __new__(cls, datapipe, num_instances: int, buffer_size: int = 1000, copy: str | None = None):
        if copy not in _COPIES:
            raise ValueError(f"Unknown copy method '{copy}' encountered. Choose one of None, 'shallow', 'deep'.")
        source = _Copies(datapipe, num_instances, buffer_size, _COPIES[copy])
        return datapipe if num_instances == 1 else [_Copy(source, k) for k in range(num_instances)]


@functional_datapipe("demux")
class Demultiplexer(IterDataPipe):
    """``num_instances`` pipes, each of the samples for which ``classifier_fn`` gives its number; None is a ValueError,
    or with ``drop_none`` the sample is left out. ``buffer_size`` samples may wait (-1: any number)."""

    def __new__(cls, datapipe, num_instances: int, classifier_fn, drop_none: bool = False, buffer_size: int = 1000):
        source = _Parts(datapipe, num_instances, classifier_fn, drop_none, buffer_size)
        return [_Branch(source, k) for k in range(num_instances)]
