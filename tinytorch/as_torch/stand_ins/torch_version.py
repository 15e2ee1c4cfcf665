"""``torch.torch_version``: a version that is text, and is compared as one."""

from __future__ import annotations

import re

__all__ = ["TorchVersion", "__version__"]


def _key(version) -> tuple:
    """The numbers of a version, and then whether it is a final one."""
    if isinstance(version, str):
        release = re.match(r"v?([\d.]*\d)(.*)", version.strip())
        parts = [int(p) for p in release[1].split(".")] if release else []
        final = not (release and re.match(r"[-_.]?(a|b|c|rc|alpha|beta|dev|pre)", release[2]))
    else:
        parts, final = [int(p) for p in version], True
    while parts and parts[-1] == 0:
        parts.pop()
    return (parts, final)


class TorchVersion(str):
    """A version: compares with text, and with tuples of numbers."""

    __slots__ = ()

    def __eq__(self, other):
        return _key(self) == _key(other)

    def __lt__(self, other):
        return _key(self) < _key(other)

    def __gt__(self, other):
        return _key(self) > _key(other)

    def __le__(self, other):
        return _key(self) <= _key(other)

    def __ge__(self, other):
        return _key(self) >= _key(other)

    __hash__ = str.__hash__


__version__ = TorchVersion("2.13.0")
