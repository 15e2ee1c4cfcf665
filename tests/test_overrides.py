"""``__torch_function__``: programs with subclasses, other classes and modes, which must say the same with PyTorch and
with tinytorch."""

import copy
import inspect
import threading
from unittest import mock

import pytest
from autograd.rules import agree, outcome, plain, programs

import tinytorch
from tinytorch.overrides import overridable
from tinytorch.profiler import profile

PROGRAMS, program = programs()


def named(x):
    """A result's classes and values."""
    if isinstance(x, (tuple, list)):
        return [type(x).__name__ if type(x) in (tuple, list) else "named", *map(named, x)]
    if hasattr(x, "tolist"):
        return type(x).__name__, str(plain(x.round(decimals=5) if x.is_floating_point() else x))
    return type(x).__name__, str(x).replace("tinytorch", "torch")


def plus(torch):
    """A subclass that adds nothing, and one of its subclass."""

    class Sub(torch.Tensor):
        pass

    class SubSub(Sub):
        pass

    return Sub, SubSub


def logging(torch):
    """A subclass that notes what is called, and the notes: function, number of arguments, keywords, types."""
    log = []

    class Logging(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append((func.__name__, len(args), sorted(kwargs or {}), [t.__name__ for t in types]))
            return super().__torch_function__(func, types, args, kwargs or {})

    return Logging, log


# x is a plain tensor, m an instance of a subclass, k one with integers, p a parameter, F nn.functional.
EXPRESSIONS = """
m + 1; 1 + m; x + m; m + x; m + p; p + m; m - 1; 1 - m; x - m; m * 2; m / 2; x / m; m ** 2; 2 ** m; m @ m; x @ m; m @ x
m == x; x == m; x < m; m < 1; 2 >= m; m != 0; -m; abs(m); +m; m // 2; 7 // m; m % 2; 7 % m; k & 1; 1 | k; k ^ k; k << 1
m[0]; x[k]; m[0, 0]; m[m > 1]; m[None]; m[...]; m[:, 1:]; len(m); bool(m[0, 0]); float(m[0, 0]); int(m[0, 0]); 1 in m
list(m); m.shape; m.T; m.mT; m.grad; m.data; m.dtype; m.device; m.requires_grad; m.ndim; m.is_leaf; m._version; m.H
m.size(); m.size(0); m.dim(); m.numel(); m.stride(); m.is_contiguous(); m.element_size(); m.storage_offset(); m.nbytes
m.sum(); m.sum(0); m.mean(dim=0, keepdim=True); m.max(); m.max(0); m.sort(); m.topk(1); m.std(); m.norm(); m.argmax()
m.add(1, alpha=2); m.mul(x); x.add(m); x.mul(m); x.maximum(m); x.where(m > 1, x); x.masked_fill(m > 2, 0); m.square()
m.add_(1); x.add_(m); x.copy_(m); m.zero_(); m.fill_(3); m.clamp(0, 1); m.clamp_(0, 1); x.lerp(m, 0.5); m.exp()
m.view(4); m.reshape(2, 2); m.t(); m.expand(2, 2); m.flatten(); m.unbind(); m.chunk(2); m.split(1); m.permute(1, 0)
m.to(torch.float64); m.double(); m.type_as(x); m.new_zeros(2); m.new_tensor([1.0]); m.detach(); m.clone(); m.cpu()
m.contiguous(); m.tolist(); m[0, 0].item(); m.softmax(0); m.cumsum(0); m.gather(0, k[None]); m.index_select(0, k)
torch.add(x, m); torch.add(m, x, alpha=2); torch.exp(m); torch.cat([x, m]); torch.cat((x, x)); torch.stack([x, m])
torch.where(x > 1, x, m); torch.zeros_like(m); torch.full_like(m, 2); torch.ones_like(m); torch.split(m, 1)
torch.max(m, 0); torch.softmax(m, 0); torch.einsum("ij,jk", m, m); torch.matmul(m, x); torch.maximum(x, m)
torch.broadcast_tensors(m, x); torch.equal(m, x); torch.allclose(m, x); torch.numel(m); torch.is_floating_point(m)
torch.is_tensor(m); torch.as_tensor(m); torch.zeros(2); torch.ones(2, 2) + 1; torch.sum(input=m); torch.mean(m, dim=0)
F.relu(m); F.linear(m, x); F.linear(x, m); F.softmax(m, 0); F.mse_loss(m, x); F.layer_norm(m, (2,)); F.one_hot(k, 3)
F.cross_entropy(m, i); F.embedding(k, x); F.gelu(m); F.normalize(m); nn.Linear(2, 2).requires_grad_(False)(m).shape
nn.ReLU()(m); nn.Sequential(nn.Tanh(), nn.Sigmoid())(m); nn.Flatten()(m); nn.MSELoss()(m, x); m.T.T; (m + 1).sum().exp()
copy.copy(m); m.requires_grad_().sum().backward(); m.as_subclass(torch.Tensor); m.storage_offset()
p + 1; p * p; p.data; p.detach(); p[0]; -p; p.sum(); p.clone(); F.linear(x, p); x @ p
"""
CASES = [case.strip() for line in EXPRESSIONS.strip().splitlines() for case in line.split(";")]


def evaluate(case, torch, cls):
    """The value of an expression of the table."""
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    names = {
        "torch": torch, "nn": torch.nn, "F": torch.nn.functional, "copy": copy, "x": x, "m": (x * 1).as_subclass(cls),
        "k": torch.tensor([0, 1]).as_subclass(cls), "i": torch.tensor([0, 1]), "p": torch.nn.Parameter(x * 2),
    }  # fmt: skip
    return eval(case, names)


@pytest.mark.parametrize("case", CASES)
def test_results_are_of_the_subclass(case, torch):
    agree(lambda library: named(evaluate(case, library, plus(library)[0])), torch)


# What handlers see otherwise: defaults that PyTorch's Python code passes on, and another method for an operator.
OTHERWISE = (
    "~", "list(", "torch.split(", "m.split(", "m.norm(", "copy.", "F.", "nn.", "torch.einsum", "torch.as_tensor",
    "k << 1", "1 | k", "7 // m", "m.new_tensor", "m.stride()", "p + m", "m.requires_grad_().sum().b", "torch.broadcast",
)  # fmt: skip


@pytest.mark.parametrize("case", [c for c in CASES if not c.startswith(OTHERWISE)])
def test_what_handlers_see(case, torch):
    def seen(library):
        cls, log = logging(library)
        evaluate(case, library, cls)
        return [list(entry) for entry in log]

    agree(seen, torch)


@pytest.mark.parametrize("op", ["+=", "-=", "*=", "/=", "//=", "%=", "**="])
def test_operators_in_place(op, torch):
    def updated(library):
        cls, log = logging(library)
        x = library.tensor([5.0, 6.0])
        names = {"m": (x * 1).as_subclass(cls), "x": x}
        exec(f"m {op} 4\nx {op} m[1]", names)
        called = [entry[0] for entry in log]
        return called, named(names["m"]), named(names["x"])

    agree(updated, torch)


@program
def assignments(torch):
    cls, log = logging(torch)
    m, x = torch.ones(3).as_subclass(cls), torch.zeros(3)
    m[0] = 5.0
    x[1:] = m[1:]
    m.grad = torch.ones(3)
    m.requires_grad = True
    m.foo = 1
    del m.grad
    return [entry[0] for entry in log], plain(x), m.foo


@program
def subclasses_before_bases(torch):
    Sub, SubSub = plus(torch)
    a, b = torch.ones(2).as_subclass(Sub), torch.ones(2).as_subclass(SubSub)
    return [named(r) for r in (a + b, b + a, torch.cat([a, b]), a * a, torch.add(b, a))]


@program
def siblings_do_not_mix(torch):
    class A(torch.Tensor):
        pass

    class B(torch.Tensor):
        pass

    a, b = torch.ones(2).as_subclass(A), torch.ones(2).as_subclass(B)
    return outcome(lambda: a + b), outcome(lambda: torch.add(a, b)), outcome(lambda: torch.cat([a, b]))


@program
def construction(torch):
    Sub, _ = plus(torch)
    x = torch.ones(2, requires_grad=True)
    made = torch.Tensor._make_subclass(Sub, x), torch.Tensor._make_subclass(Sub, x, True), x.as_subclass(Sub)
    facts = [(named(m), m.requires_grad, m.is_leaf, m.data_ptr() == x.data_ptr(), m._is_view()) for m in made]
    return facts, named(Sub([1.0, 2.0])), Sub(2, 3).shape, outcome(lambda: x.as_subclass(int)), isinstance(made[0], Sub)


@program
def history(torch):
    Sub, _ = plus(torch)
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.as_subclass(Sub) * 3
    names = [type(y.grad_fn).__name__, type(y.grad_fn.next_functions[0][0]).__name__]
    (y * y).sum().backward()
    (g,) = torch.autograd.grad((x.as_subclass(Sub) ** 3).sum(), x, create_graph=True)
    return names, named(x.grad), named(g.detach().as_subclass(torch.Tensor))


@program
def leaves(torch):
    cls, log = logging(torch)
    x = torch.ones(2).as_subclass(cls).requires_grad_()
    loss = (x * x).sum()
    log.clear()
    loss.backward()
    return [entry[0] for entry in log], type(x.grad).__name__


@program
def methods_of_the_subclass(torch):
    class Mixin:
        def exp(self):
            return "mixin"

    class Sub(Mixin, torch.Tensor):
        def __add__(self, other):
            return "added", named(super().__add__(other))

        def mean(self):
            return named(super().mean()), named(super().sum())

        @property
        def T(self):
            return "turned", named(super().T)

    m = torch.ones(2, 2).as_subclass(Sub)
    return m + 1, m.mean(), m.exp(), m.T, named(m * 2), named(1 + m), named(m.log())


@program
def overriding_some(torch):
    handled = {}

    class Diagonal(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func in handled:
                return handled[func](*args, **kwargs or {})
            return super().__torch_function__(func, types, args, kwargs)

    handled[torch.mean] = lambda input: "mean"
    handled[torch.nn.functional.linear] = lambda *args: f"linear of {len(args)}"
    handled[torch.Tensor.add] = lambda *args: f"add of {len(args)}"
    m, x = torch.ones(2, 2).as_subclass(Diagonal), torch.ones(2, 2)
    return torch.mean(m), torch.nn.Linear(2, 2)(m), m + 1, x + m, named(torch.sum(m)), named(torch.mean(x))


@program
def disabled(torch):
    Sub, _ = plus(torch)

    class Off(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    class On(Off):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    m = torch.ones(2).as_subclass(Sub)
    with torch._C.DisableTorchFunctionSubclass():
        inside = named(m + 1), named(torch.exp(m)), named(m.T)
    off, on = torch.ones(2).as_subclass(Off), torch.ones(2).as_subclass(On)
    return inside, named(m + 1), named(off + 1), named(off * m), on + 1, torch.exp(on), on.sum(), off + on


@program
def parameters(torch):
    Sub, _ = plus(torch)

    class Special(torch.nn.Parameter):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, [t.__name__ for t in types]

    p, s = torch.nn.Parameter(torch.ones(2)), Special(torch.ones(2))
    return type(p + 1).__name__, type(p * torch.ones(2).as_subclass(Sub)).__name__, s + 1, torch.exp(s), p + s


class Scalar:
    """No tensor."""

    def __init__(self, value):
        self.value = value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__, [t.__name__ for t in types], len(args), sorted(kwargs or {})


@program
def other_classes(torch):
    plus(torch)
    s, x, F = Scalar(1), torch.ones(2), torch.nn.functional
    return [
        outcome(call)
        for call in (
            lambda: torch.add(x, s), lambda: torch.add(s, x), lambda: torch.mean(s), lambda: torch.sum(s, dim=0),
            lambda: torch.cat([x, s]), lambda: torch.exp(s), lambda: torch.softmax(s, 0),
            lambda: torch.where(x > 0, s, x),
            lambda: x.add(s), lambda: x.add_(s), lambda: x[s], lambda: F.linear(s, x), lambda: x.mul(s),
            lambda: torch.matmul(s, s), lambda: torch.exp(s, out=x), lambda: x.maximum(s),
        )
    ]  # fmt: skip


@program
def nobody_implements(torch):
    class Never:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    plus(torch)
    return outcome(lambda: torch.exp(Never())), outcome(lambda: torch.add(Never(), torch.ones(2)))


@program
def functions_of_the_program(torch):
    from_overrides = torch.overrides

    def double(x):
        if from_overrides.has_torch_function((x,)):
            return from_overrides.handle_torch_function(double, (x,), x)
        return x * 2

    @from_overrides.wrap_torch_function(lambda x, y=None: (x, y))
    def triple(x, y=None):
        return x * 3

    Sub, _ = plus(torch)
    m = torch.ones(2).as_subclass(Sub)
    asks = [from_overrides.has_torch_function(a) for a in ((m,), (torch.ones(2),), (1, Scalar(1)), ([m],))]
    likes = [from_overrides.is_tensor_like(a) for a in (m, torch.ones(2), Scalar(1), 1)]
    return named(double(m)), double(Scalar(1)), named(triple(m)), triple(1, Scalar(1)), asks, likes


@program
def modes(torch):
    log = []

    class Noting(torch.overrides.TorchFunctionMode):
        def __init__(self, name):
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append((self.name, func.__name__))
            return func(*args, **kwargs or {})

    Sub, _ = plus(torch)
    m, x = torch.ones(2).as_subclass(Sub), torch.ones(2)
    x + 1
    with Noting("outer"):
        x + 1
        torch.zeros(2)
        with Noting("inner"), torch.overrides.BaseTorchFunctionMode():
            x.exp()
            m.sum()
            torch.nn.functional.relu(x)
        x.mul(2)
        x @ x
        1 - x
        x.lt(1)
    x.exp()
    return log


@program
def what_modes_see(torch):
    """Not what asks for a type, nor what has no argument to ask; initial values, too."""
    log = []

    class Noting(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append(func.__name__)
            return func(*args, **kwargs or {})

    x, init, state = torch.ones(2, 2), torch.nn.init, torch.get_rng_state()
    with Noting():
        for call in (
            lambda: torch.is_tensor(x),
            lambda: torch.is_storage(x),
            lambda: torch.frombuffer(b"abcd", dtype=torch.uint8),
            lambda: torch.broadcast_shapes((1,), (2,)),
            lambda: torch.manual_seed(1),
            lambda: torch.promote_types(torch.int8, torch.float16),
            lambda: torch.result_type(x, x),
            lambda: torch.get_rng_state(),
            lambda: torch.full((2,), 1.0),
            lambda: torch.rand(1),
            lambda: 1 / x,
            lambda: init.uniform_(x),
            lambda: init.normal_(x),
            lambda: init.constant_(x, 2),
            lambda: init.kaiming_uniform_(x),
        ):
            log.append("")
            call()
    torch.set_rng_state(state)
    return log


@program
def other_classes_in_initial_values(torch):
    init = torch.nn.init
    torch.overrides.is_tensor_like(Scalar(1))
    fns = init.uniform_, init.normal_, init.constant_, init.kaiming_uniform_, torch.is_tensor, torch.is_storage
    return [outcome(lambda f=f: named(f(Scalar(1), 0.5) if f in fns[:4] else f(Scalar(1)))[0]) for f in fns]


@program
def a_mode_that_answers(torch):
    class Sevens(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return 7 if func is torch.exp else func(*args, **kwargs or {})

    x = torch.zeros(2)
    with Sevens():
        inside = torch.exp(x), named(torch.sin(x))
    return (
        inside,
        named(torch.exp(x)),
        outcome(lambda: torch.overrides.TorchFunctionMode().__torch_function__(None, ())),
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, torch):
    agree(PROGRAMS[name], torch)


def test_plain_tensors_take_no_detour():
    """A program without overriding classes runs what it always did, and one with them its operators."""
    codes = {name: fn.__code__ for name, fn in tinytorch.ops.FUNCTIONS.items()}
    operators = {
        n: f.__code__ for n, f in vars(tinytorch.Tensor).items() if n in ("__add__", "__rsub__", "exp", "size")
    }

    class Off(tinytorch.nn.Parameter):
        pass

    assert all(fn.__code__ is codes[name] for name, fn in tinytorch.ops.FUNCTIONS.items())
    plus(tinytorch)
    assert tinytorch.add.__code__ is not codes["add"] and Off.__mro__.count(overridable.Overridable) == 0
    assert all(getattr(tinytorch.Tensor, n).__code__ is code for n, code in operators.items())


def test_other_classes_are_asked_once_overrides_was_used():
    """Before, no function looks for them (in PyTorch all do, always)."""
    with pytest.raises(TypeError):
        tinytorch.exp(Scalar(1))
    assert tinytorch.overrides.is_tensor_like(Scalar(1))
    assert tinytorch.exp(Scalar(1)) == ("exp", ["Scalar"], 1, [])


def test_signatures_and_sources_stay():
    names = ("softmax", "cat", "exp", "einsum")
    before = [(inspect.signature(getattr(tinytorch, n)), inspect.getsource(getattr(tinytorch, n))) for n in names]
    plus(tinytorch)
    assert before == [
        (inspect.signature(getattr(tinytorch, n)), inspect.getsource(getattr(tinytorch, n))) for n in names
    ]


def test_beside_a_profiler():
    with profile() as p:
        Sub, _ = plus(tinytorch)  # while it runs
        m = tinytorch.ones(2).as_subclass(Sub)
        tinytorch.exp(m)
    assert type(tinytorch.exp(m)) is Sub and "exp" in [e.name for e in p.events()]
    with profile() as p:
        assert type(tinytorch.exp(m)) is Sub
    assert type(tinytorch.exp(m)) is Sub and [e.name for e in p.events()].count("exp") == 1


def test_threads_have_modes_of_their_own():
    seen = []

    class Noting(tinytorch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **kwargs or {})

    with Noting():
        thread = threading.Thread(target=lambda: tinytorch.ones(2).exp())
        thread.start()
        thread.join()
    assert seen == []


def test_names():
    overrides = tinytorch.overrides
    assert overrides.resolve_name(tinytorch.add) == "tinytorch.add"
    assert overrides.resolve_name(tinytorch.Tensor.exp) == "tinytorch.Tensor.exp"
    assert overrides.resolve_name(tinytorch.Tensor.shape.__get__) == "tinytorch.Tensor.shape.__get__"
    assert overrides.resolve_name(len) is None
    assert overrides.resolve_name(mock.Mock()) is None  # has `op`, as any name, but no __qualname__
    found = overrides.get_overridable_functions()
    assert tinytorch.add in found[tinytorch] and tinytorch.zeros not in found[tinytorch]
    assert tinytorch.Tensor.add in found[tinytorch.Tensor]
    assert overrides.is_tensor_method_or_property(tinytorch.Tensor.shape.__get__)
    assert overrides.is_tensor_method_or_property(tinytorch.Tensor.add)
    assert not overrides.is_tensor_method_or_property(tinytorch.zeros)
