"""The finder of ``torch`` and its submodules, first in ``sys.meta_path``.

A module ``torch.a.b`` is, of these, the first there is:

- tinytorch.a.b, if tinytorch shows it, with the further names of stand_ins/a/b;
- the one that paths.py names for its path;
- stand_ins/a/b, or the module b that the one at a shows.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.metadata
import importlib.util
import multiprocessing.spawn
import pkgutil
import sys
import types

import tinytorch

from .. import library_name
from . import stand_ins
from .missing import explain_missing, no_module
from .paths import PATHS

VERSION = "2.13.0"  # of PyTorch, which tinytorch follows
SHOWN = ("_C", "return_types", "serialization", "storage", "types")  # beside those of tinytorch.__all__


class Loader:
    """Gives a module that is there already."""

    def __init__(self, module: types.ModuleType):
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec):
        return self.module

    def exec_module(self, module) -> None:
        module.__spec__ = self.spec  # the import system has set another one

    def get_code(self, name):
        return None


class Finder:
    """Finds ``torch`` and what is below it."""

    def find_spec(self, name: str, path=None, target=None):
        if name != "torch" and not name.startswith("torch."):
            return None
        module = find(name)
        if module is None:
            if sys._getframe(2).f_code.co_name == "_find_and_load_unlocked":  # an import, not importlib.util.find_spec
                raise no_module(name)
            return None
        return importlib.machinery.ModuleSpec(name, Loader(module), is_package=hasattr(module, "__path__"))

    @staticmethod
    def find_distributions(context):
        """What ``importlib.metadata.version("torch")`` is told."""
        return [Distribution()] if context.name in (None, "torch") else []


class Distribution(importlib.metadata.Distribution):
    """The metadata of a package that is called torch."""

    def read_text(self, filename: str):
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {VERSION}\n" if filename == "METADATA" else None

    def locate_file(self, path):
        return path


def shown(rest: str) -> types.ModuleType | None:
    """``tinytorch.<rest>``, if it is a module that tinytorch shows."""
    first = rest.partition(".")[0]
    if first not in tinytorch.__all__ and first not in SHOWN:
        return None
    name = f"tinytorch.{rest}"
    if name in sys.modules:
        return sys.modules[name]
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError:  # what is above it is no package
        return None
    return importlib.import_module(name) if found else None


def find(name: str) -> types.ModuleType | None:
    """The module of that name."""
    if name == "torch":
        return torch
    rest = name.removeprefix("torch.")
    module = shown(rest) or along(rest) or stand_in(rest) or part_of_another(rest)
    if module is not None:
        module.__dict__.setdefault("__path__", [])  # a package: what is below it is asked of this finder
        explain_missing(module, name, below)
    return module


def below(name: str) -> types.ModuleType | None:
    """A submodule that is an attribute before anything has imported it."""
    rest = name.removeprefix("torch.")
    return along(rest) or stand_in(rest)


def along(rest: str) -> types.ModuleType | None:
    """The module of another path."""
    return importlib.import_module(f"tinytorch.{PATHS[rest]}") if rest in PATHS else None


def stand_in(rest: str) -> types.ModuleType | None:
    name = f"{stand_ins.__name__}.{rest}"
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None
    if found is None:
        return None
    return importlib.import_module(name)


def part_of_another(rest: str) -> types.ModuleType | None:
    """A module that another one shows as its own: ``backends.cudnn``."""
    above, _, name = rest.rpartition(".")
    found = vars(find(f"torch.{above}") or types).get(name) if above else None
    return found if isinstance(found, types.ModuleType) else None


def module_of(name: str, doc: str | None = None) -> types.ModuleType:
    """A new module, which looks like a package without files."""
    made = types.ModuleType(name, doc)
    made.__path__ = []
    made.__file__ = tinytorch.__file__
    made.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
    made.__spec__.origin = tinytorch.__file__
    return made


torch = module_of("torch", tinytorch.__doc__)


def fill() -> None:
    """Puts tinytorch's names into ``torch``, and the further names of stand_ins/ where they belong."""
    torch.__dict__.update({name: value for name, value in vars(tinytorch).items() if name in tinytorch.__all__})
    add(torch, stand_ins)
    torch.finfo = stand_ins.finfo
    for module in pkgutil.walk_packages(stand_ins.__path__, stand_ins.__name__ + "."):
        rest = module.name.removeprefix(stand_ins.__name__ + ".")
        addition, own = importlib.import_module(module.name), shown(rest)
        if own is not None:
            add(own, addition)
        parent, _, name = rest.rpartition(".")
        above = shown(parent) if parent else torch
        if above is not None and not hasattr(above, name):
            setattr(above, name, addition)
    torch.__version__ = torch.torch_version.TorchVersion(VERSION)
    torch.torch = torch
    tinytorch.Tensor._cdata = property(id, doc="A number of this tensor's own.")
    explain_missing(torch, "torch", find)
    explain_below("torch", tinytorch)


def explain_below(path: str, module: types.ModuleType) -> None:
    """Makes the public modules below tell of names they lack."""
    for name in module.__all__:
        part = vars(module).get(name)
        if isinstance(part, types.ModuleType) and part.__name__ == f"{module.__name__}.{name}":
            explain_missing(part, f"{path}.{name}", below)
            if hasattr(part, "__all__"):
                explain_below(f"{path}.{name}", part)


def add(own: types.ModuleType, addition: types.ModuleType) -> None:
    for name in addition.__all__:
        if not hasattr(own, name):
            setattr(own, name, getattr(addition, name))


def installed() -> bool:
    """Does ``import torch`` mean tinytorch here?"""
    return sys.modules.get("torch") is torch


_preparation = multiprocessing.spawn.get_preparation_data


def _prepare(name: str) -> dict:
    """What a process that is spawned is told: unpickling ``installed`` imports this package there."""
    return {**_preparation(name), "tinytorch.as_torch": installed}


def install() -> None:
    """Makes ``import torch`` mean tinytorch. Happens when this package is imported; again, it does nothing.

    Raises:
        RuntimeError: PyTorch is imported already
    """
    if installed():
        return
    if "torch" in sys.modules:
        raise RuntimeError(
            "tinytorch.as_torch: PyTorch is imported already, as torch, and objects of both would meet. Import "
            "tinytorch.as_torch first, or run the program as 'python -m tinytorch.as_torch script.py'."
        )
    library_name.shown = "torch"
    sys.meta_path.insert(0, Finder())
    sys.modules["torch"] = torch
    fill()
    multiprocessing.spawn.get_preparation_data = _prepare
