"""minify: failing recordings become small scripts. Faults are put into generated code in processes of their own, so
that no wrong kernel is left in this one."""

import ast
import base64
import json
import os
import signal
import subprocess
import sys
import textwrap
import zlib

import numpy as np
import pytest

import tinytorch
from fuse.helpers import chain, python, ramp, same
from tinytorch import fuse
from tinytorch.fuse import script, shrink, listeners
from tinytorch.fuse.case import Case, from_trace
from tinytorch.fuse.trace import number_value

FAULT = """
    import json, tinytorch as torch
    from tinytorch.fuse import codegen
    right = codegen.Stage.expression

    def put(name, wrong, needs=()):
        '''Generated code computes `wrong`, of the right expression, for an operator, beside those of `needs`.'''
        def expression(self, instr):
            text, names = right(self, instr), {i.name for i in self.instrs}
            return wrong.format(text) if instr.name == name and names >= set(needs) else text
        codegen.Stage.expression = expression

    def tell(found):
        print(json.dumps({"script": found.script, "tier": found.tier, "operators": found.operators,
                          "tried": found.tried}))
"""


@pytest.fixture
def faulty(tmp_path):
    """What minify finds in a process with a fault."""

    def run(body):
        return json.loads(
            python(
                textwrap.dedent(FAULT) + textwrap.dedent(body),
                TINYTORCH_CACHE_DIR=str(tmp_path),
                TINYTORCH_FUSE="0",
                TINYTORCH_FUSE_HOT="3",
            )
        )

    return run


def body_of(text):
    """The statements of a script's run(), without their comments."""
    run = next(f for f in ast.parse(text).body if getattr(f, "name", "") == "run")
    return [ast.unparse(s) for s in run.body]


def output_of(text, tmp_path, before=""):
    """What a script prints."""
    return python(textwrap.dedent(before) + text, TINYTORCH_CACHE_DIR=str(tmp_path / "other"), TINYTORCH_FUSE="0")


def test_one_operator_of_sixty(faulty, tmp_path):
    found = faulty("""
        put("tanh", "1e-3f + {}")

        def deep(x):
            for k in range(60):
                x = x.tanh() if k == 41 else (x * 1.01 + 0.1 if k % 2 else (x - 0.5).abs())
            return x.sum(0), x

        tell(torch.fuse.minify(deep, torch.randn(37, 50)))
    """)
    assert found["tier"] == "compiled" and found["operators"] == 1 and found["tried"] < 40
    statement, result = body_of(found["script"])
    assert "= torch.tanh(x" in statement and result.startswith("return ")
    # With the fault the script shows it; without, it shows that nothing is wrong.
    assert "fused tensor([[0.7626]]), eager tensor([[0.7616]])" in output_of(
        found["script"], tmp_path, FAULT + "\n    put('tanh', '1e-3f + {}')\n"
    )
    assert output_of(found["script"], tmp_path / "clean") == "result 0: the same\n"


def test_a_fault_that_needs_two_operators(faulty):
    found = faulty("""
        put("exp", "2.0f * {}", needs=("sqrt",))

        def mixed(x, w):
            y = x.exp().sum(1)  # a kernel without a root
            z = ((x - w).exp() + (x * x + 1).sqrt()) / w
            return y, z.relu()

        tell(torch.fuse.minify(mixed, torch.randn(40, 21), torch.rand(21) + 1))
    """)
    assert found["tier"] == "compiled" and found["operators"] <= 3
    text = " ".join(body_of(found["script"]))
    assert "torch.exp(" in text and "torch.sqrt(" in text and "torch.div(" not in text and "relu" not in text


def test_a_fault_of_certain_values(faulty):
    found = faulty("""
        put("exp", "({0} > 20.0f ? 0.0f : {0})")
        x = torch.zeros(64, 33)
        x[41, 17] = 3.5

        def run(x):
            return ((x * 1.5).exp() + 1).log()

        tell(torch.fuse.minify(run, x))
    """)
    assert found["operators"] == 1 and "torch.exp(" in body_of(found["script"])[0]
    values = [n.value for n in ast.walk(ast.parse(found["script"])) if isinstance(n, ast.Constant)]
    assert any(isinstance(v, float) and v > 2.9 for v in values)  # a value that fails, of 2112


def test_steps_of_a_reduction(faulty):
    found = faulty("""
        put("sub", "{} + 0.5f", needs=("exp",))

        def softmax(x):
            e = (x - x.amax(1, keepdim=True)).exp()
            return e / e.sum(1, keepdim=True)

        tell(torch.fuse.minify(softmax, torch.randn(300, 45)))
    """)
    assert found["operators"] == 2
    assert [s.partition("= ")[2].partition("(")[0] for s in body_of(found["script"])[:2]] == ["torch.sub", "torch.exp"]


def test_a_fused_run_that_raises(faulty):
    found = faulty("""
        fused = torch.fuse.mode.Fused.__exit__

        def raises(self, *exc):
            before = torch.fuse.stats()["recorded"]
            fused(self, *exc)
            if torch.fuse.stats()["recorded"] - before >= 2:
                raise MemoryError("two operators are too many")

        torch.fuse.mode.Fused.__exit__ = raises
        tell(torch.fuse.minify(lambda x: ((x * 2).exp() + 1).sin(), torch.randn(8)))
    """)
    assert found["tier"] == "interpreted" and found["operators"] == 2
    assert "the fused run raises MemoryError: two operators are too many" in found["script"]


def test_a_check_of_the_user_s():
    """The smallest program whose result has an element above 50."""

    def run(x):
        y = (x * 3 + 1).sum(1)
        return (y * y).clamp(0, 70), tinytorch.rand(3)

    x = ramp(30, 20)
    found = fuse.minify(run, x, check=lambda fused, eager: any(bool((f > 50).any()) for f in fused))
    assert found.tier == "interpreted" and found.operators == 1 and str(found) == found.script
    assert found.script.startswith('"""Fused mode (interpreted) against eager mode: the check fails."""')
    names = {}
    exec(found.script.partition("if __name__")[0], names)
    (result,) = names["run"](*names["inputs"]())
    assert (result > 50).any()


def test_what_does_not_fail_is_refused():
    with pytest.raises(RuntimeError, match="minify: chain does not fail, neither interpreted nor compiled"):
        fuse.minify(chain, ramp(11))


def test_arguments_and_generator_are_as_before():
    x, values = ramp(5), []

    def writes(x, *, more):
        x += 1
        more[0].mul_(2)
        values.append(tinytorch.rand(1).item())
        return None

    state, more = tinytorch.get_rng_state(), [ramp(3)]
    with pytest.raises(RuntimeError, match="does not fail"):
        fuse.minify(writes, x, more=more)
    assert same(x, ramp(5)) and same(more[0], ramp(3)) and same(state, tinytorch.get_rng_state())
    assert len(values) >= 3 and len(set(values)) == 1


def test_writes_in_place_are_results():
    def writes(x):
        x[1:3].mul_(x[0])

    found = fuse.minify(writes, ramp(4, 3), check=lambda fused, eager: fused[0].abs().max() > 1)
    assert found.operators == 1 and "out=" in body_of(found.script)[0]


# Cases.


def recorded(fn, *args):
    """fn's results in fused mode, and its recordings as cases."""
    runs = []
    end = listeners.subscribe(listeners.LINES | listeners.DATA, lambda run: runs.append(shrink._data_of(run)))
    try:
        with fuse():
            results = fn(*args)
    finally:
        end()
    return results, [from_trace(*run) for run in runs]


def programs():
    x, column, half = ramp(6, 5), ramp(6, 1), ramp(6, 5).half()
    base = ramp(8, 9)

    yield "views", lambda: [x.t() * 2 + column.t(), x[1:4, ::2].exp(), x[None].expand(3, 6, 5) + 1, x.view(-1)[3:9] * 2]
    yield "writes", lambda: [base.clone()[2:5].add_(1), (base * 1)[:, 3].mul_(2), base.clone().fill_(3)]
    yield "casts", lambda: [half * 2, half.sum(0), x.double().mean(), (x > 0).sum(), x.to(tinytorch.bfloat16) - 1]
    yield (
        "reductions",
        lambda: [
            x.amax(1, keepdim=True),
            x.prod(0),
            (x > 1).any(1),
            (x > -9).all(),
            x.norm(2, 1),
            x.norm(1),
            x.norm(float("inf"), 0),
            tinytorch.count_nonzero(x, 0),
            x.nansum(),
            x.log().nanmean(1),
        ],
    )
    yield (
        "operators",
        lambda: [
            tinytorch.where(x > 0, x, column),
            tinytorch.lerp(x, column, 0.5),
            x.clamp(-1, 1),
            tinytorch.addcmul(x, x, column),
            tinytorch.nn.functional.gelu(x),
            tinytorch.nn.functional.softplus(x),
            tinytorch.div(x, 2, rounding_mode="trunc"),
        ],
    )
    yield (
        "random",
        lambda: [
            tinytorch.rand(7) * 2,
            tinytorch.empty(5).normal_(1, 2),
            tinytorch.randint(0, 9, (6,)),
            tinytorch.nn.functional.dropout(x, 0.3),
            tinytorch.empty(4).exponential_(2.0),
        ],
    )
    yield "numbers", lambda: [x + float("inf"), x * float("nan"), 2 - x, tinytorch.full((3,), -0.0), x**2]
    yield "parts of what was there", lambda: [base[2:5].fill_(3)._base * 2, base[:, 1:3].copy_(column[:1])._base.exp()]
    yield "bytes", lambda: [(x * 1).view(tinytorch.int32) + 1]


@pytest.mark.parametrize("name, run", [pytest.param(name, run, id=name) for name, run in programs()])
def test_a_case_is_its_recording(name, run):
    tinytorch.manual_seed(0)
    results, cases = recorded(run)
    found = {script.bits_of(t): t for case in cases for t in script.function_of(case)(*script.inputs_of(case))}
    whole = [r for r in results if r._h.storage.nbytes == r.nbytes]
    assert cases and whole
    assert all(script.bits_of(r) in found for r in whole)
    for case in cases:  # and the script says the same
        names = {}
        exec(script.script_of(case, -1, "").partition("if __name__")[0], names)
        for got, want in zip(names["run"](*names["inputs"]()), script.function_of(case)(*script.inputs_of(case))):
            assert same_bits(got, want)


def test_the_value_of_a_number():
    number = tinytorch.backends.cpu.ffi.new("tt_number *")
    for dtype, bits, value in (("BF16", 0x3FC0, 1.5), ("F16", 0x3E00, 1.5), ("F32", 0x3FC00000, 1.5), ("I64", 7, 7)):
        number.dtype, number.bits = getattr(tinytorch.backends.cpu.lib, f"TT_{dtype}"), bits
        assert number_value(number) == value


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and script.bits_of(a) == script.bits_of(b)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (1,), (3, 4), (40, 50)])
def test_inputs_in_a_script(dtype, shape):
    rng = np.random.default_rng(0)
    floating = dtype in ("float16", "bfloat16", "float32", "float64")
    made = rng.normal(size=shape) * 3 if floating else rng.integers(0, 2 if dtype == "bool" else 100, shape)
    kind = "float32" if dtype == "bfloat16" else dtype
    t = tinytorch.tensor(np.asarray(made).astype(kind)).to(getattr(tinytorch, dtype))
    code = t._h.dtype
    special = [t] + ([t * float("nan"), t * 0 - 0.0, t / 0] if floating else [])
    for value in special:
        text = script.input_text(script.array_of(value, code), code)
        got = eval(text, {"torch": tinytorch, "base64": base64, "zlib": zlib})
        assert same_bits(got, value), text
        assert len(text) < 30000


def test_a_script_runs_from_a_file(tmp_path):
    found = fuse.minify(lambda x: (x * 3).exp(), ramp(50), check=lambda fused, eager: fused[0].max() > 5)
    (tmp_path / "small.py").write_text(found.script)
    root = tinytorch.__path__[0] + "/.."
    done = subprocess.run(
        [sys.executable, tmp_path / "small.py"],
        capture_output=True,
        text=True,
        timeout=600,
        env={"PYTHONPATH": root, "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    assert (done.returncode, done.stdout) == (0, "result 0: the same\n"), done.stderr


def test_sizes_shrink_together():
    (_, (case,)) = recorded(lambda: [(ramp(6, 5).exp() + ramp(6, 1)).sum(1)])
    smaller = case.resized(6, 2, 4)
    assert isinstance(smaller, Case) and {x.shape for x in smaller.inputs.values()} >= {(2, 5)}
    (got,) = script.function_of(smaller)(*script.inputs_of(smaller))
    assert same(got, (ramp(6, 5).exp() + ramp(6, 1)).sum(1)[2:4])


@pytest.mark.parametrize("where", ["interpreted", "compiled"])
def test_a_crash_is_reduced_in_processes_of_its_own(where):
    """Stands for a kernel that crashes: whoever looks at a result beyond 20, in that tier, dies."""
    before = fuse.stats()["compiled"]

    def check(fused, eager):
        tier = "compiled" if fuse.stats()["compiled"] > before else "interpreted"
        if tier == where and any(bool((f > 20).any()) for f in fused if f.dtype.is_floating_point):
            os.kill(os.getpid(), signal.SIGKILL)
        return False

    small = fuse.minify(lambda x: ((x.sin() + 3).exp() * 2 - x, x.cos()), ramp(8, 50), check=check, isolate=True)
    assert small.tier == where and small.operators == 1 and "SIGKILL" in small.script
    with pytest.raises(RuntimeError, match="does not fail"):
        fuse.minify(lambda x: x.sin() + 1, ramp(8, 50), check=check, isolate=True)
