"""grouped_mm: products group by group, as PyTorch's, and their derivatives."""

import math

import pytest
from compare import assert_same

import tinytorch
from tinytorch.nn import functional as F


def shapes_of(kind):
    return {"rows": ((8, 8), (3, 8, 16)), "columns": ((3, 8, 8), (8, 16)), "inner": ((8, 8), (8, 16))}[kind]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("kind", ["rows", "columns", "inner", "stacks"])
@pytest.mark.parametrize("ends", [(2, 2, 8), (1, 4, 8)])
def test_products(kind, ends, dtype, torch):
    results = []
    for library in (tinytorch, torch):
        last = 16 if kind == "columns" else 8
        offs = None if kind == "stacks" else library.tensor([*ends[:2], last], dtype=library.int32)
        shapes = ((3, 8, 8), (3, 8, 16)) if kind == "stacks" else shapes_of(kind)
        given = []
        for k, shape in enumerate(shapes):
            values = (library.arange(1.0 * math.prod(shape)) * (7 + k) % 11 / 11 - 0.3).reshape(shape)
            given.append(values.to(getattr(library, dtype)).requires_grad_())
        out = library.nn.functional.grouped_mm(*given, offs=offs)
        out.float().square().sum().backward()
        results.append((out.detach(), *[g.grad for g in given]))
    atol = 1e-5 if dtype == "float32" else 2e-1
    for ours, theirs in zip(*results):
        assert ours.dtype is getattr(tinytorch, dtype)
        assert_same(ours.float(), theirs.float(), rtol=2e-2 if atol > 1e-3 else 1e-5, atol=atol)


def test_rows_after_the_last_group_are_zeros():
    offs = tinytorch.tensor([1, 3], dtype=tinytorch.int32)
    out = F.grouped_mm(tinytorch.ones(5, 4), tinytorch.ones(2, 4, 2), offs=offs)
    assert out.tolist() == [[4.0, 4.0]] * 3 + [[0.0, 0.0]] * 2


@pytest.mark.parametrize(
    "case",
    [
        "m.ones(6, 8), m.ones(2, 8, 16)",
        "m.ones(6, 8).double(), m.ones(2, 8, 16).double(), offs=o",
        "m.ones(6, 8), m.ones(2, 8, 16), offs=o.long()",
        "m.ones(6, 8), m.ones(2, 8, 16), offs=o, bias=m.ones(2, 16)",
        "m.ones(2, 6, 8), m.ones(2, 8, 16), offs=o",
        "m.ones(6, 8).half(), m.ones(2, 8, 16).half(), offs=o, out_dtype=m.float32",
        "m.ones(8), m.ones(2, 8, 16), offs=o",
    ],
)
def test_errors(case, torch):
    for m in (tinytorch, torch):
        with pytest.raises(RuntimeError):
            eval(f"m.nn.functional.grouped_mm({case})", {"m": m, "o": m.tensor([2, 6], dtype=m.int32)})


@pytest.mark.parametrize("ends", [[4, 2], [2, 7], [2], [-1, 3]])
def test_offsets_are_checked(ends):
    offs = tinytorch.tensor(ends, dtype=tinytorch.int32)
    with pytest.raises(RuntimeError, match="ffsets"):
        F.grouped_mm(tinytorch.ones(6, 8), tinytorch.ones(2, 8, 4), offs=offs)
