"""What a profile sees of operators, derivatives, threads and memory, and that it changes nothing."""

import inspect
import threading
import types

import numpy as np
import pytest

import tinytorch as torch
from tinytorch import nn
from tinytorch.autograd import engine
from tinytorch.autograd.node import Node
from tinytorch import cpu
from tinytorch.profiler import Allocation, collect, profile, record_function
from tinytorch.tensor import FUNCTIONS, Tensor
from tinytorch.utils.data import DataLoader, TensorDataset


def functions():
    """Every function whose code might be replaced."""
    found = {}
    for owner in (
        FUNCTIONS,
        vars(Tensor),
        vars(nn.functional),
        vars(nn.Module),
        vars(torch.optim.Optimizer),
        vars(engine),
    ):
        found |= {id(f): f for f in owner.values() if isinstance(f, types.FunctionType)}
    return list(found.values())


def node_attributes():
    """Every Node class's derivatives; those not written yet are written when asked for."""
    classes, found = [Node], {}
    for cls in classes:
        classes += cls.__subclasses__()
        found |= {(cls, a): vars(cls)[a] for a in ("first_order", "backward") if hasattr(cls, a) and a in vars(cls)}
    return found


def named(p, kind="op"):
    return [e.name for e in p.events() if e.kind == kind]


def one(p, name):
    """The only event of that name that is not part of a derivative."""
    (event,) = [e for e in p.events() if e.name == name and (e.parent is None or e.parent.kind != "backward")]
    return event


def test_everything_is_put_back():
    before, nodes = [(f, f.__code__) for f in functions()], node_attributes()
    with profile():
        assert sum(f.__code__ is not code for f, code in before) > 300
        assert sum(node_attributes()[key] is not old for key, old in nodes.items()) > 100
        torch.ones(3).exp()
    assert all(f.__code__ is code for f, code in before)
    assert all(node_attributes()[key] is old for key, old in nodes.items())


def test_everything_is_put_back_after_an_exception():
    before = [(f, f.__code__) for f in functions()]
    with pytest.raises(ZeroDivisionError), profile() as p:
        torch.ones(3).exp()
        1 / 0  # noqa: B018
    assert all(f.__code__ is code for f, code in before)
    assert named(p) == ["ones", "exp"]


def test_wrapped_functions_keep_their_signatures():
    before = {f: str(inspect.signature(f)) for f in functions()}
    with profile():
        assert {f: str(inspect.signature(f)) for f in before} == before


def test_an_operator_is_one_event_whichever_way_it_is_called():
    a, b = torch.ones(2, 3), torch.ones(2, 3)
    calls = [
        lambda: a + b,
        lambda: torch.add(a, b),
        lambda: a.add(b),
        lambda: a.add_(b),
        lambda: 2 + a,
        lambda: torch.add(a, b, out=b),
        lambda: torch.exp(a),
        lambda: a.exp(),
        lambda: torch.matmul(a, b.t()),
        lambda: a @ b.t(),
        lambda: torch.relu(a),
        lambda: nn.functional.relu(a),
        lambda: a.sum(dim=1),
        lambda: torch.sum(a, axis=1),
        lambda: a[0],
        lambda: torch.cat([a, b]),
        lambda: torch.where(a > 0, a, b),
    ]
    wanted = [
        ["add"],
        ["add"],
        ["add"],
        ["add_"],
        ["add"],
        ["add"],
        ["exp"],
        ["exp"],
        ["t", "matmul"],
        ["t", "matmul"],
        ["relu"],
        ["relu"],
        ["sum"],
        ["sum"],
        ["getitem"],
        ["cat"],
        ["gt", "where"],
    ]
    for call, names in zip(calls, wanted):
        with profile() as p:
            call()
        assert [e.name for e in p.events() if e.parent is None] == names


def test_operands_and_results_are_recorded():
    a, b = torch.ones(2, 3), torch.ones(3, 4, dtype=torch.float64)
    with profile() as p:
        a.double() @ b
    event = one(p, "matmul")
    assert event.shapes == ((2, 3), (3, 4)) and event.dtypes == ("float64", "float64")
    assert event.outputs == (((2, 4), "float64"),)
    assert event.duration > 0 and p.trace.start <= event.start < event.end <= p.trace.end


def test_backward_is_linked_to_forward():
    x, w = torch.ones(2, 3, requires_grad=True), torch.ones(3, requires_grad=True)
    with profile(with_stack=True) as p:
        y = x * w
        y.exp().sum().backward()
    for op, node in (("mul", "MulBackward0"), ("exp", "ExpBackward0"), ("sum", "SumBackward0")):
        forward, backward = one(p, op), one(p, node)
        assert forward.kind == "op" and backward.kind == "backward"
        assert forward.sequence == backward.sequence is not None
        assert backward.stack == forward.stack and __file__ in forward.stack[0]
        assert backward.parent.name == "backward"
    assert named(p, "backward").count("AccumulateGrad") == 2


def test_an_operator_that_gives_its_argument_back_made_no_node():
    x = torch.ones(3, requires_grad=True)
    with profile() as p:
        y = x * 2
        y.contiguous()
        y.float()
    made = [e.name for e in p.events() if e.sequence is not None]
    assert made == ["mul"]


def test_operators_of_several_results_are_linked():
    x = torch.ones(4, requires_grad=True)
    with profile() as p:
        a, b = torch.split(x, 2)
        (a * b).sum().backward()
    node = [e for e in p.events() if e.name == "SplitBackward0"]
    assert len(node) == 1 and one(p, "split").sequence == node[0].sequence


def test_custom_functions_are_named():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = torch.ones(3, requires_grad=True)
    with profile() as p:
        Double.apply(x).sum().backward()
    assert "DoubleBackward" in named(p, "backward")


def training(seed=0):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.randn(5, 8), torch.randint(4, (5,))

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step, model


@pytest.mark.parametrize("options", [{}, {"with_stack": True}, {"profile_memory": True}])
def test_nothing_changes(options):
    step, model = training()
    plain = [step() for _ in range(5)]
    step, profiled_model = training()
    with profile(**options):
        profiled = [step() for _ in range(5)]
    assert plain == profiled
    for a, b in zip(model.parameters(), profiled_model.parameters()):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


def takes_over(keep):
    """Does a leaf's gradient take the memory of the one that arrived? ``keep``: others hold that."""
    x, g = torch.ones(4, requires_grad=True), torch.full((4,), 3.0)
    arrived, kept = [], []

    def look(grad):
        arrived.append(grad.data_ptr())
        kept.extend([grad] * keep)

    x.register_hook(look)
    (x * g).sum().backward()
    return x.grad.data_ptr() in arrived


def test_a_leaf_takes_over_a_gradient_that_nobody_else_holds():
    before = engine.owned_refcount
    assert takes_over(False) and not takes_over(True)
    with profile():
        assert takes_over(False) and not takes_over(True)
        assert engine.owned_refcount > before, "the wrapper holds a reference more"
    assert takes_over(False) and not takes_over(True)
    assert engine.owned_refcount == before


def test_one_gradient_for_two_leaves_is_not_shared():
    def apart():
        x, y = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)
        (x + y).backward(torch.ones(4) * 2)
        return len({x.grad.data_ptr(), y.grad.data_ptr()}) == 2

    assert apart()
    with profile():
        assert apart()


def test_errors_are_the_same_and_are_recorded():
    a, b = torch.ones(2, 3), torch.ones(4)
    with pytest.raises(RuntimeError) as plain:
        a + b
    with profile() as p, pytest.raises(RuntimeError) as profiled:
        a + b
    assert str(plain.value) == str(profiled.value)
    assert one(p, "add").extra == {"raised": True}


def test_threads_have_their_own_timelines():
    def work():
        with record_function("in the thread"):
            torch.ones(10).exp()

    threads = [threading.Thread(target=work, name=f"worker {k}") for k in range(3)]
    with profile() as p:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        torch.ones(10).exp()
    by_thread = {}
    for e in p.events():
        by_thread.setdefault(e.thread, []).append(e)
    assert len(by_thread) == 4 and set(by_thread) <= set(p.trace.threads)
    for events in by_thread.values():
        assert {"ones", "exp"} <= {e.name for e in events}
        scopes = [e for e in events if e.kind == "user"]
        assert all(c.thread == s.thread for s in scopes for c in s.children)


def test_threads_that_have_ended_keep_their_names():
    def work():
        torch.ones(10).exp()

    class Late(threading.Thread):
        def run(self):
            self.name = "named late"
            go.wait()
            work()

    original, go = threading.Thread.start, threading.Event()
    early = Late()
    early.start()
    with profile() as p:
        go.set()
        early.join()
        for k in range(3):
            thread = threading.Thread(target=work, name=f"short {k}")
            thread.start()
            thread.join()
    assert threading.Thread.start is original
    names = {p.trace.threads[e.thread] for e in p.events() if e.name == "exp"}
    assert "named late" in names and names & {"short 0", "short 1", "short 2"}  # a number may be given again
    assert all(name == "named late" or name.startswith("short") for name in names)


@pytest.mark.parametrize("workers, name", [(0, "_SingleProcessDataLoaderIter"), (1, "_MultiProcessingDataLoaderIter")])
def test_batches_of_a_loader_are_reported(workers, name):
    loader = DataLoader(TensorDataset(torch.ones(6, 2)), batch_size=2, num_workers=workers)
    batches = iter(loader)  # before there is a profiler
    with profile() as p:
        taken = [b[0].shape for b in batches]
    told = [e for e in p.events() if e.name == f"enumerate(DataLoader)#{name}.__next__"]
    assert taken == [(2, 2)] * 3 and [e.extra for e in told] == [None] * 3 + [{"raised": True}]
    assert {e.kind for e in told} == {"module"}
    assert workers or [e.parent for e in p.events() if e.name == "clone"] == told[:3]


def test_a_thread_that_outlives_the_profiler_is_left_in_peace():
    go, done = threading.Event(), threading.Event()

    def work():
        while not done.is_set():
            torch.ones(10).exp()
            go.set()

    thread = threading.Thread(target=work)
    with profile() as p:
        thread.start()
        go.wait()
    for _ in range(20):
        with profile():
            torch.ones(3)
    done.set()
    thread.join()
    assert len(p.events()) >= 2


def test_events_nest_in_each_thread():
    step, _ = training()
    with profile(profile_memory=True) as p:
        step()
    for e in p.events():
        for c in e.children:
            assert e.start <= c.start <= c.end <= e.end and c.parent is e
        for before, after in zip(e.children, e.children[1:]):
            assert before.end <= after.start
        assert 0 <= e.self_time <= e.duration


def test_modules_and_optimizers_are_reported():
    step, _ = training()
    with profile() as p:
        step()
    assert {
        "nn.Module: Sequential",
        "nn.Module: Linear",
        "nn.Module: GELU",
        "Optimizer.step#Adam.step",
        "Optimizer.zero_grad#Adam.zero_grad",
    } == set(named(p, "module"))


@pytest.mark.parametrize("size", [4, 100_000])
def test_memory_is_told_with_its_operator(size):
    with profile(profile_memory=True) as p:
        a = torch.ones(size)
        b = a + a
        del b
    assert all(isinstance(a, Allocation) for a in p.trace.allocations)
    rows = {r.key: r for r in p.key_averages()}
    assert rows["add"].self_cpu_memory_usage >= 4 * size
    taken = [x for x in p.trace.allocations if x.size > 0]
    given_back = [x for x in p.trace.allocations if x.size < 0]
    assert given_back and all(any(t.address == g.address and t.size == -g.size for t in taken) for g in given_back)
    for before, after in zip(p.trace.allocations, p.trace.allocations[1:]):
        assert after.total - before.total == after.size


def test_records_for_which_there_is_no_room_are_counted(monkeypatch):
    """Allocations and operators that were lost are told of; what is there is whole."""
    monkeypatch.setattr(collect, "MOST_BYTES", 1 << 21)
    with profile(profile_memory=True) as p:
        for _ in range(40_000):
            torch.ones(3) + 1
    lost, trace = p.trace.dropped, p.trace
    assert lost > 0
    assert all(e.start <= e.end for e in trace.events) and len(trace.allocations) > 1000
    # Of each turn: two operators, two blocks taken, two given back.
    assert len(trace.events) + len(trace.allocations) + lost == pytest.approx(6 * 40_000, rel=0.01)
    with profile(profile_memory=True) as p:
        torch.ones(3) + 1
    assert p.trace.dropped == 0 and sum(a.size for a in p.trace.allocations) == 0


def test_what_was_over_before_the_trace_began_is_not_in_it(monkeypatch):
    """Operators between the first record and the trace's start; and those that began then begin with the trace."""

    class Early:
        def __init__(self, options):
            pass

        def start(self):
            (torch.ones(3) + 1).exp()
            self.scope = record_function("open")
            self.scope.__enter__()

        def stop(self, trace):
            pass

    early = []
    monkeypatch.setattr(collect, "SOURCES", [*collect.SOURCES, lambda o: early.append(Early(o)) or early[-1]])
    with profile() as p:
        torch.ones(3).log()
        early[0].scope.__exit__(None, None, None)
    events = p.events()
    assert {e.name for e in events} == {"ones", "log", "open"}
    assert all(p.trace.start <= e.start <= e.end <= p.trace.end and e.self_time >= 0 for e in events)


def test_peaks_of_memory_are_as_without_a_profiler():
    def peak():
        cpu.reset_peak_memory_stats()
        before = cpu.memory_allocated()
        a = torch.ones(1000, 1000)
        b = a * 2
        del a, b
        return cpu.max_memory_allocated() - before

    plain = peak()
    with profile(profile_memory=True):
        profiled = peak()
    assert plain == profiled == peak()


def test_jobs_of_the_pool_are_reported():
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        a = torch.ones(2000, 2000)
        with profile() as p:
            for _ in range(10):
                a.exp()
    finally:
        torch.set_num_threads(threads)
    shares = [e for e in p.events() if e.kind == "kernel"]
    assert shares and {e.name for e in shares} == {"exp (pool)"}
    main = {e.thread for e in p.events() if e.kind == "op"}
    assert all(e.thread not in main and p.trace.threads[e.thread].startswith("tinytorch pool") for e in shares)
    assert any((e.extra or {}).get("threads") == 2 for e in p.events() if e.name == "exp")
