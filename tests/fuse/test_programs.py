"""Random programs (hypothesis) give the same bits fused as eagerly: values, versions, exceptions, derivatives; in both
tiers, on every number of threads and instruction set. See programs.py for what a program is."""

import contextlib
import re
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import sampled_from

import tinytorch
from fuse.helpers import in_threads
from fuse.programs import BLOCKS, LARGE, SMALL, Line, Program, left, programs, quiet
from fuse.snapshot import differences, snapshot
from tinytorch import fuse
from tinytorch.backends.cpu import ffi, lib

NATIVE = ffi.string(lib.tt_isa_name()).decode()


@dataclass(frozen=True)
class Way:
    """How a program is run: by how many threads, with which instructions, interpreted or compiled."""

    threads: int = 2
    isa: str = NATIVE
    compiled: bool = False
    step: bool = False  # every operator at once, by itself

    @contextlib.contextmanager
    def settings(self):
        threads, isa = tinytorch.get_num_threads(), lib.tt_isa_name()
        tinytorch.set_num_threads(self.threads)
        assert lib.tt_set_isa(self.isa.encode()) == 0
        try:
            with tinytorch.config(fuse_hot=0 if self.compiled else -1):
                yield
        finally:
            lib.tt_set_isa(isa)
            tinytorch.set_num_threads(threads)


def available():
    before = lib.tt_isa_name()
    names = [name for name in ("baseline", "avx2", "avx512") if lib.tt_set_isa(name.encode()) == 0]
    lib.tt_set_isa(before)
    return names


ISAS = available()
INTERPRETED = [*(Way(threads, isa) for isa in ISAS for threads in (1, 2, 7)), Way(step=True)]


def compiled(isa=NATIVE):
    """A kernel is compiled for the instructions in use when it is first wanted."""
    return [Way(threads, isa, compiled=True) for threads in (1, 2, 7)]


def check(program, ways):
    """The program leaves the same behind, run eagerly and in each of these ways; compiled also while it is not yet."""
    wanted = snapshot(program.run(contextlib.nullcontext()))
    for way in ways:
        with way.settings():
            found = [program.run(tinytorch.fuse(step=way.step))]
            if way.compiled:
                fuse.wait()
                found.append(program.run(tinytorch.fuse()))
            for names in found:
                told = differences(wanted, snapshot(names))
                assert not told, "\n".join([f"{way}:", *told])


def drawing(examples, **how):
    checks = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
    return settings(
        max_examples=examples,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=checks,
        **how,
    )


@contextlib.contextmanager
def counting(*names):
    """What is run here is fused indeed: these counters grow."""
    before = fuse.stats()
    yield
    after = fuse.stats()
    assert all(after[name] > before[name] for name in names), (before, after)


# ---- Interpreted.


def test_values():
    @drawing(400)
    @given(programs(SMALL))
    def run(program):
        check(program, INTERPRETED)

    with counting("recorded", "hits", "misses", "interpreted"):
        run()


@drawing(200)
@given(programs(BLOCKS))
def test_values_beyond_a_block(program):
    check(program, INTERPRETED)


@drawing(250)
@given(programs(SMALL, derivatives=True))
def test_derivatives(program):
    check(program, INTERPRETED)


@drawing(150)
@given(programs(BLOCKS, derivatives=True, kinds=("mild", "positive")))
def test_derivatives_beyond_a_block(program):
    check(program, INTERPRETED)


@drawing(25)
@given(programs(LARGE, derivatives=True))
def test_several_threads_at_work(program):
    check(program, INTERPRETED)


@drawing(100)
@given(programs(SMALL + BLOCKS, without=("share",)))
def test_pure_functions(program):
    """Calls of the program as a pure function are replayed where they can be, and run where they cannot."""
    wanted = [snapshot(found) for found in program.calls(lambda fn: fn, 5)]
    with tinytorch.config(fuse_hot=-1):
        got = [snapshot(found) for found in program.calls(lambda fn: tinytorch.fuse(fn, pure=True), 5)]
    told = [line for w, g in zip(wanted, got) for line in differences(w, g)]
    # A replayed result is new: how often it was written while it was computed is not known.
    told = [line for line in told if not re.match(r"call \d+, result \d+\._version", line)]
    assert not told, "\n".join(told)


def check_threads(program, hot):
    """Four threads run the program on values of their own, twice."""
    wanted = [snapshot(program.run(contextlib.nullcontext(), call)) for call in range(4)]
    got = {}

    def work(call):
        for again in range(2):
            scope = program.scope(call)
            raised = program.do(scope, tinytorch.fuse())
            got[call, again] = snapshot(left(scope, raised))

    with quiet(), tinytorch.config(fuse_hot=hot):
        in_threads(4, work)
    told = [f"thread {call}: {line}" for (call, _), found in got.items() for line in differences(wanted[call], found)]
    assert not told, "\n".join(told)


@drawing(40)
@given(programs(SMALL + BLOCKS, derivatives=True, without=("random",)))
def test_threads_at_once(program):
    check_threads(program, -1)


# ---- Compiled.


def test_compiled():
    @drawing(12)
    @given(programs(SMALL + BLOCKS, steps=12), sampled_from(ISAS))
    def run(program, isa):
        check(program, compiled(isa))

    with counting("compiled"):
        run()


@drawing(5)
@given(programs(SMALL + BLOCKS, derivatives=True, steps=12), sampled_from(ISAS))
def test_compiled_derivatives(program, isa):
    check(program, compiled(isa))


@drawing(2)
@given(programs(LARGE, steps=8))
def test_compiled_on_several_threads(program):
    check(program, compiled())


# ---- The same at length, other programs at every run.


@pytest.mark.slow
@pytest.mark.parametrize("families", [SMALL, BLOCKS, LARGE], ids=["small", "blocks", "large"])
@pytest.mark.parametrize("derivatives", [False, True], ids=["values", "derivatives"])
def test_thousands(families, derivatives):
    @drawing(200 if families is LARGE else 4000, derandomize=False)
    @given(programs(families, derivatives=derivatives, steps=40))
    def run(program):
        check(program, INTERPRETED)

    run()


@pytest.mark.slow
def test_hundreds_in_threads():
    """Kernels are compiled meanwhile."""

    @drawing(500, derandomize=False)
    @given(programs(SMALL + BLOCKS, derivatives=True, without=("random",)))
    def run(program):
        check_threads(program, 1)

    run()
    fuse.wait()


@pytest.mark.slow
@pytest.mark.parametrize("derivatives", [False, True], ids=["values", "derivatives"])
def test_hundreds_compiled(derivatives):
    @drawing(300, derandomize=False)
    @given(programs(SMALL + BLOCKS, derivatives=derivatives), sampled_from(ISAS))
    def run(program, isa):
        check(program, compiled(isa))

    run()


# ---- The comparison would notice.

SAME = ["v1 = v0 * 2", "v2 = v1[1:]", "v1.add_(1)", "v3 = torch.autograd.grad((v4 * v4).sum(), v4)[0]"]
WRONG = {
    "one bit": (
        ["v1.detach().numpy()[0, 1] = np.nextafter(v1[0, 1].item(), np.float32(9))"],
        "v1.bits: 1 of 6 elements differ, the first at (0, 1)",
    ),
    "a view not updated": (["v2 = v2 - 1"], "v2.bits"),
    "a version": (["v1.add_(0)"], "v1._version: 1 eagerly, 2 fused"),
    "a sign of zero": (["v5 = -v5"], "v5.bits: 1 of 1 elements differ, the first at ():"),
    "a gradient": (["v3 = v3 * 1.0000001"], "v3.bits"),
    "an accumulated gradient": (["v4.grad = v3"], "v4.grad: None eagerly"),
    "a history": (["v6 = v6.detach()"], "v6.grad_fn: ExpBackward0 eagerly, None fused"),
    "an exception": (["v1 + torch.ones(7)"], "raised.value"),
    "strides": (["v1 = v1.t().contiguous().t()"], "v1.stride: (3, 1) eagerly, (1, 2) fused"),
    "a name": (["del v3"], "v3 is there on one side alone"),
    "a number": (["v7 += 1"], "v7.value"),
}


def written(more=()):
    leaves = ["v0 = leaf((2, 3))", "v4 = leaf((2, 3), grad=True)"]
    lines = [*SAME, "v5 = torch.zeros(())", "v6 = v4.exp()", "v7 = v0.sum().item()", "v8 = v1 / 0 - v1 / 0", *more]
    return Program([Line(text) for text in leaves], [Line(text) for text in lines], False)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_result_is_seen(name):
    more, message = WRONG[name]
    results = [snapshot(program.run(contextlib.nullcontext())) for program in (written(), written(more))]
    assert any(message in line for line in differences(*results)), differences(*results)
    assert not differences(results[0], snapshot(written().run(contextlib.nullcontext())))


def test_a_program_prints_as_a_script():
    program = Program(
        [Line("v0 = leaf((2, 3), 'float32', 'mild')")],
        [Line("v1 = v0 * 2"), Line("v1 + torch.ones(7)", "RuntimeError: add: ...")],
        False,
    )
    scope = {}
    exec(compile(repr(program), "<script>", "exec"), scope)
    assert scope["v1"].tolist() == (scope["v0"] * 2).tolist()
