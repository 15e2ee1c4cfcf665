"""Datasets, samplers and DataLoader."""

import importlib
import itertools
import collections
import collections.abc

import numpy as np
import pytest

import tinytorch as tt
from tinytorch.utils import data
from tinytorch.utils.data import DataLoader, TensorDataset
from tinytorch.utils.data._utils.collate import collate, default_collate_fn_map


class Squares(data.Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if not 0 <= i < self.n:
            raise IndexError(i)
        return {"x": tt.tensor([float(i), 1.0]), "y": i * i, "name": str(i), "pair": (i, np.float32(i))}


class Stream(data.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, self.n, step))


class Broken(Squares):
    def __getitem__(self, i):
        if i == 3:
            raise KeyError("sample three")
        return i


def table(n=10):
    return TensorDataset(tt.arange(n * 2).reshape(n, 2), tt.arange(n))


def test_datasets():
    d = table()
    assert len(d) == 10 and d[3][0].tolist() == [6, 7] and d[-1][1].item() == 9
    both = d + table(4)
    assert len(both) == 14 and both[11][1].item() == 1 and both[-1][1].item() == 3
    with pytest.raises(IndexError):
        both[14]
    with pytest.raises(AssertionError, match="Size mismatch"):
        TensorDataset(tt.zeros(2), tt.zeros(3))
    assert data.Subset(d, [4, 2])[1][1].item() == 2
    stacked = data.StackDataset(a=d, b=d)
    assert stacked[1]["b"][1].item() == 1 and len(stacked) == 10
    assert list(Stream(2) + Stream(3)) == [0, 1, 0, 1, 2]


def test_random_split():
    d = table()
    a, b = data.random_split(d, [7, 3], generator=tt.Generator().manual_seed(1))
    assert sorted([s[1].item() for s in a] + [s[1].item() for s in b]) == list(range(10)) and len(a) == 7
    assert [len(s) for s in data.random_split(d, [0.5, 0.25, 0.25])] == [6, 2, 2]
    with pytest.raises(ValueError, match="Sum of input lengths"):
        data.random_split(d, [7, 4])


def test_sequential_batches():
    d = table()
    batches = list(DataLoader(d, batch_size=4))
    assert [b[1].tolist() for b in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert isinstance(batches[0], list) and batches[0][0].shape == (4, 2)
    batches[0][1].zero_()
    assert d.tensors[1].tolist() == list(range(10))  # batches are copies
    loader = DataLoader(d, batch_size=4, drop_last=True)
    assert len(loader) == 2 == len(list(loader))
    assert len(DataLoader(d, batch_size=4)) == 3
    assert [b[1].shape for b in DataLoader(d)] == [(1,)] * 10


def test_shuffled_batches():
    d = table(50)
    loader = DataLoader(d, batch_size=8, shuffle=True)
    tt.manual_seed(3)
    first = [b[1].tolist() for b in loader]
    second = [b[1].tolist() for b in loader]
    assert first != second and sorted(sum(first, [])) == sorted(sum(second, [])) == list(range(50))
    for x, y in loader:
        np.testing.assert_array_equal(x[:, 0].numpy(), 2 * y.numpy())
    tt.manual_seed(3)
    assert [b[1].tolist() for b in loader] == first
    g = tt.Generator()
    seeded = DataLoader(d, batch_size=8, shuffle=True, generator=g)
    g.manual_seed(5)
    one = [b[1].tolist() for b in seeded]
    g.manual_seed(5)
    assert [b[1].tolist() for b in seeded] == one


def test_subset_and_table_agree_with_samples():
    """The fast way of rows gives what collating samples gives."""
    d = data.Subset(table(20), [3, 19, 0, 7, 7, 2, 11])
    slow = DataLoader(d, batch_size=3, shuffle=True, collate_fn=lambda b: data.default_collate(b))
    fast = DataLoader(d, batch_size=3, shuffle=True)
    tt.manual_seed(0)
    a = [[t.tolist() for t in b] for b in slow]
    tt.manual_seed(0)
    assert [[t.tolist() for t in b] for b in fast] == a
    sampler = data.WeightedRandomSampler([0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 3.0], 30)
    seen = sum((b[1].tolist() for b in DataLoader(d, batch_size=7, sampler=sampler)), [])
    assert set(seen) == {19, 11} and len(seen) == 30
    own = DataLoader(d, batch_sampler=[[0, 1], [6]])
    assert [b[1].tolist() for b in own] == [[3, 19], [11]] and len(own) == 2


def test_samplers():
    d = table()
    assert list(data.SequentialSampler(d)) == list(range(10))
    assert sorted(data.RandomSampler(d)) == list(range(10))
    drawn = list(data.RandomSampler(d, replacement=True, num_samples=100))
    assert len(drawn) == 100 and set(drawn) <= set(range(10))
    assert sorted(data.RandomSampler(d, num_samples=20)) == sorted([*range(10), *range(10)])
    assert len(list(data.RandomSampler(d, num_samples=4))) == 4
    assert sorted(data.SubsetRandomSampler([5, 7, 9])) == [5, 7, 9]
    assert list(data.BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(data.BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert sorted(data.WeightedRandomSampler([1.0, 1.0, 1.0], 3, replacement=False)) == [0, 1, 2]
    with pytest.raises(ValueError, match="batch_size"):
        data.BatchSampler(range(5), 0, False)
    with pytest.raises(ValueError, match="num_samples"):
        data.RandomSampler(d, num_samples=0)


def test_collate():
    batch = next(iter(DataLoader(Squares(5), batch_size=3)))
    assert batch["x"].tolist() == [[0, 1], [1, 1], [2, 1]] and batch["y"].tolist() == [0, 1, 4]
    assert batch["name"] == ["0", "1", "2"] and batch["pair"][1].dtype is tt.float32
    assert batch["y"].dtype is tt.int64
    assert data.default_collate([1.5, 2.5]).dtype is tt.float64
    Point = collections.namedtuple("Point", "x y")
    made = data.default_collate([Point(1, 2.0), Point(3, 4.0)])
    assert isinstance(made, Point) and made.x.tolist() == [1, 3]
    assert data.default_collate([np.zeros(2), np.ones(2)]).shape == (2, 2)
    assert data.default_collate([[1, 2], [3, 4]])[0].tolist() == [1, 3]
    assert data.default_collate([True, False]).dtype is tt.bool
    with pytest.raises(RuntimeError, match="equal size"):
        data.default_collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="must contain tensors"):
        data.default_collate([object()])


def test_without_batches():
    got = list(DataLoader(Squares(3), batch_size=None))
    assert [g["y"] for g in got] == [0, 1, 4]
    assert list(DataLoader(Stream(3), batch_size=None)) == [0, 1, 2]


def test_iterable():
    loader = DataLoader(Stream(7), batch_size=3)
    assert [b.tolist() for b in loader] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [b.tolist() for b in loader] == [[0, 1, 2], [3, 4, 5], [6]]
    assert len(list(DataLoader(Stream(7), batch_size=3, drop_last=True))) == 2
    with pytest.raises(ValueError, match="IterableDataset"):
        DataLoader(Stream(3), shuffle=True)


@pytest.mark.parametrize("workers", [1, 3])
def test_workers(workers):
    loader = DataLoader(Squares(10), batch_size=3, num_workers=workers)
    for _ in range(2):
        assert [b["y"].tolist() for b in loader] == [[0, 1, 4], [9, 16, 25], [36, 49, 64], [81]]
    got = sorted(sum((b.tolist() for b in DataLoader(Stream(10), batch_size=2, num_workers=workers)), []))
    assert got == list(range(10))
    for _ in loader:
        break  # an iteration left early ends its workers
    with pytest.raises(KeyError, match="sample three"):
        list(DataLoader(Broken(10), batch_size=2, num_workers=workers))
    seeds = [b.tolist() for b in DataLoader(Seeds(4), num_workers=workers)]
    assert len({str(s) for s in seeds}) == 4


class Seeds(Squares):
    def __getitem__(self, i):
        return tt.rand(2)


def test_options():
    d = table()
    for options in (
        {"batch_size": 0},
        {"batch_size": None, "drop_last": True},
        {"num_workers": -1},
        {"timeout": -1},
        {"shuffle": True, "sampler": [1]},
        {"batch_sampler": [[1]], "batch_size": 3},
        {"prefetch_factor": 2},
        {"persistent_workers": True},
    ):
        with pytest.raises(ValueError):
            DataLoader(d, **options)


def test_random_samples_are_drawn_when_they_are_asked_for():
    d = data.TensorDataset(tt.arange(10))
    endless = data.RandomSampler(d, replacement=True, num_samples=10**10)
    assert len(endless) == 10**10 and 0 <= next(iter(endless)) < 10
    (batch,) = next(iter(data.DataLoader(d, 4, sampler=endless)))
    assert batch.shape == (4,)
    epochs = data.RandomSampler(d, num_samples=10**10)
    assert sorted(itertools.islice(epochs, 20)) == sorted([*range(10), *range(10)])


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("size", [1, 3, 7, 10, 60])
@pytest.mark.parametrize("options", [{"num_samples": 25}, {"replacement": True, "num_samples": 25}, {}])
def test_batches_hold_what_the_sampler_gives(options, size, drop_last):
    """Also where they reach over two permutations."""
    d = data.TensorDataset(tt.arange(10))
    made = [data.RandomSampler(d, **options, generator=tt.Generator().manual_seed(5)) for _ in range(2)]
    wanted = list(data.BatchSampler(made[0], size, drop_last))
    got = [batch.tolist() for (batch,) in data.DataLoader(d, size, sampler=made[1], drop_last=drop_last)]
    assert got == wanted


# ---- As PyTorch's.


class Twice(data.Dataset):
    """Gives samples one by one or many at once, and says which."""

    def __len__(self):
        return 5

    def __getitem__(self, i):
        return (i, "one")

    def __getitems__(self, indices):
        return [(i, "many") for i in indices]


class Frozen(collections.abc.Mapping):
    def __init__(self, items):
        self.items_ = dict(items)

    def __getitem__(self, key):
        return self.items_[key]

    def __iter__(self):
        return iter(self.items_)

    def __len__(self):
        return len(self.items_)


class Row(list):
    note = None


Pair = collections.namedtuple("Pair", "a b")


def plain(value):
    """A batch of either library as plain Python, with the types of what holds it."""
    if hasattr(value, "dtype"):
        return "tensor", str(value.dtype).split(".")[-1], value.tolist()
    if isinstance(value, collections.abc.Mapping):
        return type(value).__name__, {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(v) for v in value]
    return value


BATCHES = {
    "numbers": lambda t: [1, 2, 3],
    "floats": lambda t: [1.5, 2.0],
    "bools": lambda t: [True, False],
    "texts": lambda t: ["a", "b"],
    "bytes": lambda t: [b"a", b"b"],
    "tensors": lambda t: [t.ones(2), t.zeros(2)],
    "scalars": lambda t: [t.tensor(1), t.tensor(2)],
    "sizes": lambda t: [t.ones(2), t.ones(3)],
    "arrays": lambda t: [np.ones((2, 2), dtype=np.float32), np.zeros((2, 2), dtype=np.float32)],
    "0-d": lambda t: [np.array(1.0), np.array(2.0)],
    "float16": lambda t: [np.float16(1), np.float16(2)],
    "int8": lambda t: [np.int8(1), np.int8(-2)],
    "text arrays": lambda t: [np.array("a"), np.array("b")],
    "objects": lambda t: [np.array(None), np.array(None)],
    "np.str_": lambda t: [np.str_("a"), np.str_("b")],
    "tuples": lambda t: [(1, 2.0), (3, 4.0)],
    "lists": lambda t: [[1, [2.0]], [3, [4.0]]],
    "named": lambda t: [Pair(1, "x"), Pair(2, "y")],
    "ragged": lambda t: [[1], [1, 2]],
    "dictionaries": lambda t: [{"a": 1, "b": (1, 2)}, {"a": 2, "b": (3, 4)}],
    "missing": lambda t: [{"a": 1}, {"b": 2}],
    "ordered": lambda t: [collections.OrderedDict(a=1), collections.OrderedDict(a=2)],
    "default": lambda t: [collections.defaultdict(int, a=1), collections.defaultdict(int, a=2)],
    "frozen": lambda t: [Frozen({"a": 1}), Frozen({"a": 2})],
    "rows": lambda t: [Row([1, 2]), Row([3, 4])],
    "ranges": lambda t: [range(2), range(2, 4)],
    "none": lambda t: [None, None],
    "sets": lambda t: [{1}, {2}],
}  # fmt: skip


@pytest.mark.parametrize("function", ["default_collate", "default_convert"])
@pytest.mark.parametrize("name", BATCHES)
def test_batches_are_those_of_torch(torch, function, name):
    theirs = getattr(pytest.importorskip("torch.utils.data"), function)
    outcomes = []
    for library, fn in ((torch, theirs), (tt, getattr(data, function))):
        try:
            outcomes.append(plain(fn(BATCHES[name](library))))
        except Exception as exc:
            outcomes.append(type(exc))
    assert outcomes[0] == outcomes[1]


def test_collate_by_type():

    class Graph:
        def __init__(self, n):
            self.n = n

    def join(batch, *, collate_fn_map=None):
        return Graph(sum(g.n for g in batch))

    with pytest.raises(TypeError, match="found <class"):
        data.default_collate([Graph(1)])
    default_collate_fn_map[Graph] = join
    try:
        made = data.default_collate([(Graph(1), 2), (Graph(3), 4)])
        assert made[0].n == 4 and made[1].tolist() == [2, 4]
        later = type("Later", (Graph,), {})
        assert data.default_collate([later(1), later(2)]).n == 3
    finally:
        del default_collate_fn_map[Graph]
    doubled = {tt.Tensor: lambda batch, *, collate_fn_map=None: tt.stack(list(batch)) * 2}
    assert collate([tt.ones(1)], collate_fn_map=doubled).tolist() == [[2.0]]
    default_collate_fn_map[tt.Tensor], before = doubled[tt.Tensor], default_collate_fn_map[tt.Tensor]
    try:
        assert next(iter(DataLoader(table(2), 2)))[1].tolist() == [0, 2]  # rows of a table too
    finally:
        default_collate_fn_map[tt.Tensor] = before


def test_datasets_are_those_of_torch(torch):
    theirs = pytest.importorskip("torch.utils.data")

    def told(d, t):
        class Own(d.Subset):
            def __getitem__(self, i):
                return 1

        class Twin(d.Dataset):
            __len__, __getitem__, __getitems__ = Twice.__len__, Twice.__getitem__, Twice.__getitems__

        class Flow(d.IterableDataset):
            def __iter__(self):
                return iter("ab")

        rows = d.TensorDataset(t.arange(5), t.arange(5) * 2)
        for act in [
            lambda: plain(rows[[1, -1]]),
            lambda: rows[5],
            lambda: d.TensorDataset(t.ones(2), t.ones(3)),
            lambda: d.TensorDataset([1, 2]),
            lambda: (Twin() + rows)[7][1].item(),
            lambda: (Twin() + rows)[10],
            lambda: (Twin() + rows)[-11],
            lambda: d.ConcatDataset([]),
            lambda: d.ConcatDataset([Flow()]),
            lambda: d.ConcatDataset([rows, rows]).cumulative_sizes,
            lambda: d.ConcatDataset.cumsum([[1], [2, 3]]),
            lambda: list(Flow() + Flow()),
            lambda: list(d.ChainDataset([rows])),
            lambda: len(d.ChainDataset([rows])),
            lambda: d.StackDataset(),
            lambda: d.StackDataset(rows, a=rows),
            lambda: d.StackDataset(rows, [1]),
            lambda: d.StackDataset(Twin(), [5, 6, 7, 8, 9])[2],
            lambda: d.StackDataset(Twin(), [5, 6, 7, 8, 9]).__getitems__([2, 0]),
            lambda: d.StackDataset(a=Twin(), b=[5, 6, 7, 8, 9]).__getitems__([2, 0]),
            lambda: d.Subset(Twin(), [3, 1]).__getitems__([1, 0]),
            lambda: d.Subset([5, 6, 7], [2, 1]).__getitems__([1, 0]),
            lambda: d.Subset(Twin(), [3, 1])[0],
            lambda: Own(Twin(), [3]),
            lambda: [len(s) for s in d.random_split(range(11), [0.5, 0.3, 0.2])],
            lambda: [len(s) for s in d.random_split(range(3), [0.0, 1.0])],
            lambda: d.random_split(range(3), [1.5, -0.5]),
            lambda: d.random_split(range(3), [1, 1]),
            lambda: plain(list(d.DataLoader(Twin(), 2))),
            lambda: plain(list(d.DataLoader(Twin(), None))),
            lambda: plain(list(d.DataLoader(Twin(), batch_sampler=[[1], [4, 0]]))),
            lambda: plain(list(d.DataLoader({"x": 1, "y": 2}, sampler=["y", "x"]))),
            lambda: list(d.BatchSampler(range(7), 3, True)),
            lambda: list(d.BatchSampler("abcd", 3, False)),
            lambda: d.BatchSampler(range(3), 2.0, False),
            lambda: d.BatchSampler(range(3), 2, 1),
            lambda: d.RandomSampler([], False),
            lambda: d.RandomSampler([1], replacement=1),
            lambda: d.RandomSampler([1], num_samples=True) and "made",
            lambda: d.WeightedRandomSampler([1.0], 1, replacement=1),
            lambda: d.WeightedRandomSampler([[1.0]], 1),
            lambda: d.WeightedRandomSampler([1.0], 0),
            lambda: list(d.Sampler()),
            lambda: d.Dataset()[0],
            lambda: d.DataLoader([], shuffle=True),
            lambda: list(d.DataLoader([])),
            lambda: list(d.DataLoader([1, 2], timeout=1)),
            lambda: len(d.DataLoader(Flow())),
            lambda: d.DataLoader(Flow(), sampler=[1]),
            lambda: d.DataLoader(Flow(), shuffle=False).batch_size,
            lambda: setattr(d.DataLoader([1]), "sampler", 1),
            lambda: setattr(d.DataLoader([1]), "collate_fn", 1),
            lambda: list(d.DistributedSampler(range(10), 4, 1, shuffle=False)),
            lambda: list(d.DistributedSampler(range(10), 4, 3, shuffle=False, drop_last=True)),
            lambda: list(d.DistributedSampler(range(2), 7, 6, shuffle=False)),
            lambda: len(d.DistributedSampler(range(10), 3, 0)),
            lambda: d.DistributedSampler(range(10), 3, 3),
            lambda: d.get_worker_info(),
        ]:
            try:
                yield act()
            except Exception as exc:
                yield type(exc)

    for k, (wanted, got) in enumerate(zip(told(theirs, torch), told(data, tt))):
        assert wanted == got, k


def test_a_split_that_is_empty():
    with pytest.warns(UserWarning, match="Length of split at index 0 is 0"):
        data.random_split(range(3), [0.0, 1.0])
    both = data.ConcatDataset([table(2)])
    with pytest.warns(FutureWarning, match="renamed"):
        assert both.cummulative_sizes == [2]


def test_distributed_samplers():
    shares = [data.DistributedSampler(range(10), 3, rank, seed=4) for rank in range(3)]
    first = [list(s) for s in shares]
    assert sorted(set(sum(first, []))) == list(range(10)) and {len(s) for s in first} == {4}
    assert first == [list(s) for s in shares]
    for s in shares:
        s.set_epoch(1)
    assert first != [list(s) for s in shares]
    with pytest.raises(RuntimeError, match="Requires distributed package"):
        data.DistributedSampler(range(3))


def test_what_is_drawn():
    """As PyTorch: an epoch draws a seed for its workers, and one for its order when that is asked for; from a generator
    of its own a permutation too many."""
    counts = []
    for options in ({}, {"shuffle": True}, {"sampler": data.RandomSampler(range(6), True)}):
        tt.manual_seed(0)
        list(DataLoader(range(6), 2, **options))
        after = tt.randint(0, 1000, (4,)).tolist()
        tt.manual_seed(0)
        for _ in range(2 if options else 1):
            tt.empty((), dtype=tt.int64).random_()
        counts.append(after == tt.randint(0, 1000, (4,)).tolist())
    assert counts == [True] * 3
    g, h = tt.Generator().manual_seed(1), tt.Generator().manual_seed(1)
    got = [b.tolist() for b in DataLoader(range(6), 6, shuffle=True, generator=g)]
    tt.empty((), dtype=tt.int64).random_(generator=h)
    assert got == [tt.randperm(6, generator=h).tolist()]
    tt.randperm(6, generator=h)
    assert g.get_state().tolist() == h.get_state().tolist()


def test_old_paths(torch):
    """What programs import by the name of its file."""
    for path, names in {
        "dataloader": "DataLoader _DatasetKind _InfiniteConstantSampler _BaseDataLoaderIter default_collate "
        "_SingleProcessDataLoaderIter _MultiProcessingDataLoaderIter get_worker_info default_convert",
        "dataset": "Dataset IterableDataset TensorDataset StackDataset ConcatDataset ChainDataset Subset random_split",
        "sampler": "Sampler SequentialSampler RandomSampler SubsetRandomSampler WeightedRandomSampler BatchSampler",
        "distributed": "DistributedSampler",
        "_utils": "ExceptionWrapper MP_STATUS_CHECK_INTERVAL collate fetch pin_memory worker",
        "_utils.collate": "collate default_collate default_convert default_collate_fn_map collate_tensor_fn "
        "collate_numpy_array_fn collate_numpy_scalar_fn collate_float_fn collate_int_fn collate_str_fn "
        "default_collate_err_msg_format",
        "_utils.fetch": "_MapDatasetFetcher _IterableDatasetFetcher _BaseDatasetFetcher",
        "_utils.pin_memory": "pin_memory",
        "_utils.worker": "WorkerInfo get_worker_info _IterableDatasetStopIteration _ResumeIteration",
    }.items():
        ours = importlib.import_module(f"tinytorch.utils.data.{path}")
        theirs = importlib.import_module(f"torch.utils.data.{path}")
        for name in names.split():
            assert hasattr(ours, name) and hasattr(theirs, name), (path, name)
