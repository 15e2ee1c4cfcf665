"""Tensors as objects: Python's protocols, facts, and views."""

import math
import sys

import numpy as np
import pytest
from compare import DTYPES, FLOATS, INTS, assert_same, outputs

import tinytorch

# ---- Python's protocols.


def test_sequence():
    x = tinytorch.arange(6).view(3, 2)
    assert len(x) == 3 and [row.tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
    assert [row.tolist() for row in reversed(x)] == [[4, 5], [2, 3], [0, 1]]
    a, b, c = x
    assert b.tolist() == [2, 3] and 4 in x and 9 not in x
    assert len(tinytorch.zeros(0, 3)) == 0 and list(tinytorch.zeros(0, 3)) == []


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers(dtype):
    one = tinytorch.tensor(1, dtype=getattr(tinytorch, dtype))
    assert (bool(one), int(one), float(one), one.item()) == (True, 1, 1.0, 1)
    kind = float if dtype in FLOATS else bool if dtype == "bool" else int
    assert type(one.item()) is kind and type(one.tolist()) is kind
    assert type(one.view(1, 1).tolist()[0][0]) is kind and one.view(1, 1).item() == 1
    assert not tinytorch.zeros((), dtype=getattr(tinytorch, dtype))
    if dtype in INTS:
        assert [10, 20][one] == 20 and list(range(one)) == [0], "an integer tensor is an index"


def test_numbers_of_special_values():
    assert math.isnan(tinytorch.tensor(math.nan).item()) and tinytorch.tensor(-math.inf).item() == -math.inf
    assert bool(tinytorch.tensor(math.nan))
    with pytest.raises(ValueError):
        int(tinytorch.tensor(math.nan))
    with pytest.raises(TypeError):
        _ = [1][tinytorch.tensor(1.0)]


def test_hash_and_equality():
    x, y = tinytorch.ones(2), tinytorch.ones(2)
    assert len({x, y, x}) == 2 and hash(x) == hash(x)
    assert (x == y).tolist() == [True, True] and (x == None).__class__ is bool  # noqa: E711
    assert tinytorch.equal(x, y) and not tinytorch.equal(x, tinytorch.ones(3))
    assert tinytorch.allclose(x, y + 1e-9) and not tinytorch.allclose(x, y + 1)
    assert tinytorch.is_tensor(x) and not tinytorch.is_tensor(3)


def test_facts(torch):
    for m in (tinytorch, torch):
        x = m.zeros(2, 3, 4, dtype=m.float64).transpose(0, 1)
        facts = [
            tuple(x.shape),
            tuple(x.size()),
            x.size(0),
            x.size(-1),
            x.dim(),
            x.ndim,
            x.numel(),
            x.nelement(),
            x.stride(),
            x.stride(0),
            x.storage_offset(),
            x.element_size(),
            x.itemsize,
            x.nbytes,
            x.is_contiguous(),
            x.is_floating_point(),
            x.is_leaf,
            x.requires_grad,
            len(x.shape),
            x.shape.numel(),
            x.is_cuda,
        ]
        assert facts == [
            (3, 2, 4),
            (3, 2, 4),
            3,
            4,
            3,
            3,
            24,
            24,
            (4, 12, 1),
            4,
            0,
            8,
            8,
            192,
            False,
            True,
            True,
            False,
            3,
            24,
            False,
        ]


SHAPES = [
    (),
    (0,),
    (5,),
    (1 << 58,),
    (2, 3),
    (0, 7),
    ((1 << 30) - 1, 1),
    (1 << 30, 0),
    (3, (1 << 20) - 1, 1),
    (1, 2, 1 << 20),
    (2, 1, 4, (1 << 15) - 1),
    (1 << 15, 1, 1, 2),
    (2, 3, 1, 4095, 1),
    (4096, 1, 1, 1, 1),
    (1, 2, 1, 2, 1, 2),
    (1,) * 64,
    (2,) * 12,
]


def test_shapes_of_all_sizes():
    for shape in SHAPES * 2:
        x = tinytorch.zeros(()).expand(shape)
        assert x.shape == shape == x.size() and type(x.shape) is tinytorch.Size
        assert x.ndim == len(x.shape) and x.numel() == x.shape.numel() == math.prod(shape)
        assert [x.size(d) for d in range(-x.ndim, x.ndim)] == [*shape, *shape]
        assert type(x.shape[:1]) is tinytorch.Size and all(type(n) is int for n in x.shape)
    for d in (2, -3):
        with pytest.raises(IndexError, match="range of"):
            tinytorch.zeros(2, 3).size(d)


def test_shapes_follow_changes_in_place():
    x = tinytorch.arange(24).view(2, 12)
    assert x.shape == (2, 12)
    for change, shape in (
        (lambda: x.t_(), (12, 2)),
        (lambda: x.unsqueeze_(1), (12, 1, 2)),
        (lambda: x.transpose_(0, 2), (2, 1, 12)),
        (lambda: x.squeeze_(), (2, 12)),
        (lambda: x.resize_(3, 4), (3, 4)),
        (lambda: x.swapdims_(0, 1), (4, 3)),
        (lambda: setattr(x, "data", tinytorch.zeros(7)), (7,)),
        (lambda: x.resize_(0), (0,)),
    ):
        change()
        assert x.shape == shape and x.size() == shape and repr(x.shape) == f"tinytorch.Size({list(shape)})"


def test_few_shapes_are_kept():
    x = tinytorch.zeros(1)
    for n in range(10000):
        assert x.expand(n).shape == (n,)
    sizes = sys.modules["tinytorch.tensor"]._sizes  # the function has the module's name
    assert 0 < len(sizes) <= sizes.MOST


def test_size_is_a_tuple():
    size = tinytorch.zeros(2, 3).shape
    assert isinstance(size, tuple) and repr(size).endswith("Size([2, 3])")
    assert size == (2, 3) and size[1] == 3 and size[:1] == (2,) and list(size) == [2, 3]


def test_attributes_and_weak_references():
    import weakref

    x = tinytorch.zeros(1)
    x.note = "mine"
    reference = weakref.ref(x)
    assert reference().note == "mine"
    del x
    assert reference() is None


def test_subclass():
    class Mine(tinytorch.Tensor):
        pass

    assert issubclass(Mine, tinytorch.Tensor) and isinstance(tinytorch.zeros(1), tinytorch.Tensor)
    assert isinstance(tinytorch.nn.Parameter(tinytorch.zeros(1)), tinytorch.Tensor)


def test_reflected_operators(torch):
    results = []
    for m in (tinytorch, torch):
        x, k = m.tensor([1.0, 2.0, 4.0]), m.tensor([1, 2, 3])
        results.append(
            [
                1 + x,
                1 - x,
                2 * x,
                2 / x,
                2**x,
                7 // x,
                7 % x,
                1 & k,
                1 | k,
                1 ^ k,
                1 << k,
                16 >> k,
                True + k,
                x.__rsub__(1),
                x.rsub(1) if hasattr(x, "rsub") else x.__rsub__(1),
            ]
        )
    for a, e in zip(*results):
        assert_same(a, e)


def test_unknown_operands_are_left_to_python():
    class Other:
        def __radd__(self, left):
            return "radd"

        def __rmatmul__(self, left):
            return "rmatmul"

    assert tinytorch.ones(1) + Other() == "radd" and tinytorch.ones(1) @ Other() == "rmatmul"


# ---- Views: one long chain of every view, with strides and aliasing as torch's.

CHAIN = [
    lambda x: x.view(4, 6),
    lambda x: x.t(),
    lambda x: x[1:5],
    lambda x: x.unflatten(1, (2, 2)),
    lambda x: x.permute(2, 0, 1),
    lambda x: x.unsqueeze(1),
    lambda x: x.select(2, 3),
    lambda x: x.squeeze(),
    lambda x: x.diagonal(),
    lambda x: x[::1],
    lambda x: x.unsqueeze(0),
    lambda x: x.expand(3, 2),
    lambda x: x.movedim(0, 1),
    lambda x: x.narrow(0, 1, 1),
    lambda x: x.reshape(3),
    lambda x: x.unfold(0, 2, 1),
    lambda x: x.mT,
    lambda x: x.flatten(),
    lambda x: x.as_strided((2,), (1,)),
]


def test_a_chain_of_views(torch):
    facts = []
    for m in (tinytorch, torch):
        x = base = m.arange(24.0)
        seen = []
        for view in CHAIN:
            x = view(x)
            seen.append(
                (
                    tuple(x.shape),
                    x.stride(),
                    x.storage_offset(),
                    x.is_contiguous(),
                    x.tolist(),
                    x._base is base,
                )
            )
        facts.append(seen)
    assert facts[0] == facts[1]


def test_contiguous():
    x = tinytorch.arange(6.0).view(2, 3)
    assert x.contiguous() is x
    y = x.t().contiguous()
    assert y.stride() == (2, 1) and y.data_ptr() != x.data_ptr()


def test_set_item_of_a_view_of_numpy():
    array = np.zeros((3, 3))
    tinytorch.from_numpy(array).t()[0] = 1.0
    assert array[:, 0].tolist() == [1, 1, 1]


def test_results_of_several_tensors_have_names(torch):
    for m in (tinytorch, torch):
        x = m.tensor([[3.0, 1.0], [2.0, 4.0]])
        for result in (x.max(0), x.min(1), x.sort(), x.topk(1)):
            assert isinstance(result, tuple) and len(outputs(result)) == 2
            assert result.values is result[0] and result.indices is result[1]
