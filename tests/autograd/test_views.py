"""Views and the tape: a write through one of them is seen, and differentiated, through all."""

import numpy as np
import pytest
from compare import assert_same, pair

import tinytorch
from tinytorch.autograd import gradgradcheck


def both(torch, program, *shapes, seed=0):
    """Run program(m, *leaves) with both libraries; its result and the leaves' gradients must agree."""
    rng = np.random.default_rng(seed)
    arrays = [rng.uniform(-2, 2, shape) for shape in shapes]
    ours, theirs = zip(*(pair(torch, a, requires_grad=True) for a in arrays))
    results = []
    for m, leaves in ((tinytorch, ours), (torch, theirs)):
        result = program(m, *leaves)
        weights = m.arange(1, result.numel() + 1, dtype=m.float64).view(result.shape)
        (result * weights).sum().backward()
        results.append([result, *(m.zeros_like(x) if x.grad is None else x.grad for x in leaves)])
    for a, e in zip(*results):
        assert_same(a, e, rtol=1e-10, atol=1e-12)


# ---- Facts about views.


def test_base_and_is_view():
    x = tinytorch.zeros(4, 3)
    v = x[1:]
    assert v._is_view() and v._base is x and not x._is_view() and x._base is None
    assert v.t()[0]._base is x, "a view of a view has the first tensor as its base"
    assert x.clone()._base is None and (x + 1)._base is None
    assert x.detach()._base is None or x.detach()._base is x


def test_detach_shares_storage_and_version_but_not_history():
    x = tinytorch.zeros(3, requires_grad=True)
    y = x * 1
    d = y.detach()
    d.add_(5)
    assert y.tolist() == [5.0] * 3 and y._version == d._version == 1
    assert y.grad_fn.name() == "MulBackward0" and d.grad_fn is None


# ---- A write through a view rewrites the history of its base.


def test_copy_slices():
    x = tinytorch.ones(3, requires_grad=True)
    y = x * 1
    y[0] = 7.0
    assert y.grad_fn.name().endswith("CopySlices")
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 1.0]


def test_view_regenerates_its_grad_fn():
    x = tinytorch.ones(2, 2, requires_grad=True)
    y = x * 1
    v = y.view(4)
    first = v.grad_fn
    assert first.name() == "ViewBackward0" and v.grad_fn is first
    y.mul_(2)
    second = v.grad_fn
    assert second is not first, "the view's history goes through the write to its base"
    assert second.next_functions[0][0] is y.grad_fn
    (v * tinytorch.arange(4.0)).sum().backward()
    assert x.grad.tolist() == [[0.0, 2.0], [4.0, 6.0]]


PROGRAMS = {
    "write through a view": lambda m, x: _do(x * 1, lambda y: y[0].mul_(3)),
    "write through a slice": lambda m, x: _do(x * 1, lambda y: y[:, ::2].exp_()),
    "augmented slice": lambda m, x: _do(x * 1, lambda y: _augment(y, x)),
    "view of view of view": lambda m, x: _do(x * 1, lambda y: y.t()[1:].t()[0].mul_(x[0, 1])),
    "write to the base, read the view": lambda m, x: _base_then_view(x * 1),
    "write to one view, read another": lambda m, x: _two_views(x * 1),
    "two writes through overlapping views": lambda m, x: _do(x * 1, lambda y: (y[:2].mul_(2), y[1:].mul_(3))),
    "write, read, write": lambda m, x: _write_read_write(x * 1),
    "setitem with a scalar": lambda m, x: _set(x * 2, (0, 1), 4.0),
    "setitem with a constant": lambda m, x: _set(x * 2, 1, m.ones(4, dtype=m.float64)),
    "setitem with itself": lambda m, x: _set(x * 2, 0, x[1] * x[2]),
    "setitem with a broadcast value": lambda m, x: _set(x * 2, (slice(None), slice(1, 3)), x[:, :1]),
    "setitem with a mask": lambda m, x: _set(x * 2, x.detach() > 0, 3.0),
    "setitem with indices": lambda m, x: _set(x * 2, [0, 2], x[1]),
    "setitem into a constant": lambda m, x: _set(m.zeros(3, 4, dtype=m.float64), (slice(None), 0), x[:, 2]),
    "setitem through a transposed view": lambda m, x: _do(x * 1, lambda y: y.t().__setitem__(1, x[:, 0] * 2)),
    "write through expand's source": lambda m, x: _expanded(x * 1),
    "write through a diagonal": lambda m, x: _do(x * 1, lambda y: y.diagonal().mul_(x.diagonal())),
    "write through unfold": lambda m, x: _do(x * 1, lambda y: y.unfold(1, 2, 2)[..., 0].mul_(2)),
    "write through as_strided": lambda m, x: _do(x * 1, lambda y: y.as_strided((2, 2), (4, 2), 1).mul_(3)),
    "write through squeeze and unsqueeze": lambda m, x: _do(x * 1, lambda y: y.unsqueeze(0).squeeze(0)[2].neg_()),
    "write through narrow": lambda m, x: _do(x * 1, lambda y: y.narrow(1, 1, 2).tanh_()),
    "write through flatten": lambda m, x: _do(x * 1, lambda y: y.flatten()[5:].mul_(2)),
    "write through reshape": lambda m, x: _do(x * 1, lambda y: y.reshape(12)[:3].mul_(x.reshape(12)[3:6])),
    "copy_ into a view": lambda m, x: _do(x * 1, lambda y: y[1].copy_(x[0] * x[2])),
    "zero_ a view": lambda m, x: _do(x * 1, lambda y: y[1].zero_()),
    "masked_fill_ a view": lambda m, x: _do(x * 1, lambda y: y[1:].masked_fill_(x.detach()[1:] > 0, 1.0)),
    "index_add_ into a view": lambda m, x: _do(x * 1, lambda y: y[:2].index_add_(0, m.tensor([0, 0]), x[1:])),
    "a constant base made to require grad": lambda m, x: _do(m.zeros(3, 4, dtype=m.float64), lambda y: y[1].add_(x[0])),
    "view of a constant base, base written": lambda m, x: _constant_base(m, x),
    "unbind read only": lambda m, x: _unbind(m, x * 1),
    "detached view written": lambda m, x: _detached(x),
    "history rewritten twice": lambda m, x: _do(
        x * 1, lambda y: (y[0].mul_(2), y.add_(x * x), y[:, 1].mul_(3), y.mul_(x))
    ),
}


def _do(y, write):
    write(y)
    return y


def _set(y, key, value):
    y[key] = value
    return y


def _augment(y, x):
    y[0] += x[1] * 2
    y[:, 1] *= 3
    y[1:, 2:] -= x[:2, :2]
    y[2] /= 2


def _base_then_view(y):
    v = y[1:]
    y.mul_(2)
    return v * v


def _two_views(y):
    a, b = y[:2], y[1:]
    a.mul_(3)
    return b * a


def _write_read_write(y):
    y[0].mul_(2)
    z = y.sum(1)
    y[1] = z[0] * 2
    return y + z.unsqueeze(1)


def _expanded(y):
    row = y[0]
    wide = row.expand(3, 4)
    row.mul_(2)
    return wide * y


def _constant_base(m, x):
    base = m.ones(3, 4, dtype=m.float64)
    v = base[1]
    base.mul_(x)
    return v * 2


def _unbind(m, y):
    a, b, c = y.unbind()
    return m.stack([a * b, c])


def _detached(x):
    y = x * 2
    d = y.detach()[0].requires_grad_()
    return y + d.detach()


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(torch, name):
    both(torch, PROGRAMS[name], (3, 4))


def test_write_through_an_outdated_view_of_a_saved_value():
    x = tinytorch.ones(3, requires_grad=True)
    y = x * 1
    v = y[:2]
    z = v * v
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


# ---- What is refused.


@pytest.mark.parametrize(
    "split",
    [
        lambda y: y.unbind(),
        lambda y: y.split(1),
        lambda y: y.chunk(2),
        lambda y: y.split([1, 1]),
        lambda y: tuple(iter(y)),
    ],
)
def test_views_from_an_op_with_several_outputs(split):
    x = tinytorch.ones(2, 2, requires_grad=True)
    y = x * 1
    part = split(y)[0]
    with pytest.raises(RuntimeError, match="multiple views|multi"):
        part.mul_(2)
    assert y.tolist() == [[1.0, 1.0], [1.0, 1.0]] and y._version == 0


PARTS = {
    "chunk": lambda x: x.chunk(3, 1),
    "chunk of a size": lambda x: x.chunk(4, -1),
    "more chunks": lambda x: x.chunk(9),
    "split": lambda x: x.split(2, 1),
    "split whole": lambda x: x.split(100, -2),
    "sizes": lambda x: x.split([1, 0, 4], 1),
    "unbind": lambda x: x.unbind(-1),
    "cut": lambda x: x.tensor_split((2, 3), 1),
    "transposed": lambda x: x.t().chunk(2),
    "of a view": lambda x: x[1:].split(2, 1),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts(torch, name):
    """Their layout, what they are views of, gradients of all and of one, the second derivative."""

    def run(m):
        x = m.arange(20, dtype=m.float32).reshape(4, 5).clone()
        plain = PARTS[name](x)
        seen = [
            [tuple(p.shape) for p in plain],
            [p.stride() for p in plain],
            [p.storage_offset() for p in plain],
            [p.tolist() for p in plain],
            type(plain).__name__,
        ]
        for p in plain:
            assert p._base is x and p.grad_fn is None and not p.requires_grad
        leaf = x.clone().requires_grad_()
        parts = PARTS[name](leaf)
        seen += [type(p.grad_fn).__name__ for p in parts] if name != "cut" else []
        loss = sum([(p * p * (k + 1)).sum() for k, p in enumerate(parts)])
        (g,) = m.autograd.grad(loss, leaf, create_graph=True)
        (h,) = m.autograd.grad((g * g).sum(), leaf)
        (one,) = m.autograd.grad((PARTS[name](leaf)[-1] * 3).sum(), leaf)
        with m.no_grad():
            assert all(p.grad_fn is None for p in PARTS[name](leaf))
        return seen + [g.tolist(), h.tolist(), one.tolist()]

    assert run(tinytorch) == run(torch)


def test_parts_of_nothing_and_of_integers(torch):
    def run(m):
        empty, whole = m.zeros(0, 3), m.arange(6)
        return [
            [tuple(p.shape) for p in parts]
            for parts in (
                empty.chunk(3),
                empty.split(2),
                empty.split([0, 0]),
                empty.unbind(1),
                empty.unbind(0),
                whole.chunk(4),
                whole.split(4),
                whole.unbind(),
            )
        ] + [p.tolist() for p in whole.chunk(4)]

    assert run(tinytorch) == run(torch)
    for wrong in (
        lambda x: x.chunk(0),
        lambda x: x.split(0),
        lambda x: x.split(-1),
        lambda x: x.split([1, 1]),
        lambda x: x.split([7, -1]),
        lambda x: x[0].chunk(2),
        lambda x: x[0].split(1),
    ):
        with pytest.raises(RuntimeError):
            wrong(tinytorch.arange(6))
    for outside in (lambda x: x.chunk(2, 1), lambda x: x.split(2, -2), lambda x: x.unbind(1), lambda x: x[0].unbind()):
        with pytest.raises(IndexError):
            outside(tinytorch.arange(6))


def test_several_outputs_of_a_constant_may_be_written():
    y = tinytorch.ones(2, 2)
    y.unbind()[0].mul_(2)
    assert y.tolist() == [[2.0, 2.0], [1.0, 1.0]]


def test_several_outputs_after_the_base_was_written():
    x = tinytorch.ones(2, 2, requires_grad=True)
    y = x * 1
    a, _ = y.unbind()
    with tinytorch.no_grad():
        a.mul_(2)  # without the tape it is just a write
    assert y._version == 1


def test_view_made_under_no_grad():
    x = tinytorch.ones(2, 2, requires_grad=True)
    y = x * 1
    with tinytorch.no_grad():
        v = y[0]
    with pytest.raises(RuntimeError, match="no_grad"):
        v.mul_(2)
    assert y._version == 0
    with tinytorch.no_grad():
        v.mul_(2)
    assert y._version == 1


def test_view_of_a_leaf_made_under_no_grad():
    x = tinytorch.ones(2, requires_grad=True)
    with tinytorch.no_grad():
        v = x.view(2)
    with pytest.raises(RuntimeError, match="no_grad|leaf"):
        v.mul_(2)
    assert x.tolist() == [1.0, 1.0]


def test_expanded_tensor_written_in_place():
    x = tinytorch.ones(1).expand(3)
    with pytest.raises(RuntimeError, match="single memory location|overlap"):
        x.add_(1)
    assert x.tolist() == [1.0] * 3 and x._version == 0


def test_overlapping_read_and_write():
    """What is written overlaps what is read: the old values count, as in NumPy (torch refuses)."""
    x = tinytorch.arange(5.0)
    x[1:].add_(x[:-1])
    assert x.tolist() == [0.0, 1.0, 3.0, 5.0, 7.0] and x._version == 1


def test_data_assignment():
    x = tinytorch.ones(2, requires_grad=True)
    old = x.data_ptr()
    x.data = tinytorch.full((2,), 3.0)
    assert x.tolist() == [3.0, 3.0] and x.requires_grad and x.is_leaf and x.data_ptr() != old
    (x * x).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_numpy_of_a_recorded_tensor():
    x = tinytorch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="detach"):
        x.numpy()
    x.detach().numpy()[0] = 5
    assert x.tolist() == [5.0, 1.0]


def test_the_gradient_of_entries_lies_as_their_input(torch):
    """So that what made that a view of something contiguous need not copy."""
    strides = []

    def program(m, x):
        turned = x.permute(2, 0, 3, 1, 4)
        turned.register_hook(lambda g: strides.append(g.stride()))
        first, _, last = turned.unbind(0)
        return first * last.exp()

    both(torch, program, (2, 5, 3, 4, 2))
    assert strides[0] == (8, 120, 2, 24, 1)
    x = tinytorch.randn(3, 2, 4, dtype=tinytorch.float64, requires_grad=True)
    assert gradgradcheck(lambda x: [t.sin() for t in x.transpose(0, 2).unbind(1)], x)


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_write_through_a_chain_of_views(torch, depth):
    def program(m, x):
        y = x * 1
        v = y
        for i in range(depth):
            v = (v.t(), v[1:] if v.shape[0] > 1 else v, v.unsqueeze(0)[0], v.view_as(v), v.permute(1, 0))[i % 5]
        v.mul_(3)
        return y * v.sum()

    both(torch, program, (4, 4))


def test_second_derivative_through_copy_slices(torch):
    values = []
    for m, x in zip((tinytorch, torch), pair(torch, [0.5, -1.0, 2.0], requires_grad=True)):
        y = x * x
        y[1:].mul_(x[:2])
        y[0] = x[1] * x[2]
        (g,) = m.autograd.grad((y**2).sum(), x, create_graph=True)
        (gg,) = m.autograd.grad((g * g).sum(), x)
        values.append(g.tolist() + gg.tolist())
    assert values[0] == pytest.approx(values[1], rel=1e-10)


# ---- Views that are one call: the hot path, and what it leaves to the general one.

VIEWS = {
    "view": lambda x: x.view(2, 12),
    "view, one inferred": lambda x: x.view((-1, 4)),
    "view of a view": lambda x: x[1:].view(-1),
    "reshape that copies": lambda x: x.transpose(0, 2).reshape(6, 4),
    "view_as": lambda x: x.view_as(x.reshape(6, 4)),
    "expand": lambda x: x.unsqueeze(-4).expand(2, -1, 3, 4),
    "expand_as": lambda x: x[:1].expand_as(x),
    "permute": lambda x: x.permute(-1, 0, 1),
    "permute by a tuple": lambda x: x.permute((2, 0, 1)),
    "transpose": lambda x: x.transpose(-1, 0),
    "t": lambda x: x[1].t(),
    "T": lambda x: x[0].T,
    "mT": lambda x: x.mT,
    "squeeze": lambda x: x[:, :1, :1].squeeze(),
    "squeeze some": lambda x: x[:, :1, :1].squeeze(-1),
    "squeeze none": lambda x: x.squeeze(1),
    "unsqueeze": lambda x: x.unsqueeze(-2),
    "select": lambda x: x.select(-1, -2),
    "narrow": lambda x: x.narrow(-1, -3, 2),
    "slice": lambda x: x[-1:],
    "slice beyond": lambda x: x[-99 : 1 << 70],
    "flatten": lambda x: x.flatten(),
    "split": lambda x: x.split(3, -1)[1],
    "unbind": lambda x: x.unbind(-1)[2],
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("how", ["read", "written", "of a view", "second derivative"])
def test_each_view(torch, name, how):
    def program(m, x):
        y = x * x
        if how == "written" and name not in ("reshape that copies", "expand", "expand_as", "split", "unbind"):
            VIEWS[name](y).mul_(3)
            return y
        if how == "of a view":
            whole = m.cat([x, x]) * 2
            y = whole[2:]
            whole.mul_(x.detach()[0, 0, 0])  # y's history is made anew
        if how == "second derivative":
            (g,) = m.autograd.grad((VIEWS[name](y) ** 3).sum(), x, create_graph=True)
            return VIEWS[name](g)
        return VIEWS[name](y)

    both(torch, program, (2, 3, 4))


def test_views_made_under_no_grad_stay_refused():
    x = tinytorch.ones(2, 3, requires_grad=True) * 1
    with tinytorch.no_grad():
        v = x.view(6)
    w = v.reshape(3, 2)  # inherits it
    for view in (v, w):
        with pytest.raises(RuntimeError, match="created in no_grad mode"):
            view.mul_(2)
    assert not v.requires_grad and v._base is x and w._base is x
    with tinytorch.no_grad():
        w = x.view(3, 2)
        w.t_()
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        w.mul_(2)


def test_an_input_that_a_function_returns_is_a_view_of_its_own(torch):
    def program(m):
        class Same(m.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x

            @staticmethod
            def backward(ctx, g):
                return g * 2

        x = m.ones(3, requires_grad=True) * 1
        y = Same.apply(x)
        y.mul_(2)

    for m in (tinytorch, torch):
        with pytest.raises(RuntimeError, match="inside a custom Function"):
            program(m)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: x.view(5),
        lambda x: x.view(-1, -1),
        lambda x: x.view(-2, 3),
        lambda x: x.view(2.0, 12),
        lambda x: x.transpose(0, 2).view(24),
        lambda x: x.reshape(7, -1),
        lambda x: x.expand(2, 3, 5),
        lambda x: x.expand(3, 4),
        lambda x: x.expand(-1, 2, 3, 4),
        lambda x: x.permute(0, 1),
        lambda x: x.permute(0, 1, 1),
        lambda x: x.permute(0, 1, 3),
        lambda x: x.transpose(0, 3),
        lambda x: x.t(),
        lambda x: x.squeeze(3),
        lambda x: x.unsqueeze(-5),
        lambda x: x.select(0, 2),
        lambda x: x.select(-4, 0),
        lambda x: x.narrow(2, 3, 2),
        lambda x: x.narrow(0, -3, 1),
        lambda x: x.view("a"),
        lambda x: x.view_as(x[0]),
    ],
)
def test_what_the_hot_path_leaves_alone_is_refused_as_before(torch, wrong):
    with pytest.raises(Exception) as theirs:  # noqa: B017
        wrong(torch.zeros(2, 3, 4))
    with pytest.raises(theirs.type) as ours:
        wrong(tinytorch.zeros(2, 3, 4))
    assert len(str(ours.value)) > 10
