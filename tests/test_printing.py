"""The printed form equals torch's."""

import math

import pytest

import tinytorch

PRINTED = {
    "ints": lambda m: m.arange(6).view(2, 3),
    "floats": lambda m: m.tensor([1.0, 2.5, -3.25]),
    "whole floats": lambda m: m.tensor([1.0, 2.0]),
    "0-d": lambda m: m.tensor(3.5),
    "0-d int": lambda m: m.tensor(7),
    "bools": lambda m: m.tensor([True, False]),
    "empty": lambda m: m.zeros(0),
    "empty with shape": lambda m: m.zeros(2, 0, 3),
    "empty int": lambda m: m.zeros(0, dtype=m.int64),
    "float64": lambda m: m.tensor([0.1, 100.0], dtype=m.float64),
    "half": lambda m: m.tensor([0.1, 2.0], dtype=m.float16),
    "bfloat16": lambda m: m.tensor([0.1, 2.0], dtype=m.bfloat16),
    "int8": lambda m: m.tensor([-1, 100], dtype=m.int8),
    "wide range": lambda m: m.tensor([1e-5, 1.0, 1e5]),
    "tiny": lambda m: m.tensor([1e-10, 2e-10]),
    "huge": lambda m: m.tensor([1e10, 1.0]),
    "huge whole": lambda m: m.tensor([1e8, 2e8]),
    "nan and inf": lambda m: m.tensor([math.nan, math.inf, -math.inf, 1.0]),
    "only nan": lambda m: m.tensor([math.nan]),
    "matrix": lambda m: m.arange(12.0).view(3, 4) / 3,
    "negative": lambda m: m.tensor([[-1.5, 2], [3, -400.25]]),
    "three dimensions": lambda m: m.arange(12.0).view(2, 3, 2),
    "four dimensions": lambda m: m.arange(16).view(2, 2, 2, 2),
    "long vector": lambda m: m.arange(2000),
    "long rows": lambda m: m.arange(40.0) * 1.5,
    "large matrix": lambda m: m.arange(4000.0).view(50, 80),
    "large cube": lambda m: m.zeros(20, 20, 20),
    "requires grad": lambda m: m.ones(2, requires_grad=True),
    "grad_fn": lambda m: m.ones(2, requires_grad=True) * 2,
    "grad_fn of a sum": lambda m: m.ones(2, requires_grad=True).sum(),
    "grad_fn of a view": lambda m: m.ones(2, 2, requires_grad=True)[0],
    "transposed": lambda m: m.arange(6.0).view(2, 3).t(),
    "dtype and grad": lambda m: m.ones(2, dtype=m.float64, requires_grad=True),
    "uint8": lambda m: m.tensor([255, 0], dtype=m.uint8),
    "minus zero": lambda m: m.tensor([-0.0, 0.0]),
    "large ints": lambda m: m.tensor([2**40, -1]),
}


@pytest.mark.parametrize("name", PRINTED)
def test_repr(torch, name):
    # A dtype prints with its library's name.
    assert repr(PRINTED[name](tinytorch)).replace("tinytorch.", "torch.") == repr(PRINTED[name](torch))
    assert str(PRINTED[name](tinytorch)).replace("tinytorch.", "torch.") == str(PRINTED[name](torch))


@pytest.mark.parametrize(
    "options", [{"precision": 2}, {"threshold": 5}, {"sci_mode": True}, {"linewidth": 40}, {"edgeitems": 1}]
)
def test_print_options(torch, options):
    texts = []
    for m in (tinytorch, torch):
        m.set_printoptions(**options)
        try:
            texts.append([repr(m.arange(30.0) / 7), repr(m.arange(2000.0))])
        finally:
            m.set_printoptions(profile="default")
    assert texts[0] == texts[1]


def test_format(torch):
    for m in (tinytorch, torch):
        assert f"{m.tensor(3.14159):.2f}" == "3.14" and f"{m.tensor(7):04d}" == "0007"
    assert f"{tinytorch.tensor([1.0])}" == "tensor([1.])"
