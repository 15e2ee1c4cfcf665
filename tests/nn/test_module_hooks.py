"""Hooks of modules: each test runs on both libraries, with the same outcome."""

import collections
import copy
import importlib
import pickle
import warnings
import weakref

import pytest

import tinytorch as tt

torch = pytest.importorskip("torch")
BOTH = pytest.mark.parametrize("m", [tt, torch], ids=["tinytorch", "torch"])
Pair = collections.namedtuple("Pair", "a b")


def all_modules(m):
    return importlib.import_module(m.__name__ + ".nn.modules.module")


def module(m, forward):
    """A module that computes ``forward``."""

    class Made(m.nn.Module):
        def forward(self, *args, **kwargs):
            return forward(*args, **kwargs)

    return Made()


def said(action):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [(w.category.__name__, str(w.message)[:30]) for w in caught]


@BOTH
def test_a_full_backward_hook_runs_once(m):
    """Not again in the double backward; again with each backward."""
    seen = []
    net = m.nn.Tanh()
    net.register_full_backward_hook(lambda mod, gi, go: seen.append((gi[0].item(), go[0].item())))
    x = m.tensor([0.0], requires_grad=True)
    y = net(x * 1) * 3
    (g,) = m.autograd.grad(y, x, create_graph=True)
    assert seen == [(3.0, 3.0)]
    g.sum().backward()
    assert len(seen) == 1
    net(x).backward()
    assert len(seen) == 2


@BOTH
def test_hooks_and_pre_hooks_in_order(m):
    seen = []
    net = module(m, lambda x, y: (x * y, x + y))
    net.register_full_backward_hook(lambda mod, gi, go: seen.append(("hook", [g.tolist() for g in gi])))
    net.register_full_backward_hook(lambda mod, gi, go: (gi[0] * 2, gi[1]), prepend=True)
    net.register_full_backward_pre_hook(lambda mod, go: seen.append(("pre", [g.tolist() for g in go])))
    net.register_full_backward_pre_hook(lambda mod, go: (go[0] * 10, go[1]), prepend=True)
    x, y = m.tensor([2.0], requires_grad=True), m.tensor([3.0], requires_grad=True)
    a, b = net(x, y)
    (a + b).sum().backward()
    assert seen == [("pre", [[10.0], [1.0]]), ("hook", [[62.0], [21.0]])]
    assert x.grad.tolist() == [62.0] and y.grad.tolist() == [21.0]


@BOTH
@pytest.mark.parametrize("kind", ["tuple", "named tuple", "list", "dict", "number", "unused"])
def test_outputs_of_every_kind(m, kind):
    seen = []
    make = {
        "tuple": lambda x: (x * 1, None, x * 2),
        "named tuple": lambda x: Pair(x * 1, x * 2),
        "list": lambda x: [x * 1],
        "dict": lambda x: {"a": x * 1},
        "number": lambda x: 3,
        "unused": lambda x: (x * 1, x * 2),
    }[kind]
    net = module(m, make)
    net.register_full_backward_hook(
        lambda mod, gi, go: seen.append([None if g is None else g.tolist() for g in (*gi, *go)])
    )
    x = m.ones(1, requires_grad=True)
    made = []
    heard = said(lambda: made.append(net(x)))
    assert heard == ([("UserWarning", "For backward hooks to be calle")] if kind in ("list", "dict", "number") else [])
    got = made[0]
    assert type(got) is type(make(x))
    tensors = {"list": list, "dict": lambda d: list(d.values()), "number": lambda n: []}.get(kind, list)(got)
    tensors = [t for t in tensors if t is not None][: 1 if kind == "unused" else None]
    if tensors:
        sum(tensors).sum().backward()
        assert x.grad.tolist() == [3.0 if kind.endswith("tuple") else 1.0]
    assert seen == {
        "tuple": [[[3.0], [1.0], None, [1.0]]],
        "named tuple": [[[3.0], [1.0], [1.0]]],
        "unused": [[[1.0], [1.0], None]],
    }.get(kind, [])


@BOTH
def test_where_no_input_requires_grad(m):
    seen = []
    net = m.nn.Linear(2, 1, bias=False)
    net.register_full_backward_hook(lambda mod, gi, go: seen.append((gi, go[0].tolist())))
    assert said(lambda: net(m.ones(1, 2)).sum().backward()) == [("UserWarning", "Full backward hook is firing w")]
    assert seen == [((None,), [[1.0]])]
    handle = net.register_full_backward_hook(lambda mod, gi, go: (None,))
    said(lambda: net(m.ones(1, 2)).sum().backward())
    handle.remove()
    net.register_full_backward_hook(lambda mod, gi, go: (go[0],))
    with pytest.raises(RuntimeError, match="where no input requires gradient"):
        said(lambda: net(m.ones(1, 2)).sum().backward())
    with m.no_grad():
        assert said(lambda: net(m.ones(1, 2))) == []


@BOTH
def test_wrong_numbers_of_gradients(m):
    x = m.ones(2, 2, requires_grad=True)
    for register, text in (
        (
            "register_full_backward_hook",
            "Backward hook returned an invalid number of grad_input, got 2, but expected 1",
        ),
        ("register_full_backward_pre_hook", "Backward pre hook returned an invalid number of grad_output, got 2"),
    ):
        net = m.nn.Tanh()
        getattr(net, register)(lambda mod, g, *rest: (g[0], g[0]))
        with pytest.raises(RuntimeError, match=text):
            net(x).sum().backward()


@BOTH
def test_hooks_of_the_last_node(m):
    seen = []
    net = m.nn.Sigmoid()
    net.register_backward_hook(lambda mod, gi, go: seen.append((mod is net, len(gi), go[0].tolist())))
    x = m.zeros(1, requires_grad=True)
    assert said(lambda: seen.append(net(x * 1))) == []
    seen.pop().sum().backward()
    assert seen == [(True, 1, [1.0])]
    with pytest.raises(RuntimeError, match="Cannot use both"):
        net.register_full_backward_hook(print)
    full = m.nn.Sigmoid()
    full.register_full_backward_hook(print)
    with pytest.raises(RuntimeError, match="Cannot use both"):
        full.register_backward_hook(print)
    for forward, args in (
        (lambda x: [x * 1], 1),
        (lambda x: {"a": x * 1}, 1),
        (lambda x, n: x * n, 2),
        (lambda x: (x * 1, x * 2), 1),
        (lambda x: x * 1 * 2, 1),
    ):
        odd = module(m, forward)
        odd.register_backward_hook(lambda *_: None)
        assert [kind for kind, _ in said(lambda: odd(*(x, 3)[:args]))] == ["FutureWarning"]  # noqa: B023


@BOTH
def test_hooks_on_every_module(m):
    every, seen = all_modules(m), []
    net = m.nn.Sequential(m.nn.Tanh())
    net[0].register_forward_hook(lambda mod, args, out: seen.append("own"))

    def note(text):
        return lambda mod, *rest: seen.append((text, type(mod).__name__))

    handles = [
        every.register_module_forward_pre_hook(note("pre")),
        every.register_module_forward_hook(note("post")),
        every.register_module_forward_hook(lambda mod, a, k, out: seen.append(k), with_kwargs=True),
        every.register_module_full_backward_pre_hook(note("backward pre")),
        every.register_module_full_backward_hook(note("backward")),
    ]
    with pytest.raises(RuntimeError, match="as a global Module hook"):
        every.register_module_backward_hook(print)
    net(m.zeros(1, requires_grad=True)).sum().backward()
    assert seen == [
        ("pre", "Sequential"), ("pre", "Tanh"), ("post", "Tanh"), {}, "own", ("post", "Sequential"), {},
        ("backward pre", "Sequential"), ("backward pre", "Tanh"), ("backward", "Tanh"), ("backward", "Sequential"),
    ]  # fmt: skip
    for handle in handles:
        handle.remove()
    seen.clear()
    if m is torch:  # it never forgets which kind was there first
        return
    with every.register_module_backward_hook(note("node")):
        m.nn.Tanh()(m.zeros(1, requires_grad=True) * 1).sum().backward()
    assert seen == [("node", "Tanh")]
    net(m.zeros(1, requires_grad=True)).sum().backward()
    assert seen == [("node", "Tanh"), "own"]


@BOTH
def test_hooks_on_registration(m):
    every, seen = all_modules(m), []
    twice = m.nn.Parameter(m.ones(2) * 2)
    handles = [
        every.register_module_parameter_registration_hook(
            lambda mod, name, p: seen.append(("p", name)) or (twice if name == "w" else None)
        ),
        every.register_module_buffer_registration_hook(lambda mod, name, b: seen.append(("b", name))),
        every.register_module_module_registration_hook(lambda mod, name, s: seen.append(("m", name))),
    ]
    net = m.nn.Module()
    net.w = m.nn.Parameter(m.ones(2))
    net.register_parameter("v", m.nn.Parameter(m.ones(1)))
    net.register_buffer("b", m.zeros(1))
    net.inner = m.nn.Tanh()
    net.add_module("other", m.nn.Tanh())
    for handle in handles:
        handle.remove()
    net.late = m.nn.Tanh()
    assert seen == [("p", "w"), ("p", "v"), ("b", "b"), ("m", "inner"), ("m", "other")] and net.w is twice


@BOTH
def test_always_called(m):
    seen = []

    def failing(x):
        raise KeyError("forward")

    net = module(m, failing)
    net.register_forward_hook(lambda mod, args, out: seen.append(out), always_call=True)
    net.register_forward_hook(lambda *_: 1 / 0, always_call=True)
    net.register_forward_hook(lambda mod, args, kw, out: seen.append(kw), always_call=True, with_kwargs=True)
    net.register_forward_hook(lambda *_: seen.append("never"))

    def call():
        with pytest.raises(KeyError, match="forward"):
            net(1)

    assert [kind for kind, _ in said(call)] == ["UserWarning"] and seen == [None, {}]
    good = module(m, lambda x: x)
    good.register_forward_hook(lambda *_: seen.append("before"), always_call=True)
    good.register_forward_hook(lambda *_: 1 / 0)
    good.register_forward_hook(lambda *_: seen.append("after"), always_call=True)
    with pytest.raises(ZeroDivisionError):
        good(1)
    assert seen[2:] == ["before", "after"]


@BOTH
def test_flags_and_handles(m):
    net = m.nn.Tanh()
    pre = net.register_forward_pre_hook(lambda mod, a, k: (a, k), with_kwargs=True)
    post = net.register_forward_hook(lambda mod, a, k, out: out, with_kwargs=True, always_call=True)
    assert list(net._forward_pre_hooks_with_kwargs) == [pre.id] and list(net._forward_hooks_with_kwargs) == [post.id]
    assert list(net._forward_hooks_always_called) == [post.id] and post.id in post.hooks_dict_ref()
    assert net(m.zeros(1)).item() == 0.0
    pre.remove(), post.remove(), post.remove()
    for name in ("_forward_pre_hooks_with_kwargs", "_forward_hooks_with_kwargs", "_forward_hooks_always_called"):
        assert not getattr(net, name)
    assert not net._forward_hooks and not net._forward_pre_hooks
    bad = m.nn.Tanh()
    bad.register_forward_pre_hook(lambda mod, a, k: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        bad(m.zeros(1))
    handles = importlib.import_module(m.__name__ + ".utils.hooks")
    hooks = collections.OrderedDict()
    handle = handles.RemovableHandle(hooks)
    hooks[handle.id] = "mine"
    handle.remove()
    assert not hooks and isinstance(post, handles.RemovableHandle)


# State dicts.


def note_loading(*args):
    SEEN.append(args)


SEEN: list = []


@BOTH
def test_a_load_hook_does_not_keep_its_module(m, no_gc):
    net = m.nn.Linear(1, 1)
    net.register_load_state_dict_pre_hook(note_loading)
    copied, pickled = copy.deepcopy(net), pickle.loads(pickle.dumps(net))
    for other in (net, copied, pickled):
        SEEN.clear()
        other.load_state_dict(other.state_dict())
        assert len(SEEN) == 1 and SEEN[0][0] is other and len(SEEN[0]) == 8
    SEEN.clear()
    gone = weakref.ref(net)
    del net, other
    assert gone() is None


def fresh(m):
    return m.nn.Sequential(m.nn.Linear(1, 1, bias=False))


@BOTH
def test_state_dict_hooks(m):
    net = fresh(m)
    net.register_state_dict_post_hook(lambda mod, state, prefix, meta: state.update(more=1))
    net._register_state_dict_hook(lambda mod, state, prefix, meta: {**state, "new": prefix})
    assert list(net.state_dict()) == ["0.weight", "more", "new"]
    net[0]._register_state_dict_hook(lambda mod, state, prefix, meta: {"ignored": prefix})
    assert list(net.state_dict()) == ["0.weight", "more", "new"]
    wrong = fresh(m)
    wrong.register_state_dict_post_hook(lambda mod, state, prefix, meta: state)
    with pytest.raises(RuntimeError, match="post-hook must return None"):
        wrong.state_dict()
    plain, into = fresh(m), collections.OrderedDict()
    assert said(lambda: plain.state_dict(into, "p.")) == [("FutureWarning", "Positional args are being depr")]
    assert list(into) == ["p.0.weight"]


@BOTH
def test_load_hooks(m):
    net, seen = fresh(m), []
    net.register_load_state_dict_post_hook(lambda mod, keys: keys.missing_keys.append("foo"))
    net[0].register_load_state_dict_post_hook(lambda mod, keys: keys.unexpected_keys.append("bar"))
    net[0]._register_load_state_dict_pre_hook(lambda state, prefix, *rest: seen.append(prefix))
    net[0]._register_load_state_dict_pre_hook(lambda mod, *rest: seen.append(mod is net[0]), with_module=True)
    keys = net.load_state_dict(net.state_dict(), strict=False)
    assert (keys.missing_keys, keys.unexpected_keys, seen) == (["foo"], ["bar"], ["0.", True])
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "foo". \n.*Unexpected key.*"bar"'):
        net.load_state_dict(net.state_dict())
    wrong = fresh(m)
    wrong.register_load_state_dict_post_hook(lambda mod, keys: keys)
    with pytest.raises(AssertionError, match="not expected to return new values"):
        wrong.load_state_dict(wrong.state_dict())
