"""Objects of all kinds as data: what a tensor is made of, and what is refused, as PyTorch does it."""

import collections
import fractions
from array import array

import numpy as np
import pytest
from compare import assert_same
from fuse.helpers import python

import tinytorch


def nested(depth):
    """A number within that many lists."""
    value = 1.0
    for _ in range(depth):
        value = [value]
    return value


class Sequence:
    """It says that it has ``n`` items, and gives those of ``items``."""

    def __init__(self, n, items):
        self.n, self.items = n, items

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        return self.items[index]


class Index:
    def __index__(self):
        return 3


class Float:
    def __float__(self):
        return 2.5


class Integer(int):
    pass


class Real(float):
    pass


class Failing:
    """Every question to it ends in an error of its own."""

    def fail(self, *args, **kwargs):
        raise OSError("a question")

    __index__ = __float__ = __array__ = __iter__ = fail


VALUES = {
    "nested": nested(16),
    "nested too deep": nested(129),
    "nested far too deep": nested(5000),
    "sequence": Sequence(3, [0.5, 1.5, 2.5]),
    "sequence of none": Sequence(0, [1, 2]),
    "sequence that has more": Sequence(3, range(5)),
    "sequence of negative length": Sequence(-1, []),
    "sequence of sequences": [Sequence(2, [1, 2]), range(2)],
    "index": Index(),
    "float": Float(),
    "failing": Failing(),
    "of a failing one": [Failing()],
    "integer": Integer(3),
    "real": [Real(2.5), 1],
    "fraction": fractions.Fraction(1, 2),
    "dictionary": {0: 1.0},
    "set": {1, 2},
    "range": range(3),
    "text": "abc",
    "texts": ["a"],
    "number and text": [1, "a"],
    "bytes": b"abc",
    "bytearray": bytearray(b"ab"),
    "memoryview": memoryview(b"abcd"),
    "deque": collections.deque([1, 2]),
    "array": array("f", [1, 2]),
    "None": None,
    "object": object(),
    "class": int,
    "function": nested,
    "ellipsis": ...,
    "too large": 2**70,
    "large": [1, 2**63],
    "not a number": float("nan"),
    "number and list": [1, [2]],
    "list and number": [[1], 2],
    "ragged": [[1], []],
    "objects": np.array([None, 1], dtype=object),
    "texts of NumPy": np.array(["a"]),
    "structures": np.zeros(2, [("a", "f4")]),
    "0-d array": np.array(3.0),
    "array of integers": np.arange(3),
    "arrays": [np.ones(2), np.zeros(2)],
    "arrays of two sizes": [np.ones(2), np.zeros(3)],
    "nothing": [],
    "lists of nothing": [[], []],
}
MAKERS = {
    "tensor": lambda m, value: m.tensor(value),
    "float32": lambda m, value: m.tensor(value, dtype=m.float32),
    "int64": lambda m, value: m.tensor(value, dtype=m.int64),
    "as_tensor": lambda m, value: m.as_tensor(value),
    "asarray": lambda m, value: m.asarray(value),
    "new_tensor": lambda m, value: m.ones(1).new_tensor(value),
    "from_numpy": lambda m, value: m.from_numpy(value),
    "frombuffer": lambda m, value: m.frombuffer(value, dtype=m.uint8),
    "zeros": lambda m, value: m.zeros(value),
    "Tensor": lambda m, value: m.Tensor(value),
}
SIZES = ("index", "integer")  # Tensor(3) has no defined values


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.filterwarnings("ignore")
def test_data(torch, maker, value):
    """The tensor, or the kind of error, that PyTorch gives."""
    if maker == "Tensor" and value in SIZES:
        pytest.skip("a size")
    data, make = VALUES[value], MAKERS[maker]
    try:
        wanted = make(torch, data)
    except Exception as error:
        with pytest.raises(type(error)):
            make(tinytorch, data)
    else:
        assert_same(make(tinytorch, data), wanted)


def test_what_holds_itself():
    """An error, and at once: each of these had no end."""
    told = python("""
        import tinytorch as tt
        class Mirror:
            def __init__(self, n): self.n = n
            def __len__(self): return self.n
            def __getitem__(self, index): return self
        class Endless(Mirror):
            def __getitem__(self, index): return 1.0
        l = []; l.append(l)
        pair = []; pair += [pair, pair]
        t = ([],); t[0].append(t)
        mirrors = Mirror(1), Mirror(2), Mirror(10**18), [Mirror(2)], Endless(2)
        for value in (l, pair, t, [[l], 1], [1.0, l], [[1.0], l], *mirrors):
            for make in (tt.tensor, tt.as_tensor, tt.asarray, tt.ones(1).new_tensor, tt.Tensor):
                try: make(value)
                except (ValueError, TypeError) as error: print(type(error).__name__, end=" ")
    """)
    assert len(told.split()) == 11 * 5


@pytest.mark.parametrize("size", [2**63, -(2**70), (2, 2**64)], ids=str)
def test_sizes_beyond_64_bits(size):
    for make in (tinytorch.zeros, tinytorch.ones(1).new_empty, tinytorch.empty):
        with pytest.raises((TypeError, RuntimeError)):
            make(size)
