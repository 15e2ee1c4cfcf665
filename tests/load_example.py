"""The programs in examples/ as modules, for tests of what they train."""

import contextlib
import pathlib
import sys
import types
from unittest import mock

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"
#: What the programs draw and measure with. Tests of their models use none of it, and need not have it.
NOT_NEEDED = (
    "matplotlib",
    "matplotlib.figure",
    "sklearn",
    "sklearn.datasets",
    "sklearn.metrics",
    "sklearn.model_selection",
    "tqdm",
)


@contextlib.contextmanager
def imported_as(modules):
    """``import`` finds these modules under these names, inside."""
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in before.items():
            sys.modules[name] = module
            if module is None:
                del sys.modules[name]


def load_text(name, library):
    """examples/``name``.py as a module that imports ``library`` wherever it says tinytorch."""
    path = EXAMPLES / f"{name}.py"
    module = types.ModuleType(f"{library}_{name}")
    exec(compile(path.read_text(encoding="utf-8").replace("tinytorch", library), str(path), "exec"), module.__dict__)
    return module


def load_example(name, library="tinytorch", without=NOT_NEEDED):
    """The program examples/``name``.py as a module. With ``library="torch"`` it is the same text, but imports PyTorch
    wherever it says tinytorch, and so does what the examples share. Packages ``without`` which it is loaded are
    replaced by what does nothing: a whole run needs them all, ``without=()``."""
    absent = {other: mock.MagicMock() for other in without}
    with imported_as(absent), imported_as({"common": load_text("common", library)}):
        return load_text(name, library)
