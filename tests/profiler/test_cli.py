"""python -m tinytorch.profile."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from profiler.browser import document, needs_browser

ROOT = Path(__file__).resolve().parents[2]
FILES = {"trace.json", "summary.json", "report.html"}


def interruptible():
    """A process that a shell has started in the background ignores SIGINT, and so do those that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(folder, *arguments, python=(), **environment):
    """The command, begun in a folder."""
    env = {key: value for key, value in os.environ.items() if key != "TINYTORCH_FUSE"}
    return subprocess.Popen(
        [sys.executable, *python, "-m", "tinytorch.profile", *arguments],
        cwd=folder,
        text=True,
        env={**env, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [env.get("PYTHONPATH")])]), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=interruptible,
    )


def command(folder, *arguments, **environment):
    """Its exit code, and what it wrote to stdout and stderr."""
    process = start(folder, *arguments, **environment)
    out, err = process.communicate(timeout=600)
    return process.returncode, out, err


def script(folder, text, name="work.py"):
    """A script of these lines in the folder."""
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path


def summary(folder):
    """What summary.json says."""
    return json.loads((folder / "summary.json").read_text())


def calls(mode, name):
    """How often an operator was called."""
    return sum(t["calls"] for t in mode["operators"] if t["name"] == name and t["kind"] == "op")


WORK = """\
    import sys
    import tinytorch as torch
    x = torch.randn(64, 64)
    for _ in range(5):
        y = (x @ x).tanh() * 2
    total = y.sum().item()
    print("done", sys.argv[1:], __name__)
    """


def test_a_script_runs_as_main_with_its_arguments(tmp_path):
    script(tmp_path, WORK)
    code, out, err = command(tmp_path, "work.py", "--out", "mine", "-x")
    assert code == 0, err
    assert out == "done ['--out', 'mine', '-x'] __main__\n"
    assert {p.name for p in (tmp_path / "profile").iterdir()} == FILES
    told = summary(tmp_path / "profile")
    assert told["command"] == "work.py --out mine -x" and list(told["modes"]) == ["eager"]
    mode = told["modes"]["eager"]
    assert calls(mode, "tanh") == 5 and calls(mode, "item") == 1
    assert mode["nanoseconds"] > mode["in_operators_ns"] > 0
    assert mode["memory"]["cpu"]["peak"] >= 3 * 64 * 64 * 4
    trace = json.loads((tmp_path / "profile" / "trace.json").read_text())
    named = [e for e in trace["traceEvents"] if e.get("name") in ("tanh", "aten::tanh")]
    assert len(named) == 5
    assert any("work.py:5" in json.dumps(e) for e in named)
    assert "report.html" in err


def test_a_script_sees_its_own_folder_and_file(tmp_path):
    (tmp_path / "scripts").mkdir()
    script(tmp_path / "scripts", "VALUE = 7", "beside.py")
    script(
        tmp_path / "scripts",
        """\
        import pickle, sys, beside
        class Mine:
            pass
        assert isinstance(pickle.loads(pickle.dumps(Mine())), Mine)
        assert sys.modules["__main__"].Mine is Mine
        print(beside.VALUE, __file__, sys.argv[0])
        """,
    )
    code, out, err = command(tmp_path, "--out", "deep/er", "scripts/work.py")
    assert (code, out) == (0, "7 scripts/work.py scripts/work.py\n"), err
    assert {p.name for p in (tmp_path / "deep" / "er").iterdir()} == FILES


@pytest.mark.parametrize(
    "ending, code, shown",
    [
        ("sys.exit(3)", 3, ""),
        ("sys.exit('enough')", 1, "enough"),
        ("raise SystemExit", 0, ""),
        ("raise KeyError('lost')", 1, "KeyError: 'lost'"),
        ("1 / 0", 1, "ZeroDivisionError"),
    ],
)
def test_exit_codes_and_exceptions_are_the_scripts(tmp_path, ending, code, shown):
    script(
        tmp_path,
        f"""\
        import sys
        import tinytorch as torch
        torch.ones(3).exp()
        {ending}
        """,
    )
    got, out, err = command(tmp_path, "work.py")
    assert got == code and shown in err
    assert calls(summary(tmp_path / "profile")["modes"]["eager"], "exp") == 1
    if "Error" in shown:
        lines = err.splitlines()
        begin = lines.index("Traceback (most recent call last):")
        assert 'work.py", line 4' in lines[begin + 1]  # nothing of ours comes first
        assert "profile.py" not in "\n".join(lines[begin:])


@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT)])
def test_a_script_that_is_ended_from_outside_leaves_its_trace(tmp_path, number, code):
    script(
        tmp_path,
        """\
        import pathlib, time
        import tinytorch as torch
        torch.ones(3).exp()
        pathlib.Path("ready").touch()
        time.sleep(600)
        """,
    )
    process = start(tmp_path, "work.py")
    deadline = time.monotonic() + 200
    while not (tmp_path / "ready").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    _, err = process.communicate(timeout=200)
    assert process.returncode == code, err
    assert calls(summary(tmp_path / "profile")["modes"]["eager"], "exp") == 1


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(tmp_path):
    script(tmp_path, "open('ran', 'w')")
    (tmp_path / "taken").write_text("a file")
    for out in ("taken", "taken/below", "/proc/profile"):
        code, _, err = command(tmp_path, "--out", out, "work.py")
        assert code == 2
        assert err.startswith(f"tinytorch.profile: nothing can be written to '{out}' (") and "--out DIR" in err
        assert "Traceback" not in err
    if os.geteuid():  # root may write anywhere
        (tmp_path / "locked").mkdir(mode=0o500)
        assert command(tmp_path, "--out", "locked", "work.py")[0] == 2
    assert not (tmp_path / "ran").exists()


def test_what_is_no_script_is_refused(tmp_path):
    code, _, err = command(tmp_path, "nothing.py")
    assert code == 2 and "there is no script 'nothing.py'" in err
    script(tmp_path, "def f(:")
    code, _, err = command(tmp_path, "work.py")
    assert code == 2 and "work.py" in err and "Traceback" not in err
    assert not (tmp_path / "profile").exists()


def test_a_thread_that_is_still_at_work_is_waited_for(tmp_path):
    script(
        tmp_path,
        """\
        import threading, time
        import tinytorch as torch
        def later():
            time.sleep(0.5)
            torch.ones(3).sin()
        threading.Thread(target=later, name="the late one").start()
        """,
    )
    code, _, err = command(tmp_path, "work.py")
    assert code == 0, err
    mode = summary(tmp_path / "profile")["modes"]["eager"]
    assert calls(mode, "sin") == 1 and "the late one" in mode["threads"].values()


GPT = """\
    import sys
    sys.path.insert(0, {tests!r})
    import tinytorch as torch
    from load_example import load_example
    gpt = load_example("gpt")
    torch.manual_seed(0)
    train, _ = gpt.load(0, 500, 10)
    model = gpt.GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    with torch.fuse():
        for step in range(2):
            print(gpt.train_step(model, optimizer, schedule, train[:32]))
    sys.exit(4)
    """


@needs_browser
def test_compare_runs_it_in_both_modes(tmp_path):
    script(tmp_path, GPT.format(tests=str(ROOT / "tests")))
    code, out, err = command(tmp_path, "--compare", "work.py")
    assert code == 4, err
    losses = out.split()
    assert len(losses) == 4 and losses[:2] == losses[2:]
    modes = summary(tmp_path / "profile")["modes"]
    assert list(modes) == ["eager", "fused"]
    assert modes["eager"]["breaks"] == []  # although the script asks for fused mode
    assert any(
        b["reason"] == "matmul is not fused" and "examples/gpt.py:" in b["place"] for b in modes["fused"]["breaks"]
    )
    assert modes["fused"]["kernels"] >= sum(b["kernels"] for b in modes["fused"]["breaks"]) > 0
    assert modes["eager"]["kernels"] > 100 and modes["eager"]["bytes"] > 1e6
    assert {p.name for p in (tmp_path / "profile").iterdir()} == FILES
    processes = {e["pid"] for e in json.loads((tmp_path / "profile" / "trace.json").read_text())["traceEvents"]}
    assert len(processes - {"Spans"}) == 2
    root = document(tmp_path / "profile" / "report.html", tmp_path)
    assert [p.attributes["data-mode"] for p in root.all("div", data_mode=None)] == ["eager", "fused"]
    assert all(int(c.attributes["data-drawn"]) > 100 for c in root.all("canvas"))
    assert "matmul is not fused" in root.all("section", id="breaks")[0].text
    assert "exit code" in err
