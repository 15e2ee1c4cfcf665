"""The code that is generated at import is kept in __pycache__: Note [Kept code] in tinytorch/generated_code.py."""

import os
import subprocess
import sys

import pytest

# Counts what is compiled while tinytorch is imported, but namedtuple's and typing's own.
COUNTED = """
import builtins, numpy
count, true_compile = 0, builtins.compile

def compile(source, filename, *rest, **options):
    global count
    count += str(filename).startswith("<eager")
    return true_compile(source, filename, *rest, **options)

builtins.compile = compile
import inspect, tinytorch
assert tinytorch.tensor([1.0, 2.0]).exp().sum(dim=0).shape == ()
assert "def function(input" in inspect.getsource(tinytorch.exp)
print(count)
"""


def compiled(**variables) -> int:
    """How many generated texts an import compiles."""
    known = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", COUNTED]
    return int(subprocess.run(command, env=known | variables, capture_output=True, text=True, check=True).stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pycache")


def test_the_second_import_compiles_nothing(folder):
    assert compiled(PYTHONPYCACHEPREFIX=str(folder)) > 100
    [file] = folder.rglob("kept_code.*.pyc")
    written = file.read_bytes()
    assert compiled(PYTHONPYCACHEPREFIX=str(folder)) == 0
    assert file.read_bytes() == written


def test_nothing_is_kept_where_python_keeps_no_bytecode(folder):
    for file in folder.rglob("kept_code.*.pyc"):
        file.unlink()
    assert compiled(PYTHONPYCACHEPREFIX=str(folder), PYTHONDONTWRITEBYTECODE="1") > 100
    assert not [*folder.rglob("kept_code.*.pyc")]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:1000],
        lambda content: b"other" + content,
        lambda content: b"",
        lambda content: content[:3000] + bytes(4096) + content[7096:],
    ],
    ids=["truncated", "of another version", "empty", "a block was lost"],
)
def test_a_file_that_cannot_be_read_is_written_again(folder, damage):
    compiled(PYTHONPYCACHEPREFIX=str(folder))
    [file] = folder.rglob("kept_code.*.pyc")
    file.write_bytes(damage(file.read_bytes()))
    assert compiled(PYTHONPYCACHEPREFIX=str(folder)) > 100
    assert compiled(PYTHONPYCACHEPREFIX=str(folder)) == 0
