"""``torch.utils.weak``: dictionaries whose keys are tensors, which go with these."""

from __future__ import annotations

import weakref
from collections.abc import MutableMapping

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakTensorKeyDictionary"]

TensorWeakRef = weakref.ref


class WeakIdKeyDictionary(MutableMapping):
    """A dictionary of weak keys, which are compared by identity."""

    def __init__(self, dict=None):
        self._items: dict = {}
        self.update(dict or {})

    def __setitem__(self, key, value):
        number = id(key)
        self._items[number] = (weakref.ref(key, lambda _, items=self._items: items.pop(number, None)), value)

    def __getitem__(self, key):
        if id(key) not in self._items:
            raise KeyError(key)
        return self._items[id(key)][1]

    def __delitem__(self, key):
        del self._items[id(key)]

    def __iter__(self):
        return (key for ref, _ in list(self._items.values()) if (key := ref()) is not None)

    def __len__(self):
        return len(self._items)


WeakTensorKeyDictionary = WeakIdKeyDictionary
