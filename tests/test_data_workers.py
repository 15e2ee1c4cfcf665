"""DataLoader with worker processes: what comes, what fails and how, and that nothing is left."""

import functools
import os
import random
import time
import warnings
from multiprocessing import forkserver, resource_tracker

import numpy as np
import pytest

from data_workers import Numbers, children, first, needs_proc, nothing_left
import tinytorch as tt
from tinytorch.utils import data
from tinytorch.utils.data import DataLoader, TensorDataset, get_worker_info
from tinytorch.utils.data._utils.worker import KeyErrorMessage

METHODS = [m for m in ("fork", "spawn", "forkserver") if m in tt.multiprocessing.get_all_start_methods()]
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")
clean = pytest.fixture(nothing_left)


class Stream(data.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        yield from range(self.n) if info is None else range(info.id, self.n, info.num_workers)


def note(worker):
    get_worker_info().dataset.note = worker


class Noted(Numbers):
    def __getitem__(self, i):
        info = get_worker_info()
        return info.id, info.dataset.note, info.seed, tt.initial_seed(), random.random(), np.random.rand(), tt.rand(())


@needs_proc
@pytest.mark.parametrize("method", METHODS)
def test_start_methods(method, clean):
    workers = 2 if method == "fork" else 1  # the others import everything anew
    loader = DataLoader(
        Noted(4), 2, num_workers=workers, multiprocessing_context=method, worker_init_fn=note, timeout=200
    )
    a, b = loader
    assert a[0].tolist() == a[1].tolist() == [0, 0] and b[0].tolist() == b[1].tolist() == [workers - 1] * 2
    assert a[2].tolist() == a[3].tolist() and b[2][0] == a[2][0] + workers - 1
    assert all(x.is_shared() for x in a) and len({x.item() for part in (a[4], b[4], a[5], b[5]) for x in part}) == 8
    if method == "forkserver":
        forkserver._forkserver._stop()
    if method != "fork":
        resource_tracker._resource_tracker._stop()


def test_seeds_of_numpy(torch):
    """PyTorch's worker seeds NumPy's generator so."""
    theirs = pytest.importorskip("torch.utils.data._utils.worker")._generate_state
    for base, worker in ((0, 0), (7064938416800763384, 3), (2**63 - 1, 100)):
        ours = np.random.SeedSequence([worker, base & 0xFFFFFFFF, base >> 32, 0]).generate_state(4)
        assert ours.tolist() == theirs(base, worker)


def test_seeds_come_from_the_generator():
    def numbers(seed, **options):
        g = tt.Generator().manual_seed(seed)
        loader = DataLoader(Numbers(6), 2, num_workers=2, generator=g, collate_fn=drawn, **options)
        return [x.tolist() for _ in range(2) for x in loader]

    assert numbers(1) == numbers(1) != numbers(2)
    assert numbers(1, shuffle=True) == numbers(1, shuffle=True)


def drawn(samples):
    return tt.cat([tt.rand(2), tt.tensor([float(i) for _, i in samples])])


@needs_proc
def test_epochs_and_what_is_left_of_them(clean):
    loader = DataLoader(Numbers(10), 3, num_workers=2)
    wanted = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    kept = []
    for _ in range(2):
        assert first(loader) == wanted
        for batch in loader:
            kept.append(batch)
            break
    assert [k[1].tolist() for k in kept] == wanted[:1] * 2 and kept[0][0].is_shared()
    iterator = iter(loader)
    pids = [p.pid for p in iterator._workers]
    next(iterator)
    assert set(pids) <= children()
    del iterator
    assert not set(pids) & children()
    del kept, batch


@needs_proc
def test_persistent_workers(clean):
    loader = DataLoader(Numbers(8), 2, num_workers=2, persistent_workers=True)
    pids = [p.pid for p in iter(loader)._workers]
    for left in (False, True, False):
        for _ in loader:
            if left:
                break
        assert first(loader) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert [p.pid for p in loader._iterator._workers] == pids
    stream = DataLoader(Stream(5), 2, num_workers=2, persistent_workers=True)
    for _ in range(2):
        assert sorted(sum((b.tolist() for b in stream), [])) == list(range(5))
    for _ in stream:
        break  # the workers are at the end of their shares
    time.sleep(0.2)
    assert sorted(sum((b.tolist() for b in stream), [])) == list(range(5))
    any_order = DataLoader(Numbers(8), 2, num_workers=2, persistent_workers=True, in_order=False)
    for _ in any_order:
        break
    time.sleep(0.2)
    assert sorted(first(any_order)) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    stream._iterator._shutdown_workers()
    assert sorted(sum((b.tolist() for b in stream), [])) == list(range(5))  # others are started
    del loader, stream, any_order


def test_streams():
    assert [b.tolist() for b in DataLoader(Stream(7), 2, num_workers=2)] == [[0, 2], [1, 3], [4, 6], [5]]
    assert [b.tolist() for b in DataLoader(Stream(7), 2, num_workers=2, drop_last=True)] == [[0, 2], [1, 3], [4, 6]]
    assert list(DataLoader(Stream(3), None, num_workers=2)) == [0, 1, 2]
    loader = DataLoader(Counted(3), None, num_workers=2)
    assert len(loader) == 3
    with pytest.warns(UserWarning, match="was reported to be 3"):
        assert len(list(loader)) == 6


class Counted(Stream):
    def __iter__(self):
        return iter(range(self.n))

    def __len__(self):
        return self.n


class Waiting:
    """The first sample comes after another one: whose number is given, or what calls ``go.set()``."""

    def __init__(self, other=None):
        self.go, self.other = tt.multiprocessing.Event(), other

    def __call__(self, i):
        if i == 0:
            assert self.go.wait(100)
        elif i == self.other:
            self.go.set()


def test_order():
    assert first(DataLoader(Numbers(6, Waiting(3)), 1, num_workers=2)) == [[k] for k in range(6)]
    waiting = Waiting()
    batches = iter(DataLoader(Numbers(6, waiting), 1, num_workers=2, in_order=False))
    assert next(batches)[1].tolist() == [1]
    waiting.go.set()
    assert sorted(first(batches)) == [[k] for k in (0, 2, 3, 4, 5)]


def test_batches_are_of_the_main_process_alone():
    """A block is used again when no tensor is on it, and not before."""
    loader = DataLoader(TensorDataset(tt.arange(4000.0).reshape(40, 100)), 2, num_workers=1)
    for keep in (0, 1, 3, 100):
        held = []
        for k, (x,) in enumerate(loader):
            held = [*held, (k, x)][-keep:] if keep else []
            addresses = {x.data_ptr() for _, x in held}
            assert len(addresses) == len(held)
            for at, y in held:
                assert y[0, 0].item() == 200 * at + (at != k)
            x[0, 0] += 1
            del x
    x = next(iter(loader))[0]
    assert x.sum().item() == sum(range(200))  # the workers are gone
    view = x[1]
    del x
    assert view[0].item() == 100.0


def test_a_fork_keeps_what_it_has_got():
    """The child's tensor is not written over after the parent's is gone."""
    batches = iter(DataLoader(TensorDataset(tt.arange(200.0).reshape(100, 2)), 1, num_workers=1))
    (x,) = next(batches)
    r, w = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.read(r, 1)
            os._exit(0 if x.tolist() == [[0.0, 1.0]] else 1)
        finally:
            os._exit(2)
    del x
    for _ in range(20):
        next(batches)
    os.write(w, b"x")
    assert os.waitpid(child, 0)[1] == 0
    os.close(r), os.close(w)


@needs_proc
def test_any_number_of_batches_may_be_kept(clean):
    n = len(os.listdir("/proc/self/fd"))
    kept = list(DataLoader(Numbers(600), 1, num_workers=2))
    assert len(os.listdir("/proc/self/fd")) < n + 20
    assert [k[1].item() for k in kept] == list(range(600)) and all(k[0][0, 0] == k[1] for k in kept)
    del kept


def mixed(samples):
    x = tt.arange(6.0)
    return {
        "views": (x, x[2:]), "grad": tt.nn.Parameter(tt.ones(2)), "empty": tt.empty(0, 3),
        "half": tt.ones(2).bfloat16(), "many": [tt.tensor(k) for k in range(200)], "text": "ü" * 300_000,
        "array": np.arange(3), "none": None,
    }  # fmt: skip


def test_all_kinds_of_batches():
    for batch in DataLoader(Numbers(3), 1, num_workers=2, collate_fn=mixed):
        x, view = batch["views"]
        view[0] = 9.0
        assert x[2].item() == 9.0 and x.is_shared()
        assert isinstance(batch["grad"], tt.nn.Parameter) and batch["grad"].requires_grad
        assert batch["empty"].shape == (0, 3) and batch["half"].dtype is tt.bfloat16
        assert [t.item() for t in batch["many"]] == list(range(200))
        assert len(batch["text"]) == 300_000 and batch["array"].tolist() == [0, 1, 2] and batch["none"] is None


def test_tensors_of_several_dtypes():
    for workers in (0, 1):
        (batch,) = DataLoader([tt.tensor([1]), tt.tensor([0.5])], 2, num_workers=workers)
        assert batch.tolist() == [[1.0], [0.5]]
        with pytest.raises(RuntimeError, match="equal size"):
            list(DataLoader([tt.ones(1), tt.ones(2)], 2, num_workers=workers))


def test_large_tasks():
    """Numbers of samples that do not fit into a socket's buffer."""
    d = TensorDataset(tt.arange(200_000))
    (a,), (b,) = DataLoader(d, batch_sampler=[list(range(150_000)), [1, 0]], num_workers=1)
    assert (a == tt.arange(150_000)).all() and b.tolist() == [1, 0]


def test_a_small_part_of_a_dataset_is_sent_alone():
    x = tt.zeros(1 << 16, 8)
    (row,) = next(iter(DataLoader(TensorDataset(x), None, num_workers=1)))
    assert row.untyped_storage().nbytes() == 32
    x.share_memory_()
    (row,) = next(iter(DataLoader(TensorDataset(x), None, num_workers=1)))
    row += 1
    assert x[0].tolist() == [1.0] * 8  # this is shared without a copy


class TwoTexts(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


class Said(Exception):
    message = "as old ones have it"

    def __init__(self, message):
        super().__init__(message)


def fails(kind, *args):
    def act(i):
        if i == 3:
            raise kind(*args)

    return act


@needs_proc
@pytest.mark.parametrize(
    "kind, args, seen",
    [
        (ValueError, ("bad",), ValueError),
        (KeyError, ("bad",), KeyError),
        (TwoTexts, ("bad", "worse"), RuntimeError),
        (Said, ("bad",), Said),
        (UnicodeDecodeError, ("utf8", b"x", 0, 1, "bad"), RuntimeError),
    ],
)
def test_an_exception_keeps_its_type(kind, args, seen, clean):
    batches = iter(DataLoader(Numbers(8, fails(kind, *args)), 2, num_workers=2))
    assert next(batches)[1].tolist() == [0, 1]
    with pytest.raises(seen) as caught:
        next(batches)
    text = str(caught.value)
    assert f"Caught {kind.__name__} in DataLoader worker process 1.\nOriginal Traceback" in text
    assert "in act" in text and type(caught.value) is seen
    assert isinstance(caught.value.args[0], KeyErrorMessage) == (kind is KeyError)
    assert first(batches) == [[4, 5], [6, 7]]  # the others come


def local_exception(i):
    class Local(Exception):
        pass

    raise Local("nobody else knows it")


def unpicklable(samples):
    return lambda: None


def with_history(samples):
    return tt.ones(2, requires_grad=True) * 2


def broken_init(worker):
    raise OSError("no such disk")


@pytest.mark.parametrize(
    "options, kind, text",
    [
        ({"collate_fn": unpicklable}, (AttributeError, RuntimeError, TypeError), "pickle"),
        ({"collate_fn": with_history}, RuntimeError, "Cowardly refusing to serialize non-leaf tensor"),
        ({"worker_init_fn": broken_init}, OSError, "no such disk"),
        ({"dataset": Numbers(4, local_exception)}, RuntimeError, "nobody else knows it"),
    ],
    ids=["unpicklable", "history", "init", "exception"],
)
def test_what_cannot_be_sent(options, kind, text):
    loader = DataLoader(**{"dataset": Numbers(4), "num_workers": 1, **options})
    with pytest.raises(kind, match=text):
        list(loader)


def test_pinning_without_a_device():
    if tt.cuda.is_available():
        pytest.skip("this runs on the CPU alone")
    for workers in (0, 1):
        with pytest.warns(UserWarning, match="no accelerator is found"):
            batches = iter(DataLoader(Numbers(2), num_workers=workers, pin_memory=True, pin_memory_device="cuda"))
        assert not next(batches)[0].is_pinned()


def test_options():
    loader = functools.partial(DataLoader, Numbers(4))
    for options, kind, text in [
        ({"multiprocessing_context": "fork"}, ValueError, "multi-process loading"),
        ({"multiprocessing_context": "post", "num_workers": 1}, ValueError, "valid start method"),
        ({"multiprocessing_context": 3, "num_workers": 1}, TypeError, "valid context object"),
        ({"prefetch_factor": -1, "num_workers": 1}, ValueError, "non-negative"),
    ]:
        with pytest.raises(kind, match=text):
            loader(**options)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        loader(num_workers=1000)
    assert "1000 worker processes" in str(told[0].message)
    made = loader(num_workers=1, multiprocessing_context="spawn")
    assert made.multiprocessing_context.get_start_method() == "spawn" and made.prefetch_factor == 2
    with pytest.raises(ValueError, match="batch_size attribute should not be set after DataLoader is initialized"):
        made.batch_size = 3
    with pytest.raises(AssertionError, match="prefetch_factor must be greater than 0"):
        iter(loader(num_workers=1, prefetch_factor=0))
    with pytest.raises(NotImplementedError):
        __import__("pickle").dumps(iter(loader()))
