"""explain, the reasons why programs end, and the user's lines in generated code."""

import functools
import re
import textwrap
import threading
from pathlib import Path

import pytest

import tinytorch
from fuse import helpers
from fuse.helpers import ROOT, chain, python, ramp, same
from tinytorch import fuse
from tinytorch.backends.cpu import lib
from tinytorch.fuse import listeners

line_of = functools.partial(helpers.line_of, __file__)


def observed():
    """The bits that C reports."""
    bits = lib.tt_fuse_set(lib.TT_FUSE_OBSERVE, 0)
    lib.tt_fuse_set(lib.TT_FUSE_OBSERVE, bits)
    return bits


@pytest.fixture(autouse=True)
def interpreted():
    """Nothing is compiled unless a test says so, and no listener is left in the end."""
    with tinytorch.config(fuse_hot=-1):
        yield
    assert observed() & ~(lib.TT_OBSERVE_HOT | lib.TT_OBSERVE_LINES) == 0


def softmax(x):
    e = (x - x.amax(1, keepdim=True)).exp()  # softmax, exp
    return e / e.sum(1, keepdim=True)  # softmax, quotient


TABLE = """\
5 operators recorded, run as 1 program of 1 kernel (0 compiled)
read 4.0 kB and written 4.0 kB; eagerly 20.3 kB and 12.3 kB; at most {peak} more memory than before

program 1: 5 operators, ended at {file}:{call}: end of the mode
  pattern  shape      dtype    in  out  stages  tier         read  written  operators            lines
  row_reduction  (37, 27)  float32  1  1  3  interpreted  4.0 kB  4.0 kB  max sub exp sum div  {file}:{first}-{last}"""


def test_the_table():
    x = ramp(37, 27)
    told = fuse.explain(softmax, x)  # the call of softmax
    place = listeners.Place(__file__, line_of("the call of softmax"))
    wanted = TABLE.format(
        peak=str(told).split("at most ")[1].split(" more")[0],
        file=str(place).rpartition(":")[0],
        call=place.line,
        first=line_of("softmax, exp"),
        last=line_of("softmax, quotient"),
    )
    assert re.sub(" +", " ", str(told)) == re.sub(" +", " ", wanted)
    assert same(told.result, softmax(x)) and repr(told) == str(told)


def test_the_table_s_columns_are_aligned():
    lines = str(fuse.explain(lambda x: (x.exp() + 1, x.sum()), ramp(4000))).splitlines()
    head = next(line for line in lines if line.startswith("  pattern"))
    rows = lines[lines.index(head) + 1 :]
    assert rows and all(row.index("interpreted") == head.index("tier") for row in rows)


def test_attributes():
    x = ramp(1000, 100)
    told = fuse.explain(lambda: chain(x))
    (program,), (kernel,) = told.programs, told.kernels
    assert told.recorded == program.operators == 6
    assert (kernel.pattern, kernel.shape, kernel.dtype) == ("pointwise", (1000, 100), "float32")
    assert kernel.operators == ("mul", "add", "tanh", "sub", "exp", "div")
    assert kernel.name == "mul_add_tanh_sub_exp_div"
    assert (kernel.inputs, kernel.outputs, kernel.stages, kernel.compiled) == (1, 1, 1, False)
    n = x.nbytes
    assert (told.bytes_read, told.bytes_written) == (n, n) == (kernel.reads, kernel.writes)
    assert (told.eager_bytes_read, told.eager_bytes_written) == (7 * n, 6 * n)
    assert kernel.operations == (1 + 1 + 26 + 1 + 18 + 1) * x.numel() and kernel.nanoseconds > 0
    assert n <= told.peak_memory < 3 * n
    assert program.cause == "leave" and not program.operator


def test_what_eager_mode_does_in_one_pass_is_counted_as_one():
    x = ramp(64, 500)
    n, rows = x.nbytes, 64 * 4
    for operator, written in (
        (lambda y: y.softmax(1), n),
        (lambda y: y.log_softmax(1), n),
        (lambda y: y.var(1), rows),
        (lambda y: y.std(1), rows),
        (lambda y: y.logsumexp(1), rows),
    ):
        told = fuse.explain(lambda operator=operator: operator(x + 1) * 2)
        assert len(told.programs) == 1 and told.recorded > 4, "recorded as several"
        assert (told.eager_bytes_read, told.eager_bytes_written) == (2 * n + written, n + 2 * written)
    y = (x + 1).requires_grad_()
    z = y.log_softmax(1)
    told = fuse.explain(lambda: tinytorch.autograd.grad(z, y, x * 2)[0])
    assert (told.eager_bytes_read, told.eager_bytes_written) == (3 * n, 2 * n)


def test_operands_and_layouts_are_counted():
    x, column, total = ramp(64, 32), ramp(64, 1), ramp(32)

    def run():
        total.add_((x.t().contiguous().t() * column).sum(0))

    kernels = fuse.explain(run).kernels
    assert sum(k.reads for k in kernels) >= x.nbytes + column.nbytes + total.nbytes
    assert sum(k.writes for k in kernels) >= x.nbytes + total.nbytes


def test_known_programs_and_compiled_kernels():
    x = ramp(777)

    def run():
        return (x * 7.25 - 3).exp()

    with tinytorch.config(fuse_hot=0):
        first = fuse.explain(run)
        assert fuse.wait(200)
        second = fuse.explain(run)
    assert [(t.programs[0].known, t.kernels[0].compiled) for t in (first, second)] == [(False, False), (True, True)]
    assert "(1 compiled)" in str(second) and "  compiled  " in str(second)
    third = fuse.explain(run)  # a negative fuse_hot: what is compiled is not used
    assert not third.kernels[0].compiled


def test_fills_and_random_numbers_are_operators_too():
    told = fuse.explain(lambda: (tinytorch.full((50,), 2.0), tinytorch.rand(20, 30) * 2))
    assert [k.operators for k in told.kernels] == [("fill",), ("random", "mul")]
    assert [k.shape for k in told.kernels] == [(50,), (20, 30)]


def ends(fn, *args):
    """(cause, operator, line of this file, reason) of each program."""
    return [
        (p.cause, p.operator, p.place.line if p.place and p.place.file == __file__ else None, p.reason)
        for p in fuse.explain(fn, *args).programs
    ]


def test_a_value_is_read():
    def run(x):
        y = x * 2
        if y.sum() > 0:  # read by bool
            y = y + 1
        y.max().item()  # read by item
        str(y - 1)  # read by str
        return float((y * 3).sum())  # read by float

    assert ends(run, ramp(5).abs() + 1) == [
        ("value", "", line_of("read by bool"), "value read by bool()"),
        ("value", "", line_of("read by item"), "value read by item()"),
        ("value", "", line_of("read by str"), "value read by print"),
        ("value", "", line_of("read by float"), "value read by float()"),
    ]


def test_an_operator_is_not_fused():
    def run(x):
        y = (x * 2).sort().values  # sorted
        y = tinytorch.nn.functional.linear(y + 1, y.expand(5, 5) * 1)  # linear
        return y * 2

    told = ends(run, ramp(5))
    assert told[0] == ("operator", "sort", line_of("sorted"), "sort is not fused")
    assert told[1] == ("operator", "linear", line_of("linear"), "linear is not fused")
    assert told[-1][:2] == ("leave", "")


def test_a_derivative_is_not_fused():
    def run(w, x):
        y = (x @ w).tanh()
        y.sum().backward()  # derivative

    told = ends(run, ramp(5, 5).requires_grad_(), ramp(5, 5))
    assert ("operator", "MmBackward0", line_of("derivative"), "MmBackward0 is not fused") in told


def test_memory_is_shared():
    def run(x):
        y = x * 2
        a = y.numpy()  # shared
        return a, y + 1

    assert ends(run, ramp(5))[0] == ("shared", "numpy", line_of("shared"), "memory shared by numpy()")


def test_an_operator_writes_at_once():
    def run(x):
        y = x * 2
        y.index_add_(0, tinytorch.tensor([0, 1]), x[:2])  # written
        return y

    cause, operator, line, _ = ends(run, ramp(5))[0]
    assert cause in ("write", "operator") and operator == "index_add_" and line == line_of("written")


def test_a_program_gets_too_long():
    def run(x):
        for _ in range(1500):
            x = x + 1  # again and again
        return x

    told = ends(run, ramp(5))
    assert told[0] == ("limit", "", line_of("again and again"), "size limit of a program")
    assert [cause for cause, *_ in told] == ["limit", "leave"]


def test_another_thread_needs_a_value():
    def run(x):
        y = x * 2  # recorded here
        thread = threading.Thread(target=lambda: y.tolist())  # needed there
        thread.start()
        thread.join()
        return y + 1

    told = fuse.explain(run, ramp(5))
    first = told.programs[0]
    assert (first.cause, first.place.line) == ("thread", line_of("needed there"))
    assert first.reason == "needed by another thread, in tolist()"
    assert [p.line for p in first.places] == [line_of("recorded here")]
    assert told.programs[1].cause == "leave"


def test_other_threads_are_not_explained():
    stop, started = threading.Event(), threading.Event()

    def busy():
        while not stop.is_set():
            with fuse():
                chain(ramp(3))
            started.set()

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        started.wait(10)
        for _ in range(20):
            assert fuse.explain(lambda: ramp(7) * 2).recorded == 1
    finally:
        stop.set()
        thread.join()


def test_memory_figures_ask_for_everything():
    def run(x):
        y = x * 2
        tinytorch.cpu.max_memory_allocated()  # asked
        return y

    assert ends(run, ramp(5)) == [("asked", "", line_of("asked"), "asked to run by max_memory_allocated()")]


def test_the_mode_ends_inside():
    def run(x):
        with fuse():
            y = x * 2
        return y + 1

    assert [(p.operators, p.cause) for p in fuse.explain(run, ramp(5)).programs] == [(2, "leave")]
    with fuse():
        told = fuse.explain(run, ramp(5))
        assert [(p.operators, p.cause) for p in told.programs] == [(2, "asked")]
        assert lib.tt_fuse_depth() == 1


def test_what_was_pending_is_not_explained():
    with fuse():
        y = ramp(5) * 2
        assert fuse.explain(lambda: y + 1).recorded == 1


def test_functions_that_are_fused_and_pure_ones():
    x = ramp(5, 5)
    assert fuse.explain(fuse(chain), x).recorded == 6
    pure = fuse(chain, pure=True)
    pure(x)
    pure(x)
    (program,) = fuse.explain(pure, x).programs
    assert (program.cause, program.known, program.operators) == ("replay", True, 6)


def test_what_the_function_raises_is_raised():
    before = observed()
    with pytest.raises(ZeroDivisionError):
        fuse.explain(lambda: ramp(3) * (1 / 0))
    assert observed() == before and lib.tt_fuse_depth() == 0


def test_peaks_of_memory_are_as_they_were():
    big = ramp(1 << 16)
    del big
    before = tinytorch.cpu.max_memory_allocated()
    assert fuse.explain(lambda: ramp(10) * 2).peak_memory < 10000
    assert tinytorch.cpu.max_memory_allocated() == before


def test_training_is_explained_by_its_lines():
    model = tinytorch.nn.Sequential(tinytorch.nn.Linear(6, 4), tinytorch.nn.GELU(), tinytorch.nn.Linear(4, 1))
    x = ramp(8, 6)

    def step():
        loss = (model(x) ** 2).mean()
        loss.backward()  # all of backward

    told = fuse.explain(step)
    nodes = [(node.name, place) for p in told.programs for node, place in zip(p.trace.nodes, p.places)]
    assert ("gelu_backward", listeners.Place(__file__, line_of("all of backward"))) in nodes


def test_listing():
    x = ramp(4, 3)

    def run():
        y = x.t() * 2  # first
        y[0] += 0.5  # second
        return y.sum(1)  # third

    (program,) = fuse.explain(run).programs
    lines = program.trace.listing(lambda k: f"line {program.places[k].line}")
    assert [re.sub("  +", "  ", line).strip() for line in lines] == [
        f"0  s1[0: 3x4 by (1, 3)]: float32 (3, 4) = mul(s0[0: 3x4 by (1, 3)], 2)  line {line_of('first')}",
        f"1  s1[0: 4 by (3,)] = add(s1[0: 4 by (3,)], 0.5)  line {line_of('second')}",
        f"2  s2: float32 (3,) = sum(s1[0: 3x4 by (1, 3)], dim=(1,))  line {line_of('third')}",
    ]


# The hooks.


def test_nothing_is_reported_without_a_listener(monkeypatch):
    hot = listeners.HotLines()
    hot.failures = hot.MOST_FAILURES  # lines for generated code were given up
    with monkeypatch.context() as changed:
        changed.setattr(listeners._listeners, "hot", hot)
        changed.setattr(listeners._listeners, "traces", None)  # a hook that looked would fail
        listeners._listeners.update()
        assert observed() == 0
        with fuse():
            chain(ramp(5))
    listeners._listeners.update()


def test_no_exception_leaves_a_listener(capfd):
    def fails(run):
        raise KeyError("lost")

    end = listeners.subscribe(listeners.LINES, fails)
    try:
        with fuse():
            y = ramp(5) * 2
    finally:
        end()
    assert same(y, ramp(5) * 2)
    assert "tinytorch.fuse: ignored in a listener: KeyError: 'lost'" in capfd.readouterr().err


def test_a_listener_may_compute():
    seen = []

    def computes(run):
        with fuse():
            seen.append((ramp(3) * 2 + 1).sum().item())

    end = listeners.subscribe(listeners.RUNS, computes)
    try:
        for _ in range(3):
            with fuse():
                y = ramp(5) * 2
    finally:
        end()
    assert seen == [3, 3, 3] and same(y, ramp(5) * 2)  # its own runs are not reported


# The user's lines in generated code.


@pytest.fixture
def generated(tmp_path):
    """Runs a script in a process of its own; the generated sources it leaves."""

    def run(body, **environment):
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(body))
        python(
            f"import runpy; runpy.run_path({str(script)!r})",
            TINYTORCH_CACHE_DIR=str(tmp_path / "cache"),
            TINYTORCH_FUSE="0",
            **environment,
        )
        return [file.read_text() for file in (tmp_path / "cache").glob("*.c")]

    return run


LOOP = """
    import tinytorch
    from tinytorch.backends.cpu import lib
    x = tinytorch.ones(1000)
    told = []
    for k in range(6):
        with tinytorch.fuse():
            y = x * 2
            y = y.exp()
            z = (y + 1).sum()
        old = lib.tt_fuse_set(lib.TT_FUSE_OBSERVE, 0)
        lib.tt_fuse_set(lib.TT_FUSE_OBSERVE, old)
        told.append(old)
    assert tinytorch.fuse.wait(200)
    HOT, LINES = lib.TT_OBSERVE_HOT, lib.TT_OBSERVE_LINES
    assert told == [HOT, HOT | LINES, HOT, HOT, HOT, HOT], told
"""


def test_lines_are_taken_in_the_run_before_compilation_alone(generated):
    (text,) = generated(LOOP)
    for name, line in (("mul", 8), ("exp", 9), ("add", 10)):
        assert re.search(rf"\* +{name}_\d+ = {name}\(.*\)  f32 +\S*script\.py:{line}\n", text), text


def test_the_key_does_not_know_the_lines(generated):
    once = generated(LOOP)
    again = generated("\n\n" + textwrap.dedent(LOOP))  # the same kernel from other lines is found
    assert once == again


def test_lines_are_given_up():
    hot = listeners.HotLines()

    class Program:
        number, runs = 1, 2

    with tinytorch.config(fuse_hot=3):
        for failure in range(hot.MOST_FAILURES):
            assert hot.wanted() == listeners.HOT
            assert hot.ran(Program, None) and hot.wanted() == listeners.HOT | listeners.LINES
            assert not any(hot.tire() for _ in range(hot.PATIENCE - 1)) and hot.tire()
            assert hot.failures == failure + 1 and not hot.waiting
        assert hot.wanted() == 0


def test_stats_are_documented():
    before = fuse.stats()
    with fuse():
        y = chain(ramp(3, 7, 5))
    after = fuse.stats()
    assert {name: after[name] - before[name] for name in after} == {
        "recorded": 6,
        "programs": 1,
        "hits": 0,
        "misses": 1,
        "interpreted": 1,
        "compiled": 0,
        "jobs": 0,
        "replayed": 0,
        "left": 0,
    }
    assert y.shape == (3, 7, 5) and all(f"``{name}``" in fuse.stats.__doc__ for name in after)


def test_the_readme_s_example(tmp_path):
    """It prints what the README says, but for the peak of memory."""
    readme = (Path(ROOT) / "README.md").read_text()
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", readme, flags=re.M | re.S)
    (at,) = [k for k, (kind, text) in enumerate(blocks) if kind == "python" and "fuse.explain(best" in text]
    (tmp_path / "net.py").write_text(blocks[at][1])
    printed = python(
        f"import os, runpy; os.chdir({str(tmp_path)!r}); runpy.run_path('net.py')",
        TINYTORCH_FUSE="0",
        TINYTORCH_DEBUG="0",
    ).replace(f"{tmp_path}/", "")
    peak = re.compile("at most .* more memory")
    assert peak.sub("", printed) == peak.sub("", blocks[at + 1][1])
