"""Settings of all pipes that a pipe is made of: their order and their seeds, and which samples are a worker's. Follows
``torch.utils.data.graph_settings``."""

from __future__ import annotations

import warnings

from ...dtypes import int64
from ...ops.create import empty

__all__ = ["apply_random_seed", "apply_sharding", "apply_shuffle_settings"]


class DataPipe:
    """A dataset that may be made of others: IterDataPipe or MapDataPipe."""


def seed_from(generator=None) -> int:
    """A seed drawn from a generator, the default one unless given."""
    return empty((), dtype=int64).random_(generator=generator).item()


def _parts(pipe: DataPipe) -> list[DataPipe]:
    """The pipes that a pipe holds, and those of its lists, tuples and dictionaries that begin with one."""
    found: list[DataPipe] = []
    for value in vars(pipe).values():
        values = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else (value,)
        if isinstance(next(iter(values), None), DataPipe):
            found += [part for part in values if isinstance(part, DataPipe)]
    return found


def _all_of(pipe: DataPipe) -> list[DataPipe]:
    """The pipe and all that it is made of, each once."""
    found = {id(pipe): pipe}
    waiting = [pipe]
    while waiting:
        new = {id(part): part for part in _parts(waiting.pop()) if id(part) not in found}
        found.update(new)
        waiting += new.values()
    return list(found.values())


def apply_shuffle_settings(datapipe, shuffle: bool | None = None):
    """Switches all shufflers on or off; None leaves them. With a warning, the pipe shuffled where there are none to be
    switched on. Follows ``torch.utils.data.graph_settings.apply_shuffle_settings``."""
    if shuffle is None:
        return datapipe
    shufflers = [pipe for pipe in _all_of(datapipe) if hasattr(pipe, "set_shuffle")]
    if shuffle and not shufflers:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. Be aware "
            "that the default buffer size might not be sufficient for your task.",
            stacklevel=3,
        )
        return datapipe.shuffle()
    for pipe in shufflers:
        pipe.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe, rng):
    """Seeds the next round of all random pipes with numbers of a generator. Follows
    ``torch.utils.data.graph_settings.apply_random_seed``."""
    for pipe in _all_of(datapipe):
        if hasattr(pipe, "set_seed"):
            pipe.set_seed(seed_from(rng))
    return datapipe


def apply_sharding(datapipe, num_of_instances: int, instance_id: int):
    """Tells each sharding filter how many share the samples, and which of them this is. RuntimeError where one filter
    is behind another. Follows ``torch.utils.data.graph_settings.apply_sharding``."""

    def visit(pipe, shared: bool) -> None:
        if hasattr(pipe, "apply_sharding"):
            if shared:
                raise RuntimeError("Sharding twice on a single pipeline is likely unintended and will cause data loss.")
            pipe.apply_sharding(num_of_instances, instance_id)
            shared = True
        for part in _parts(pipe):
            visit(part, shared)

    visit(datapipe, False)
    return datapipe
