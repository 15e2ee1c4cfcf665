"""``torch._vmap_internals``: an old path of ``vmap``, which refuses when what it returns is called."""

from .func import vmap

__all__ = ["_vmap", "vmap"]

_vmap = vmap
