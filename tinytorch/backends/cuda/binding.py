"""NVIDIA's libraries behind cffi: one object for each, opened at its first use, whose calls raise what they report.

Its declarations are parsed then, too: cffi and its parser take 45 ms to import, which `import tinytorch` should not
cost where there is no GPU."""

from __future__ import annotations

import threading

from ..cpu import ffi as _own_ffi
from .libraries import open_library


class Library:
    """``lib<name>.so`` with the functions that ``declarations`` names. ``status_text`` is the function that explains a
    status; every call through ``call`` raises RuntimeError unless the status is 0. ``versions`` are the numbers that
    its file's name may end with, ``wheel`` is the package to name where it is missing."""

    def __init__(
        self,
        name: str,
        declarations: str,
        status_text: str,
        versions: tuple[int, ...] = (13, 12),
        wheel: str = "tinytorch[cuda]",
    ):
        self.name = name
        self._versions, self._wheel = versions, wheel
        self._declarations = declarations
        self._status_text = status_text
        self._ffi = self._lib = None
        self._lock = threading.RLock()

    @property
    def ffi(self):
        """Makes and reads values of the declared types."""
        if self._ffi is None:
            with self._lock:
                if self._ffi is None:
                    from cffi import FFI

                    ffi = FFI()
                    ffi.cdef(self._declarations)
                    self._ffi = ffi
        return self._ffi

    @property
    def lib(self):
        """The library's functions; OSError when it is not installed."""
        if self._lib is None:
            with self._lock:
                if self._lib is None:
                    self._lib = self._open()
        return self._lib

    def _open(self):
        return open_library(self.ffi, self.name, self._versions, self._wheel)

    def call(self, function: str, *args) -> None:
        """Calls a function that returns a status."""
        status = getattr(self.lib, function)(*args)
        if status:
            raise self.error(function, status)

    def error(self, function: str, status: int) -> RuntimeError:
        """What to raise for a status."""
        text = self.ffi.string(getattr(self.lib, self._status_text)(status)).decode()
        return RuntimeError(f"CUDA error: {text} when calling `{function}`")

    def address(self, function: str):
        """Where a function lies: for C, which calls it itself."""
        place = self.ffi.cast("intptr_t", self.ffi.addressof(self.lib, function))
        return _own_ffi.cast("void *", int(place))

    def made(self, create: str, destroy: str | None, type_: str, *args):
        """What ``create`` puts into its first argument; ``destroy``, if any, ends it with the object returned."""
        place = self.ffi.new(f"{type_} *")
        self.call(create, place, *args)
        return place[0] if destroy is None else self.ffi.gc(place[0], getattr(self.lib, destroy))

    def set(self, function: str, target, attribute: int, type_: str, value) -> None:
        """Sets an attribute by a function that takes its value's address and size."""
        place = self.ffi.new(f"{type_} *", value)
        self.call(function, target, attribute, place, self.ffi.sizeof(type_))
