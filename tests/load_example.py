"""The programs in examples/ as modules, for tests of what they train."""

import pathlib
import sys
import types
from unittest import mock

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"
#: What the programs draw and measure with. Tests use none of it, and need not have it.
NOT_NEEDED = (
    "matplotlib",
    "matplotlib.figure",
    "sklearn",
    "sklearn.datasets",
    "sklearn.metrics",
    "sklearn.model_selection",
    "tqdm",
)


def load_example(name, library="tinytorch"):
    """The program examples/``name``.py as a module. With ``library="torch"`` it is the same text, but imports PyTorch
    wherever it says tinytorch."""
    path = EXAMPLES / f"{name}.py"
    source = path.read_text(encoding="utf-8").replace("tinytorch", library)
    module = types.ModuleType(f"{library}_{name}")
    with mock.patch.dict(sys.modules, {other: mock.MagicMock() for other in NOT_NEEDED}):
        exec(compile(source, str(path), "exec"), module.__dict__)
    return module
