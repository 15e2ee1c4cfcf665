"""Errors for names that PyTorch has and tinytorch has not."""

from __future__ import annotations

import difflib
import dis
import sys
import types

IMPORT_FROM = dis.opmap["IMPORT_FROM"]


def near(name: str, names) -> str:
    """`` (near: a, b)``, or nothing."""
    close = difflib.get_close_matches(name, [n for n in names if not n.startswith("_")], 3, 0.7)
    return f" (near: {', '.join(close)})" if close else ""


def names_of(module: types.ModuleType | None):
    """The public names of a module."""
    return getattr(module, "__all__", None) or (dir(module) if module else ())


class MissingName(AttributeError):
    """A module has no such name. The message is made when it is read: many programs only try."""

    def __init__(self, module: types.ModuleType, path: str, name: str):
        super().__init__(name=name, obj=module)
        self.path = path

    def __str__(self):
        return f"{self.path}.{self.name}: not in tinytorch, which is torch here{near(self.name, names_of(self.obj))}"


def no_module(path: str) -> ModuleNotFoundError:
    """What the import of a module that tinytorch lacks raises."""
    parent, _, name = path.rpartition(".")
    above = sys.modules.get(parent)
    text = f"No module named '{path}': not in tinytorch, which is torch here{near(name, names_of(above))}"
    return ModuleNotFoundError(text, name=path)


def explain_missing(module: types.ModuleType, path: str, find=None) -> None:
    """Makes the module tell of names it lacks; ``find`` may find a submodule of that name."""
    if "__getattr__" in module.__dict__:
        return

    def __getattr__(name: str):
        if find is not None and not name.startswith("__"):
            found = find(f"{path}.{name}")
            if found is not None:
                setattr(module, name, found)
                return found
        error = MissingName(module, path, name)
        caller = sys._getframe(1)
        at = caller.f_lasti
        if at >= 0 and caller.f_code.co_code[at] == IMPORT_FROM and f"{path}.{name}" not in sys.modules:
            raise ImportError(
                f"cannot import name '{name}': {error}", name=path, path=getattr(module, "__file__", None)
            )
        raise error

    module.__getattr__ = __getattr__
