"""Bytes and operations of operators."""

import inspect

import pytest

import tinytorch
import tinytorch.nn.functional as F
from tinytorch import Tensor
from tinytorch.ops import dropout
from tinytorch.ops.declare.op import op_of
from tinytorch.profiler import costs, profile
from tinytorch.profiler.costs import Cost, Operand, backward_cost, cost, rule_of
from tinytorch.profiler.events import Event, Trace, nest
from tinytorch.scalar import OPERATORS, REDUCTIONS


def f32(*shape):
    return Operand(shape, 4)


def i64(*shape):
    return Operand(shape, 8)


def published():
    names = {n for n, f in tinytorch.ops.FUNCTIONS.items() if callable(f)}
    names |= set(tinytorch.linalg.__all__) - {"LinAlgError"}
    names |= {n for n, f in vars(Tensor).items() if not n.startswith("_") and callable(f)}
    operators = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"]
    names |= {f"__{kind}{n}__" for n in operators for kind in ("", "r", "i") if hasattr(Tensor, f"__{kind}{n}__")}
    names |= {"__matmul__", "__neg__", "__abs__", "__invert__", "__eq__", "__lt__", "__getitem__", "__setitem__"}
    return names | {
        n
        for n, f in vars(F).items()
        if not n.startswith("_")
        and inspect.isroutine(f)
        and f.__module__.startswith("tinytorch")
        and n not in ("function", "implicit_dim")
    }


def is_composite(name):
    places = (tinytorch.ops.FUNCTIONS.get(name), *(getattr(at, name, None) for at in (Tensor, F, tinytorch.linalg)))
    op = op_of(next((place for place in places if place is not None), None))
    return op is not None and op.kind == "composite"


def test_every_published_operator_has_a_cost_or_is_named():
    unknown = {n for n in published() if rule_of(n) is None and not is_composite(n)}
    assert unknown == (costs.COMPOSED | costs.WITHOUT) - {n for n in costs.WITHOUT if is_composite(n)}
    assert len(published()) > 500


def test_the_lists_name_nothing_that_has_a_rule_or_does_not_exist():
    assert not {n for n in costs.WITHOUT if rule_of(n)}
    named = costs.COMPOSED | costs.WITHOUT | set(costs._RULES)
    assert not {
        n
        for n in named
        if not any(hasattr(place, n) for place in (Tensor, tinytorch, tinytorch.linalg, tinytorch.fft, F, dropout))
    }
    assert costs._RULES.keys().isdisjoint(OPERATORS.keys() | REDUCTIONS.keys())  # whose costs kernels/scalar knows


@pytest.mark.parametrize(
    "name, ins, wanted",
    [
        ("rfft", [f32(2, 8)], Cost(2 * 64, 120)),
        ("fftn", [i64(2, 8)], Cost(2 * 128, 320)),
        ("add", [f32(3, 4), f32(3, 4)], Cost(3 * 48, 12)),
        ("__radd__", [f32(3, 4)], Cost(2 * 48, 12)),
        ("add", [f32(3, 1), f32(4)], Cost(12 + 16 + 48, 12)),
        ("add_", [f32(3, 4), f32(4)], Cost(48 + 16 + 48, 12)),
        ("__iadd__", [f32(3, 4), f32(3, 4)], Cost(3 * 48, 12)),
        ("lt", [f32(10), f32(10)], Cost(90, 10)),
        ("greater", [f32(10), f32(10)], Cost(90, 10)),
        ("tanh", [f32(100)], Cost(800, 2600)),
        ("where", [Operand((10,), 1), f32(10), f32(10)], Cost(130, 0)),
        ("sum", [f32(10, 10)], Cost(400, 100)),
        ("mm", [f32(2, 3), f32(3, 5)], Cost(4 * (6 + 15 + 10), 60)),
        ("cholesky", [f32(2, 6, 6)], Cost(2 * 2 * 144, 2 * 72)),
        ("solve", [f32(3, 3), f32(3, 5)], Cost(36 + 60 + 60, 18 + 90)),
        ("svd", [f32(4, 2)], Cost(64, 14 * 16 + 64)),
        ("matmul", [f32(7, 2, 3), f32(3, 5)], Cost(4 * (42 + 15 + 70), 420)),
        ("__matmul__", [f32(3), f32(3)], Cost(4 * 7, 6)),
        ("bmm", [f32(7, 2, 3), f32(7, 3, 5)], Cost(4 * (42 + 105 + 70), 420)),
        ("mv", [f32(2, 3), f32(3)], Cost(4 * (6 + 3 + 2), 12)),
        ("dot", [f32(9), f32(9)], Cost(4 * 19, 18)),
        ("linear", [f32(4, 2, 3), f32(5, 3), f32(5)], Cost(4 * (24 + 15 + 5 + 40), 2 * 8 * 3 * 5 + 40)),
        ("linear", [f32(2, 3), f32(5, 3)], Cost(4 * (6 + 15 + 10), 60)),
        ("addmm", [f32(2, 5), f32(2, 3), f32(3, 5)], Cost(4 * (10 + 6 + 15 + 10), 70)),
        ("outer", [f32(3), f32(5)], Cost(4 * (3 + 5 + 15), 15)),
        ("softmax", [f32(10, 10)], Cost(800, 2200)),
        ("layer_norm", [f32(10, 10), f32(10), f32(10)], Cost(880, 800)),
        ("embedding", [i64(6), f32(100, 8)], Cost(6 * 8 + 2 * 6 * 32, 0)),
        ("gather", [f32(5, 5), i64(5, 2)], Cost(80 + 80, 0)),
        ("index_add_", [f32(5, 8), i64(2), f32(2, 8)], Cost(16 + 64 + 2 * 64, 16)),
        ("__getitem__", [f32(5, 8)], Cost(0, 0)),
        ("__getitem__", [f32(5), i64(3)], Cost(24 + 24, 0)),
        ("transpose", [f32(5, 8)], Cost(0, 0)),
        ("cat", [f32(5), f32(3)], Cost(64, 0)),
        ("copy_", [f32(5), f32(5)], Cost(40, 0)),
        ("fill_", [f32(5)], Cost(20, 0)),
        ("scaled_dot_product_attention", [f32(2, 8, 4)] * 3, Cost(4 * 64 * 4, 2 * 8 * 8 * (8 + 8 + 22))),
    ],
)
def test_costs(name, ins, wanted):
    assert cost(name, ins) == wanted


def test_results_decide_where_operands_do_not():
    assert cost("zeros", []) is None
    assert cost("zeros", [], [f32(5)]) == Cost(20, 0)
    assert cost("sum", [f32(10, 10)], [f32(10)]) == Cost(440, 100)
    assert cost("add", [f32(4), f32(4)], [Operand((4,), 2)]) == Cost(40, 4)


def test_no_cost_where_shapes_do_not_tell():
    assert cost("einsum", [f32(3, 3), f32(3, 3)]) is None
    assert cost("no_such_operator", [f32(3)]) is None
    assert cost("mm", [f32(3, 3)]) is None


def test_backward_of_products_is_two_products():
    ins = [f32(20, 30), f32(30, 50)]
    assert backward_cost("mm", ins).flops == 2 * cost("mm", ins).flops
    assert backward_cost("tanh", [f32(10)]) == Cost(120, 520)
    assert backward_cost("view", [f32(10)]) == Cost(0, 0)


def test_dtypes_by_name_or_object():
    assert costs.operands([(2, 3), (), None], ["float32", tinytorch.float64, None]) == [f32(2, 3), Operand((), 8)]
    assert costs.operands([(1,)], ["torch.bfloat16"]) == [Operand((1,), 2)]


def event(name, kind, start, end, shapes=(), **more):
    return Event(name, kind, start, end, 1, shapes=shapes, dtypes=("float32",) * len(shapes), **more)


def test_attach():
    events = [
        event("mm", "op", 0, 10, ((2, 3), (3, 5)), sequence=7),
        event("einsum", "op", 20, 40),
        event("mm", "op", 21, 25, ((2, 3), (3, 5))),
        event("add", "op", 26, 30, ((4,),)),
        event("MmBackward0", "backward", 50, 60, sequence=7),
        event("TanhBackward0", "backward", 70, 90, sequence=8),
        event("mul", "op", 71, 75, ((4,), (4,))),
        event("sigmoid", "op", 100, 110, ((8,),)),
        event("launch", "runtime", 101, 105, correlation=3),
        event("sum", "op", 120, 140, ((8,),)),
        event("launch", "runtime", 121, 122, correlation=4),
        event("launch", "runtime", 123, 124, correlation=5),
        *(Event("k", "kernel", 200 + n, 201 + n, 0, device="cuda:0", stream=7, correlation=n) for n in (3, 4, 5, 6)),
    ]
    costs.attach(Trace(nest(events)))
    by = {(e.name, e.start): (e.bytes, e.flops) for e in events}
    assert by["mm", 0] == (124, 60)
    assert by["einsum", 20] == (124 + 32, 64)
    assert by["MmBackward0", 50] == (248, 120)
    assert by["TanhBackward0", 70] == by["mul", 71] == (48, 4)
    assert by["k", 203] == by["sigmoid", 100] == (64, 168)
    assert by["k", 204] == by["k", 205] == by["k", 206] == (None, None)


def test_what_gives_its_operand_back_moves_nothing():
    x, still = tinytorch.ones(100, 10), tinytorch.nn.Dropout(0.0)
    with profile() as p:
        still(x)
        F.dropout(x, 0.5, training=False)
        F.dropout2d(x.view(1, 1, 100, 10), 0.0)
        x.contiguous()
        x.to("cpu")
        F.dropout(x, 0.5)
        x.t().contiguous()
        F.dropout(x, 0.5, inplace=True)
        x.relu_()
        tinytorch.exp(x, out=tinytorch.empty(100, 10))
    found = [(e.name, e.bytes) for e in p.events() if e.kind == "op" and e.parent is None or e.name == "dropout"]
    copied = 2 * x.nbytes
    assert [f for f in found if f[0] not in ("view", "t", "empty")] == [
        ("dropout", 0),
        ("dropout", 0),
        ("dropout2d", 0),
        ("contiguous", 0),
        ("to", 0),
        ("dropout", copied + 1000),
        ("contiguous", copied),
        ("dropout", 2 * copied),
        ("relu_", copied),
        ("exp", copied),
    ]


def test_a_fused_program_counts_its_own():
    a, b = tinytorch.ones(10, 100), tinytorch.ones(10, 100)
    with profile() as p, tinytorch.fuse():
        c = ((a * b + a).exp().mean(1, keepdim=True) + a).sum()
        c.item()
    programs = [e for e in p.events() if e.kind == "program"]
    kernels = [e for program in programs for e in program.children]
    flops = 1000 * (1 + 1 + 18 + 1) + 10 + 1000 * (1 + 1)  # mean's quotients are of rows
    assert sum(e.flops for e in programs) == sum(e.flops for e in kernels) == flops
    assert sum(e.bytes for e in programs) >= 8000
