"""Long chains, memory that comes back at once and stays flat, and many threads at a time."""

import os
import threading

import pytest
from compare import allocated

import tinytorch


def in_thread(function):
    """Run function in a thread of its own, with the default stack, and pass its error on."""
    errors = []

    def body():
        try:
            function()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def resident():
    """Bytes of this process's resident memory."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# ---- A million ops.


@pytest.mark.slow
@pytest.mark.parametrize("where", [lambda f: f(), in_thread], ids=["main thread", "other thread"])
def test_a_chain_of_a_million_ops(where, no_gc):
    """Forward, backward and release never recurse; afterwards nothing is left."""

    def chain():
        before = allocated()
        x = tinytorch.tensor(1.0, dtype=tinytorch.float64, requires_grad=True)
        y = x
        for _ in range(1_000_000):
            y = y * 1.0000001
        y.backward()
        assert x.grad.item() == pytest.approx(1.0000001**1_000_000)
        del y  # frees a million nodes
        z = x
        for _ in range(1_000_000):
            z = z + 1.0
        del z  # frees a million nodes that never saw a backward
        x.grad = None
        del x
        assert allocated() == before

    where(chain)


@pytest.mark.parametrize("length", [20_000])
@pytest.mark.parametrize("where", [lambda f: f(), in_thread], ids=["main thread", "other thread"])
def test_a_long_chain(where, length, no_gc):
    """The same, twenty times the recursion limit, in every run: through views and in-place writes as well."""

    def chain():
        x = tinytorch.ones(2, dtype=tinytorch.float64, requires_grad=True)
        y = x * 1
        for _ in range(length // 4):
            y = y.view(1, 2).view(2)
            y = y * 1.0
            y.add_(0.0)
        (g,) = tinytorch.autograd.grad(y.sum(), x, create_graph=True)
        assert g.tolist() == [1.0, 1.0]
        del g, y

    where(chain)


def test_a_long_chain_of_second_derivatives(no_gc):
    """The graph of a derivative is as deep as the graph itself."""
    x = tinytorch.tensor(1.0, dtype=tinytorch.float64, requires_grad=True)
    y = x
    for _ in range(2_000):
        y = y.sin()
    (g,) = tinytorch.autograd.grad(y, x, create_graph=True)
    (gg,) = tinytorch.autograd.grad(g, x)
    assert gg.item() < 0


# ---- Memory.


def test_an_intermediate_is_freed_with_its_last_reference(no_gc):
    x = tinytorch.ones(1000, requires_grad=True)
    before = allocated()
    y = x * 2
    one = allocated() - before
    assert one >= 4000
    z = y.sum()
    del y
    assert allocated() - before < one, "sum does not save its input"
    del z
    assert allocated() == before


@pytest.mark.parametrize(
    "graph",
    [
        lambda x: (x.exp() * x).sum(),  # exp saves its own output
        lambda x: (x.sigmoid().tanh() / x).log_softmax(0).sum(),
        lambda x: x.view(10, -1).t()[1:].unbind()[0].sum(),
        lambda x: _written(x),
        lambda x: tinytorch.autograd.grad((x.exp() * x).sum(), x, create_graph=True)[0].sum(),
        lambda x: tinytorch.nn.functional.layer_norm(x.view(10, -1), (x.numel() // 10,)).relu().std(),
        lambda x: tinytorch.cat([x.sort()[0], x.cumprod(0)]).max(),
    ],
    ids=["saved output", "chain", "views", "in place", "create_graph", "layer_norm", "several outputs"],
)
@pytest.mark.parametrize("backward", [False, True])
def test_a_graph_is_freed_by_reference_counting_alone(graph, backward, no_gc):
    x = tinytorch.ones(1000, requires_grad=True)
    graph(x)  # whatever is made once and kept, such as a cached constant, is made here
    before = allocated()
    y = graph(x)
    if backward:
        y.backward()
        x.grad = None
    del y
    assert allocated() == before


def _written(x):
    y = x * 1
    v = y[::2]
    v.mul_(2)
    y.neg_()
    v.add_(x[::2])
    return (y * y).sum()


def test_an_error_in_backward_frees_the_graph(no_gc):
    x = tinytorch.ones(1000, requires_grad=True)
    before = allocated()
    a = x * 1
    y = (a * a).sum()
    a.add_(1)
    try:
        y.backward()
    except RuntimeError:
        pass
    else:
        pytest.fail("the overwritten value went unnoticed")
    del a, y
    assert allocated() == before


def test_backward_frees_saved_values_as_it_goes(no_gc):
    x = tinytorch.ones(100_000, requires_grad=True)
    y = x
    for _ in range(10):
        y = y.sin()
    z = y.sum()
    del y
    held = allocated()
    z.backward()
    assert allocated() < held, "z is alive, but what its graph saved is not"


def model(m=tinytorch):
    m.manual_seed(0)
    w1 = (m.randn(16, 32) * 0.2).requires_grad_()
    w2 = (m.randn(32, 4) * 0.2).requires_grad_()
    x, target = m.randn(8, 16), m.randint(0, 4, (8,))
    return [w1, w2], x, target


def step(parameters, x, target):
    w1, w2 = parameters
    loss = tinytorch.nn.functional.cross_entropy((x @ w1).relu() @ w2, target)
    loss.backward()
    with tinytorch.no_grad():
        for p in parameters:
            p.sub_(p.grad, alpha=0.01)
            p.grad = None
    return loss


def step_with_create_graph(parameters, x, target):
    loss = tinytorch.nn.functional.cross_entropy((x @ parameters[0]).tanh() @ parameters[1], target)
    grads = tinytorch.autograd.grad(loss, parameters, create_graph=True)
    penalty = sum((g * g).sum() for g in grads)
    second = tinytorch.autograd.grad(loss + penalty, parameters)
    with tinytorch.no_grad():
        for p, g in zip(parameters, second):
            p.sub_(g, alpha=0.01)


@pytest.mark.parametrize(
    "train, steps",
    [
        pytest.param(step, 500, id="500 steps"),
        pytest.param(step_with_create_graph, 100, id="100 create_graph steps"),
        pytest.param(step, 10_000, id="10,000 steps", marks=pytest.mark.slow),
        pytest.param(step_with_create_graph, 1_000, id="1,000 create_graph steps", marks=pytest.mark.slow),
    ],
)
def test_training_leaves_memory_flat(train, steps, no_gc):
    parameters, x, target = model()
    for _ in range(50):
        train(parameters, x, target)
    held, before = allocated(), resident()
    for _ in range(steps):
        train(parameters, x, target)
    assert allocated() == held
    assert resident() - before < 2**20, "resident memory grew by more than 1 MiB"


# ---- Threads.


def train_one(seed, steps=60):
    generator = tinytorch.Generator().manual_seed(seed)
    w1 = (tinytorch.randn(8, 16, generator=generator) * 0.3).requires_grad_()
    w2 = (tinytorch.randn(16, 3, generator=generator) * 0.3).requires_grad_()
    x = tinytorch.randn(32, 8, generator=generator)
    target = tinytorch.randint(0, 3, (32,), generator=generator)
    losses = [step([w1, w2], x, target).item() for _ in range(steps)]
    return losses, w1.tolist(), w2.tolist()


def test_eight_threads_train_as_one_after_another():
    serial = [train_one(seed) for seed in range(8)]
    results = [None] * 8

    def work(seed):
        results[seed] = train_one(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == serial


def test_threads_backward_through_one_shared_leaf():
    """Gradients of one parameter, added up from several threads' graphs: none is lost."""
    x = tinytorch.ones(64, requires_grad=True)
    lock = threading.Lock()

    def work():
        for _ in range(50):
            y = (x * 2).sum()
            (g,) = tinytorch.autograd.grad(y, x)
            with lock:
                x.grad = g if x.grad is None else x.grad + g

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.tolist() == [400.0] * 64


def test_blocks_freed_in_another_thread_come_back():
    before = allocated()
    box = [tinytorch.ones(1000) for _ in range(100)]
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    assert allocated() == before
