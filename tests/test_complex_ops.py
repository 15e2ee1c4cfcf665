"""Complex numbers in every operator of the table: what PyTorch takes has its values and its gradients, what it refuses
is refused."""

import warnings

import numpy as np
import pytest
from compare import COMPLEX, assert_same, is_tensor, outputs, to_numpy
from optable import OPS, make
from test_ops import able_device, able_oracle  # noqa: F401 (fixtures)

import tinytorch

# What PyTorch has of complex numbers, and we refuse so far.
NOT_YET = {
    "smooth_l1_loss",
    "soft_margin_loss",
}
# Where PyTorch takes complex numbers for no elements alone: its kernel, which would refuse, is not called.
OF_NOTHING = {
    "scaled_dot_product_attention",
    "amax",
    "amin",
    "cummax",
    "cummin",
    "softmax",
    "log_softmax",
    "F.softmax",
    "F.log_softmax",
}
# PyTorch's gradient is that of other elements, its result NaN, or another error comes first.
ORACLE_ERRS = {"as_strided_scatter", "pow", "rrelu", "searchsorted"}

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(degrees of freedom|was resized|stft|window was not|discards the imaginary|non-scalar)"
)
# Near a pole of tanh a rounding of complex64 counts for more.
NEAR_POLES = {"gru", "lstm", "rnn_tanh", "gru_cell", "lstm_cell", "rnn_tanh_cell"}
REFUSALS = (RuntimeError, TypeError, ValueError, NotImplementedError, AssertionError)
each = pytest.mark.parametrize(
    "op", [op for op in OPS if op.name not in OF_NOTHING | {"rrelu", "searchsorted"}], ids=str
)


def run(op, m, sample, tensors, **more):
    args, kwargs = sample.fill(tensors)
    return op(m, *args, **kwargs, **more)


def attempt(function, *args):
    """What the function gives, or the exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args)
        except REFUSALS as exc:
            return exc


def compare(op, actual, expected, message, **tolerance):
    """Both refuse, or both give the same; False where we refuse what is not there yet."""
    if isinstance(expected, Exception):
        assert isinstance(actual, REFUSALS), f"{message}: torch raises {expected!r}"
    elif isinstance(actual, Exception) and op.name in NOT_YET:
        assert isinstance(actual, RuntimeError)
        return False
    elif isinstance(actual, Exception):
        raise actual
    else:
        actual, expected = outputs(actual), outputs(expected)
        if op.name == "pow":  # torch's 0 ** 0 is NaN
            expected = [e.where(~e.isnan(), 1) for e in expected]
        assert_same(actual, expected, message, **tolerance)
    return True


@each
@pytest.mark.parametrize("dtype", COMPLEX)
def test_forward(torch, device, op, dtype):
    for sample, arrays in op.samples_for(dtype):
        actual, expected = [
            attempt(run, op, m, sample, make(m, sample, arrays, dtype, where)[1])
            for m, where in ((tinytorch, device), (torch, "cpu"))
        ]
        tolerance = {"rtol": op.rtol} if op.rtol and dtype == "complex128" else {}
        if dtype == "complex64" and op.name in NEAR_POLES:
            tolerance = {"rtol": 1e-3}
        if not compare(op, actual, expected, f"{op}{sample} in {dtype}", **tolerance):
            return


def weights(m, results, device):
    rng = np.random.default_rng(3)
    made = []
    for r in results:
        w = rng.uniform(0.5, 1.5, tuple(r.shape)) + (
            1j * rng.uniform(0.5, 1.5, tuple(r.shape)) if r.is_complex() else 0
        )
        made.append(m.from_numpy(np.asarray(w)).to(device, r.dtype))
    return made


def gradients(op, m, sample, arrays, device, create_graph=False, call=run):
    bases, tensors = make(m, sample, arrays, "complex128", device, requires_grad=True)
    results = [r for r in outputs(call(op, m, sample, tensors)) if r.requires_grad]
    leaves = [base for base in bases if base.requires_grad]
    if not results or not leaves:
        return []
    found = m.autograd.grad(results, leaves, weights(m, results, device), allow_unused=True, create_graph=create_graph)
    return [g for g in found if g is not None]


@pytest.mark.parametrize(
    "op", [op for op in OPS if op.grad and op.name not in ORACLE_ERRS | NOT_YET | OF_NOTHING], ids=str
)
def test_gradient(torch, device, op):
    """Of the kernels of first derivatives, and of the differentiable formulas."""
    for sample, arrays in op.samples_for("complex128"):
        expected = attempt(gradients, op, torch, sample, arrays, "cpu")
        if isinstance(expected, Exception):  # as for many operators whose values it has
            continue
        for create_graph in (False, True):
            actual = gradients(op, tinytorch, sample, arrays, device, create_graph)
            assert_same(actual, expected, f"{op}{sample}, create_graph={create_graph}", rtol=1e-8, atol=1e-10)


def in_place(op, m, sample, tensors):
    (x, *args), kwargs = sample.fill(tensors)
    return getattr(x, f"{op.name}_")(*args, **kwargs)


@pytest.mark.parametrize("op", [op for op in OPS if op.inplace], ids=str)
def test_in_place(torch, device, op):
    """What torch refuses writes nothing."""
    for sample, arrays in op.samples_for("complex128"):
        if not sample.specs or sample.args[0] is not sample.specs[0] or sample.specs[0].layout == "expanded":
            continue
        ours = make(tinytorch, sample, arrays, "complex128", device)[1]
        before = to_numpy(ours[0]).copy()
        actual = attempt(in_place, op, tinytorch, sample, ours)
        expected = attempt(lambda: in_place(op, torch, sample, make(torch, sample, arrays, "complex128")[1]))  # noqa: B023
        if not compare(op, actual, expected, f"{op}_{sample}"):
            return
        if isinstance(expected, Exception):
            np.testing.assert_array_equal(to_numpy(ours[0]), before)


@pytest.mark.parametrize("op", [op for op in OPS if op.out], ids=str)
def test_out(device, op):
    """out= is filled, whatever its layout; real numbers do not take complex ones."""
    for sample, arrays in op.samples_for("complex64"):
        tensors = make(tinytorch, sample, arrays, "complex64", device)[1]
        expected = attempt(run, op, tinytorch, sample, tensors)
        if not is_tensor(expected) or not expected.is_complex():
            continue
        spaced = tinytorch.zeros((*expected.shape, 2), dtype=expected.dtype, device=device)[..., 0]
        assert run(op, tinytorch, sample, tensors, out=spaced) is spaced
        assert_same(spaced, expected)
        if expected.numel():
            with pytest.raises(TypeError if op.name in ("cat", "stack") else RuntimeError):  # PyTorch's
                run(op, tinytorch, sample, tensors, out=tinytorch.zeros(expected.shape, device=device))


def test_what_is_not_yet_there_is_refused():
    """So that the list gets shorter when one of them is."""
    for op in OPS:
        if op.name in NOT_YET:
            tried = [
                attempt(run, op, tinytorch, sample, make(tinytorch, sample, arrays, "complex128")[1])
                for sample, arrays in op.samples_for("complex128")
            ]
            assert any(isinstance(result, RuntimeError) for result in tried), op
