"""Datasets, samplers and DataLoader."""

import itertools
import collections

import numpy as np
import pytest

import tinytorch as tt
from tinytorch.utils import data
from tinytorch.utils.data import DataLoader, TensorDataset


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
