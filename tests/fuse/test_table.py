"""Every operator of the table (optable/), every sample and dtype: fused equals eager, derivatives and writes too."""

import contextlib

import pytest
from compare import FLOATS, is_tensor, outputs
from optable import OPS, make

import tinytorch
from fuse.programs import RAISED, described
from fuse.snapshot import differences, snapshot

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*(degrees of freedom|was resized)"),
    pytest.mark.usefixtures("interpreted"),
]


def outcome(run, mode):
    """What run() gives inside of a mode, or its exception."""
    tinytorch.manual_seed(0)
    try:
        with mode:
            results = run()
    except RAISED as exc:
        return snapshot({"raised": described(exc)})
    return snapshot({str(k): value for k, value in enumerate(results)})


def compare(run, *what):
    told = differences(outcome(run, contextlib.nullcontext()), outcome(run, tinytorch.fuse()))
    assert not told, "\n".join([*map(str, what), *told])


def cases(op, dtypes):
    """(dtype, sample, arrays) of every sample in every one of these dtypes."""
    for dtype in dtypes:
        for sample, arrays in op.samples_for(dtype):
            yield dtype, sample, arrays


@pytest.mark.parametrize("op", OPS, ids=str)
def test_values(op):
    """Of tensors that are there, and of tensors that are recorded."""
    for dtype, sample, arrays in cases(op, op.dtypes):

        def run(dtype=dtype, sample=sample, arrays=arrays):
            bases, tensors = make(tinytorch, sample, arrays, dtype)
            found = []
            for given in (tensors, [t * 1 if dtype != "bool" else t & True for t in tensors]):
                args, kwargs = sample.fill(given)
                found += outputs(op(tinytorch, *args, **kwargs))
            return [*bases, *found]

        compare(run, op, sample, dtype)


@pytest.mark.parametrize("op", [op for op in OPS if op.grad], ids=str)
@pytest.mark.parametrize("again", [False, True], ids=["first", "second"])
def test_derivatives(op, again):
    """First derivatives, by the kernels that serve them alone; first and second ones in differentiable operators."""
    for dtype, sample, arrays in cases(op, [d for d in op.dtypes if d in FLOATS]):

        def run(dtype=dtype, sample=sample, arrays=arrays):
            bases, tensors = make(tinytorch, sample, arrays, dtype, requires_grad=True)
            args, kwargs = sample.fill(tensors)
            results = [r for r in outputs(op(tinytorch, *args, **kwargs)) if r.requires_grad]
            leaves = [base for base in bases if base.requires_grad]
            if not results or not leaves:
                return []
            outer = [(r * 0.5 + 1).detach() for r in results]
            first = tinytorch.autograd.grad(results, leaves, outer, allow_unused=True, create_graph=again)
            total = sum((g * g).sum() for g in first if g is not None)
            if not again or not is_tensor(total) or not total.requires_grad:
                return [*results, *first]
            return [*results, *first, *tinytorch.autograd.grad(total, leaves, allow_unused=True)]

        compare(run, op, sample, dtype)


@pytest.mark.parametrize("op", [op for op in OPS if op.inplace], ids=str)
def test_in_place(op):
    for dtype, sample, arrays in cases(op, op.dtypes):
        if not sample.specs or sample.args[0] is not sample.specs[0]:
            continue  # 2 ** x has no in-place form

        def run(dtype=dtype, sample=sample, arrays=arrays):
            bases, tensors = make(tinytorch, sample, arrays, dtype)
            (x, *args), kwargs = sample.fill(tensors)
            return [*bases, x, getattr(x, f"{op.name}_")(*args, **kwargs)]

        compare(run, op, sample, dtype)
