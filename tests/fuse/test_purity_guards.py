"""Functions that are seen to be pure give eager mode's results whatever changes between calls."""

import functools
import linecache
import pickle
import types

import pytest

import tinytorch as torch
from fuse.helpers import in_threads
from fuse.test_purity import agree, bits, learned, one, replayed
from tinytorch import fuse
from tinytorch.ops.declare import number

SCALE = 1.5
ITEMS = [2.0, 3.0]
NAMED = {"shift": 1.0}
PLACE = types.SimpleNamespace(scale=2.0)
MODULE = types.ModuleType("place")
MODULE.scale = 0.5
WEIGHT = torch.randn(6)


def double(x):
    return x * 2


def uses_scale(x):
    return x * SCALE


def uses_items(x):
    for scale in ITEMS:
        x = x * scale
    return x + NAMED["shift"]


def uses_places(x):
    return x * PLACE.scale + MODULE.scale


def uses_helper(x):
    return double(x) + 1


def uses_builtin(x):
    return abs(x) + 1


def with_defaults(x, scale=2.0, *, shift=1.0):
    return x * scale + shift


def uses_weight(x):
    return x * WEIGHT + 1


def closure(scale, act):
    def fn(x):
        return act(x * scale)

    def change(to, acting):
        nonlocal scale, act
        scale, act = to, acting

    return fn, change


CLOSURE, CHANGE = closure(2.0, torch.exp)
PARTIAL = functools.partial(with_defaults, scale=4.0)


def set_attribute(holder, name, value):
    """A change, and its undoing."""
    old = getattr(holder, name)
    return lambda: setattr(holder, name, value), lambda: setattr(holder, name, old)


def set_item(holder, key, value):
    old = holder[key]
    return lambda: holder.__setitem__(key, value), lambda: holder.__setitem__(key, old)


GUARDS = {
    "a global number": (uses_scale, *set_item(globals(), "SCALE", 2.5)),
    "a global function": (uses_helper, *set_item(globals(), "double", torch.sin)),
    "a function's code": (uses_helper, *set_attribute(double, "__code__", (lambda x: x * 3).__code__)),
    "the function's own code": (double, *set_attribute(double, "__code__", (lambda x: x * 4).__code__)),
    "a name in front of a builtin": (
        uses_builtin,
        lambda: globals().__setitem__("abs", torch.neg),
        lambda: globals().pop("abs"),
    ),
    "an item of a list": (uses_items, *set_item(ITEMS, 1, 5.0)),
    "the length of a list": (uses_items, lambda: ITEMS.append(7.0), ITEMS.pop),
    "a shorter list": (uses_items, ITEMS.pop, lambda: ITEMS.append(3.0)),
    "an item of a dict": (uses_items, *set_item(NAMED, "shift", 9.0)),
    "an attribute": (uses_places, *set_attribute(PLACE, "scale", 3.5)),
    "a module's attribute": (uses_places, *set_attribute(MODULE, "scale", 3.5)),
    "a number becomes a tensor": (uses_places, *set_attribute(MODULE, "scale", torch.tensor(3.5))),
    "a tensor becomes a number": (uses_weight, *set_item(globals(), "WEIGHT", 3)),
    "a tensor of another shape": (uses_weight, *set_item(globals(), "WEIGHT", torch.randn(4, 1))),
    "a tensor of another dtype": (uses_weight, *set_item(globals(), "WEIGHT", torch.arange(6))),
    "a default": (with_defaults, *set_attribute(with_defaults, "__defaults__", (5.0,))),
    "a keyword's default": (with_defaults, *set_attribute(with_defaults, "__kwdefaults__", {"shift": -3.0})),
    "a keyword's default, in place": (with_defaults, *set_item(with_defaults.__kwdefaults__, "shift", -4.0)),
    "a closure": (CLOSURE, lambda: CHANGE(3.0, torch.sin), lambda: CHANGE(2.0, torch.exp)),
    "a partial's keywords": (PARTIAL, *set_item(PARTIAL.keywords, "scale", -1.0)),
    "more of a partial's keywords": (
        PARTIAL,
        lambda: PARTIAL.keywords.update(shift=8),
        lambda: PARTIAL.keywords.pop("shift"),
    ),
    "the default dtype": (
        lambda x: (x > 0) / 2,
        lambda: torch.set_default_dtype(torch.float64),
        lambda: torch.set_default_dtype(torch.float32),
    ),
}


@pytest.mark.parametrize("name", GUARDS)
def test_a_change_outside(name):
    fn, change, undo = GUARDS[name]
    fast = learned(fn, one)
    x = torch.randn(4, 6)
    before = bits(fn(x))
    change()
    try:
        assert bits(fn(x)) != before  # it makes a difference
        assert replayed(fast, x) == 0
        agree(fast, fn, one)
    finally:
        undo()
    agree(fast, fn, one)
    assert bits(fast(x)) == before


def test_changes_are_learned_but_not_for_ever():
    here = types.SimpleNamespace(scale=0.5)
    fn = lambda x: x * here.scale  # noqa: E731
    fast = learned(fn, one)
    for k in range(3):
        here.scale = k + 0.25
        agree(fast, fn, one, calls=3)
        assert replayed(fast, *one()) == 1
    for k in range(3):
        here.scale = k + 0.75
        agree(fast, fn, one)
        assert replayed(fast, *one()) == 0
    assert "keeps changing" in fast.purity.why


# ---- Tensors from outside.


def test_outside_tensors_may_be_replaced_and_written():
    place = types.SimpleNamespace(w=torch.randn(6))
    fn = lambda x: (x * place.w).tanh()  # noqa: E731
    fast = learned(fn, one)

    def other_data():
        place.w.data = torch.randn(6)

    def other():
        place.w = torch.randn(6)

    for change in (lambda: place.w.add_(1), lambda: place.w.zero_(), other_data, other):
        change()
        x = torch.randn(4, 6)
        assert replayed(lambda x: bits(fast(x)) == bits(fn(x)) or pytest.fail(), x) == 1
    place.w.data = torch.randn(1, 1)
    assert replayed(fast, *one()) == 0
    agree(fast, fn, one)
    place.w.unsqueeze_(0)
    agree(fast, fn, one)


def test_an_outside_tensor_that_comes_to_require_grad():
    w = torch.randn(6)
    fn = lambda x: x * w + 1  # noqa: E731
    fast = learned(fn, one)
    for wanted in (True, False, True):
        w.requires_grad_(wanted)
        agree(fast, fn, one, calls=2)
        y = fast(*one())
        assert y.requires_grad is wanted
        with torch.no_grad():
            agree(fast, fn, one, calls=4)
    (g,) = torch.autograd.grad(y.sum(), w)
    assert g.shape == w.shape


def test_an_outside_tensor_that_is_an_argument_too():
    w = torch.randn(4, 6)
    fn = lambda x: x * w  # noqa: E731
    fast = fuse(fn)
    for x in (w, w, w, w, w, torch.randn(4, 6), w[:], torch.randn(4, 6), w, torch.randn(4, 6), torch.randn(4, 6)):
        assert bits(fast(x)) == bits(fn(x))
    again = w[:]  # the same memory under two names
    both = lambda x: x * w + again  # noqa: E731
    agree(fuse(both), both, one)


def test_what_shows_two_names_of_one_tensor():
    place = types.SimpleNamespace(a=torch.randn(6))
    place.b = place.a
    fn = lambda x: x * place.a + place.b  # noqa: E731
    fast = learned(fn, one)
    place.b = torch.randn(6)
    agree(fast, fn, one)


def test_writes_outside_happen_every_time():
    w = torch.zeros(4, 6)

    def recorded(x):
        w.add_(1)
        return x * 2

    def at_once(x):
        w.index_fill_(0, torch.tensor([0]), x.shape[0])
        w[1] = w[1] + 1
        return x * 2

    for fn in (recorded, at_once):
        fast = fuse(fn)
        for k in range(8):
            w.zero_()
            fast(torch.randn(4, 6))
            assert w[1].tolist() == [1.0] * 6, k
    for write in (
        lambda x: x.add_(1) * 2,
        lambda x: x.cumsum_(0) * 2,
        lambda x: x.t_() * 2,
        lambda x: x.fill_(3) * 2,
        lambda x: torch.exp(x, out=x) + 1,
        lambda x: x.data.mul_(2) * 2,
    ):
        fast = fuse(write)
        for _ in range(8):
            x = torch.randn(4, 6)
            y = x.clone()
            assert bits(fast(x)) == bits(write(y)) and bits(x) == bits(y)


# ---- Values.


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x * 2 if x[0, 0] > 0 else x * 3,
        lambda x: x + x.sum().item(),
        lambda x: x.narrow(0, (x[0, 0] > 0).long(), 1) * 2,
        lambda x: x * torch.equal(x, x.relu()),
        lambda x: x + len(x[x > 0]),
        lambda x: x + x.nonzero().shape[0],
        lambda x: x + torch.tensor([x[0, 0]]),
        lambda x: x[(x[0, 0] > 0).long()] * 2,
        lambda x: x * 2 + torch.randn(6) * 0,
        lambda x: x * len(set(x.tolist()[0])),
        lambda x: x + [1, 2][x[0, 0] > 0],
    ],
)
def test_values_count(fn):
    def make():
        return (torch.randint(-1, 2, (4, 6)).float(),)  # so that calls in a row agree now and then

    agree(fuse(fn), fn, make, calls=12)


def test_values_that_hardly_differ():
    """The recordings of the first calls agree; what comes then is another program, though no branch shows that."""
    for fn in (
        lambda x, i: x.narrow(0, i, 1) * 2,
        lambda x, i: x + torch.full((6,), i),
        lambda x, i: x[i] + 1,
        lambda x, i: x * 2 + x.unique().numel(),
        lambda x, i: x + x.nonzero().shape[0],
        lambda x, i: x * 2 + torch.equal(x, x),
        lambda x, i: x[:, i:] * 2,
        lambda x, i: x + torch.bincount(i.reshape(1)).shape[0],
        lambda x, i: x + torch.arange(9).repeat_interleave(i.expand(9)).shape[0],
    ):
        fast = fuse(fn)
        agree(fast, fn, lambda: (torch.zeros(4, 6), torch.tensor(0)))
        agree(fast, fn, lambda: (torch.arange(24.0).reshape(4, 6), torch.tensor(1)), calls=2)
        agree(fast, fn, lambda: (torch.full((4, 6), float("nan")), torch.tensor(3)), calls=2)


def test_errors_that_values_cause():
    fn = lambda x, i: (x.index_select(0, i), x * 2)[1] + 1  # noqa: E731
    fast = fuse(fn)
    agree(fast, fn, lambda: (torch.zeros(4, 6), torch.tensor([3])))
    with pytest.raises(IndexError):
        fast(torch.zeros(4, 6), torch.tensor([4]))


def test_numbers_count():
    fn = lambda x, k, more=0: x / k + more  # noqa: E731
    fast = fuse(fn)
    x = torch.ones(3, dtype=torch.int32)
    for k in (0.0, 0.0, 0.0, 0.0, 0.0, -0.0, 1, 1.0, True, 2, 2, 2.0, 2, float("nan"), float("nan")):
        assert bits(fast(x, k)) == bits(fn(x, k))
        assert bits(fast(x, k, 1)) == bits(fn(x, k, 1))
    assert replayed(fast, x, 0.0) == 1
    fn = lambda x, k: x + k  # noqa: E731
    fast, x = fuse(fn), torch.tensor([True, False])
    for k in (1, 1, 1, 1, 1, 1.0, True, 1, True, True, True, 1):
        assert bits(fast(x, k)) == bits(fn(x, k))


# ---- Functions.


class Layer:
    def __init__(self):
        self.scale = 1.0

    @fuse
    def forward(self, x):
        return x * self.scale

    @staticmethod
    @fuse
    def double(x):
        return x * 2


def test_methods():
    layer = Layer()
    for k in range(8):
        layer.scale = float(k)
        assert layer.forward(torch.ones(3)).tolist() == [k] * 3 == Layer.forward(layer, torch.ones(3)).tolist()
    agree(layer.double, double, one)
    assert replayed(Layer.double, *one()) == 1


@fuse
def fused_by_name(x):
    """Doubles."""
    return x * 2


def test_what_is_returned_is_a_function():
    assert isinstance(fused_by_name, types.FunctionType) and fused_by_name.__doc__ == "Doubles."
    assert pickle.loads(pickle.dumps(fused_by_name)) is fused_by_name
    assert fused_by_name.__wrapped__(torch.ones(1)).tolist() == [2.0]
    assert fused_by_name.__wrapped__ is not fused_by_name


def test_several_lambdas_of_a_line():
    for fn in [lambda x: x * 2, lambda x: x * 3, lambda x: x * 2, lambda x, k=5: x * k]:  # noqa: E501
        learned(fn, one)
    twice = [lambda x, k=k: x + k for k in (1, 2)]
    for fn in twice:
        learned(fn, one)


def from_file(tmp_path, text, name="fn"):
    path = tmp_path / "source.py"
    path.write_text(text)
    names = {"torch": torch}
    exec(compile(text, str(path), "exec"), names)
    return path, names[name]


def test_sources(tmp_path):
    text = "import torch\ndef fn(x):\n    assert x.ndim == 2, x\n    return torch.exp(x) * 2\n"
    path, fn = from_file(tmp_path, text.replace("import torch", "pass"))
    learned(fn, one)
    path, fn = from_file(tmp_path, text.replace("import torch", "y=1"))
    path.write_text(text.replace("2\n", "3\n"))  # edited since
    linecache.checkcache()
    fast = fuse(fn)
    agree(fast, fn, one)
    assert "no longer what runs" in fast.purity.why
    path.write_text("def fn(:")
    linecache.checkcache()
    fast = fuse(fn)
    agree(fast, fn, one)
    assert "no longer what runs" in fast.purity.why


def test_generators_and_coroutines():
    @fuse
    def numbers(x):
        yield x * 2
        yield x * 3

    @fuse
    async def later(x):
        return x * 2

    for _ in range(5):
        assert [y.item() for y in numbers(torch.ones(1))] == [2.0, 3.0]
        coroutine = later(torch.ones(1))
        with pytest.raises(StopIteration) as stop:
            coroutine.send(None)
        assert stop.value.value.item() == 2.0


def test_other_arguments():
    fast = learned(with_defaults, one)
    (x,) = one()
    assert bits(fast(x, scale=3.0)) == bits(with_defaults(x, scale=3.0))
    assert bits(fast(x, torch.tensor(3.0))) == bits(with_defaults(x, torch.tensor(3.0)))
    with pytest.raises(TypeError):
        fast(x, 2, 3)
    with pytest.raises(TypeError):
        fast([1, 2], "a")
    fast = fuse(with_defaults)
    for k in (2.0, 3.0):  # as operators have numbers, and record them
        agree(fast, with_defaults, lambda k=k: (number(k),))
    both = lambda x, y: x * 2 + y  # noqa: E731
    fast = learned(both, lambda: (*one(), *one()))
    assert bits(fast(x, x)) == bits(both(x, x))
    assert bits(fast(x, x[:])) == bits(both(x, x))


def test_shapes_dtypes_and_layouts():
    fn = lambda x: (x * x.shape[0] + x.dim()) - x.sum()  # noqa: E731
    fast = fuse(fn)
    for shape in ((3,), (2, 3), (3, 2), (1, 1, 1)):
        for dtype in (torch.float32, torch.float64, torch.int64):
            for _ in range(3):
                agree(fast, fn, lambda s=shape, d=dtype: (torch.randn(s).to(d),), calls=1)
    agree(fast, fn, lambda: (torch.randn(5, 4).t(),))
    agree(fast, fn, lambda: (torch.randn(9, 5)[2:7, ::2],))
    agree(fast, fn, lambda: (torch.randn(3, 1).expand(3, 4),))


def test_more_tensors_than_are_replayed():
    many = [torch.randn(6) for _ in range(20)]
    fn = lambda x: x + sum(many)  # noqa: E731
    agree(fuse(fn), fn, one)


def test_threads():
    place = types.SimpleNamespace(scale=1.0)
    fn = lambda x: (x * place.scale).exp() - x  # noqa: E731
    fast = fuse(fn)

    def work(k):
        for n in range(200):
            x = torch.full((3 + (n + k) % 4,), float(n % 5))
            if k == 0 and n % 40 == 0:
                place.scale = float(n % 3)
            got, scales = fast(x), (0.0, 1.0, 2.0)
            assert any(bits(got) == bits((x * s).exp() - x) for s in scales)

    in_threads(4, work)
    agree(fast, fn, one)
