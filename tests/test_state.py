"""What state.py watches: all that a test can change in tinytorch and leave behind. The test that does fails."""

import ast
import gc
import importlib
import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest
import state

import tinytorch as tt

HERE = pathlib.Path(__file__).parent
PACKAGE = pathlib.Path(tt.__file__).parent
CONTAINERS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp)
CONSTRUCTORS = {"dict", "list", "set", "OrderedDict", "WeakKeyDictionary", "WeakSet", "WeakValueDictionary"}
FILLED_ONCE = {"ops.random._writers", "scalar._uses"}  # when tinytorch is imported


def is_container(value: ast.expr | None) -> bool:
    if not isinstance(value, ast.Call):
        return isinstance(value, CONTAINERS)
    called = value.func.value if isinstance(value.func, ast.Subscript) else value.func
    return ast.unparse(called).rpartition(".")[2] in CONSTRUCTORS


def variables(path: pathlib.Path) -> set[str]:
    """The variables of a module that its functions change: those that are ``global`` in one, and the lists, dicts and
    sets that are not written in capitals, as constants are."""
    tree = ast.parse(path.read_text())
    found = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and is_container(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {
                t.id for t in targets if isinstance(t, ast.Name) and t.id.strip("_").islower() and t.id != "__all__"
            }
    module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
    return {f"{module}.{name}" for name in found}


def test_every_variable_is_watched_or_kept_on_purpose():
    here = [path for path in PACKAGE.rglob("*.py") if path.parent.name != "stand_ins"]  # of processes without PyTorch
    found = {name for path in here for name in variables(path)}
    assert len(found) > 40
    missing = found - {*state.WATCHED, *state.KEPT} - FILLED_ONCE
    assert not missing, "tests/state.py does not say whether tests may change it"


def test_what_is_listed_exists():
    for path in state.KEPT:
        name, _, variable = path.rpartition(".")
        assert variable in vars(importlib.import_module(f"tinytorch.{name}"))


no_grad, fused, cached, waits = tt.no_grad(), tt.fuse(), tt.nn.utils.parametrize.cached(), threading.Event()
handles = []


def hook(add):
    return lambda: handles.append(add(lambda *a: None)), lambda: handles.pop().remove()


def thread():
    handles.append(threading.Thread(target=waits.wait, name="left"))
    handles[0].start()


def join():
    waits.set()
    handles.pop().join()


LEFT = [
    ("grad modes of threads", lambda: no_grad.__enter__(), lambda: no_grad.__exit__(None, None, None)),
    ("depth of fused mode", lambda: fused.__enter__(), lambda: fused.__exit__(None, None, None)),
    ("nn.utils.parametrize._contexts", lambda: cached.__enter__(), lambda: cached.__exit__(None, None, None)),
    ("dtypes._default", lambda: tt.set_default_dtype(tt.float64), lambda: tt.set_default_dtype(tt.float32)),
    ("config._values", lambda: tt.config(fuse_hot=77), lambda: tt.config(fuse_hot=HOT)),
    ("threads of kernels", lambda: tt.set_num_threads(THREADS + 1), lambda: tt.set_num_threads(THREADS)),
    ("nn.hooks.GLOBAL", *hook(tt.nn.modules.module.register_module_forward_hook)),
    ("options of printing", lambda: tt.set_printoptions(precision=7), lambda: tt.set_printoptions(profile="default")),
    (
        "determinism._asked",
        lambda: tt.use_deterministic_algorithms(True),
        lambda: tt.use_deterministic_algorithms(False),
    ),
    ("environment", lambda: os.environ.update(TINYTORCH_LEFT="1"), lambda: os.environ.pop("TINYTORCH_LEFT")),
    ("garbage collector", gc.disable, gc.enable),
    ("NumPy's errors", lambda: handles.append(np.seterr(all="raise")), lambda: np.seterr(**handles.pop())),
    ("path", lambda: sys.path.append("left"), lambda: sys.path.remove("left")),
    ("threads", thread, join),
]
HOT, THREADS = tt.config.get("fuse_hot"), tt.get_num_threads()


@pytest.mark.parametrize("name, change, end", LEFT, ids=[name for name, *_ in LEFT])
def test_a_change_is_told(name, change, end):
    with tt.config(fuse=0):
        before = state.snapshot()
        assert not state.left_behind(before)
        change()
        try:
            assert state.left_behind(before).startswith(f"{name}: it was ")
        finally:
            end()
        assert not state.left_behind(before)


LEAKING = """
import pytest, tinytorch

def test_leaves_nothing():
    with tinytorch.no_grad():
        pass

def test_leaves_a_mode():
    tinytorch.set_grad_enabled(False)

def test_comes_after_it():
    assert not tinytorch.is_grad_enabled()
"""


def test_the_test_that_leaves_something_fails(tmp_path):
    """That one, and no other."""
    (tmp_path / "test_leaking.py").write_text(LEAKING)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "conftest",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            tmp_path,
            tmp_path,
        ],
        env={**os.environ, "PYTEST_ADDOPTS": "", "PYTHONPATH": os.pathsep.join([str(HERE), str(PACKAGE.parent)])},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert "3 passed, 1 error" in done.stdout, done.stdout
    assert "ERROR at teardown of test_leaves_a_mode" in done.stdout and "grad modes of threads: it was" in done.stdout
