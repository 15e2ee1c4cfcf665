"""Random programs (hypothesis): indexing agrees with NumPy, views and writes with NumPy and torch."""

import numpy as np
import pytest
from compare import pair
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import tinytorch

quick = settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

# ---- Random indexing.


@st.composite
def index_array(draw, size, together):
    """An array of indices into a dimension; all arrays of one index have the shape `together`."""
    count = int(np.prod(together))
    values = draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count))
    return np.array(values, np.int64).reshape(together)


@st.composite
def indexed(draw, mixed=True):
    """(shape, index): ints, slices with steps, None, Ellipsis, masks and index arrays, in any mixture.

    Unless mixed, NumPy and torch agree where the arrays' dimensions go. They do not for ints and arrays of no dimension
    beside other arrays, which NumPy takes for arrays too, and torch for selects; nor for an Ellipsis of no dimensions
    between arrays, which separates them in NumPy alone.
    """
    shape = draw(st.lists(st.integers(0, 4), max_size=4).map(tuple))
    if mixed:
        shapes, kinds = [(), (1,), (3,), (2, 3)], ["int", "array", "mask"]
    elif draw(st.booleans()):
        shapes, kinds = [()], ["int", "array"]
    else:
        shapes, kinds = [(1,), (3,), (2, 3)], ["array", "mask"]
    together, kinds = draw(st.sampled_from(shapes)), ["slice", "none", *kinds]
    parts, dim = [], 0
    for kind in draw(st.lists(st.sampled_from(kinds), max_size=6)):
        if kind == "none":
            parts.append(None)
            continue
        if dim == len(shape) or (shape[dim] == 0 and kind in ("int", "array")):
            break
        size = shape[dim]
        if kind == "int":
            parts.append(draw(st.integers(-size, size - 1)))
        elif kind == "slice":
            ends = st.none() | st.integers(-size - 2, size + 2)
            parts.append(slice(draw(ends), draw(ends), draw(st.none() | st.integers(1, 3))))
        elif kind == "array":
            parts.append(draw(index_array(size, together)))
        else:
            wide = shape[dim : dim + draw(st.integers(1, 2))]
            count = int(np.prod(wide))
            values = draw(st.lists(st.booleans(), min_size=count, max_size=count))
            parts.append(np.array(values, bool).reshape(wide))
            dim += len(wide) - 1
        dim += 1
    if draw(st.booleans()):
        # An Ellipsis stands for the dimensions that are left, so it comes last, or where nothing is left.
        places = range(len(parts) + 1) if dim == len(shape) else [len(parts)]
        arrays = [k for k, part in enumerate(parts) if isinstance(part, np.ndarray)]
        if arrays and not mixed:
            places = [k for k in places if not arrays[0] < k <= arrays[-1]]
        parts.insert(draw(st.sampled_from(places)), Ellipsis)
    return shape, tuple(parts)


def counting(shape):
    return np.arange(np.prod(shape), dtype=np.float64).reshape(shape)


def to(m, index):
    """The index with m's tensors in place of the arrays."""
    return tuple(m.from_numpy(part.copy()) if isinstance(part, np.ndarray) else part for part in index)


@quick
@given(indexed(mixed=False))
def test_reading(case):
    shape, index = case
    array = counting(shape)
    x = tinytorch.from_numpy(array.copy())
    try:
        wanted = array[index]
    except IndexError:  # masks and arrays that do not broadcast together
        with pytest.raises(IndexError):
            x[to(tinytorch, index)]
        return
    got = x[to(tinytorch, index)]
    assert tuple(got.shape) == wanted.shape
    np.testing.assert_array_equal(got.numpy(), wanted)


def reverse(x):
    """x with its dimensions in reverse order."""
    return x.permute(tuple(reversed(range(x.ndim))))


LAYOUTS = {
    "contiguous": lambda m, x: x * 1,
    "transposed": lambda m, x: reverse(reverse(x).clone()),
    "strided": lambda m, x: m.stack([x, x], -1)[..., 1],
    "offset": lambda m, x: m.stack([x, x])[1],
}


@quick
@given(indexed(), st.sampled_from(sorted(LAYOUTS)))
def test_reading_differentiates_like_torch(torch, case, layout):
    shape, index = case
    results = []
    for m in (tinytorch, torch):
        x = m.from_numpy(counting(shape)).requires_grad_()
        try:
            y = LAYOUTS[layout](m, x)[to(m, index)]
        except IndexError:
            results.append(IndexError)
            continue
        weights = m.arange(y.numel(), dtype=m.float64).view(y.shape)
        (g,) = m.autograd.grad((y * weights).sum(), x)
        results.append((y.tolist(), tuple(y.shape), g.tolist()))
    assert results[0] == results[1]


def writes_once(array, index):
    """Whether no element is selected twice: which of two values would stay is not defined."""
    selected = np.arange(array.size).reshape(array.shape)[index]
    return len(np.unique(selected)) == np.size(selected)


@quick
@given(indexed(mixed=False), st.booleans())
def test_writing(case, scalar):
    shape, index = case
    array = counting(shape)
    x = tinytorch.from_numpy(array.copy())
    try:
        value = np.asarray(-1.0 - array[index])
    except IndexError:
        with pytest.raises(IndexError):
            x[to(tinytorch, index)] = 7.5
        assert x._version == 0 and x.tolist() == array.tolist()
        return
    scalar = scalar or not writes_once(array, index)
    x[to(tinytorch, index)] = 7.5 if scalar else tinytorch.from_numpy(value.copy())
    array[index] = 7.5 if scalar else value
    np.testing.assert_array_equal(x.numpy(), array)
    assert x._version == 1


@quick
@given(indexed(mixed=False), st.sampled_from(sorted(LAYOUTS)))
def test_writing_differentiates_like_torch(torch, case, layout):
    shape, index = case
    array = counting(shape)
    try:
        value = np.asarray(-1.0 - array[index])
    except IndexError:
        assume(False)
    assume(writes_once(array, index))
    results = []
    for m in (tinytorch, torch):
        x, v = (m.from_numpy(a.copy()).requires_grad_() for a in (array, value))
        y = LAYOUTS[layout](m, x)
        y[to(m, index)] = v
        weights = m.arange(y.numel(), dtype=m.float64).view(y.shape)
        gx, gv = m.autograd.grad((y * weights).sum(), [x, v], allow_unused=True)
        results.append((y.tolist(), gx.tolist(), None if gv is None else gv.tolist()))
    assert results[0] == results[1]


# ---- Random programs of views, writes in place and arithmetic.
#
# A program works on a list of tensors. Each step takes one of them and appends a view of it, appends a new
# tensor, or writes to it in place. NumPy's arrays alias in the same way, and are the oracle for values.

VIEWS = {
    "transpose": lambda x: x.T if isinstance(x, np.ndarray) else reverse(x),
    "first": lambda x: x[0, ...] if x.ndim else x[...],
    "rest": lambda x: x[1:] if x.ndim else x[...],
    "even": lambda x: x[..., ::2] if x.ndim else x[...],
    "new axis": lambda x: x[None],
    "last column": lambda x: x[..., -1] if x.ndim and x.shape[-1] else x[...],
    "split": lambda x: x.reshape(2, -1) if x.shape == (4,) else x[...],
}
FRESH = {
    "double": lambda m, x, y: x * 2,
    "product": lambda m, x, y: x * y,
    "difference": lambda m, x, y: x - 0.5 * y,
    "sine": lambda m, x, y: m.sin(x),
    "total": lambda m, x, y: x.sum() * m.ones((2, 2), dtype=m.float64),
    "mean of rows": lambda m, x, y: x.mean(0) if x.ndim and x.shape[0] else x * 1,
}
WRITES = {
    "add": lambda x, y: x.__iadd__(y),
    "multiply": lambda x, y: x.__imul__(y),
    "assign": lambda x, y: x.__setitem__(..., y),
    "scale": lambda x, y: x.__imul__(0.5),
    "fill": lambda x, y: x.__setitem__(..., 0.25),
    "assign first": lambda x, y: x.__setitem__(0, 1.5) if x.ndim and x.shape[0] else None,
}
KINDS = (VIEWS, FRESH, WRITES)
step = st.integers(0, 2).flatmap(
    lambda kind: st.tuples(st.just(kind), st.sampled_from(sorted(KINDS[kind])), st.integers(0, 9), st.integers(0, 9))
)
programs = st.lists(step, min_size=1, max_size=12)


def broadcasts_into(y, x):
    """Whether y can be written into x."""
    try:
        return np.broadcast_shapes(tuple(y.shape), tuple(x.shape)) == tuple(x.shape)
    except ValueError:
        return False


def execute(m, program, leaves):
    """All the tensors of the program. The second operand is a copy: no step reads what it writes."""
    live = [leaf * 1.0 for leaf in leaves]
    for kind, name, i, j in program:
        x, y = live[i % len(live)], live[j % len(live)]
        y = (y if broadcasts_into(y, x) else x) * 1.0
        if KINDS[kind] is VIEWS:
            live.append(VIEWS[name](x))
        elif KINDS[kind] is FRESH:
            fresh = FRESH[name](m, x, y)
            live.append(np.asarray(fresh) if m is np else fresh)  # NumPy's 0-d results are scalars
        else:
            WRITES[name](x, y)
    return live


def arrays():
    rng = np.random.default_rng(0)
    return [rng.uniform(-1, 1, shape) for shape in ((3, 4), (4,), (2, 3, 4))]


@settings(quick, max_examples=300)
@given(programs)
def test_values_agree_with_numpy(program):
    wanted = execute(np, program, arrays())
    got = execute(tinytorch, program, [tinytorch.from_numpy(a) for a in arrays()])
    for a, e in zip(got, wanted, strict=True):
        assert tuple(a.shape) == e.shape
        np.testing.assert_allclose(a.numpy(), e, rtol=1e-11, atol=1e-13)


@settings(quick, max_examples=300)
@given(programs)
def test_gradients_agree_with_torch(torch, program):
    ours, theirs = zip(*(pair(torch, a, requires_grad=True) for a in arrays()))
    outcomes = []
    for m, leaves in ((tinytorch, ours), (torch, theirs)):
        live = execute(m, program, leaves)
        total = sum((x * (k + 1)).sum() for k, x in enumerate(live))
        try:
            grads = m.autograd.grad(total, leaves, allow_unused=True)
        except RuntimeError:
            outcomes.append("a saved value was overwritten")
            continue
        outcomes.append([x.detach().numpy() for x in live] + [None if g is None else g.numpy() for g in grads])
    if isinstance(outcomes[1], str):
        assert outcomes[0] == outcomes[1]
        return
    for a, e in zip(*outcomes, strict=True):
        assert (a is None) == (e is None)
        if a is not None:
            np.testing.assert_allclose(a, e, rtol=1e-9, atol=1e-11)
