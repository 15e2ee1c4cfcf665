"""Writes in place: the version counter, and what backward says when a saved value was overwritten."""

import inspect

import pytest
from compare import pair

import tinytorch


def leaf(*values):
    return tinytorch.tensor(list(values), dtype=tinytorch.float64, requires_grad=True)


def overwritten(saved_by, written_by, saved=None, current=None):
    """The message names the op that saved the value, the op that wrote over it and both versions."""
    words = ["modified by an inplace operation", saved_by, written_by]
    words += [rf"\b{version}\b" for version in (saved, current) if version is not None]
    return "(?is)" + "".join(f"(?=.*(?:{word}))" for word in words)


# ---- The counter.


def test_every_write_bumps_the_version_once():
    x = tinytorch.zeros(2, 3)
    assert x._version == 0
    writes = [
        lambda: x.add_(1),
        lambda: x.mul_(2),
        lambda: x.fill_(3),
        lambda: x.zero_(),
        lambda: x.copy_(tinytorch.ones(2, 3)),
        lambda: x.__setitem__(0, 5.0),
        lambda: x.__setitem__((slice(None), 1), tinytorch.ones(2)),
        lambda: x.__setitem__(x > 1, 0.0),
        lambda: x.__setitem__(tinytorch.tensor([1, 0]), 4.0),
        lambda: x.__iadd__(1),
        lambda: x.masked_fill_(x > 2, 1.0),
        lambda: x.index_put_((tinytorch.tensor([0]),), tinytorch.tensor(2.0)),
        lambda: x.index_add_(0, tinytorch.tensor([0]), tinytorch.ones(1, 3)),
        lambda: x.scatter_(0, tinytorch.tensor([[0, 1, 1]]), 1.0),
        lambda: x.clamp_(0, 1),
        lambda: x.normal_(),
        lambda: x.uniform_(),
        lambda: x.exp_(),
        lambda: tinytorch.add(tinytorch.ones(2, 3), 1, out=x),
    ]
    for count, write in enumerate(writes, 1):
        write()
        assert x._version == count


def test_reading_does_not_bump_the_version():
    x = tinytorch.ones(2, 2)
    _ = x + 1, x[0], x.sum(), x.numpy(), repr(x), x.clone(), x.t(), x.tolist(), x.detach(), x.contiguous()
    assert x._version == 0


def test_views_share_the_version():
    x = tinytorch.zeros(4, 3)
    views = [
        x.view(12),
        x[1:],
        x.t(),
        x[0],
        x.detach(),
        x.unsqueeze(0),
        x.expand(2, 4, 3),
        x.view(2, 6)[0][::2],
    ]
    x.add_(1)
    assert [v._version for v in views] == [1] * len(views)
    views[0].mul_(2)
    assert x._version == 2 and views[1]._version == 2
    assert x.clone()._version == 0


def test_dot_data_counts_by_itself():
    """A write there is none that backward notices; views of it share its counter, not those of the tensor."""
    x = tinytorch.zeros(3)
    view, data = x[:2], x.data
    data.add_(1)
    data[0].add_(1)
    assert x.tolist() == [2.0, 1.0, 1.0] and (x._version, view._version, data._version) == (0, 0, 2)
    assert x.data._version == 0 and data.detach()._version == 2


def test_assigned_data_keeps_the_counter():
    """As in PyTorch the counter is the tensor's: it goes on, and views that were taken before count with it."""
    x = tinytorch.zeros(1, 2)
    view = x[:]
    view.add_(1)
    x.data = tinytorch.zeros(2, 3)
    assert (x._version, view._version) == (1, 1)
    x.add_(1)
    view.add_(1)
    assert (x._version, view._version) == (3, 3) and x.tolist() == [[1.0] * 3] * 2
    alone = tinytorch.zeros(2).add_(1)
    alone.data = tinytorch.zeros(3)
    alone.add_(1)
    assert alone._version == 2
    with pytest.raises(RuntimeError, match="Deleting tensor data"):
        del x.data


MEMORY = {
    "resize_": lambda t: t.resize_(5),
    "resize_ to its own shape": lambda t: t.resize_(*t.shape),
    "resize_as_": lambda t: t.resize_as_(tinytorch.zeros(7)),
    "set_": lambda t: t.set_(tinytorch.arange(6.0).double(), 1, (2, 2), (3, 1)),
    "set_ to nothing": lambda t: t.set_(),
}


@pytest.mark.parametrize("change", MEMORY.values(), ids=MEMORY)
def test_other_memory_is_a_write(change):
    """What was saved is gone: backward says so, instead of reading other memory."""
    x, t = leaf(1.0, 2.0), tinytorch.tensor([3.0, 4.0], dtype=tinytorch.float64)
    y = (x * t).sum()
    assert change(t) is t and t._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_set():
    source = tinytorch.arange(6.0)
    t = tinytorch.zeros(2).set_(source, 1, (2, 2))
    source[1] = 9.0
    assert t.tolist() == [[9.0, 2.0], [3.0, 4.0]] and t.stride() == (2, 1)
    assert tinytorch.zeros(2).set_(source).data_ptr() == source.data_ptr()
    with pytest.raises(RuntimeError, match="Could not set tensor"):
        t.set_(tinytorch.zeros(2, dtype=tinytorch.int64))
    with pytest.raises(RuntimeError, match="leaf"):
        tinytorch.zeros(2, requires_grad=True).set_(source)
    with pytest.raises(RuntimeError, match="out of bounds"):
        t.set_(source, 4, (3,))


# ---- A saved value overwritten.


def test_overwritten_input():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    a, b = x * 1, w * 1
    y = a * b
    a.add_(1)
    with pytest.raises(RuntimeError, match=overwritten("Mul", "add_", 0, 1)):
        y.sum().backward()


def test_overwritten_output():
    x = leaf(1.0)
    y = x.exp()
    y.mul_(2)
    with pytest.raises(RuntimeError, match=overwritten("Exp", "mul_", 0, 1)):
        y.sum().backward()


def test_overwritten_through_a_view():
    x = leaf(1.0, 2.0)
    a = x * 1
    y = a * a
    a[0] = 7.0
    with pytest.raises(RuntimeError, match=overwritten("Mul", "setitem|copy_|fill_|CopySlices", 0, 1)):
        y.sum().backward()


def test_overwritten_through_detach():
    """detach() shares the counter, so that a write behind the tape's back is noticed."""
    x = leaf(1.0, 2.0)
    y = x * x
    x.detach().zero_()
    with pytest.raises(RuntimeError, match=overwritten("Mul", "zero_", 0, 1)):
        y.sum().backward()


@pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:Error detected")
def test_anomaly_mode_gives_the_lines_of_both():
    """With detect_anomaly the message holds the user's file and line of the save and of the overwrite."""
    x = leaf(1.0, 2.0)
    with tinytorch.autograd.detect_anomaly():
        a = x * 1
        y = a * a
        line = inspect.currentframe().f_lineno
        a.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation") as error:
            y.sum().backward()
    message = str(error.value)
    assert message.count("test_inplace.py") >= 2
    assert str(line - 1) in message and str(line + 1) in message


def test_overwritten_through_data():
    """As in PyTorch nobody notices: the derivative sees the new values. ``detach`` is noticed."""
    x = leaf(1.0, 2.0)
    a = x * 1
    y = a * a
    a.data.fill_(5.0)
    y.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [10.0, 10.0]
    a.detach().fill_(5.0)
    with pytest.raises(RuntimeError, match=overwritten("Mul", "fill_", 0, 1)):
        y.sum().backward()


def test_overwritten_constant():
    x, c = leaf(1.0), tinytorch.ones(1, dtype=tinytorch.float64)
    y = x * c
    c.add_(1)
    with pytest.raises(RuntimeError, match=overwritten("Mul", "add_", 0, 1)):
        y.sum().backward()


def test_overwritten_weight_between_forward_and_backward():
    """The classic: an optimizer's step before the second backward."""
    w, x = leaf(2.0), leaf(3.0)
    y = (w * x) * w
    with tinytorch.no_grad():
        w.sub_(0.1)
    with pytest.raises(RuntimeError, match=overwritten("Mul", "sub_")):
        y.sum().backward()


def test_overwritten_twice_reports_the_latest_version():
    x = leaf(1.0)
    a = x * 1
    y = a.sigmoid() * a
    a.add_(1)
    a.mul_(2)
    with pytest.raises(RuntimeError, match=overwritten("Mul", "mul_", 0, 2)):
        y.sum().backward()


@pytest.mark.parametrize(
    "forward",
    [
        lambda a: a + 1,
        lambda a: a * 2,
        lambda a: a.sum(),
        lambda a: a.view(-1),
        lambda a: -a,
        lambda a: a.clone(),
        lambda a: a.mean(),
        lambda a: a - a,
    ],
)
def test_a_value_that_is_not_needed_may_be_overwritten(forward):
    """No op saves more than its derivative needs."""
    x = leaf(1.0, 2.0)
    a = x * 1
    y = forward(a).clone()
    a.detach().zero_()
    y.sum().backward()
    assert x.grad is not None


def test_only_the_needed_factor_is_saved():
    x, c = leaf(1.0, 2.0), tinytorch.full((2,), 3.0, dtype=tinytorch.float64)
    a = x * 1
    y = a * c  # the derivative with respect to a needs c, and not a
    a.detach().zero_()
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_retained_output_is_as_it_was_after_relu():
    x = leaf(-1.0, 2.0)
    y = (x * 1).relu_()  # relu's derivative needs its result alone
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0]


# ---- In-place ops in the graph.


def test_in_place_chain(torch):
    grads = []
    for m, x in zip((tinytorch, torch), pair(torch, [0.5, 1.5, -0.5], requires_grad=True)):
        y = x * 2
        y.add_(1)
        y.mul_(x)
        y.sub_(x * x)
        y.div_(3.0)
        y += x
        y *= 2
        y -= 1
        y /= 4
        y.pow_(2)
        y.neg_()
        m.nn.functional.relu(y).add(y).sum().backward()
        grads.append(x.grad.tolist())
    assert grads[0] == pytest.approx(grads[1], rel=1e-12)


def test_grad_fn_is_that_of_the_last_write():
    y = leaf(1.0) * 2
    y.add_(1)
    assert y.grad_fn.name() == "AddBackward0"
    y.exp_()
    assert y.grad_fn.name() == "ExpBackward0"


@pytest.mark.parametrize("name, other", [("gt_", 0.0), ("eq_", 1.0), ("sign_", None)])
def test_a_write_without_a_derivative_ends_the_history(name, other):
    """The result does not depend on what was there: no gradient of the old value may pass through."""
    x = leaf(1.0, -2.0)
    y = x * 3
    getattr(y, name)(*([] if other is None else [other]))
    (y + x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_writing_a_recorded_value_into_a_constant():
    x, y = leaf(1.0, 2.0), tinytorch.zeros(2, dtype=tinytorch.float64)
    y.add_(x)
    assert y.requires_grad and not y.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_overwriting_ends_the_history():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.zero_()
    (y + x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    y = x * 2
    y.copy_(x)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_copy_broadcasts_and_casts():
    x = tinytorch.tensor([1.0, 2.0], dtype=tinytorch.float32, requires_grad=True)
    y = tinytorch.zeros(3, 2, dtype=tinytorch.float64)
    y.copy_(x)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0] and x.grad.dtype == tinytorch.float32


def test_result_of_in_place_on_its_own_operand(torch):
    grads = []
    for x in pair(torch, [1.0, 2.0], requires_grad=True):
        y = x * 1
        y.add_(y)
        y.sum().backward()
        grads.append(x.grad.tolist())
    assert grads[0] == grads[1] == [2.0, 2.0]


# ---- Leaves.


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.add_(1),
        lambda x: x.zero_(),
        lambda x: x.__setitem__(0, 1.0),
        lambda x: x.__iadd__(1),
        lambda x: x.copy_(x.detach().clone()),
        lambda x: x.fill_(1),
        lambda x: x.index_add_(0, tinytorch.tensor([0]), tinytorch.ones(1, dtype=tinytorch.float64)),
    ],
)
def test_leaf_written_in_place(write):
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="leaf.*in-place"):
        write(x)
    assert x.tolist() == [1.0, 2.0] and x._version == 0


@pytest.mark.parametrize("view", [lambda x: x[0], lambda x: x[:1], lambda x: x.view(1, 2), lambda x: x.view(2, 1).t()])
def test_view_of_a_leaf_written_in_place(view):
    x = leaf(1.0, 2.0)
    v = view(x)
    with pytest.raises(RuntimeError, match="leaf.*in-place"):
        v.mul_(2)
    assert x.tolist() == [1.0, 2.0] and x._version == 0


def test_leaf_written_under_no_grad():
    x = leaf(1.0, 2.0)
    with tinytorch.no_grad():
        x.add_(1)
        x[0] = 9.0
    assert x.tolist() == [9.0, 3.0] and x.is_leaf and x.requires_grad and x._version == 2


def test_out_refuses_to_record():
    x, out = leaf(1.0), tinytorch.zeros(1, dtype=tinytorch.float64)
    with pytest.raises(RuntimeError, match="out="):
        tinytorch.mul(x, 2, out=out)
    assert out.tolist() == [0.0]
    with tinytorch.no_grad():
        assert tinytorch.mul(x, 2, out=out) is out
