"""Memory that several tensors show: writes through views, and saved values. Each program's outcome, its values or its
refusal, is PyTorch's."""

import pytest
from compare import doubles, outcome, table

import tinytorch
from tinytorch.autograd import views
from tinytorch.backends.cpu import ffi, lib


def case(*args):
    """A program with its arguments filled in, which pytest shows."""

    def wrap(make):
        def program(m):
            return make(m, *args)

        program.__name__ = "-".join([make.__name__, *(getattr(a, "__name__", str(a)) for a in args)])
        return program

    return wrap


def gradient_of(y, *leaves):
    """The gradients of y, its elements weighted by 1, 2, 3, ... so that no two count the same."""
    flat = y.reshape(-1)
    weights = [float(k + 1) for k in range(flat.numel())]
    (flat * type(y).new_tensor(y, weights).to(y.dtype)).sum().backward()
    return [y, *(x.grad for x in leaves)]


# ---- What a write through a view saved, and what is written after.


def _multiply(m, v, x, c):
    v.mul_(c)


def _multiply_by_recorded(m, v, x, c):
    v.mul_(x[2:])


def _exp(m, v, x, c):
    v.exp_()


def _add(m, v, x, c):
    v.add_(c)


def _copy(m, v, x, c):
    v.copy_(x[:2] * c)


def _to_the_constant(m, y, v, x, c):
    c.add_(1)


def _to_the_base(m, y, v, x, c):
    y.add_(1)


def _to_the_rest_of_the_base(m, y, v, x, c):
    y[3:].zero_()


def _to_the_view(m, y, v, x, c):
    v.sub_(1)


def _behind_the_tape(m, y, v, x, c):
    y.detach()[0] = 5.0


def _to_the_leaf(m, y, v, x, c):
    with m.no_grad():
        x.mul_(2)


def _to_nothing(m, y, v, x, c):
    pass


def saved_by_a_write_through_a_view(m, write, then):
    x, c = doubles(m, 0.5, -1.0, 2.0, 1.5), doubles(m, 3.0, 4.0, requires_grad=False)
    y = x * 1
    v = y[1:3]
    write(m, v, x, c)
    then(m, y, v, x, c)
    return gradient_of(y, x)


@table(
    *(
        case(write, then)(saved_by_a_write_through_a_view)
        for write in (_multiply, _multiply_by_recorded, _exp, _add, _copy)
        for then in (
            _to_the_constant,
            _to_the_base,
            _to_the_rest_of_the_base,
            _to_the_view,
            _behind_the_tape,
            _to_the_leaf,
            _to_nothing,
        )
    )
)
def test_saved_by_a_write_through_a_view(torch, program):
    assert outcome(program, tinytorch) == outcome(program, torch)


# ---- A base that begins inside of its memory.


def _offset_base(m):
    """Eight elements from the third of a longer tensor on, a tensor without a base of its own."""
    base = m.arange(12, dtype=m.float64)[3:11].detach()
    assert base.storage_offset() == 3
    return base


def offset_base_written_through_a_view(m):
    x, base = doubles(m, 2.0, 3.0), _offset_base(m)
    base[2:4].mul_(x)
    return gradient_of(base, x)


def offset_base_and_a_view_of_a_view(m):
    x, base = doubles(m, 2.0, 3.0), _offset_base(m)
    base[1:7].view(3, 2)[1:].t()[0].add_(x)
    return gradient_of(base, x)


def offset_base_written_and_its_view_read(m):
    x, base = doubles(m, *range(1, 9)), _offset_base(m)
    v, w = base[2:6], base.view(4, 2)[:, 1]
    base.mul_(x)
    return gradient_of(m.cat([v * v, w]), x)


def offset_base_written_twice(m):
    x, base = doubles(m, 2.0, 3.0), _offset_base(m)
    a, b = base[:4], base[2:]
    a[1:3].mul_(x)
    b[:2].mul_(x)
    return gradient_of(base * 1, x) + [a, b]


# ---- Views that may not be written with recorded values, and views of them.


def _under_no_grad(m, base):
    with m.no_grad():
        return base[:2]


def _of_unbind(m, base):
    return base.view(2, 2).unbind()[0]


def _of_split(m, base):
    return base.split(2)[0]


def _of_chunk(m, base):
    return base.chunk(2)[0]


def _of_slicing(m, base):
    return base[:2]


def _itself(v):
    return v


def _slice(v):
    return v[:1]


def _shape(v):
    return v.view(2, 1)


def _slice_of_a_shape(v):
    return v.view(1, 2)[:, 1:]


def _windows(v):
    return v.unfold(0, 1, 1)


def _by_strides(v):
    return v.as_strided((1,), (1,), v.storage_offset())


def written_with_a_recorded_value(m, view, of_it, how):
    x = doubles(m, 2.0)
    base = m.ones(4, dtype=m.float64)
    v = of_it(view(m, base))
    if how == "recorded":
        v.mul_(x)
        return gradient_of(base, x)
    if how == "constant":
        v.mul_(3)
        return [base, base.requires_grad, base._version]
    if how == "base first":
        base.mul_(x)
        assert v.grad_fn is not base.grad_fn  # PyTorch refuses the write unless asked before
        v.mul_(3)
        return gradient_of(base, x)
    base.mul_(x)
    with m.no_grad():
        v.mul_(3)
    return [base, base._version, v, v.requires_grad]


@table(
    *(
        case(view, of_it, how)(written_with_a_recorded_value)
        for view in (_under_no_grad, _of_unbind, _of_split, _of_chunk, _of_slicing)
        for of_it in (_itself, _slice, _shape, _slice_of_a_shape, _windows, _by_strides)
        for how in ("recorded", "constant", "base first", "base first, then no_grad")
        if (view, how) != (_under_no_grad, "base first, then no_grad")
    )
)
def test_views_that_may_not_be_written(torch, program):
    assert outcome(program, tinytorch) == outcome(program, torch)


@pytest.mark.parametrize("leaf", [True, False])
def test_view_from_no_grad_of_a_written_base(torch, leaf):
    def program(m):
        x = doubles(m, 1.0, 2.0)
        base = x if leaf else x * 1
        with m.no_grad():
            v = base[:1]
            if leaf:
                base.mul_(2)
        if not leaf:
            base.mul_(2)
        return gradient_of(x * v, x)

    assert outcome(program, tinytorch) == outcome(program, torch)


# ---- Views of a leaf, after a write under no_grad.


def leaf_written_and_its_view_read(m):
    x = doubles(m, 1.0, 2.0, 3.0)
    v = x[1:]
    with m.no_grad():
        x.mul_(2)
    return [v.requires_grad, *gradient_of(v * v, x)]


def leaf_written_through_its_view(m):
    x = doubles(m, 1.0, 2.0, 3.0)
    v = x[1:]
    with m.no_grad():
        v.mul_(2)
    return [v.requires_grad, v.is_leaf, *gradient_of(v * v, x)]


def view_of_a_view_of_a_written_leaf(m):
    x = doubles(m, 1.0, 2.0, 3.0, 4.0)
    v = x.view(2, 2)
    w = v[1]
    with m.no_grad():
        x.add_(1)
        w.mul_(2)
    return gradient_of(v * w, x)


def detached_view_of_a_written_leaf(m):
    x = doubles(m, 1.0, 2.0)
    d = x.detach()
    with m.no_grad():
        x.mul_(2)
    return [d, d.requires_grad, *gradient_of(x * d, x)]


def leaf_written_between_save_and_backward(m):
    x = doubles(m, 1.0, 2.0)
    v = x[:1]
    y = v * v
    with m.no_grad():
        x[1] = 5.0
    return gradient_of(y, x)


# ---- copy_ of the same shape and another dtype.


def copied_from(m, target, source, part):
    x = m.tensor([1.5, -2.0, 3.0], dtype=getattr(m, source), requires_grad=True)
    z = m.tensor([1.0, 2.0, 4.0], dtype=getattr(m, target), requires_grad=True)
    y = z * 2
    (y if part == "all" else y[1:]).copy_(x if part == "all" else x[:2])
    y = y * y
    y.sum().backward()
    return [y, x.grad, z.grad]


FLOATS = ("float16", "bfloat16", "float32", "float64")


@table(
    *(
        case(target, source, part)(copied_from)
        for target in FLOATS
        for source in FLOATS
        for part in ("all", "a part through a view")
    )
)
def test_copy_of_another_dtype(torch, program):
    assert outcome(program, tinytorch) == outcome(program, torch)


@table(
    offset_base_written_through_a_view,
    offset_base_and_a_view_of_a_view,
    offset_base_written_and_its_view_read,
    offset_base_written_twice,
    leaf_written_and_its_view_read,
    leaf_written_through_its_view,
    view_of_a_view_of_a_written_leaf,
    detached_view_of_a_written_leaf,
    leaf_written_between_save_and_backward,
)
def test_program(torch, program):
    assert outcome(program, tinytorch) == outcome(program, torch)


# ---- Every operand that is saved is watched: the second and the third, too.

OPERANDS = {
    "mul": (2, lambda m, a, b: a * b),
    "div": (2, lambda m, a, b: a / b),
    "pow": (2, lambda m, a, b: a**b),
    "atan2": (2, lambda m, a, b: m.atan2(a, b)),
    "hypot": (2, lambda m, a, b: m.hypot(a, b)),
    "maximum": (2, lambda m, a, b: m.maximum(a, b)),
    "matmul": (2, lambda m, a, b: a @ b),
    "mm": (2, lambda m, a, b: m.mm(a, b)),
    "add": (2, lambda m, a, b: a + b),
    "where": (2, lambda m, a, b: m.where(a.detach() > 1, a, b)),
    "mse_loss": (2, lambda m, a, b: m.nn.functional.mse_loss(a, b)),
    "lerp": (3, lambda m, a, b, c: m.lerp(a, b, c)),
    "addcmul": (3, lambda m, a, b, c: m.addcmul(a, b, c)),
    "addcdiv": (3, lambda m, a, b, c: m.addcdiv(a, b, c)),
    "addmm": (3, lambda m, a, b, c: m.addmm(a, b, c)),
    "linear": (3, lambda m, a, b, c: m.nn.functional.linear(a, b, c[0])),
    "layer_norm": (3, lambda m, a, b, c: m.nn.functional.layer_norm(a, (2,), b[0], c[0])),
    "bmm": (2, lambda m, a, b: m.bmm(a[None], b[None])),
    "sqrt of the first": (1, lambda m, a: a.sqrt()),
    "log of the first": (1, lambda m, a: a.log()),
}
WRITES = {
    "nothing": lambda m, t: None,
    "itself": lambda m, t: t.add_(1),
    "a view": lambda m, t: t[0].mul_(2),
    "an alias": lambda m, t: t.detach().view(4)[3:].fill_(9.0),
}


@pytest.mark.parametrize("wanted", ["all", "one"])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("name, written", [(name, k) for name, (count, _) in OPERANDS.items() for k in range(count)])
def test_operand_written_after_use(torch, name, written, write, wanted):
    """The gradient is refused where PyTorch refuses it, or it is that of the values before the write. wanted: do all
    operands require grad, or only the one after that which is written?"""
    count, call = OPERANDS[name]

    def program(m, write):
        leaves = [m.tensor([[1.5, 2.0], [0.5, 3.0]], dtype=m.float64).add(k) for k in range(count)]
        for k, leaf in enumerate(leaves):
            leaf.requires_grad_(wanted == "all" or k == (written + 1) % count)
        operands = [leaf * 1 for leaf in leaves]
        for k, operand in enumerate(operands):  # to versions of their own
            for _ in range(count - k):
                operand.add_(0)
        result = call(m, *operands)
        write(m, operands[written])
        result.sum().backward()
        return [None if leaf.grad is None else [round(v, 9) for v in leaf.grad.view(4).tolist()] for leaf in leaves]

    actual = outcome(lambda m: program(m, WRITES[write]), tinytorch)
    expected = outcome(lambda m: program(m, WRITES[write]), torch)
    if actual != expected:  # less is saved here
        assert expected == "refused" and actual == outcome(lambda m: program(m, WRITES["nothing"]), torch)


def test_a_view_that_counts_apart_is_not_outrun_by_its_storage():
    """Asked after a C call that declined: did another thread write? The count of x.data is not the storage's."""
    x = tinytorch.zeros(4)
    part = x.data[:2]
    x.add_(1)
    assert lib.tt_view_permuted(part._h, 2, [0, 1]) == ffi.NULL and lib.tt_error_kind() == lib.TT_DECLINED
    assert not views.outrun(part)
    part._h.seen_version -= 1
    assert views.outrun(part)
