"""The order of folders and modules: .ci/layers.py finds nothing wrong here, and what is wrong elsewhere. The length of
macros."""

import importlib.util
import pathlib
import re

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / ".ci" / "layers.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="only in a checkout")


@pytest.fixture
def layers():
    spec = importlib.util.spec_from_file_location("layers", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_nothing_points_upwards(layers):
    assert layers.check_c(False) + layers.check_python() == []


@pytest.mark.parametrize(
    "text, name",
    [
        ("int tt_grow(int n) { return tt_add(n, 1); }", "tt_add"),  # a function
        ("int tt_grow(int n) { return tt_table[n]; }", "tt_table"),  # a variable
        ('#include "ops/add.h"\nint tt_grow(int n) { return n; }', "ops/add.h"),
    ],
)
def test_an_arrow_upwards_is_found(layers, monkeypatch, tmp_path, text, name):
    write(
        tmp_path,
        {
            "kernels/core/grow.c": text,
            "kernels/ops/add.h": "int tt_add(int a, int b);",
            "kernels/ops/add.c": "const int tt_table[2] = {1, 2};\nint tt_add(int a, int b) {\n    return a + b;\n}\n",
        },
    )
    monkeypatch.setattr(layers, "ROOT", tmp_path)
    assert layers.check_c(False) == [f"kernels/core may not use kernels/ops: {name}"]
    monkeypatch.setattr(layers, "ALLOWED", {("core", "ops"): 1})
    assert layers.check_c(False) == []


def test_siblings_do_not_know_each_other(layers, monkeypatch, tmp_path):
    write(
        tmp_path,
        {
            "kernels/cpu/a.c": "int tt_a(void) { return 1; }",
            "kernels/cuda/host/b.c": "/* tt_a in a comment is nothing */\nint tt_b(void) { return tt_a(); }",
        },
    )
    monkeypatch.setattr(layers, "ROOT", tmp_path)
    assert layers.check_c(False) == ["kernels/cuda/host may not use kernels/cpu: tt_a"]


def test_a_circle_of_modules_is_found(layers, monkeypatch, tmp_path):
    write(
        tmp_path,
        {
            "tinytorch/__init__.py": "from . import a",
            "tinytorch/a.py": "from .b import x",
            "tinytorch/b.py": "from . import c",
            "tinytorch/c.py": "import tinytorch.a",
        },
    )
    monkeypatch.setattr(layers, "ROOT", tmp_path)
    assert layers.check_python() == ["modules import one another in a circle: tinytorch.a tinytorch.b tinytorch.c"]


def test_what_is_long_is_no_macro():
    """Debuggers see no lines in a macro: "Functions of several dtypes" in kernels/README.md. A list, whose parameter
    is X, may be long."""
    folder = SCRIPT.parent.parent / "kernels"
    files = [path for pattern in ("*.c", "*.h", "*.cuh") for path in folder.rglob(pattern)]
    macros = [(path.name, m) for path in files for m in re.finditer(r"^#define (.*\\\n)*.*", path.read_text(), re.M)]
    long = [(name, m[0]) for name, m in macros if m[0].count("\n") >= 30]
    assert long and [(name, text) for name, text in long if not re.match(r"#define \w+\(X\b", text)] == []
