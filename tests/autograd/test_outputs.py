"""Operators with several outputs: derivatives of every order where an output is saved, and each output's own hooks."""

import math
import subprocess
import sys

import pytest

import tinytorch as tt
from tinytorch.autograd.formulas import WRITTEN, Unwritten
from tinytorch.ops.declare import OPS, primitive


@pytest.fixture
def exp_and_sin():
    """An operator of two outputs whose formula needs the first of them, and a result that has no gradient."""

    @primitive(
        name="exp_and_sin",
        outputs=("e", "s"),
        extra=("sign",),
        x=lambda g_e, g_s, x, e: _sum(None if g_e is None else g_e * e, None if g_s is None else g_s * x.cos()),
    )
    def exp_and_sin(x):
        x = x.detach()
        return x.exp(), x.sin(), x.sign()

    yield exp_and_sin
    del OPS["exp_and_sin"]


def _sum(a, b):
    return b if a is None else a if b is None else a + b


class Both(tt.autograd.Function):
    """The same as a user writes it."""

    @staticmethod
    def forward(ctx, x):
        e, s = x.exp(), x.sin()
        ctx.save_for_backward(x, e)
        return e, s

    @staticmethod
    def backward(ctx, ge, gs):
        x, e = ctx.saved_tensors
        return ge * e + gs * x.cos()


def both(request_fixture):
    return lambda x: request_fixture(x)[:2]


@pytest.mark.parametrize("how", ["primitive", "function"])
def test_second_derivatives_go_through_a_saved_output(how, exp_and_sin):
    call = both(exp_and_sin) if how == "primitive" else Both.apply
    x = tt.tensor([0.5, 1.0], dtype=tt.float64, requires_grad=True)
    e, s = call(x)
    (first,) = tt.autograd.grad((e * e).sum() + s.sum(), x, create_graph=True)
    (second,) = tt.autograd.grad(first.sum(), x)
    for k, v in enumerate((0.5, 1.0)):
        assert first[k].item() == pytest.approx(2 * math.exp(2 * v) + math.cos(v))
        assert second[k].item() == pytest.approx(4 * math.exp(2 * v) - math.sin(v))
    assert tt.autograd.gradgradcheck(call, (x,))


@pytest.mark.parametrize("how", ["primitive", "function"])
def test_an_output_that_is_gone_is_still_derived_through(how, exp_and_sin):
    call = both(exp_and_sin) if how == "primitive" else Both.apply
    x = tt.tensor(0.5, dtype=tt.float64, requires_grad=True)
    s = call(x)[1]  # nothing holds the first output
    e, _ = call(x)
    (first,) = tt.autograd.grad(e + s, x, create_graph=True)
    del e, s
    (second,) = tt.autograd.grad(first, x)
    assert second.item() == pytest.approx(math.exp(0.5) - math.sin(0.5))


def test_hooks_of_a_saved_output_see_its_whole_gradient(exp_and_sin):
    x = tt.tensor(0.5, dtype=tt.float64, requires_grad=True)
    e, s, sign = exp_and_sin(x)
    seen = []
    e.register_hook(lambda g: seen.append(g.item()))
    (first,) = tt.autograd.grad(e * e, x, create_graph=True)  # 2 e^2
    assert seen == [pytest.approx(2 * math.exp(0.5))]
    tt.autograd.grad(first, x)
    # first = 2 e e: one factor by way of e's gradient, one saved by the operator itself. Both come as one gradient.
    assert seen[1:] == [pytest.approx(4 * math.exp(0.5))]
    assert sign._node is None and e.grad_fn is s.grad_fn and (e.output_nr, s.output_nr) == (0, 1)


def test_an_output_without_a_gradient_is_none_to_the_formula(exp_and_sin):
    x = tt.tensor(0.5, requires_grad=True)
    (g,) = tt.autograd.grad(exp_and_sin(x)[1], x)
    assert g.item() == pytest.approx(math.cos(0.5))


def test_a_saved_output_that_was_overwritten_is_noticed(exp_and_sin):
    x = tt.tensor([0.5], requires_grad=True)
    e, s, _ = exp_and_sin(x)
    e.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation: ExpAndSinBackward0 .* saved its result"):
        s.backward()


def test_a_formula_that_names_what_is_not_there():
    with pytest.raises(TypeError, match="a formula names 'y', which is no parameter of wrong"):
        primitive(name="wrong", x=lambda g, y: g)(lambda x: x)


def test_the_functions_of_a_node_class_are_written_when_one_is_asked_for(exp_and_sin):
    node = OPS["exp_and_sin"].node
    assert all(isinstance(vars(node)[name], Unwritten) for name in WRITTEN)
    e, s = exp_and_sin(tt.ones(1, requires_grad=True))[:2]
    (e + s).backward()
    assert all(isinstance(vars(node)[name], staticmethod) for name in WRITTEN)


def test_the_import_writes_none():
    code = "import linecache, tinytorch; assert not [name for name in linecache.cache if 'derivative' in name]"
    subprocess.run([sys.executable, "-c", code], check=True)
