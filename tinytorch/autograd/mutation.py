"""Writes to saved tensors, made harmless: a copy of the old values is kept. Follows
``torch.autograd.graph.allow_mutation_on_saved_tensors``."""

from __future__ import annotations

import weakref

from ..tensor import Tensor, owned
from .modes import ModeContext, current
from .node import address, alias


class Kept:
    """A saved tensor: an alias, until a write is about to change it, and a copy from then on."""

    __slots__ = ("__weakref__", "cloned", "value")

    def __init__(self, value: Tensor):
        self.value, self.cloned = alias(value), False


class allow_mutation_on_saved_tensors(ModeContext):
    """Inside, saved tensors may be written in place: their values are cloned before, and backward sees the old ones.
    Backward must run inside, too. As a context manager it gives itself, whose ``clear()`` forgets what is kept.
    RuntimeError where it is entered twice; AssertionError in a backward outside."""

    def __init__(self):
        super().__init__()
        self.kept: dict[int, list[weakref.ref]] = {}  # by the storage's address
        self.inside_now = False

    def changes(self):
        mode = current()
        if mode.on_write is not None:
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        self.inside_now = True
        return {"on_write": self.before_write, "saved_hooks": (*mode.saved_hooks, (self.pack, self.unpack))}

    def __exit__(self, *exc_info):
        self.inside_now = False
        self.clear()
        return super().__exit__(*exc_info)

    def clear(self) -> None:
        """Forgets what is kept: these values can no longer be copied, nor used by backward."""
        self.kept.clear()

    def pack(self, t: Tensor) -> Kept:
        kept = Kept(t)
        self.kept.setdefault(address(t), []).append(weakref.ref(kept))
        return kept

    def unpack(self, kept: Kept) -> Tensor:
        if not self.inside_now:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
                "originally recorded."
            )
        return kept.value

    def before_write(self, t: Tensor) -> None:
        """Copies what is saved of the memory of ``t``, which will be written."""
        for ref in self.kept.pop(address(t), ()):
            kept = ref()
            if kept is not None:
                kept.value, kept.cloned = owned.tt_clone(kept.value._h), True

    def clone(self):
        return type(self)()
