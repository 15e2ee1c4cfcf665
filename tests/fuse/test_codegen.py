"""Generated code: the bits of eager mode for every operator and cast, and how stages are cut into loops."""

import numpy as np
import pytest
import tinytorch as tt
from fuse.kernels import DTYPES, NUMPY, Kernel, Loaded, array, bits, operators, tensor, values
from tinytorch.backends.cpu import ffi, lib
from tinytorch.fuse import codegen
from tinytorch.fuse.codegen import SUFFIXES
from tinytorch.fuse.flags import ISAS
from tinytorch.ops.declare import Elementwise
from tinytorch.scalar import CHEAP, ELEMENTWISE

N = 3019  # no multiple of anything, and more than two blocks


HERE = ffi.string(lib.tt_isa_name()).decode()


@pytest.fixture(params=[pytest.param(isa, marks=() if isa == HERE else pytest.mark.slow) for isa in ISAS])
def isa(request):
    before = ffi.string(lib.tt_isa_name())
    if lib.tt_set_isa(request.param.encode()) < 0:
        pytest.skip(f"no {request.param} on this machine")
    yield request.param
    lib.tt_set_isa(before)


def operands(name, arity, dtype, rule):
    """Arrays for an operator, and their dtypes."""
    dtypes = ["b8" if rule == "SELECT" and k == 0 else dtype for k in range(arity)]
    divides = name in ("fmod", "remainder", "floor_divide", "trunc_divide")
    made = [values(t, N, k, divisor=divides and k == 1) for k, t in enumerate(dtypes)]
    if name == "pow" and np.issubdtype(NUMPY[dtype], np.integer):
        made[1] = np.abs(made[1] % 7).astype(NUMPY[dtype])
    return made, dtypes


def eagerly(name, arguments):
    """An operator's result; ``cube`` is the kernel of ``x ** 3`` alone."""
    return arguments[0] ** 3 if name == "cube" else Elementwise.TABLE[name].slow(arguments)


@pytest.mark.parametrize("dtype", ["f32", "f64", "u8", "i8", "i16", "i32", "i64", "b8"])
def test_every_operator_has_the_bits_of_eager_mode(dtype, isa, tmp_path):
    mine = [entry for entry in operators() if dtype in entry[2]]
    kernel, slots = Kernel(), []
    for stage, (name, arity, _, rule) in enumerate(mine):  # one function each
        inputs = [kernel.slot("load", "b8" if rule == "SELECT" and k == 0 else dtype, stage) for k in range(arity)]
        slots.append((inputs, kernel.op(name, dtype, *inputs, stage=stage)))
        kernel.store(slots[-1][1], stage)
    loaded = Loaded(kernel, tmp_path, isa)
    for stage, (name, arity, _, rule) in enumerate(mine):
        arrays, dtypes = operands(name, arity, dtype, rule)
        want = eagerly(name, tuple(tensor(a, t) for a, t in zip(arrays, dtypes))).numpy()
        inputs, out = slots[stage]
        for n in (N, 1, 0):
            got = loaded.result(out, dict(zip(inputs, arrays)), n, stage)
            assert bits(got) == bits(want[:n]), f"{name} of {dtype}, {n} elements"


def test_every_cast_has_the_bits_of_eager_mode(isa, tmp_path):
    pairs = [(a, b) for a in DTYPES for b in DTYPES]
    kernel, slots = Kernel(), []
    for stage, (a, b) in enumerate(pairs):
        source = kernel.slot("load", a, stage)
        slots.append((source, kernel.cast(source, b, stage)))
        kernel.store(slots[-1][1], stage)
    loaded = Loaded(kernel, tmp_path, isa)
    for stage, (a, b) in enumerate(pairs):
        data = values(a, N, stage)
        want = array(tensor(data, a).to(DTYPES[b])) if a != b else data
        source, out = slots[stage]
        assert bits(loaded.result(out, {source: data}, N, stage), b) == bits(want, b), f"{a} to {b}"


# Stages and loops.


def evaluate(kernel, inputs, stage):
    """What the instructions of a stage make of arrays, by eager operators, one by one."""
    known = {s: tensor(a, SUFFIXES[kernel.slots[s]["dtype"]]) for s, a in inputs.items()}
    for instr in kernel.instrs:
        if instr["stage"] != stage:
            continue
        arguments = tuple(known[s] for s in instr["in"] if s >= 0)
        dtype = DTYPES[SUFFIXES[kernel.slots[instr["out"]]["dtype"]]]
        if instr["kind"] == lib.TT_INSTR_OP:
            name = ELEMENTWISE[instr["op"]].name
            known[instr["out"]] = eagerly(name, arguments)
        else:
            known[instr["out"]] = arguments[0].to(dtype)
        assert known[instr["out"]].dtype == dtype
    return known


DIVISIONS = ("fmod", "remainder", "floor_divide", "trunc_divide", "pow")  # of integers: not by zero, no negative powers


def random_operators():
    """For each dtype: (name, arity, rule) of what there is for it, but for what shows a NaN's sign."""
    made = {t: [("cast", 1, "")] for t in DTYPES}
    for name, arity, dtypes, rule in operators():
        for t in dtypes:
            if name not in (("signbit", "copysign") if t in ("f32", "f64") else DIVISIONS):
                made[t].append((name, arity, rule))
        made["f32"].append(("move", 1, ""))
    return made


def random_stage(kernel, stage, rng, length):
    """Adds a stage of random instructions on random operands; its input slots and arrays."""
    known, arrays, there = {t: [] for t in DTYPES}, {}, random_operators()
    for t in DTYPES:
        for kind in ("load", "load", "const", "one") if t == "f32" else ("load", "one"):
            s = kernel.slot(kind, t, stage)
            arrays[s] = values(t, N if kind == "load" else 1, int(rng.integers(1000)))
            known[t].append(s)

    def pick(dtype):  # rather one of the latest
        return known[dtype][int(len(known[dtype]) * rng.random() ** 0.5)]

    for _ in range(length):
        t = "f32" if rng.random() < 0.5 else str(rng.choice(list(DTYPES)))
        name, arity, rule = there[t][rng.integers(len(there[t]))]
        if name == "move":
            known[t].append(kernel.instr("move", t, [pick(t)], t, stage=stage))
        elif name == "cast" or rng.random() < 0.2:
            to = str(rng.choice([d for d in DTYPES if d != t]))
            known[to].append(kernel.cast(pick(t), to, stage))
        else:
            inputs = [pick("b8" if rule == "SELECT" and k == 0 else t) for k in range(arity)]
            known["b8" if rule == "BOOL" else t].append(kernel.op(name, t, *inputs, stage=stage))
    return arrays


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_random_stages_have_the_bits_of_eager_mode(seed, isa, tmp_path):
    rng = np.random.default_rng(seed)
    kernel, stages = Kernel(), []
    for stage in range(16):
        first = len(kernel.instrs)
        arrays = random_stage(kernel, stage, rng, int(rng.integers(1, 60)))
        made = [i["out"] for i in kernel.instrs[first:]]
        outputs = sorted({made[-1], *rng.choice(made, min(len(made), 3))})
        for s in outputs:
            kernel.store(s, stage)
        stages.append((arrays, [int(s) for s in outputs]))
    loaded = Loaded(kernel, tmp_path, isa)
    for stage, (arrays, outputs) in enumerate(stages):
        want = evaluate(kernel, arrays, stage)
        for n in (N, 1):
            made = {s: np.zeros(N, NUMPY[SUFFIXES[kernel.slots[s]["dtype"]]]) for s in outputs}
            loaded({**arrays, **made}, n, stage)
            for s in outputs:
                dtype = SUFFIXES[kernel.slots[s]["dtype"]]
                expected = array(want[s] if want[s].ndim and want[s].numel() > 1 else want[s].expand(N).contiguous())
                assert bits(made[s][:n], dtype) == bits(expected[:n], dtype), f"stage {stage}, slot {s}"


def test_blocks_with_and_without_large_arguments(tmp_path, isa):
    kernel = Kernel()
    x = kernel.slot("load", "f32")
    doubled = kernel.op("add", "f32", x, x)
    total = kernel.op("add", "f32", kernel.op("sin", "f32", doubled), kernel.op("cos", "f32", x))
    kernel.store(total)
    loaded = Loaded(kernel, tmp_path, isa)
    data = np.linspace(-9, 9, 5 * 1024, dtype=np.float32)
    data[3000] = 1e30
    data[4096] = np.inf
    want = evaluate(kernel, {x: data}, 0)[total].numpy()
    for n in (5 * 1024, 1024, 1023, 3001):
        assert bits(loaded.result(total, {x: data}, n)) == bits(want[:n])


def test_a_result_may_lie_where_an_operand_lies(tmp_path):
    kernel = Kernel()
    x, y = kernel.slot("load", "f32"), kernel.slot("load", "f32")
    early = kernel.op("mul", "f32", x, y)  # lies where x lies; made in the first loop
    late = kernel.op("add", "f32", kernel.op("sin", "f32", early), x)  # reads x in the last, and lies where y lies
    late = kernel.op("sub", "f32", kernel.op("tanh", "f32", late), y)
    kernel.store(early)
    kernel.store(late)
    loaded = Loaded(kernel, tmp_path)
    a, b = values("f32", N, 1), values("f32", N, 2)
    want = evaluate(kernel, {x: a, y: b}, 0)
    loaded({x: a, y: b, early: a, late: b}, N)
    assert bits(a) == bits(want[early].numpy()) and bits(b) == bits(want[late].numpy())


def test_values_pass_from_stage_to_stage(tmp_path):
    kernel = Kernel(block=1000, row=100)
    x = kernel.slot("load", "f32")
    half = kernel.op("exp", "f32", x, last=1)  # used by the next stage
    summed = kernel.op("neg", "f32", half)  # reduced after this one
    kernel.reductions.append({"slot": summed, "stage": 0})
    row = kernel.slot("row", "f32", stage=0, last=1)
    out = kernel.op("mul", "f32", half, row, stage=1)
    unused = kernel.op("add", "f32", half, half, stage=0)
    kernel.store(out, 1)
    data, rows = values("f32", 1000, 1), values("f32", 1000, 2)
    for block, spread in ((1000, True), (100, False), (64, False), (199, False), (200, True)):
        kernel.block = block
        loaded = Loaded(kernel, tmp_path)
        memory = {s: np.zeros(1000, np.float32) for s in (half, summed, out)}
        loaded({x: data, **memory}, 1000, 0)
        loaded({row: rows, **memory}, 1000, 1)
        want = evaluate(kernel, {x: data}, 0)
        assert bits(memory[half]) == bits(want[half].numpy()) and bits(memory[summed]) == bits(want[summed].numpy())
        product = tensor(memory[half], "f32") * tensor(rows if spread else rows[:1], "f32")
        assert bits(memory[out]) == bits(product.numpy())
        assert f"out_{unused}" not in loaded.source


def test_a_cheap_value_is_recomputed(tmp_path):
    kernel = Kernel(block=1000, row=1000)
    x = kernel.slot("load", "f32")
    twice = kernel.op("add", "f32", x, x, last=1)
    square = kernel.op("mul", "f32", twice, twice, last=1)
    kernel.instrs[0]["recompute"], kernel.instrs[1]["recompute"] = 1, 2
    first = kernel.op("exp", "f32", square)
    kernel.store(first)
    second = kernel.op("sub", "f32", square, x, stage=1)
    kernel.store(second, 1)
    loaded = Loaded(kernel, tmp_path)
    data = values("f32", 1000, 1)
    want = evaluate(kernel, {x: data}, 0)
    want.update(evaluate(kernel, {x: data, square: want[square].numpy()}, 1))
    for stage, out in enumerate((first, second)):
        assert bits(loaded.result(out, {x: data}, 1000, stage)) == bits(want[out].numpy())
    assert f"out_{square}" not in loaded.source


@pytest.mark.parametrize("name", ["gelu", "silu"])
def test_an_operator_and_its_derivative_share_a_loop(name, tmp_path):
    kernel = Kernel()
    g, x, y = (kernel.slot("load", "f32") for _ in range(3))
    outs = [kernel.op(name, "f32", x), kernel.op(f"{name}_backward", "f32", g, x), kernel.op(name, "f32", y)]
    for out in outs:
        kernel.store(out)
    loaded = Loaded(kernel, tmp_path)
    inputs = {slot: values("f32", 1000, slot) for slot in (g, x, y)}
    want, made = evaluate(kernel, inputs, 0), {out: np.zeros(1000, np.float32) for out in outs}
    loaded({**inputs, **made}, 1000)
    for out in outs:
        assert bits(made[out]) == bits(want[out].numpy())
    assert loaded.source.count("TT_INDEPENDENT") == 2  # x's, and y's


def test_the_text_follows_from_structure_alone():
    def made(block, index):
        kernel = Kernel(block, 1)
        x, c = kernel.slot("load", "f32"), kernel.slot("const", "f32")
        kernel.slots[x]["index"] = kernel.slots[c]["index"] = index
        kernel.slots[c]["buffer"] = index
        kernel.store(kernel.op("mul", "f32", x, c))
        return codegen.source(kernel.struct())

    assert made(1024, 0) == made(640, 7)


def test_the_list_of_operators_names_the_users_lines():
    kernel = Kernel()
    x = kernel.slot("load", "f16")
    y = kernel.op("exp", "f32", kernel.cast(x, "f32"))
    kernel.store(kernel.op("lt", "f32", y, y))
    text = codegen.source(kernel.struct(), {0: "model.py:3", 1: "model.py:4", 2: ""}.get)
    head = [" ".join(line.split()) for line in text[: text.index("*/")].splitlines()]
    assert head[2:5] == [
        "* cast_1 = cast(load_0) f16 as f32 model.py:3",
        "* exp_2 = exp(cast_1) f32 model.py:4",
        "* lt_3 = lt(exp_2, exp_2) f32",
    ]
    assert "const float exp_2 = tt_exp_f32(cast_1);" in text and "model.py" not in codegen.source(kernel.struct())


def test_a_stage_without_instructions_has_a_function(tmp_path):
    kernel = Kernel()
    x = kernel.slot("load", "f32", stage=0, last=1)
    kernel.store(kernel.op("exp", "f32", x, stage=1), 1)
    Loaded(kernel, tmp_path)({}, 5, 0)


@pytest.mark.parametrize("wrong", ["twice", "later", "level"])
def test_a_kernel_that_makes_no_sense_is_refused(wrong):
    kernel = Kernel()
    x = kernel.slot("load", "f32")
    y = kernel.op("exp", "f32", x)
    if wrong == "twice":
        kernel.instrs.append(kernel.instrs[0])
    elif wrong == "later":
        kernel.instrs[0]["in"] = [kernel.slot("temp", "f32", stage=2), -1, -1]
    else:
        kernel.slots[x]["kind"] = lib.TT_SLOT_RESULT
    kernel.store(y)
    with pytest.raises(ValueError, match="codegen: stage 0"):
        codegen.source(kernel.struct())


# What is known of operators, against ops.h.


def test_the_table_of_operators_is_that_of_the_header():
    rows = operators()
    assert [(op.name, op.arity, op.gives_bool, op.periodic) for op in ELEMENTWISE] == [
        (name, arity, rule == "BOOL", rule == "PERIODIC") for name, arity, _, rule in rows
    ]
    assert all(op.cost >= CHEAP and op.flops >= 0 for op in ELEMENTWISE)
    assert {op.name: lib.tt_op_code(op.name.encode()) for op in ELEMENTWISE} == {
        row[0]: code for code, row in enumerate(rows)
    }


def test_a_loop_has_one_costly_function_and_its_neighbours():
    kernel = Kernel()
    slot = x = kernel.slot("load", "f32")
    for _ in range(3):
        slot = kernel.op("mul", "f32", kernel.op("tanh", "f32", kernel.op("add", "f32", slot, x)), x)
    kernel.store(kernel.op("fmod", "f32", slot, x))
    text = codegen.source(kernel.struct())
    bodies = text.split("TT_INDEPENDENT")[1:]
    assert [body.count("tt_tanh_f32") for body in bodies] == [1, 1, 1, 0]
    assert "tt_fmod_f32" in bodies[3] and bodies[3].count("tt_") == 1


def test_a_cheap_instruction_moves_to_its_user():
    """Else two values would wait between the loops in the place of none."""
    kernel = Kernel()
    x, y = kernel.slot("load", "f32"), kernel.slot("load", "f32")
    doubled = kernel.op("add", "f32", x, y)
    first = kernel.op("tanh", "f32", x)
    kernel.store(kernel.op("mul", "f32", kernel.op("tanh", "f32", first), doubled))
    bodies = codegen.source(kernel.struct()).split("TT_INDEPENDENT")[1:]
    assert "tt_add" in bodies[1] and "tt_add" not in bodies[0]


def test_what_is_the_same_for_all_elements_is_computed_once(tmp_path):
    kernel = Kernel()
    x, c = kernel.slot("load", "f32"), kernel.slot("const", "f32")
    scale = kernel.op("sin", "f32", kernel.op("exp", "f32", c))
    out = kernel.op("mul", "f32", x, scale)
    whole = kernel.op("trunc", "f32", kernel.cast(kernel.cast(scale, "i32"), "f32"))  # in C's eyes: of scale
    kernel.store(out)
    kernel.store(scale)
    kernel.store(whole)
    loaded = Loaded(kernel, tmp_path)
    before, _, inside = loaded.source.partition("for (")
    assert "tt_exp_f32" in before and "tt_sin_f32" in before and "tt_exp_f32" not in inside
    data, number = values("f32", N, 5), np.array([1.55], np.float32)
    want = evaluate(kernel, {x: data, c: number}, 0)
    memory = {s: np.zeros(N, np.float32) for s in (out, scale, whole)}
    loaded({x: data, c: number, **memory}, N)
    for s in memory:
        assert bits(memory[s]) == bits(want[s].expand(N).contiguous().numpy())
    assert np.signbit(memory[scale][0]) and not np.signbit(memory[whole][0])


def test_a_stage_of_nothing_but_numbers(tmp_path):
    kernel = Kernel()
    c = kernel.slot("const", "f32")
    out = kernel.op("exp", "f32", c)
    kernel.store(out)
    got = Loaded(kernel, tmp_path).result(out, {c: np.float32([2])}, N)
    assert (got == tt.tensor(2.0).exp().item()).all()


@pytest.mark.parametrize("half", ["f16", "bf16"])
def test_a_half_that_becomes_a_float_again_is_rounded_in_place(half, tmp_path):
    kernel = Kernel()
    x = kernel.slot("load", "f32")
    there = kernel.cast(x, half)
    back = kernel.cast(there, "f32")
    kernel.store(back)
    loaded = Loaded(kernel, tmp_path)
    assert f"tt_round_{half}_f32(" in loaded.source and "tt_cast" not in loaded.source
    every = tt.arange(-(2**15), 2**15, dtype=tt.int16).view(DTYPES[half]).float().numpy().view(np.int32)
    middles = every + (1 << (15 if half == "bf16" else 12))  # half way to the next
    random = np.random.default_rng(0).integers(-(2**31), 2**31, 1 << 20, dtype=np.int32)
    data = np.concatenate([random, *(part + d for part in (every, middles) for d in range(-2, 3))])
    data = data.astype(np.int32).view(np.float32)
    want = tensor(data, "f32").to(DTYPES[half]).float().numpy()
    assert bits(loaded.result(back, {x: data}, len(data))) == bits(want)
    kernel.store(there)
    assert f"tt_cast_f32_{half}(" in Loaded(kernel, tmp_path).source  # wanted itself, too
