"""``import torch`` means tinytorch: programs in processes of their own."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

import tinytorch

HERE = pathlib.Path(__file__).parent
SOURCE = pathlib.Path(tinytorch.__file__).parent.parent
AS_TORCH = ("-m", "tinytorch.as_torch")


def run(*args, timeout=900):
    """What a Python process prints; it must end well."""
    environment = {**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-W", "ignore", *map(str, args)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_a_program_prints_what_it_prints_with_pytorch(torch):
    expected = run(HERE / "same.py", "--lr", "1").splitlines()
    actual = run(*AS_TORCH, HERE / "same.py", "--lr", "1").replace("tinytorch.tensor.", "torch.").splitlines()
    assert len(expected) > 60 and actual == expected


def test_what_is_tinytorchs_own():
    assert run(*AS_TORCH, HERE / "own.py") == "all is so\n"


def test_a_module_is_run_by_its_name(tmp_path, monkeypatch):
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "__main__.py").write_text(
        "import sys, torch\nprint(torch.float16, sys.argv[1:], __name__)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert run(*AS_TORCH, "-m", "program", "-x") == "torch.float16 ['-x'] __main__\n"


def test_pytorch_itself_is_refused(torch):
    program = (
        "import sys, types; sys.modules['torch'] = types.ModuleType('torch')\n"
        "try: import tinytorch.as_torch\n"
        "except RuntimeError as e: print(e)\n"
        "import tinytorch; print(tinytorch.float32)\n"
    )
    told, name = run("-c", program).splitlines()
    assert "PyTorch is imported already" in told and name == "tinytorch.float32"


def test_models_of_timm(torch):
    """One step of each has PyTorch's loss."""
    if importlib.util.find_spec("timm") is None:
        pytest.skip("could not import 'timm'")
    expected, actual = (run(*how, HERE / "timm_step.py").split() for how in ((), AS_TORCH))
    for e, a in zip(expected, actual, strict=True):
        assert a == e or float(a) == pytest.approx(float(e), rel=1e-4), (actual, expected)
