"""Tensors among processes: shared, not copied, and freed with the last of them."""

import multiprocessing
import os
import pickle
import threading
from multiprocessing import resource_sharer
from multiprocessing.reduction import ForkingPickler

import pytest

import tinytorch
import tinytorch.multiprocessing as mp
from tinytorch.autograd import engine
from tinytorch.shared_memory import _blocks
from tinytorch.utils.data import DataLoader, TensorDataset

METHODS = [m for m in ("fork", "spawn") if m in mp.get_all_start_methods()]
needs_descriptors = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this machine has no /proc")


@pytest.fixture(autouse=True)
def no_thread_is_left():
    """The thread that hands file descriptors to those who were sent them ends with the test."""
    yield
    resource_sharer.stop(timeout=60)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def change(tasks, results, x, p):
    """A child: changes what it is given and what it is sent, and sends something back."""
    y, view = tasks.get()
    x += 10
    y += 1
    with tinytorch.no_grad():
        p.mul_(3)
    results.put((y, view, x[1:], type(p).__name__, p.requires_grad))
    tasks.get()


@pytest.mark.parametrize("method", METHODS)
def test_both_ends_see_what_the_other_writes(method):
    context = mp.get_context(method)
    tasks, results = context.Queue(), context.Queue()
    x, y = tinytorch.zeros(4).share_memory_(), tinytorch.zeros(2, 3)
    p = tinytorch.nn.Parameter(tinytorch.ones(2)).share_memory_()
    process = context.Process(target=change, args=(tasks, results, x, p), daemon=True)
    process.start()
    tasks.put((y, y[1]))
    a, view, b, kind, wanted = results.get(timeout=200)
    assert (kind, wanted) == ("Parameter", True)
    assert x.tolist() == [10.0] * 4 and p.tolist() == [3.0, 3.0] and a.tolist() == [[1.0] * 3] * 2
    a[1, 0] = 7.0
    assert view.tolist() == [7.0, 1.0, 1.0] and a.is_shared() and view.untyped_storage() is a.untyped_storage()
    b[0] = 99.0
    assert x[1].item() == 99.0
    tasks.put(None)
    process.join(200)
    assert process.exitcode == 0
    tasks.close()
    tasks.join_thread()  # a thread that may outlive its queue


def give(results):
    results.send(tinytorch.full((1 << 16,), 3.0))
    results.send([tinytorch.arange(4), tinytorch.empty(0, 3), tinytorch.tensor(True)])
    results.send(tinytorch.zeros(1).share_memory_().untyped_storage())
    threading.Event().wait()  # until it is terminated


@needs_descriptors
def test_nothing_is_left():
    before, names = descriptors(), set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    receive, results = mp.Pipe(duplex=False)
    process = mp.get_context("fork").Process(target=give, args=(results,), daemon=True)
    process.start()
    results.close()
    big, several, storage = receive.recv(), receive.recv(), receive.recv()
    process.terminate()
    process.join()
    assert big.mean().item() == 3.0 and storage.tolist() == [0] * 4  # they outlive the sender
    assert [t.tolist() for t in several] == [[0, 1, 2, 3], [], True] and several[1].shape == (0, 3)
    assert {name for name in os.listdir("/dev/shm") if "tinytorch" in name} <= names if names else True
    del big, several, storage
    process.close()
    receive.close()
    assert descriptors() <= before


def test_a_view_is_sent_with_its_whole_storage():
    receive, send = mp.Pipe(duplex=False)
    base = tinytorch.arange(6.0)
    view = base[2:]
    send.send((base, view, view[None].expand(2, 4)))
    a, b, c = receive.recv()
    a[2] = 50.0
    assert b[0].item() == 50.0 and c.stride() == (0, 1) and c[1, 0].item() == 50.0
    assert base.tolist() == [0, 1, 2, 3, 4, 5]  # others show it, and so it was copied


def test_what_is_sent_alone_is_shared():
    receive, send = mp.Pipe(duplex=False)
    x = tinytorch.arange(3.0)
    send.send(x)
    first = receive.recv()
    send.send(x)
    second = receive.recv()
    first[0] = 8.0
    assert x.is_shared() and x[0].item() == second[0].item() == 8.0
    assert first.data_ptr() == second.data_ptr() == x.data_ptr()  # one process maps a block once


def test_what_has_a_history_is_refused(torch):
    for library in (torch, tinytorch):
        x = library.ones(2, requires_grad=True)
        with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
            ForkingPickler.dumps(x * 2)
    leaf = tinytorch.ones(2, requires_grad=True)
    receive, send = mp.Pipe(duplex=False)
    send.send(leaf)
    assert receive.recv().requires_grad


def test_subclasses_and_plain_pickle():
    receive, send = mp.Pipe(duplex=False)
    x = tinytorch.arange(3.0).as_subclass(Sub)
    x.note = "kept"
    send.send(x)
    y = receive.recv()
    assert type(y) is Sub and y.note == "kept" and y.is_shared() and y.tolist() == [0.0, 1.0, 2.0]
    assert not pickle.loads(pickle.dumps(y)).is_shared()


class Sub(tinytorch.Tensor):
    """At the top, for pickle."""


def double(x):
    return x * 2


def test_pools():
    with mp.get_context("fork").Pool(2) as pool:
        assert [t.tolist() for t in pool.map(double, [tinytorch.ones(2), tinytorch.zeros(2)])] == [[2, 2], [0, 0]]


def number(i, x):
    x[i] = i + 1.0


def fail(i):
    if i == 1:
        raise ValueError("the second fails")
    threading.Event().wait()


def leave(i):
    os._exit(7)


def kill(i):
    os.kill(os.getpid(), 9)


def total(results, tensors, again):
    """A child: the sums of what it inherits."""
    results.put([t.sum().item() for t in (*tensors, *again)])


@pytest.mark.parametrize("method", METHODS)
def test_what_is_passed_twice_or_shown_twice_arrives(method):
    """A block's descriptor goes to a new process once, and stays open until it is there."""
    context = mp.get_context(method)
    results, x = context.Queue(), tinytorch.ones(4)
    process = context.Process(target=total, args=(results, (x, x[1:], tinytorch.ones(3)[1:]), (x,)))
    process.start()
    assert results.get(timeout=200) == [4.0, 3.0, 2.0, 4.0]
    process.join(200)


def test_a_module_that_was_moved_can_be_shared():
    """``x.data = x.data`` keeps no reference to the memory for the sake of its version."""
    module = tinytorch.nn.Linear(2, 2).to("cpu")
    module.weight.data = module.weight.data
    assert module.share_memory().weight.is_shared()
    seen = tinytorch.nn.Parameter(tinytorch.ones(2))
    alias = seen.data
    with pytest.raises(
        RuntimeError, match="other tensors show the same memory"
    ):  # not: a leaf in an in-place operation
        seen.share_memory_()
    assert alias.is_shared() is False


def test_spawn():
    x = tinytorch.zeros(2).share_memory_()
    assert mp.spawn(number, (x,), nprocs=2) is None and x.tolist() == [1.0, 2.0]
    context = mp.start_processes(number, (x,), nprocs=2, join=False, start_method="fork")
    assert len(context.pids()) == 2 and isinstance(context, mp.SpawnContext)
    while not context.join():
        pass


@pytest.mark.parametrize(
    "fn, kind, text",
    [
        (fail, "ProcessRaisedException", "ValueError: the second fails"),
        (leave, "ProcessExitedException", "process 0 terminated with exit code 7"),
        (kill, "ProcessExitedException", "process 0 terminated with signal SIGKILL"),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_failures(fn, kind, text):
    with pytest.raises(getattr(mp, kind), match=text) as caught:
        mp.start_processes(fn, nprocs=2 if fn is fail else 1, start_method="fork")
    assert caught.value.error_index == (fn is fail)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is type(caught.value) and again.error_pid == caught.value.error_pid


def test_names(torch):
    theirs = pytest.importorskip("torch.multiprocessing")
    assert set(multiprocessing.__all__) <= set(mp.__all__)
    assert set(mp.__all__) - set(multiprocessing.__all__) <= set(dir(theirs))
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() == "file_system"
    mp.set_sharing_strategy(before)
    with pytest.raises(AssertionError):
        mp.set_sharing_strategy("by post")


def test_workers_of_a_loader_beside_it():
    """No memory is left of its batches."""
    x = tinytorch.arange(12.0).reshape(6, 2)
    before = len(_blocks)
    loader = DataLoader(TensorDataset(x), batch_size=2, num_workers=2)
    assert [b.tolist() for (b,) in loader] == [x[k : k + 2].tolist() for k in (0, 2, 4)] and len(_blocks) == before


@pytest.mark.skipif("fork" not in METHODS, reason="this machine cannot fork")
def test_a_child_of_a_thread_s_backward_has_no_lock_of_it():
    """Another thread adds to a gradient while the process forks: the child's own backward waits for nobody."""
    adds, forked = threading.Event(), threading.Event()
    x = tinytorch.ones(3, requires_grad=True)

    def hold():
        with engine._accumulating:
            adds.set()
            forked.wait(200)

    thread = threading.Thread(target=hold)
    thread.start()
    assert adds.wait(200)
    child = mp.get_context("fork").Process(target=lambda: (x * 2).sum().backward())
    child.start()
    forked.set()
    thread.join()
    child.join(100)
    alive = child.is_alive()
    child.kill()
    child.join()
    assert not alive and child.exitcode == 0
