"""How worker processes end: killed, out of time, with their process, by Ctrl-C; nothing is left."""

import gc
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from data_workers import Numbers, needs_proc, nothing_left, shared_names

from tinytorch.shared_memory import _blocks
from tinytorch.utils.data import DataLoader
from tinytorch.utils.data._utils import iterators

ROOT = pathlib.Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")
clean = pytest.fixture(nothing_left)


def killed(i):
    if i == 30:  # not yet when the first batches are awaited
        os.kill(os.getpid(), signal.SIGKILL)


def left(i):
    if i == 30:  # not yet when the first batches are awaited
        os._exit(7)


@needs_proc
@pytest.mark.parametrize("act, text", [(killed, "is killed by signal: Killed"), (left, "exit code 7")])
@pytest.mark.parametrize("persistent", [False, True])
def test_a_dead_worker(act, text, persistent, clean, monkeypatch):
    """It is told of at once, and the others end at once: nobody looks now and then, or waits until time is up."""
    monkeypatch.setattr(iterators, "_LOOK", 100.0)
    monkeypatch.setattr(iterators, "_GRACE", 100.0)

    def dies_by_itself():
        with pytest.raises(RuntimeError, match=rf"DataLoader worker \(pid \d+\).*{text}"):
            list(loader)
        assert next(iter(loader))[1].tolist() == [0]

    def is_killed():
        batches = iter(DataLoader(Numbers(40), 1, num_workers=2, persistent_workers=persistent))
        os.kill(batches._workers[1].pid, signal.SIGKILL)
        with pytest.raises(RuntimeError, match="killed"):
            for _ in batches:
                pass
        assert next(batches, None) is None

    loader = DataLoader(Numbers(40, act), 1, num_workers=2, persistent_workers=persistent)
    for dies in (dies_by_itself, is_killed):
        start = time.monotonic()
        dies()
        assert time.monotonic() - start < 90


def asleep(i):
    if i == 2:
        time.sleep(600)


@needs_proc
def test_timeout(clean):
    batches = iter(DataLoader(Numbers(4, asleep), 1, num_workers=1, timeout=200))
    assert next(batches)[1].item() == 0 and next(batches)[1].item() == 1
    batches._timeout = 0.2  # not before: the worker's start takes longer on a machine that has other work
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.2 seconds"):
        next(batches)
    batches._workers[0].kill()
    del batches


PROGRAM = """
    import os, signal, sys, threading, time
    import tinytorch as tt
    from tinytorch.utils.data import DataLoader, Dataset

    signal.signal(signal.SIGINT, signal.default_int_handler)  # which what runs in the background ignores

    class Numbers(Dataset):
        def __len__(self):
            return 10**6
        def __getitem__(self, i):
            time.sleep({item})
            return tt.full((2000,), i)

    batches = iter(DataLoader(Numbers(), 2, num_workers=2, persistent_workers={persistent}))
    other = iter(DataLoader(Numbers(), 2, num_workers=1))
    next(batches), next(batches), next(other)  # all workers are at work
    print(*[p.pid for p in batches._workers + other._workers], flush=True)
    {act}
"""


def state_of(pid):
    """A letter, as in proc(5); Z where there is no such process any more."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def is_there(pid):
    return state_of(pid) != "Z"


@needs_proc
@pytest.mark.parametrize(
    "act, given, status",
    [
        ("time.sleep(600)", signal.SIGKILL, -signal.SIGKILL),
        ("time.sleep(600)", signal.SIGKILL, -signal.SIGKILL),
        ("time.sleep(600)", signal.SIGTERM, -signal.SIGTERM),
        ("for x in batches: pass", signal.SIGINT, -signal.SIGINT),
        ("sys.exit(3)", None, 3),
        ("raise ValueError", None, 1),
        ("if not os.fork(): sys.stdin.read(); os._exit(0)\ntime.sleep(600)", signal.SIGKILL, -signal.SIGKILL),
    ],
    ids=[
        "SIGKILL",
        "SIGKILL amid a long sample",
        "SIGTERM",
        "SIGINT",
        "exit",
        "raise",
        "SIGKILL with a child of its own",
    ],
)
def test_workers_end_with_the_process(act, given, status, request):
    before = shared_names()
    item = "0.01 if i < 4 else 600" if "long" in request.node.name else "0.01"
    text = textwrap.dedent(PROGRAM).format(persistent=given is None, act=textwrap.dedent(act), item=item)
    process = subprocess.Popen(
        [sys.executable, "-c", text],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, text=True,
    )  # fmt: skip
    pids = [int(p) for p in process.stdout.readline().split()]
    assert len(pids) == 3
    if given is not None:
        process.send_signal(given)
    assert process.wait(100) == status
    deadline = time.monotonic() + 60
    while any(map(is_there, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not [p for p in pids if is_there(p)] and shared_names() <= before
    for pipe in (process.stdin, process.stdout, process.stderr):  # with the first, its own child ends
        pipe.close()


def test_ctrl_c_in_a_terminal():
    """All processes get the signal; the workers say nothing."""
    text = textwrap.dedent(PROGRAM).format(persistent=True, act="for x in batches: pass", item="0.01")
    process = subprocess.Popen(
        [sys.executable, "-c", text],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, text=True, start_new_session=True,
    )  # fmt: skip
    pids = [int(p) for p in process.stdout.readline().split()]
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=100)
    assert process.returncode == -signal.SIGINT and errors.count("Traceback") == 1
    assert not [p for p in pids if is_there(p)]


def interrupting(i):
    if i == 2:
        seen = 0
        while seen < 4:  # until the loader's process waits for this
            time.sleep(0.03)
            seen = seen + 1 if state_of(os.getppid()) == "S" else 0
        os.kill(os.getppid(), signal.SIGINT)
        time.sleep(0.2)


@pytest.fixture
def listening():
    """Ctrl-C is a KeyboardInterrupt, also where pytest runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@needs_proc
def test_ctrl_c_where_it_is_caught(clean, listening):
    dataset = Numbers(4, interrupting)
    loader = DataLoader(dataset, 1, num_workers=1, persistent_workers=True)
    batch = None
    with pytest.raises(KeyboardInterrupt):
        for k, batch in enumerate(loader):
            assert batch[1].item() == k < 2
    process = loader._iterator._workers[0]
    assert not process.is_alive()
    with pytest.raises(KeyboardInterrupt):
        list(loader)  # with another worker
    assert loader._iterator._workers[0].pid != process.pid
    del batch, loader, process


def test_no_finalizer_of_a_batch_is_python(clean):
    """Python drops a KeyboardInterrupt that comes in one."""
    seen = []

    def called(frame, event, arg):
        if event == "call":
            seen.append(frame.f_code.co_name)

    batches = iter(DataLoader(Numbers(8), 1, num_workers=1))
    next(batches)
    sys.setprofile(called)
    try:
        for _ in range(6):
            next(batches)
    finally:
        sys.setprofile(None)
    assert seen.count("_receive") >= 4 and not {"__del__", "remove", "_remove"} & {*seen}
    del batches


@needs_proc
def test_ctrl_c_at_any_line_of_a_message(clean):
    """The file descriptors that came with it are closed, and its blocks end."""
    met = []
    names = "_receive", "_receive_head", "_receive_part", "_arrived", "take", "lend", "tensor_in", "tensor_on"

    def line(frame, event, arg):
        if event == "line" and frame.f_code.co_name in names:
            met.append(frame.f_lineno)
            if len(met) == chosen:
                raise KeyboardInterrupt
        return line

    chosen, before = 0, {*_blocks}
    while chosen < 200:
        chosen += 1
        batches = iter(DataLoader(Numbers(1), 1, num_workers=1))
        met.clear()
        sys.settrace(line)
        try:
            next(batches)
        except KeyboardInterrupt:
            assert next(batches, None) is None
        else:
            break
        finally:
            sys.settrace(None)
        del batches
        gc.collect()  # a caught exception refers to itself
        assert {*_blocks} <= before
    assert 20 < chosen < 190
