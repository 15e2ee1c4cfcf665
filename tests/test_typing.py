"""The stubs: up to date, and true of what runs. (.ci/run asks stubtest, too.)"""

import os
import pathlib
import re
import subprocess
import sys

import numpy
import pytest

import tinytorch
from tinytorch.ops.declare.examples import EXAMPLES

ROOT = pathlib.Path(__file__).resolve().parent.parent
REVEALED = re.compile(r'^\S+:(\d+): note: Revealed type is "(.*)"$', re.M)


def run(*command):
    here = {**os.environ, "PYTHONPATH": str(ROOT), "MYPYPATH": str(ROOT)}
    return subprocess.run([sys.executable, *command], cwd=ROOT, env=here, capture_output=True, text=True, check=False)


def mypy(tmp_path_factory, *files):
    pytest.importorskip("mypy")
    cache = tmp_path_factory.getbasetemp() / "mypy"
    return run("-m", "mypy", "--config-file", "pyproject.toml", "--cache-dir", str(cache), *map(str, files))


needs_sources = pytest.mark.skipif(
    not (ROOT / ".ci" / "stubs.py").exists(), reason="the stubs are those of a source tree"
)


@needs_sources
def test_stubs_are_up_to_date():
    done = run(".ci/stubs.py", "--check")
    assert done.returncode == 0, done.stdout + done.stderr


@needs_sources
def test_a_typed_program(tmp_path_factory):
    done = mypy(tmp_path_factory, ROOT / "tests" / "typing" / "program.py")
    assert done.returncode == 0, done.stdout


def holds(value, kind: str) -> bool:
    """Is a value of the type that the checker revealed?"""
    names = {cls.__name__ for cls in type(value).__mro__} | {"Any"}
    return any(part.partition("[")[0].rpartition(".")[2] in names for part in kind.split(" | "))


@needs_sources
def test_examples_have_the_types_that_stubs_give(tmp_path_factory, tmp_path):
    """Every example of the docstrings: its call is accepted, and its result is what the checker takes it for."""
    program = tmp_path / "examples.py"
    expressions = [expression for expression, _ in EXAMPLES.values()]
    program.write_text("import numpy\nimport tinytorch\n" + "".join(f"reveal_type({e})\n" for e in expressions))
    done = mypy(tmp_path_factory, program)
    assert not re.findall(r".*error: .*", done.stdout) and done.returncode == 0
    revealed = {int(line): kind for line, kind in REVEALED.findall(done.stdout)}
    assert len(revealed) == len(expressions)
    for k, expression in enumerate(expressions):
        value = eval(expression, {"tinytorch": tinytorch, "numpy": numpy})
        assert holds(value, revealed[k + 3]), (expression, type(value), revealed[k + 3])
    assert sum(kind == "Any" for kind in revealed.values()) < 30  # of tolist() and unique()
