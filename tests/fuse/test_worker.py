"""The thread that compiles: that it does, and all that may go wrong while it does."""

import os
import stat
import shlex
import subprocess
import threading
import time
import warnings

import pytest
import tinytorch as tt
from fuse.kernels import Kernel
from fuse.test_cache import child, outcome
from tinytorch import config, warn_once
from tinytorch.backends.cpu import ffi, lib
from tinytorch.cache import CompileError
from tinytorch.fuse import compiler
from tinytorch.fuse import worker as module
from tinytorch.fuse.worker import Worker


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


def script(path, text):
    """A program of that text, in the compiler's place."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


class Core:
    """Stands in for the C side: kernels to be handed out, and what became of them."""

    def __init__(self, *kernels, load=lambda path: 0):
        self.kernels, self.load = list(kernels), load
        self.installed, self.refused = [], []

    def tt_kernel_wanted(self, milliseconds):
        if self.kernels:
            return self.kernels.pop(0)
        time.sleep(min(milliseconds, 20) / 1000)
        return ffi.NULL

    def tt_kernel_wake(self):
        pass

    def tt_kernel_install(self, kernel, path, prefix):
        status = self.load(os.fsdecode(path))
        if status == 0:
            self.installed.append(kernel)
        return status

    def tt_kernel_refuse(self, kernel):
        self.refused.append(kernel)

    def tt_isa_name(self):
        return ffi.new("char[]", b"baseline")


@pytest.fixture
def serve(monkeypatch, folder, idle):
    """serve(core) runs a worker of its own until the core has no more kernels; the worker, and what it warned."""
    workers = []

    def run(core):
        monkeypatch.setattr(warn_once, "told", {})
        monkeypatch.setenv("TINYTORCH_CACHE_DIR", str(folder))
        made = Worker(core)
        workers.append(made)
        assert made.wait(200)
        return made

    yield run
    for made in workers:
        made._stopping = True
        made._thread.join(5)


def kernel(step=0):
    """A kernel with the text of its own for every ``step``."""
    made = Kernel()
    slot = made.slot("load", "f32")
    for _ in range(step + 1):
        slot = made.op("neg", "f32", slot)
    made.store(slot)
    return made.struct()


# The public mode.


def programs():
    def chain(x, y):
        return (((x * y).tanh() + 1).exp() * 0.5).sin().square().log1p() - y

    def softmax(x, y):
        return tt.softmax(x * 3 + y, -1)

    def layer_norm(x, y):
        centred = x - x.mean(-1, keepdim=True)
        return centred * (centred.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * y + 1

    def mixed(x, y):
        return tt.where((x > y) & (y < 0.5), x.half() * 2, y.double().remainder(0.7)).to(tt.bfloat16)

    def in_place(x, y):
        x = x.clone()
        x[:, ::2] += y[::2]
        x.mul_(2).sin_().add_(x.exp())
        return x

    def columns(x, y):
        return (x * y).exp().sum(0), x.sin().max()

    return [chain, softmax, layer_norm, mixed, in_place, columns]


@pytest.mark.parametrize("program", programs(), ids=lambda p: p.__name__)
@pytest.mark.parametrize("shape", [(7, 33), (64, 1500), (3, 5000)], ids=str)
@pytest.mark.parametrize("scale", [1.0, 1e5])
def test_a_compiled_program_has_the_bits_of_eager_mode(program, shape, scale, monkeypatch):
    events = []  # of this program's kernels; none if an earlier test had them compiled
    monkeypatch.setattr(module.worker, "on_event", events.append)
    monkeypatch.setattr(compiler, "TIMEOUT", 600.0)  # a machine with other work to do must not fail here
    monkeypatch.setattr(compiler, "NICENESS", 0)
    tt.manual_seed(0)
    x, y = tt.randn(*shape) * scale, tt.randn(shape[1])

    def bits(result):
        return [
            r.view(tt.int16).numpy().tobytes() if r.dtype == tt.bfloat16 else r.numpy().tobytes()
            for r in (result if isinstance(result, tuple) else (result,))
        ]

    want = bits(program(x, y))
    with config(fuse_hot=0):
        with tt.fuse():
            interpreted = program(x, y)
        assert tt.fuse.wait(600)
        assert [event.reason for event in events if event.what == "refused"] == []
        before = tt.fuse.stats()["compiled"]
        with tt.fuse():
            compiled = program(x, y)
        assert bits(interpreted) == want and bits(compiled) == want
        assert tt.fuse.stats()["compiled"] > before, events


def test_kernels_that_have_not_run_often_are_not_compiled():
    x = tt.ones(77)
    with config(fuse_hot=-1):
        for _ in range(5):
            before = tt.fuse.stats()["compiled"]
            with tt.fuse():
                y = x * 3 + 4 - x.atan() * 5
            y.numpy()
            tt.fuse.wait(60)
            assert tt.fuse.stats()["compiled"] == before


# The thread.


def test_each_kernel_is_installed_once(serve):
    kernels = [kernel(0), kernel(1), kernel(0)]
    core = Core(*kernels)
    worker = serve(core)
    assert core.installed == kernels and core.refused == []
    assert (worker.compiled, worker.hits, worker.refused) == (2, 1, 0)


def test_events_are_reported(serve, folder):
    core, told = Core(), []
    worker = serve(core)
    worker.on_event = told.append
    core.kernels += [kernel(0), kernel(0)]
    assert worker.wait(200)
    assert [event.what for event in told] == ["compiled", "hit"] and told[0].key == told[1].key
    assert (folder / f"{told[0].key}.so").exists() and told[0].seconds > 0 and not told[0].reason


def test_a_library_that_does_not_load_is_tried_once_more_elsewhere(serve, folder, monkeypatch):
    monkeypatch.setattr(module, "error", lambda: RuntimeError("failed to map segment"))
    core = Core(kernel(), load=lambda path: -1 if path.startswith(str(folder)) else 0)
    with pytest.warns(RuntimeWarning, match="failed to map segment") as caught:
        worker = serve(core)
    assert len(caught) == 1 and len(core.installed) == 1 and worker.refused == 0
    core = Core(kernel(), load=lambda path: -1)
    with pytest.warns(RuntimeWarning, match="failed to map segment"):
        assert serve(core).refused == 1
    assert len(core.refused) == 1


def test_a_library_that_was_removed_meanwhile_is_built_again(serve, folder, monkeypatch):
    monkeypatch.setattr(module, "error", lambda: RuntimeError("cannot open"))

    def load(path):
        if not removed:
            removed.append(path)
            os.unlink(path)
        return 0 if os.path.exists(path) else -1

    removed = []
    core = Core(kernel(), load=load)
    worker = serve(core)
    assert len(core.installed) == 1 and worker.compiled == 1 and removed == [str(next(folder.glob("*.so")))]


def test_a_kernel_that_cannot_be_generated_is_refused(serve):
    bad = kernel()
    bad.slots[0].kind = lib.TT_SLOT_RESULT  # not there for elements
    core = Core(bad, kernel(2))
    with pytest.warns(RuntimeWarning, match="reads slot 0 before") as caught:
        serve(core)
    assert core.refused == [bad] and len(core.installed) == 1 and len(caught) == 1


def test_a_compiler_that_always_fails_is_not_asked_for_ever(serve, monkeypatch):
    def fail(*arguments):
        asked.append(arguments)
        raise CompileError("no luck")

    asked = []
    monkeypatch.setattr(compiler, "compile_file", fail)
    core = Core(*(kernel(k) for k in range(6)))
    with pytest.warns(RuntimeWarning, match="no luck") as caught:
        serve(core)
    assert len(core.refused) == 6 and len(asked) == module.MOST_FAILURES and len(caught) == 1


def test_waiting_ends_when_time_is_up(serve, monkeypatch):
    release = threading.Event()
    monkeypatch.setattr(compiler, "compile_file", lambda *a: release.wait(100))
    core = Core()
    worker = serve(core)
    core.kernels.append(kernel(9))
    assert not worker.wait(0.3)
    with pytest.warns(RuntimeWarning):  # no library was written
        release.set()
        assert worker.wait(100)


def test_a_warning_that_is_an_error_stays_in_the_thread(serve, monkeypatch):
    monkeypatch.setattr(compiler, "compile_file", lambda *a: 1 / 0)
    core = Core(kernel(8), kernel(7))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        serve(core)
    assert len(core.refused) == 2


# The compiler.


def test_a_compiler_is_stopped_when_time_is_up(tmp_path):
    file = tmp_path / "pid"
    file.touch()
    slow = script(tmp_path / "slow", f"sleep 600 & echo $! > {file}; wait")
    start = time.monotonic()
    for seconds in (0.3, 3, 30):
        with pytest.raises(CompileError, match=f"stopped after {seconds:g} seconds"):
            compiler.run([slow], seconds, str(tmp_path))
        if pid := file.read_text().strip():  # else it had not come that far, beside other work
            break
    assert time.monotonic() - start < 300
    for _ in range(1000):  # what the compiler started is ended with it
        state = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True).stdout.strip()
        if not state or state.startswith("Z"):
            return
        time.sleep(0.05)
    pytest.fail(f"process {pid} still runs")


def test_a_failing_compiler_is_quoted(tmp_path):
    bad = script(tmp_path / "bad", "echo 'what is this' >&2; exit 3")
    with pytest.raises(CompileError, match="status 3.*\n.*what is this"):
        compiler.run([bad], 10.0)
    with pytest.raises(CompileError, match="cannot run /nowhere/cc"):
        compiler.run(["/nowhere/cc"], 10.0)


def test_the_compiler_that_the_user_chose_is_taken(tmp_path, monkeypatch):
    compiler.find.cache_clear()
    mine = script(tmp_path / "mine", f'echo mine 1.0; exec {shlex.join(compiler.find().command)} "$@"')
    monkeypatch.setenv("CC", f"{mine} -pipe")
    compiler.find.cache_clear()
    try:
        found = compiler.find()
        assert found.command == (str(tmp_path / "mine"), "-pipe") and "mine 1.0" in found.identity
        monkeypatch.setenv("CC", "no-such-compiler")
        compiler.find.cache_clear()
        assert os.path.basename(compiler.find().command[0]) in ("cc", "gcc", "clang")
        monkeypatch.setenv("CC", "'")
        compiler.find.cache_clear()
        assert compiler.find()
        monkeypatch.setenv("PATH", "")
        compiler.find.cache_clear()
        with pytest.raises(CompileError, match="no C compiler"):
            compiler.find()
    finally:
        compiler.find.cache_clear()


# Whole processes.


def test_without_a_compiler(folder):
    got = outcome(child(folder, 3, PATH="", CC=""), warnings=1)
    assert got["refused"] == 3 and "no C compiler" in got["warnings"][0]


@pytest.mark.parametrize(
    "text",
    [
        "exit 1",
        "kill -9 $$",
        "exit 0",
        "echo garbage > /dev/null",
        'for a; do test "$b" = -o && echo garbage > "$a"; b=$a; done',
    ],
    ids=["fails", "dies", "writes nothing", "prints", "writes garbage"],
)
def test_with_a_compiler_that_does_not_compile(folder, tmp_path, text):
    cc = script(tmp_path / "cc", f'test "$1" = --version && exit 0\n{text}')
    got = outcome(child(folder, 2, CC=cc), warnings=1)
    assert got["refused"] == 2 and len(got["warnings"]) == 1


def test_leaving_while_the_compiler_is_at_work(folder, tmp_path):
    cc = script(tmp_path / "cc", f'test "$1" = --version && exit 0\necho $$ > {tmp_path}/pid\nsleep 600')
    process = child(folder, 1, 0, "exit", tmp_path / "pid", CC=cc, TINYTORCH_FUSE_HOT="0")
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0 and err == ""
    assert [p.name for p in folder.iterdir() if not p.name.startswith("lock-")] == []
    assert subprocess.run(["ps", "-p", (tmp_path / "pid").read_text().strip()], capture_output=True).returncode != 0


def test_a_forked_child_compiles_by_itself(folder):
    assert outcome(child(folder, 1, 0, "fork"))["compiled"] == 1
