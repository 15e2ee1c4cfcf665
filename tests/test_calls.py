"""Writes in one call of C (kernels/python/calls.c) do what the general path does, and leave to it what is its affair:
each test is of one condition."""

import threading
import warnings

import numpy as np
import pytest

import tinytorch as tt


def vector(*values, **kwargs):
    return tt.tensor([float(v) for v in values or (1, -2, 3)], **kwargs)


# Every form of a write: of out=, of one, two and three operands, of a number, of a copy. Each is called with the tensor
# to write and an operand like it.
WRITES = {
    "unary out": lambda o, x: tt.neg(x, out=o),
    "binary out": lambda o, x: tt.mul(x, x, out=o),
    "ternary out": lambda o, x: tt.clamp(x, -1.0, 1.0, out=o),
    "unary": lambda o, x: o.neg_(),
    "binary": lambda o, x: o.mul_(x),
    "number": lambda o, x: o.mul_(2.0),
    "ternary": lambda o, x: o.addcmul_(x, x),
    "lerp": lambda o, x: o.lerp_(x, 0.25),
    "copy": lambda o, x: o.copy_(x),
    "fill": lambda o, x: o.fill_(2.0),
    "zero": lambda o, x: o.zero_(),
    "written out": lambda o, x: tt.cumsum(x, 0, out=o),
}
every = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)


def expected(write, o, x):
    """What the general path gives: views are its affair."""
    room = tt.zeros(2, *o.shape)
    room[0] = o
    write(room[0], x)
    return room[0].tolist()


@every
def test_values_version_and_identity(write):
    o, x = vector(4, 5, -6), vector()
    want = expected(write, o, x)
    assert write(o, x) is o and o.tolist() == want and o._version == 1


@every
def test_a_saved_value_that_is_overwritten_is_noticed(write):
    o, x = vector(4, 5, -6), vector()
    loss = (vector(requires_grad=True) * o).sum()
    write(o, x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@every
def test_history_of_what_is_written(write):
    leaf, x = vector(requires_grad=True), vector()
    with pytest.raises(RuntimeError, match="leaf|out=|requires grad"):
        write(leaf, x)
    assert leaf.tolist() == [1, -2, 3] and leaf._version == 0
    with tt.no_grad():
        assert write(leaf, x) is leaf and leaf.is_leaf and leaf.requires_grad and leaf._version == 1


@pytest.mark.parametrize("name", ["binary", "ternary", "lerp", "copy"])
def test_history_of_an_operand(name):
    o, x = vector(4, 5, -6), vector(requires_grad=True)
    assert WRITES[name](o, x).requires_grad
    with tt.no_grad():
        assert not WRITES[name](vector(4, 5, -6), x).requires_grad


@pytest.mark.parametrize("name", ["unary out", "binary out", "ternary out", "written out"])
def test_out_does_not_record(name):
    with pytest.raises(RuntimeError, match="out="):
        WRITES[name](vector(), vector(requires_grad=True))


@pytest.mark.parametrize(
    "name, slope",
    [
        ("unary", -1),
        ("binary", 3),
        ("number", 2),
        ("ternary", 1),
        ("lerp", 0.75),
        ("copy", 0),
        ("fill", 0),
        ("zero", 0),
    ],
)
def test_a_write_to_a_view_whose_base_has_a_history(name, slope):
    leaf, base = vector(1, 1, 1, 1, requires_grad=True), tt.zeros(4)
    view = base[:3]
    base.add_(leaf)  # the view does not know it yet
    WRITES[name](view, vector(3, 3, 3))
    base.sum().backward()
    assert leaf.grad.tolist() == [slope] * 3 + [1]


def test_views_that_are_written_behind_their_backs():
    base = tt.zeros(4)
    view, index, other = base[:3], tt.tensor([0, 1, 1]), tt.zeros(3)
    for write in (
        lambda: other.add_(view),
        lambda: other.index_add_(0, index, view),
        lambda: other.scatter_add_(0, index, view),
        lambda: other.index_put_((index,), view),
        lambda: other.copy_(view),
    ):
        base.mul_(2)
        assert write() is other
    for write in (
        lambda: view.add_(1),
        lambda: view.index_add_(0, index, vector()),
        lambda: view.masked_fill_(view > 2, 0.5),
        lambda: view.copy_(vector()),
        lambda: view.fill_(2.0),
        lambda: tt.neg(vector(), out=view),
        lambda: tt.add(view, view, out=view),
        lambda: view.uniform_(),
        lambda: base[1:].lerp_(view, 0.5),
    ):
        version = base._version
        base.mul_(2)
        assert write() is not None and base._version == version + 2
    assert view.grad_fn is None and base.grad_fn is None


@every
def test_anomaly_mode_is_told(write):
    o, x = vector(4, 5, -6), vector()
    with tt.autograd.detect_anomaly():
        loss = (vector(requires_grad=True) * o).sum()
        write(o, x)
    with pytest.raises(RuntimeError, match=r"test_calls\.py"):
        loss.backward()


@every
def test_saved_values_may_be_kept(write):
    o, x, leaf = vector(4, 5, -6), vector(), vector(requires_grad=True)
    with tt.autograd.graph.allow_mutation_on_saved_tensors():
        loss = (leaf * o).sum()
        write(o, x)
        loss.backward()
    assert leaf.grad.tolist() == [4, 5, -6]


@every
def test_read_only_memory(write):
    array = np.array([4, 5, -6], np.float32)
    array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        o = tt.from_numpy(array)
    with pytest.raises(RuntimeError, match="read-only"):
        write(o, vector())
    assert o.tolist() == [4, 5, -6] and o._version == 0


@every
def test_inference_tensors(write):
    with tt.inference_mode():
        o = vector(4, 5, -6)
    name = next(k for k, w in WRITES.items() if w is write)
    if name in ("copy", "fill", "zero", "written out"):
        return  # which may be written in whole
    with pytest.raises(RuntimeError, match="[Ii]nference"):
        write(o, vector())


class Recorder(threading.Thread):
    """In a ``with``: has recorded ``later``, which is ``x + 0.5``, in its fused mode, and not run it."""

    def __init__(self, x):
        super().__init__()
        self.x, self.later, self.recorded, self.done = x, None, threading.Event(), threading.Event()

    def run(self):
        with tt.fuse():
            self.later = self.x + 0.5
            self.recorded.set()
            self.done.wait(30)

    def __enter__(self):
        self.start()
        assert self.recorded.wait(30)
        return self

    def __exit__(self, *exc_info):
        self.done.set()
        self.join()


@every
@pytest.mark.parametrize("n", [1000, 3000])
def test_what_fused_mode_has_yet_to_read(write, n):
    o, x = tt.arange(n) * 1.0, tt.ones(n)
    with Recorder(o) as recorder:
        write(o, x)
    assert recorder.later.tolist() == [k + 0.5 for k in range(n)]


@every
def test_more_elements_than_are_done_at_once(write):
    o, x = tt.arange(3000) * 1.0, tt.linspace(-2, 2, 3000)
    want = expected(write, o, x)
    assert write(o, x).tolist() == want


@pytest.mark.parametrize("name", ["unary out", "binary out", "binary", "ternary", "copy"])
@pytest.mark.parametrize("n", [1000, 3000])
def test_operands_that_fused_mode_has_yet_to_compute(name, n):
    x, o = tt.arange(n) * 1.0, tt.ones(n)
    want = WRITES[name](o.clone(), x + 0.5).tolist()
    with Recorder(x) as recorder:
        assert WRITES[name](o, recorder.later).tolist() == want


# What the result is.


def test_out_of_another_dtype():
    o = tt.zeros(3, dtype=tt.float64)
    assert tt.sqrt(vector(1, 4, 9), out=o).tolist() == [1, 2, 3] and o.dtype is tt.float64
    assert tt.lt(vector(), 2.0, out=tt.zeros(3)).tolist() == [1, 1, 0]
    with pytest.raises(RuntimeError, match="dtype"):
        tt.neg(vector(), out=o)
    for call in (tt.exp, lambda x, out: tt.cumsum(x, 0, out=out)):
        with pytest.raises(RuntimeError, match="cast|dtype"):
            call(vector(), out=o.int())


def test_out_of_another_shape():
    o = tt.zeros(3)
    assert tt.neg(vector(1, 2), out=o) is o and o.tolist() == [-1, -2]
    assert tt.add(vector(1), vector(1, 2), out=o) is o and o.tolist() == [2, 3]
    o = tt.zeros(2, 3)
    assert tt.cat([vector()], out=o) is o and o.tolist() == [1, -2, 3]


def test_out_that_lies_across_an_operand():
    memory = tt.arange(6.0)
    x, o = (tt.zeros(0).set_(memory.untyped_storage(), first, (5,)) for first in (0, 1))  # no views
    for write, want in (
        (lambda: tt.abs(x, out=o), [0, 1, 2, 3, 4]),
        (lambda: o.mul_(x), [0, 2, 6, 12, 20]),
        (lambda: tt.where(x > 9, x, x, out=o), [0, 1, 2, 3, 4]),
        (lambda: o.copy_(x), [0, 1, 2, 3, 4]),
    ):
        memory.copy_(tt.arange(6.0))
        assert write() is o and o.tolist() == want


def test_out_that_is_an_operand():
    x, y = vector(1, 2), vector(3, 4)
    assert tt.sub(x, y, out=y) is y and y.tolist() == [-2, -2]
    assert tt.sub(x, x, out=x).tolist() == [0, 0]


# Numbers.


def test_numbers_stand_for_tensors_only_where_they_may():
    for call in (
        lambda x: tt.atan2(x, 1.0, out=vector()),
        lambda x: x.atan2_(1.0),
        lambda x: tt.neg(1.0, out=x),
        lambda x: tt.clamp(1.0, 0.0, 2.0, out=x),
    ):
        x = vector()
        with pytest.raises(TypeError):
            call(x)
        assert x._version == 0


@pytest.mark.parametrize("bound", [1e300, -1e300])
def test_a_bound_that_the_dtype_has_not(bound):
    x = vector()
    for call in (
        lambda: x.clamp(0.0, bound) if bound > 0 else x.clamp(bound, 0.0),
        lambda: x.clamp_(bound, 0),
        lambda: tt.clamp(x, 0, bound, out=x),
        lambda: x.fill_(bound),
    ):
        with pytest.raises(RuntimeError, match="overflow"):
            call()
    assert x._version == 0


def test_integers_beyond_int64():
    assert vector().double().add_(2**63).tolist() == [2.0**63] * 3
    with pytest.raises(OverflowError):
        vector().mul_(2**64)
    with pytest.raises(OverflowError):
        vector().clamp(0, 2**64)


def test_bools_and_complex_numbers():
    assert vector().add_(True).tolist() == [2, -1, 4]
    assert tt.where(vector() > 0, vector(), 2j).dtype is tt.complex64
    with pytest.raises(RuntimeError):
        vector().mul_(2j)


def test_powers_have_operators_of_their_own():
    x = tt.full((3,), -float("inf"))
    assert str(tt.pow(x, 0.5, out=tt.zeros(3))) == str(tt.pow(x, 0.5)) == str(x.clone().pow_(0.5))
    x = tt.full((3,), -2.0)
    assert tt.pow(x, 2, out=tt.zeros(3)).tolist() == [4, 4, 4]
    assert x.pow_(3).tolist() == [-8, -8, -8]


def test_numbers_of_many_elements():
    n = 1000  # more than the block that numbers are repeated in
    x, c = tt.arange(n) * 1.0, tt.arange(n) % 3 == 0
    assert x.clamp(10, 600).tolist() == [min(max(k, 10), 600) for k in range(n)]
    assert tt.where(c, x, -1.0).tolist() == [k if k % 3 == 0 else -1 for k in range(n)]
    assert tt.where(c, 2.0, x.double()).tolist() == [2 if k % 3 == 0 else k for k in range(n)]
    assert x.lerp(x + 8, 0.5).tolist() == [k + 4 for k in range(n)]


def test_a_condition_is_bool_and_of_the_same_shape():
    x = vector()
    assert tt.where(tt.tensor([True]), x, 0.0).tolist() == x.tolist()
    assert tt.where(x.view(3, 1) > 0, x, 0.0).shape == (3, 3)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "complex64"])
def test_fill_takes_what_the_dtype_has(dtype):
    x = tt.ones(3, dtype=getattr(tt, dtype))
    assert x.zero_().tolist() == [0, 0, 0]
    assert x.fill_(1).tolist() == [1, 1, 1] and x.fill_(True).tolist() == [1, 1, 1]
    if dtype in ("uint8", "int8", "int32"):
        for value in (2**40, float("nan"), 1e10):
            with pytest.raises((RuntimeError, OverflowError, ValueError)):
                x.fill_(value)
        assert x.fill_(2.75).tolist() == [2, 2, 2]
    if dtype == "float16":
        with pytest.raises(RuntimeError, match="overflow"):
            x.fill_(70000)


def test_copies_that_cast_or_broadcast():
    x = tt.zeros(2, 3)
    assert x.copy_(vector()).tolist() == [[1, -2, 3]] * 2
    assert x.copy_(tt.ones(2, 3, dtype=tt.int64)).tolist() == [[1, 1, 1]] * 2
    with pytest.raises(RuntimeError):
        x.copy_(tt.ones(3, 2))
