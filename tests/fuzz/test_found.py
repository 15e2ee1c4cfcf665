"""What the fuzzers found, in kind: each ended the process, hung, or raised what tells of a fault inside."""

import itertools
import math

import pytest

import tinytorch as tt
from tinytorch.nn import functional as F


@pytest.mark.parametrize("cls", [tt.dtype, tt.layout, tt.memory_format])
def test_what_is_there_once_cannot_be_made(cls):
    for arguments in ((), ("float32",), (99, True, 1)):
        with pytest.raises(TypeError, match="cannot create"):
            cls(*arguments)


def test_polygamma_of_huge_orders():
    assert tt.polygamma(171, tt.ones(1)).item() == math.inf
    assert tt.polygamma(2**40, tt.ones(1)).item() == -math.inf


def test_triangles_are_counted_without_looking(torch):
    for rows, cols, offset in itertools.product(range(5), range(5), range(-7, 8)):
        for name in ("tril_indices", "triu_indices"):
            assert getattr(tt, name)(rows, cols, offset).tolist() == getattr(torch, name)(rows, cols, offset).tolist()
    assert tt.triu_indices(2**40, 1).tolist() == [[0], [0]]
    assert tt.tril_indices(2**40, 1, 1 - 2**40).tolist() == [[2**40 - 1], [0]]
    with pytest.raises(tt.OutOfMemoryError):
        tt.tril_indices(2**40, 99)


def test_an_index_of_nothing():
    x = tt.ones(4, 3)
    assert tt.index_put(x, (), tt.ones(3), accumulate=True).tolist() == [[2.0] * 3] * 4
    with pytest.raises(RuntimeError):
        tt.index_put(x, (), tt.ones(6, 3), accumulate=True)


def test_more_parts_than_memory():
    with pytest.raises(MemoryError):
        tt.ones(4, 5).tensor_split(2**62)


X = tt.ones(2, 3)
NO_TENSORS = {
    "a function": lambda: tt.argwhere(3),
    "a view": lambda: tt.permute("x", (0,)),
    "a primitive": lambda: tt.cumsum([1], 0),
    "a reduction": lambda: tt.amax(None),
    "a reduction along a dimension": lambda: tt.sum("text", 0),
    "a composite": lambda: tt.polygamma(1, "text"),
    "an elementwise operator": lambda: tt.sqrt(3),
    "in place": lambda: tt.add_(3, X),
    "zero_": lambda: tt.zero_((X,)),
    "out": lambda: tt.sqrt(X, out=(X,)),
    "out of a reduction": lambda: tt.sum(X, 0, out=3),
    "one of several": lambda: tt.atleast_1d(X, 3),
    "in a list": lambda: tt.block_diag(X, (3,)),
    "an index": lambda: tt.index_select(X, 0, [0]),
    "a loss": lambda: F.mse_loss(X, 3.0),
    "a layer": lambda: F.linear(X, 3j),
    "an activation": lambda: F.relu(None),
    "a number of many": lambda: X.narrow(X, 0, 1),
    "a bool of many": lambda: tt.var_mean(X, (0, 1), X),
    "keepdim": lambda: X.amax(9, "yes"),
    "dtype": lambda: X.sum(dtype=3),
    "a dimension": lambda: X.logsumexp(5.5),
}


@pytest.mark.parametrize("name", NO_TENSORS)
def test_arguments_of_the_wrong_type(name):
    with pytest.raises(TypeError) as error:
        NO_TENSORS[name]()
    assert "_h" not in str(error.value) and "has no attribute" not in str(error.value)


def test_a_program_s_own_tensors_are_no_numbers():
    """The error for bool(t) and int(t) is the program's own."""
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(X)
    with pytest.raises(ValueError, match="only one element"):
        int(X)


def test_an_error_holds_nothing(no_gc):
    """Looking at the arguments makes no cycle that would keep them."""
    before = tt.cpu.memory_allocated()
    for call in (lambda x: x.roll((1, 2), 0), lambda x: tt.argwhere((x, 3)), lambda x: tt.kron(x, "text")):
        with pytest.raises((TypeError, RuntimeError)):
            call(tt.ones(100))
    assert tt.cpu.memory_allocated() == before
