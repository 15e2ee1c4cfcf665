"""When the memory of a tensor is freed: with its object, and not before."""

import copy
import gc
import pickle
import subprocess
import sys
import threading
import weakref

import pytest

import tinytorch
from tinytorch.backends.cpu import ffi, lib
from tinytorch.backends.native import TensorBase, owned_array, owned_result, owned_results, owner
from tinytorch.cpu import memory_allocated, memory_stats
from tinytorch.tensor import Tensor

N = 1000


def blocks() -> int:
    """Storages in use."""
    return memory_stats()["allocation.all.current"]


class Cycle:
    """An object in cyclic garbage, with a tensor."""

    def __init__(self, tensor, end):
        self.tensor, self.end, self.me = tensor, end, self

    def __del__(self):
        self.end(self)


def test_freed_with_the_last_reference():
    before = memory_allocated()
    x = tinytorch.zeros(N)
    y = x.view(10, -1)
    assert memory_allocated() >= before + 4 * N
    del x
    assert memory_allocated() >= before + 4 * N and y.sum().item() == 0
    del y
    assert memory_allocated() == before


def test_a_finalizer_in_a_cycle_uses_the_tensor():
    seen = []

    def end(self):
        others = [tinytorch.full((N,), 7.0) for _ in range(10)]  # which would take the memory, were it free
        seen.extend((self.tensor.mean().item(), len(others)))

    before = blocks()
    c = Cycle(tinytorch.full((N,), 3.0), end)
    c.tensor.owner = c  # the tensor is in the cycle itself
    del c
    gc.collect()
    assert seen == [3.0, 10] and blocks() == before


def test_a_finalizer_in_a_cycle_differentiates():
    seen = []
    w = tinytorch.ones(N, requires_grad=True)
    c = Cycle((w * 3).sum(), lambda self: self.tensor.backward())
    c.tensor.register_hook(lambda g: seen.append(g.item()))
    del c
    gc.collect()
    assert seen == [1.0] and w.grad.mean().item() == 3.0


def test_a_tensor_outlives_its_cycle():
    kept = []
    before = blocks()
    c = Cycle(tinytorch.full((N,), 3.0), lambda self: kept.append(self.tensor))
    c.tensor.owner = c
    del c
    gc.collect()
    others = [tinytorch.full((N,), 7.0) for _ in range(10)]
    assert kept[0].mean().item() == 3.0
    kept[0].fill_(9.0)
    assert kept[0].mean().item() == 9.0 and all(o.mean().item() == 7.0 for o in others)
    del others
    kept.pop()
    gc.collect()
    assert blocks() == before


def test_a_cycle_of_tensors_is_collected():
    before = blocks()
    x, y = tinytorch.zeros(N), tinytorch.zeros(N, requires_grad=True)
    x.other, y.other = y, x
    references = weakref.ref(x), weakref.ref(y)
    del x, y
    gc.collect()
    assert [r() for r in references] == [None, None] and blocks() == before


def test_a_cycle_through_a_graph_is_collected():
    before = blocks()
    x = tinytorch.zeros(N, requires_grad=True)
    y = x * x
    x.result = y
    del x, y
    gc.collect()
    assert blocks() == before


class Slots(Tensor):
    __slots__ = ("extra",)


class Mixin:
    def doubled(self):
        return self * 2


class Mixed(Tensor, Mixin):
    """Two bases."""


class Finalized(Tensor):
    seen: list = []

    def __del__(self):
        self.seen.append(self.sum().item())


@pytest.mark.parametrize("cls", [Tensor, Slots, Mixed, Finalized, tinytorch.nn.Parameter, tinytorch.nn.Buffer])
def test_classes(cls):
    before = blocks()
    x = cls(tinytorch.ones(N)) if cls is not Tensor else tinytorch.ones(N)
    assert type(x) is cls and isinstance(x, TensorBase) and x.sum().item() == N
    if cls is Slots:
        x.extra = x  # a cycle
    if cls is Mixed:
        assert x.doubled().sum().item() == 2 * N
    twin, deep, pickled = copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))
    for other in (twin, deep, pickled):
        assert type(other) is cls and other.sum().item() == N
    reference = weakref.ref(x)
    del x, twin, deep, pickled, other
    gc.collect()
    assert reference() is None and blocks() == before
    if cls is Finalized:
        assert Finalized.seen == [N] * 4


def test_class_of_an_object_may_change():
    x = tinytorch.ones(N)
    before = blocks()
    x.__class__ = Mixed
    assert x.doubled().sum().item() == 2 * N
    del x
    assert blocks() == before - 1


def test_without_memory():
    for cls in (Tensor, Mixed, Slots):
        x = object.__new__(cls)
        with pytest.raises(AttributeError):
            x.sum()
        del x


def test_something_else_as_descriptor():
    for wrong in (5, None, [{}], "text"):
        x = object.__new__(Tensor)
        x._h = wrong
        with pytest.raises((TypeError, AttributeError)):
            x.sum()
        try:
            raise KeyError("mine")
        except KeyError as error:
            del x  # leaves the exception alone
            assert error.args == ("mine",)


def test_replaced_memory():
    before = blocks()
    x, y = tinytorch.ones(N), tinytorch.full((N,), 2.0)
    for _ in range(100):
        x.data = y
        x.resize_(3)
        x.resize_(N)
        x.data = tinytorch.ones(2, N)
        x.t_()
        x.unsqueeze_(0)
        x.squeeze_(0)
    assert blocks() == before + 2 and x.shape == (N, 2) and x.sum().item() == 2 * N
    del x, y
    assert blocks() == before


def test_a_descriptor_lives_while_it_is_in_use():
    before = blocks()
    x = tinytorch.full((N,), 3.0)
    h = x._h
    x.data = tinytorch.full((2 * N,), 7.0)
    others = [tinytorch.full((N,), 7.0) for _ in range(10)]
    assert h.numel == N and Tensor.mean(owner(Tensor)(lib.tt_alias(h))).item() == 3.0
    del h
    assert blocks() == before + 11
    h = x._h
    del x, others
    assert blocks() == before + 1 and h.numel == 2 * N
    del h
    assert blocks() == before


@pytest.mark.parametrize(
    "change", [lambda x: setattr(x, "data", tinytorch.ones(10000)), lambda x: x.resize_(20000).resize_(10000)]
)
def test_memory_replaced_while_others_compute(change):
    x, stop, errors = tinytorch.ones(10000), threading.Event(), []

    def work(compute):
        while not stop.is_set():
            try:
                compute()
            except RuntimeError:  # of two shapes
                pass
            except BaseException as error:
                errors.append(error)
                raise

    threads = [threading.Thread(target=work, args=(f,)) for f in (lambda: change(x), lambda: x + 1, x.sum, x.tolist)]
    for t in threads:
        t.start()
    stop.wait(1.0)
    stop.set()
    for t in threads:
        t.join()
    assert not errors


def test_memory_stays_flat():
    w = tinytorch.ones(4, 4, requires_grad=True)

    def some(n):
        for _ in range(n):
            ((w @ w).relu()[0].view(2, 2) + 1).sum().backward()
            w.data = w.data
            w.grad = None

    some(100)
    before = blocks()
    some(12_000)  # ten tensors each
    assert blocks() <= before  # fused mode may have held one more


def test_a_cycle_through_what_a_node_notes_is_collected():
    """A Node holds its hooks, and a hook the Node."""

    class Kept:
        pass

    def cycle(register):
        kept, y = Kept(), tinytorch.ones(3, requires_grad=True) * 2
        node = y.grad_fn
        getattr(node, register)(lambda *grads: (node, kept))
        return weakref.ref(kept)

    found = [cycle("register_hook"), cycle("register_prehook")]
    gc.collect()
    assert [ref() for ref in found] == [None, None]


def test_constructors_of_c():
    with pytest.raises(TypeError):
        owner(int)
    with pytest.raises(TypeError):
        owned_result(Tensor, print)
    with pytest.raises(TypeError):
        owned_result(int, lib.tt_alias)
    alias = owned_result(Tensor, lib.tt_alias)
    before = blocks()
    with pytest.raises(TypeError):
        alias(5)
    with pytest.raises(TypeError):
        alias()
    x = tinytorch.ones(3)
    assert alias(x._h).data_ptr() == x.data_ptr() and alias(x._h)._node is None
    declined = owned_result(Tensor, lib.tt_view)(x._h, 1, [10**6], [1], 0)
    assert declined is None or declined.shape == (10**6,)
    del x, declined
    assert blocks() == before


def test_constructors_of_several():
    """Results that stand in an array, behind one that is returned or after a status; and those of two."""
    x, before = tinytorch.arange(6.0).reshape(2, 3), blocks()
    sorting, parts = owned_results(Tensor, lib.tt_sort), owned_array(Tensor, lib.tt_view_parts)
    values, indices = sorting(x._h, 1, 1, ffi.new("tt_array *[1]"))
    assert (values.tolist(), indices.tolist()) == ([[2.0, 1.0, 0.0], [5.0, 4.0, 3.0]], [[2, 1, 0]] * 2)
    assert sorting(x._h, 7, 1, ffi.new("tt_array *[1]")) is None
    with pytest.raises(IndexError, match="sort"):
        owned_results(Tensor, lib.tt_sort, True)(x._h, 7, 1, ffi.new("tt_array *[1]"))
    with pytest.raises(TypeError):
        sorting(x._h, 1, 1, 5)
    left, right = parts(x._h, 1, 0, [1, 2], 2, ffi.new("tt_array *[2]"))
    assert (left.tolist(), right.tolist()) == ([[0.0], [3.0]], [[1.0, 2.0], [4.0, 5.0]])
    product = owned_results(Tensor, lib.tt_mul_backward, False, lib.tt_second)
    assert [t.tolist() for t in product(x._h, values._h, indices.float()._h)] == [
        (x * indices).tolist(),
        (x * values).tolist(),
    ]
    assert product(x._h, values._h, tinytorch.ones(9)._h) is None
    del values, indices, left, right
    assert blocks() == before


AT_EXIT = """
import sys, tinytorch as tt
class Last:
    def __init__(self): self.x, self.me = tt.ones(1000), self
    def __del__(self): print(self.x.sum().item())
last = Last(); sys.modules["last"] = last
x = tt.ones(5, requires_grad=True); x.y = x * x; x.z = x
sys.modules["kept"] = x
"""


@pytest.mark.parametrize("options", [[], ["-X", "dev", "-W", "ignore"]])
def test_at_the_interpreters_end(options):
    done = subprocess.run([sys.executable, *options, "-c", AT_EXIT], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and done.stdout in ("1000.0\n", "") and not done.stderr
