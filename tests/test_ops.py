"""Everything that holds for every operator, driven from the operator table (optable/)."""

import inspect
import types
import warnings
from operator import attrgetter

import numpy as np
import pytest
from compare import (
    DTYPES,
    HALVES,
    TOLERANCE,
    allocated,
    assert_same,
    assert_values,
    is_tensor,
    outputs,
    to_numpy,
)
from entries import describe, gradients, run, second_gradients, weigh
from optable import ALIASES, OPS, WITHOUT_ENTRY, make

import tinytorch
from tinytorch.ops.declare import NAMESPACES

# The table asks for the variance of nothing, and for out= of another shape, on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:.*(degrees of freedom|was resized|stft|window was not)")
every_op = pytest.mark.parametrize("op", OPS, ids=str)
DIFFERENTIABLE = [op for op in OPS if op.grad]
each_dtype = [pytest.param(op, dtype, id=f"{op}-{dtype}") for op in OPS for dtype in op.dtypes]
unsupported = [
    pytest.param(op, dtype, id=f"{op}-{dtype}")
    for op in OPS
    for dtype in DTYPES
    if dtype not in op.dtypes and not op.composite
]


@pytest.fixture(autouse=True)
def able_device(request):
    """An operator of the CPU alone is not asked for elsewhere, but to refuse: test_other_devices_are_refused."""
    op = request.node.callspec.params.get("op") if hasattr(request.node, "callspec") else None
    if op is not None and op.cpu and "device" in request.fixturenames and request.getfixturevalue("device") != "cpu":
        pytest.skip(f"{op} runs on the CPU alone")


@pytest.fixture(autouse=True)
def able_oracle(request):
    """An older PyTorch cannot tell what the entry wants."""
    op = request.node.callspec.params.get("op") if hasattr(request.node, "callspec") else None
    if op is not None and "torch" in request.fixturenames:
        version = request.getfixturevalue("torch").__version__
        if tuple(int(part) for part in version.split(".")[:2]) < op.since:
            pytest.skip(f"PyTorch {version} does not do all of {op}")


def expect(op, torch, sample, arrays, dtype):
    """torch's result. A half type's values are those of float32, rounded to the half type."""
    result = run(op, torch, sample, make(torch, sample, arrays, dtype)[1])
    if dtype in HALVES:
        exact = run(op, torch, sample, make(torch, sample, rounded(torch, sample, arrays, dtype), "float32")[1])
        return [e.to(r.dtype) if is_tensor(r) else e for r, e in zip(outputs(result), outputs(exact))], result
    return outputs(result), result


def rounded(torch, sample, arrays, dtype):
    """The arrays after a trip through the half type: what the op is really given."""
    return [to_numpy(spec.base(torch, a, dtype, "cpu")).astype(a.dtype) for spec, a in zip(sample.specs, arrays)]


@pytest.mark.parametrize("op, dtype", each_dtype)
def test_forward(torch, device, op, dtype):
    """Values, dtypes, shapes and the kind of container equal torch's, for every sample."""
    for sample, arrays in op.samples_for(dtype):
        actual = run(op, tinytorch, sample, make(tinytorch, sample, arrays, dtype, device)[1])
        expected, result = expect(op, torch, sample, arrays, dtype)
        assert_same(outputs(actual), expected, describe(op, sample, dtype), **op.tolerance(dtype))
        if not is_tensor(result):
            assert isinstance(actual, tuple) == isinstance(result, tuple), describe(op, sample, dtype)
            for k, name in enumerate(getattr(type(result), "__match_args__", ())):
                assert getattr(actual, name) is actual[k]


@pytest.mark.parametrize("op", [op for op in OPS if op.ref], ids=str)
def test_forward_against_numpy(device, op):
    """The entry's NumPy function gives the same float64 (or int64) values: an oracle that is always there."""
    dtype = "float64" if "float64" in op.dtypes else "int64"
    compared = 0
    for sample, arrays in op.samples_for(dtype):
        if op.view and len(sample.args) > 3 or not numpy_knows(op.ref, sample.kwargs):
            continue  # the two libraries name their options differently
        tensors = make(tinytorch, sample, arrays, dtype, device)[1]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # NumPy reports the NaNs that the special values give
            args, kwargs = sample.fill([to_numpy(t) for t in tensors])
            expected = op.ref(*args, **kwargs)
        actual = to_numpy(outputs(run(op, tinytorch, sample, tensors))[0])
        assert_values(actual, expected, dtype, describe(op, sample, dtype))
        compared += 1
    assert compared, f"no sample of {op} is compared with NumPy"


def numpy_knows(function, options):
    """Whether the table's own wrapper of a NumPy function takes these options; NumPy's own have other names."""
    if not options:
        return True
    return isinstance(function, types.FunctionType) and set(options) <= set(inspect.signature(function).parameters)


@pytest.mark.parametrize("op", [op for op in OPS if op.method], ids=str)
def test_method(device, op):
    """x.op(...) is op(x, ...)."""
    dtype = "float64" if "float64" in op.dtypes else op.dtypes[0]
    for sample, arrays in op.samples_for(dtype):
        tensors = make(tinytorch, sample, arrays, dtype, device)[1]
        (x, *args), kwargs = sample.fill(tensors)
        if is_tensor(x):
            as_method = getattr(x, op.name)(*args, **kwargs)
            assert_same(as_method, run(op, tinytorch, sample, tensors), describe(op, sample, dtype), rtol=0, atol=0)


@pytest.mark.parametrize("op", [op for op in OPS if op.view], ids=str)
def test_views(torch, device, op):
    """Strides, offset, contiguity and shared memory are torch's."""
    for dtype in ("float32", "int8"):
        for sample, arrays in op.samples_for(dtype):
            seen = []
            for m, where in ((tinytorch, device), (torch, "cpu")):
                _, (x, *rest) = make(m, sample, arrays, dtype, where)
                results = outputs(run(op, m, sample, [x, *rest]))
                facts = [(tuple(r.shape), r.stride(), r.storage_offset(), r.is_contiguous()) for r in results]
                facts.append([r is x for r in results])
                with m.no_grad():
                    x.fill_(7) if all(x.stride()) else None  # a write that every view must show
                facts.append([to_numpy(r).tolist() for r in results])
                seen.append(facts)
            assert seen[0] == seen[1], describe(op, sample, dtype)


def assert_gradients(actual, expected, message, **tolerance):
    assert (actual is None) == (expected is None), message
    for a, e in zip(actual or (), expected or ()):
        assert (a is None) == (e is None), message
        if a is not None:
            assert_same(a, e, message, **tolerance)


@every_op
def test_requires_grad(torch, device, op):
    """The outputs that require grad are torch's: none for a comparison. Under no_grad nothing is recorded."""
    if "float32" not in op.dtypes:
        pytest.skip("not an op of floating-point tensors")
    for sample, arrays in op.samples_for("float32"):
        flags = []
        for m, where in ((tinytorch, device), (torch, "cpu")):
            tensors = make(m, sample, arrays, "float32", where, requires_grad=True)[1]
            results = outputs(run(op, m, sample, tensors))
            flags.append([r.requires_grad for r in results])
            with m.no_grad():
                results = outputs(run(op, m, sample, tensors))
            assert all(r.grad_fn is None or any(r is t for t in tensors) for r in results)
        # For an op without a derivative torch may still say True, to raise in backward.
        agree = flags[0] == flags[1] if op.grad else flags[0] <= flags[1]
        assert agree, describe(op, sample, "float32")


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradient(torch, device, op, dtype):
    """Gradients equal torch's, kinks and poles among the samples: those of the kernels that know the first derivative
    alone, and those of the differentiable formulas."""
    tolerance = {"rtol": 2e-4, "atol": 2e-5} if dtype == "float32" else {"rtol": max(1e-8, op.rtol), "atol": 1e-10}
    for sample, arrays in op.samples_for(dtype):
        expected = gradients(op, torch, sample, arrays, dtype)
        for create_graph in (False, True):
            actual = gradients(op, tinytorch, sample, arrays, dtype, device, create_graph=create_graph)
            message = f"{describe(op, sample, dtype)}, create_graph={create_graph}"
            assert_gradients(actual, expected, message, **tolerance)


@pytest.mark.parametrize("op", [op for op in DIFFERENTIABLE if op.twice], ids=str)
def test_second_gradient(torch, device, op):
    """Second derivatives equal torch's, where torch has them."""
    for sample, arrays in op.samples_for("float64"):
        if not sample.smooth:
            continue
        try:
            expected = second_gradients(op, torch, sample, arrays, "float64")
        except (RuntimeError, NotImplementedError):
            continue
        if any(g.isnan().any() for g in expected):  # torch's sinc at 0
            continue
        actual = second_gradients(op, tinytorch, sample, arrays, "float64", device)
        assert_gradients(actual, expected, describe(op, sample, "float64"), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=str)
@pytest.mark.parametrize("dtype", HALVES)
def test_half_gradient(torch, device, op, dtype):
    """A half type's gradients are float32's at the same rounded values, within what rounding intermediate values
    amounts to, or else torch's own in the half type."""
    if dtype not in op.dtypes:
        pytest.skip(f"not an op of {dtype}")
    ulps = op.half_ulps * TOLERANCE[dtype]["rtol"]
    for sample, arrays in op.samples_for(dtype):
        message = describe(op, sample, dtype)
        exact = gradients(op, torch, sample, rounded(torch, sample, arrays, dtype), "float32", rounded_to=dtype)
        for create_graph in (False, True):
            actual = gradients(op, tinytorch, sample, arrays, dtype, device, create_graph=create_graph)
            expected = [None if e is None else e.to(getattr(torch, dtype)) for e in exact] if exact else None
            try:
                assert_gradients(actual, expected, message, rtol=2 * ulps, atol=ulps)
            except AssertionError:
                assert_gradients(actual, gradients(op, torch, sample, arrays, dtype), message, rtol=2 * ulps, atol=ulps)


def smooth_functions(op, device):
    """(function of the differentiable bases, those bases) of every sample fit for finite differences."""
    for sample, arrays in op.samples_for("float64"):
        bases, _ = make(tinytorch, sample, arrays, "float64", device, requires_grad=True)
        varied = [base.requires_grad and base.numel() > 0 for base in bases]
        leaves = tuple(base for base, vary in zip(bases, varied) if vary)
        if not sample.smooth or not leaves:
            continue

        def every_output(*leaves, sample=sample, bases=bases, varied=varied):
            leaves = iter(leaves)
            tensors = [s.view(next(leaves) if v else b) for s, b, v in zip(sample.specs, bases, varied)]
            return outputs(run(op, tinytorch, sample, tensors))

        kept = [i for i, r in enumerate(every_output(*leaves)) if r.is_floating_point() and r.requires_grad]

        def function(*leaves, every_output=every_output, kept=kept):
            results = every_output(*leaves)
            return tuple(results[i] for i in kept)

        if kept:
            yield sample, function, leaves


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=str)
def test_nodes_know_the_tensors_they_save(device, op):
    """A saved tensor that ``Node.tensors`` leaves out would pass no hook, keep no version, and never be let go."""
    for sample, arrays in op.samples_for("float64"):
        tensors = make(tinytorch, sample, arrays, "float64", device, requires_grad=True)[1]
        nodes = [t.grad_fn for t in outputs(run(op, tinytorch, sample, tensors)) if t.grad_fn is not None]
        for node in nodes:  # which grows meanwhile
            nodes += [edge for edge in node.edges if edge is not None and edge not in nodes]
            known = {position for position, _, _ in node.tensors}
            held = {k for k, value in enumerate(node.saved) if isinstance(value, tinytorch.Tensor)}
            assert held <= known, (describe(op, sample, "float64"), node.name())


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=str)
def test_gradcheck(device, op):
    """First derivatives agree with finite differences: layouts and broadcasting included."""
    for sample, function, leaves in smooth_functions(op, device):
        assert tinytorch.autograd.gradcheck(function, leaves), describe(op, sample, "float64")


@pytest.mark.parametrize("op", [op for op in DIFFERENTIABLE if op.twice], ids=str)
def test_gradgradcheck(device, op):
    """Second derivatives agree with finite differences of the first."""
    tinytorch.manual_seed(0)  # of the gradients that gradgradcheck draws
    for sample, function, leaves in smooth_functions(op, device):
        if sum(leaf.numel() for leaf in leaves) > 24:  # the cost grows with the square
            function, leaves = along_a_line(function, leaves, device)
        assert tinytorch.autograd.gradgradcheck(function, leaves), describe(op, sample, "float64")


def along_a_line(function, leaves, device):
    """The function of one number for each leaf: how far it has gone from where it is, in a fixed direction. Of its
    outputs, weighted sums."""
    bases = [leaf.detach() for leaf in leaves]
    directions = weigh(tinytorch, bases, device, seed=5)

    def on_the_line(*steps):
        results = function(*(base + step * way for base, step, way in zip(bases, steps, directions)))
        return tuple((r * w).sum() for r, w in zip(results, weigh(tinytorch, results, device)))

    return on_the_line, tuple(base.new_zeros(()).requires_grad_() for base in bases)


def in_place(op, m, sample, tensors):
    (x, *args), kwargs = sample.fill(tensors)
    return getattr(x, f"{op.name}_")(*args, **kwargs)


@pytest.mark.parametrize("op, dtype", [p for p in each_dtype if p.values[0].inplace])
def test_in_place(torch, device, op, dtype):
    """x.op_() writes what op(x) returns and bumps the version once; if torch refuses, nothing is written."""
    for sample, arrays in op.samples_for(dtype):
        if not sample.specs or sample.args[0] is not sample.specs[0]:
            continue  # 2 ** x has no in-place form
        message = describe(op, sample, dtype)
        theirs, ours = (
            make(torch, sample, arrays, dtype)[1],
            make(tinytorch, sample, arrays, dtype, device)[1],
        )
        before, version = to_numpy(ours[0]).copy(), ours[0]._version
        try:
            expected = in_place(op, torch, sample, theirs)
        except RuntimeError:  # the result has another dtype or shape, or x overlaps itself
            with pytest.raises(RuntimeError):
                in_place(op, tinytorch, sample, ours)
            np.testing.assert_array_equal(to_numpy(ours[0]), before, message)
            assert ours[0]._version == version, message
            continue
        actual = in_place(op, tinytorch, sample, ours)
        assert actual is ours[0], message
        assert ours[0]._version == version + 1, message
        if dtype in HALVES:
            (expected,) = expect(op, torch, sample, arrays, dtype)[0]
        assert_same(actual, expected.to(theirs[0].dtype), message, **op.tolerance(dtype))
        if op.view:
            assert actual.stride() == theirs[0].stride(), message


@pytest.mark.parametrize("op", [op for op in DIFFERENTIABLE if op.inplace and not op.view], ids=str)
def test_in_place_gradient(torch, device, op):
    """The gradient through x.clone().op_() is torch's, and op(x)'s."""

    def on_a_copy(op, m, sample, tensors):
        return in_place(op, m, sample, [tensors[0].clone(), *tensors[1:]])

    for sample, arrays in op.samples_for("float64"):
        if sample.args[0] is not sample.specs[0] or sample.specs[0].layout == "expanded":
            continue
        result = run(op, torch, sample, make(torch, sample, arrays, "float64")[1])
        if tuple(result.shape) != sample.specs[0].shape:
            continue
        message = describe(op, sample, "float64")
        actual = gradients(op, tinytorch, sample, arrays, "float64", device, call=on_a_copy)
        try:
            expected = gradients(op, torch, sample, arrays, "float64", call=on_a_copy)
            assert_gradients(actual, expected, message, rtol=1e-8, atol=1e-10)
        except NotImplementedError:
            pass  # torch lacks a few, such as asinh_'s; op(x)'s gradient below is oracle enough
        outside = gradients(op, tinytorch, sample, arrays, "float64", device)
        assert_gradients(actual, outside, message, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("op", [op for op in OPS if op.out], ids=str)
def test_out(device, op):
    """out= is filled and returned, whatever its layout."""
    for dtype in [d for d in ("float32", "float64", "int32", "bool") if d in op.dtypes]:
        for sample, arrays in op.samples_for(dtype):
            message = describe(op, sample, dtype)
            tensors = make(tinytorch, sample, arrays, dtype, device)[1]
            expected = run(op, tinytorch, sample, tensors)
            like = {"dtype": expected.dtype, "device": device}
            spaced = tinytorch.zeros((*expected.shape, 2), **like)[..., 0]
            for out in (tinytorch.empty_like(expected), spaced):
                assert run(op, tinytorch, sample, tensors, out=out) is out, message
                assert_same(out, expected, message)


@pytest.mark.parametrize("op", [op for op in OPS if op.out], ids=str)
def test_out_takes_the_shape_of_the_result(device, op):
    """An empty out= is resized."""
    dtype = "float32" if "float32" in op.dtypes else op.dtypes[0]
    sample, arrays = next(iter(op.samples_for(dtype)))
    tensors = make(tinytorch, sample, arrays, dtype, device)[1]
    expected = run(op, tinytorch, sample, tensors)
    out = tinytorch.empty(0, dtype=expected.dtype, device=device)
    assert run(op, tinytorch, sample, tensors, out=out) is out
    assert_same(out, expected)


LAXER = ("cumsum", "cumprod", "nan_to_num")


@pytest.mark.parametrize("op", [op for op in OPS if op.out and op.name not in LAXER], ids=str)
def test_out_of_another_dtype(torch, op):
    """out= of a dtype that torch refuses is refused, and takes the result where torch gives it."""
    for dtype in [d for d in ("float32", "int32", "bool") if d in op.dtypes]:
        sample, arrays = next(iter(op.samples_for(dtype)))
        for other in ("float32", "float64", "int64", "int32", "bool"):
            done = []
            for m in (torch, tinytorch):
                out = m.empty(0, dtype=getattr(m, other))
                try:
                    done.append(run(op, m, sample, make(m, sample, arrays, dtype)[1], out=out) is not None)
                except (RuntimeError, TypeError):
                    done.append(False)
            assert done[0] == done[1], f"{describe(op, sample, dtype)} into {other}: torch takes it: {done[0]}"


@pytest.mark.parametrize("op", [op for op in OPS if op.out and op.grad], ids=str)
def test_out_has_no_derivative(device, op):
    sample, arrays = next(iter(op.samples_for("float32")))
    tensors = make(tinytorch, sample, arrays, "float32", device, requires_grad=True)[1]
    out = tinytorch.empty_like(run(op, tinytorch, sample, tensors)).detach()
    with pytest.raises(RuntimeError, match="out="):
        run(op, tinytorch, sample, tensors, out=out)


@pytest.mark.parametrize("op, dtype", unsupported)
def test_unsupported_dtype(torch, device, op, dtype):
    """A dtype outside the entry's list raises, and inputs, versions and memory are as they were."""
    for sample, arrays in op.samples_for(dtype):
        theirs, ours = (
            make(torch, sample, arrays, dtype)[1],
            make(tinytorch, sample, arrays, dtype, device)[1],
        )
        try:
            run(op, torch, sample, theirs)
            continue  # torch lets this sample pass, for instance because it is empty
        except (RuntimeError, TypeError):
            pass
        before, versions, held = [to_numpy(t).copy() for t in ours], [t._version for t in ours], allocated()
        with pytest.raises((RuntimeError, TypeError)):
            run(op, tinytorch, sample, ours)
            if device != "cpu":
                tinytorch.cuda.synchronize()  # what only a kernel can see is raised where the CPU waits
        assert allocated() == held, describe(op, sample, dtype)
        assert [t._version for t in ours] == versions
        for tensor, array in zip(ours, before):
            np.testing.assert_array_equal(to_numpy(tensor), array)


def test_every_operator_is_in_the_table():
    """A function of tinytorch or tinytorch.linalg has an entry, unless it takes no tensor or returns none."""
    known = {op.name.removeprefix("F.") for op in OPS} | set(ALIASES) | WITHOUT_ENTRY
    for space in ("", "linalg"):
        names = {f"{space}.{name}" if space else name for name in NAMESPACES[space]}
        assert not {name for name in names if {name, name.removesuffix("_")}.isdisjoint(known)}


@pytest.mark.parametrize("name", ALIASES)
def test_alias(device, name):
    """A second name gives what the first gives, as a function and as a method."""
    (op,) = [op for op in OPS if op.name == ALIASES[name]]
    for sample, arrays in list(op.samples_for("float32"))[:4]:
        tensors = make(tinytorch, sample, arrays, "float32", device)[1]
        args, kwargs = sample.fill(tensors)
        expected = run(op, tinytorch, sample, tensors)
        assert_same(attrgetter(name)(tinytorch)(*args, **kwargs), expected, rtol=0, atol=0)
        if op.method and "." not in name:
            assert_same(getattr(args[0], name)(*args[1:], **kwargs), expected, rtol=0, atol=0)


@every_op
def test_table_is_honest(torch, op):
    """The entry's dtypes are those that torch takes: a dtype left out by mistake would go untested."""
    for dtype in op.dtypes if op.composite else DTYPES:
        refused = 0
        samples = list(op.samples_for(dtype))
        for sample, arrays in samples:
            tensors = make(torch, sample, arrays, dtype)[1]
            try:
                run(op, torch, sample, tensors)
            except (RuntimeError, TypeError):
                refused += 1
        assert (refused == 0) if dtype in op.dtypes else (refused > 0), (dtype, refused, len(samples))
