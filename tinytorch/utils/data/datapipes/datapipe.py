"""The base classes, and how a class becomes a method of theirs."""

from __future__ import annotations

import functools
import random

from ..dataset import Dataset, IterableDataset
from ..graph_settings import DataPipe, seed_from

__all__ = ["DataChunk", "IterDataPipe", "MapDataPipe", "functional_datapipe"]


class _Steps(DataPipe):
    """What both kinds share: methods by name, which make further pipes."""

    functions: dict

    def __getattr__(self, name: str):
        if name in type(self).functions:
            return functools.partial(type(self).functions[name], self)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @classmethod
    def register_function(cls, function_name: str, function) -> None:
        """Makes ``pipe.<function_name>(...)`` call ``function(pipe, ...)``."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register, enable_df_api_tracing: bool = False
    ) -> None:
        """Makes ``pipe.<function_name>(...)`` a pipe of that class. Exception for a name that is taken."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")
        cls.functions[function_name] = cls_to_register

    def __repr__(self):
        return type(self).__qualname__


class IterDataPipe(_Steps, IterableDataset):
    """Samples one after another: a subclass defines ``__iter__``. Follows ``torch.utils.data.IterDataPipe``."""

    functions: dict = {}

    def reset(self) -> None:
        """For subclasses: what is to happen before another round."""


class MapDataPipe(_Steps, Dataset):
    """Samples by number: a subclass defines ``__getitem__``. Follows ``torch.utils.data.MapDataPipe``."""

    functions: dict = {}


def joined(made, kind: type, datapipes: tuple) -> tuple:
    """The pipes that ``made`` joins: at least one, all of that kind. ValueError or TypeError."""
    name = type(made).__name__
    if not datapipes:
        raise ValueError(f"Expected at least one DataPipe to {name}, but got nothing")
    if not all(isinstance(pipe, kind) for pipe in datapipes):
        raise TypeError(f"Expected all inputs of {name} to be `{kind.__name__}`")
    return datapipes


class DataChunk(list):
    """A batch."""

    def __init__(self, items):
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """The batch as text."""
        return f"{indent}[{', '.join(map(str, self))}]"

    def raw_iterator(self):
        """The samples."""
        yield from self.items


class functional_datapipe:
    """A decorator of subclasses of IterDataPipe or MapDataPipe, which become methods ``name`` of their base. TypeError
    for another class. Follows ``torch.utils.data.functional_datapipe``."""

    def __init__(self, name: str, enable_df_api_tracing: bool = False):
        self.name = name

    def __call__(self, cls):
        for base in (IterDataPipe, MapDataPipe):
            if isinstance(cls, type) and issubclass(cls, base):
                base.register_datapipe_as_function(self.name, cls)
                return cls
        raise TypeError("`functional_datapipe` can only decorate IterDataPipe or MapDataPipe")


class Shuffling(IterDataPipe):
    """What shufflers share: they are switched on and off, and a round's seed may be given."""

    _enabled, _seed = True, None

    def set_shuffle(self, shuffle: bool = True) -> Shuffling:
        """Switches it on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Shuffling:
        """The seed of the next round."""
        self._seed = seed
        return self

    def _numbers(self) -> random.Random:
        """The numbers of a round."""
        seed, self._seed = self._seed, None
        return random.Random(seed_from() if seed is None else seed)
