"""What an op costs when the data is tiny: both sides on one thread, in turns, in one process."""

from .models import small_products
from .suite import Suite
from .timing import together

SUITE = Suite("the cost of an op, and of training small models, on one thread", measure=together, rounds=100)


def _small(np):
    return np.random.default_rng(0).standard_normal((4, 4), dtype=np.float32)


def _numpy(operation):
    """The NumPy side of a row on one (4, 4) array."""

    def make(np):
        a = _small(np)
        return lambda: operation(a)

    return make


@SUITE.row("a + b (4,4)", target=0.55, numpy=_numpy(lambda a: a + a))
def add(torch):
    a, b = torch.randn(4, 4), torch.randn(4, 4)
    return lambda: a + b


@SUITE.row("a + b (4,4), recording", target=0.55)
def add_recording(torch):
    a, b = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4)
    return lambda: a + b


@SUITE.row("50 muls by a constant, forward + backward, per op", target=0.55, per=50)
def chain(torch):
    return small_products(torch, w_requires_grad=False)


@SUITE.row("50 muls by a parameter, forward + backward, per op", target=0.55, per=50)
def chain_both(torch):
    return small_products(torch, w_requires_grad=True)


@SUITE.row("second derivative of (tanh(x) * x).sum(), (4,4)", target=0.55)
def second_derivative(torch):
    x = torch.randn(4, 4, requires_grad=True)

    def step():
        (g,) = torch.autograd.grad((x.tanh() * x).sum(), x, create_graph=True)
        return torch.autograd.grad(g.sum(), x)

    return step


def _mlp_step(torch, make_optimizer):
    """A training step of a 64-64-64-10 MLP on 32 samples."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = make_optimizer(model.parameters())
    x, target = torch.randn(32, 64), torch.randint(10, (32,))

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), target).backward()
        optimizer.step()

    return step


@SUITE.row("MLP 64-64-64-10, batch 32, Adam step", target=0.4, optimizes=True)
def mlp_adam(torch, **options):
    return _mlp_step(torch, lambda parameters: torch.optim.Adam(parameters, lr=1e-3, **options))


@SUITE.row("MLP 64-64-64-10, batch 32, SGD step", target=0.5, optimizes=True)
def mlp_sgd(torch, **options):
    return _mlp_step(torch, lambda parameters: torch.optim.SGD(parameters, lr=1e-2, **options))


@SUITE.row("a * 2.0 (4,4)", numpy=_numpy(lambda a: a * 2.0))
def mul_scalar(torch):
    a = torch.randn(4, 4)
    return lambda: a * 2.0


@SUITE.row("x[0]", numpy=_numpy(lambda x: x[0]))
def select(torch):
    x = torch.randn(4, 4)
    return lambda: x[0]


@SUITE.row("x.view(16)", numpy=_numpy(lambda x: x.reshape(16)))
def view(torch):
    x = torch.randn(4, 4)
    return lambda: x.view(16)


@SUITE.row("x.view(16), recording")
def view_recording(torch):
    x = torch.randn(4, 4, requires_grad=True)
    return lambda: x.view(16)


@SUITE.row("x.t()", numpy=_numpy(lambda x: x.T))
def transpose(torch):
    x = torch.randn(4, 4)
    return lambda: x.t()


@SUITE.row("x[1:3]", numpy=_numpy(lambda x: x[1:3]))
def slices(torch):
    x = torch.randn(4, 4)
    return lambda: x[1:3]


@SUITE.row("x.unsqueeze(0).expand(3, 4, 4).permute(1, 2, 0), each", per=3)
def views(torch):
    x = torch.randn(4, 4)
    return lambda: x.unsqueeze(0).expand(3, 4, 4).permute(1, 2, 0)


@SUITE.row("x.sum()", numpy=_numpy(lambda x: x.sum()))
def sum_all(torch):
    x = torch.randn(4, 4)
    return lambda: x.sum()


@SUITE.row("x @ w (4,4)", numpy=_numpy(lambda x: x @ x))
def matmul(torch):
    x, w = torch.randn(4, 4), torch.randn(4, 4)
    return lambda: x @ w


@SUITE.row("relu(x)")
def relu(torch):
    x = torch.randn(4, 4)
    relu = torch.relu
    return lambda: relu(x)


@SUITE.row("torch.add(a, b, out=c)", target=0.5)
def add_out(torch):
    a, b, c = torch.randn(4, 4), torch.randn(4, 4), torch.zeros(4, 4)
    add = torch.add
    return lambda: add(a, b, out=c)


@SUITE.row("x.neg_()", target=0.4)
def neg_in_place(torch):
    x = torch.randn(4, 4)
    return lambda: x.neg_()


@SUITE.row("x.clamp(0, 1)", target=0.6)
def clamp(torch):
    x = torch.randn(4, 4)
    return lambda: x.clamp(0, 1)


@SUITE.row("m.lerp_(g, 0.1)", target=0.9)
def lerp_in_place(torch):
    m, g = torch.randn(4, 4), torch.randn(4, 4)
    return lambda: m.lerp_(g, 0.1)


@SUITE.row("v.addcmul_(g, g)", target=0.9)
def addcmul_in_place(torch):
    v, g = torch.zeros(4, 4), torch.randn(4, 4) * 1e-6
    return lambda: v.addcmul_(g, g)


@SUITE.row("x.zero_()", target=0.6)
def zero_in_place(torch):
    x = torch.zeros(4, 4)
    return lambda: x.zero_()


@SUITE.row("tensor([1.0, 2.0, 3.0, 4.0])", numpy=lambda np: lambda: np.array([1.0, 2.0, 3.0, 4.0]))
def from_list(torch):
    tensor = torch.tensor
    return lambda: tensor([1.0, 2.0, 3.0, 4.0])
