"""Every operator of the table (optable/), every sample and dtype: fused equals eager, derivatives and writes too."""

import pytest
from compare import FLOATS, is_tensor, outputs
from optable import OPS, make

import tinytorch
from fuse.snapshot import differences, facts

pytestmark = pytest.mark.filterwarnings("ignore:.*(degrees of freedom|was resized)")
each_dtype = [pytest.param(op, dtype, id=f"{op}-{dtype}") for op in OPS for dtype in op.dtypes]


def outcome(run):
    """The facts of what run() gives, or its exception."""
    tinytorch.manual_seed(0)
    try:
        result = run()
    except (RuntimeError, ValueError, TypeError, IndexError, ArithmeticError) as exc:
        return {"raised": {"value": f"{type(exc).__name__}: {exc}"}}
    return {str(k): facts(value) for k, value in enumerate(result)}


def compare(run, message):
    wanted = outcome(run)
    with tinytorch.fuse():
        tinytorch.manual_seed(0)
        try:
            result = run()
        except (RuntimeError, ValueError, TypeError, IndexError, ArithmeticError) as exc:
            got = {"raised": {"value": f"{type(exc).__name__}: {exc}"}}
            result = None
    if result is not None:
        got = {str(k): facts(value) for k, value in enumerate(result)}
    told = differences(wanted, got)
    assert not told, "\n".join([message, *told])


@pytest.mark.parametrize("op, dtype", each_dtype)
def test_values(op, dtype):
    for sample, arrays in op.samples_for(dtype):
        def run(sample=sample, arrays=arrays):
            bases, tensors = make(tinytorch, sample, arrays, dtype)
            args, kwargs = sample.fill([t * 1 if dtype != "bool" else t & True for t in tensors])
            first = op(tinytorch, *args, **kwargs)
            args, kwargs = sample.fill(tensors)
            return [*bases, *outputs(first), *outputs(op(tinytorch, *args, **kwargs))]

        compare(run, f"{op}{sample} in {dtype}")


@pytest.mark.parametrize("op, dtype", [p for p in each_dtype if p.values[0].grad and p.values[1] in FLOATS])
def test_derivatives(op, dtype):
    for sample, arrays in op.samples_for(dtype):
        for again in (False, True):
            def run(sample=sample, arrays=arrays, again=again):
                bases, tensors = make(tinytorch, sample, arrays, dtype, requires_grad=True)
                args, kwargs = sample.fill(tensors)
                results = [r for r in outputs(op(tinytorch, *args, **kwargs)) if r.requires_grad]
                leaves = [base for base in bases if base.requires_grad]
                if not results or not leaves:
                    return []
                first = tinytorch.autograd.grad(results, leaves, [(r * 0.5 + 1).detach() for r in results],
                                                allow_unused=True, create_graph=again)
                if not again:
                    return [*results, *first]
                total = sum((g * g).sum() for g in first if g is not None)
                if not is_tensor(total) or not total.requires_grad:
                    return [*results, *first]
                return [*results, *first, *tinytorch.autograd.grad(total, leaves, allow_unused=True)]

            compare(run, f"{op}{sample} in {dtype}, again: {again}")


@pytest.mark.parametrize("op, dtype", [p for p in each_dtype if p.values[0].inplace])
def test_in_place(op, dtype):
    for sample, arrays in op.samples_for(dtype):
        if not sample.specs or sample.args[0] is not sample.specs[0]:
            continue

        def run(sample=sample, arrays=arrays):
            bases, tensors = make(tinytorch, sample, arrays, dtype)
            (x, *args), kwargs = sample.fill(tensors)
            result = getattr(x, f"{op.name}_")(*args, **kwargs)
            return [*bases, x, result]

        compare(run, f"{op}_{sample} in {dtype}")
