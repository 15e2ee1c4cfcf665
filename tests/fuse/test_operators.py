"""Every spelling of every operator in the catalog, for every dtype, in a few long programs: fused equals eager."""

import pytest

import tinytorch
from fuse import catalog
from fuse.catalog import DTYPES, FLOATS
from fuse.programs import Line, Program
from fuse.test_programs import INTERPRETED, NATIVE, Way, check, compiled
from tinytorch.ops.declare import Elementwise

ALL = [template for _, template in catalog.elementwise()]
WAYS = [Way(1), Way(7), *(w for w in INTERPRETED if w.threads == 2 and w.isa != NATIVE)]


def program(leaves, expressions):
    """A program that keeps the value of each expression; those that raise do so in it."""
    return Program(
        [Line(f"v{name} = leaf({arguments})") for name, arguments in leaves.items()],
        [Line(f"v{k} = {text}") for k, text in enumerate(expressions)],
        False,
    )


def inputs(dtype, shape=(3, 1025)):
    """x: any values, y: moderate ones in another layout, z: positive ones to be broadcast."""
    return {
        "x": f"{shape}, {dtype!r}, 'wild', 'contiguous', False, 0",
        "y": f"{shape}, {dtype!r}, 'mild', 'transposed', False, 1",
        "z": f"{shape[-1:]}, {dtype!r}, 'positive', 'strided', False, 2",
    }


def spelled(templates, orders=("xyz", "yzx", "zxy"), **more):
    for template in templates:
        for x, y, z in orders:
            yield template.format(x=f"v{x}", y=f"v{y}", z=f"v{z}", **{"k": 3, "i": 0, "d": -1, **more})


def test_the_catalog_has_every_operator():
    named = {*catalog.UNARY, *catalog.BINARY, *catalog.TERNARY}
    tables = {*Elementwise.TABLE, "cube"}  # which is the kernel of x ** 3 alone
    assert named | catalog.HIDDEN == tables and not named & catalog.HIDDEN


TABLES = {
    name: getattr(catalog, name)
    for name in (
        "MORE_UNARY",
        "CASTS",
        "FRESH",
        "RANDOM",
        "RANDOM_WRITES",
        "WRITES",
        "PARTS",
        "VIEWS",
        "VIEWS_OF_DIMENSIONS",
        "REDUCTIONS",
        "ROWS",
        "BARRIERS",
        "READS",
    )
}


@pytest.mark.parametrize("table", ["elementwise", *TABLES])
def test_every_template_says_something(table):
    """A misspelt one would always raise, on both sides alike."""
    for template in TABLES.get(table, ALL):
        for dtype in ("float32", "int32", "bool"):
            text = template.format(x="vx", y="vy", z="vz", k=1, i=0, d=0)
            text = text if table in ("RANDOM_WRITES", "WRITES", "PARTS") else f"v0 = {text}"
            script = program(dict.fromkeys("xyz", f"(3, 3), {dtype!r}, 'positive'"), [])
            script.lines = [Line(text)]
            if not script.run(tinytorch.no_grad())["raised"]:
                break
        else:
            pytest.fail(f"{template} raises for every dtype")


@pytest.mark.parametrize("dtype", DTYPES)
def test_elementwise(dtype):
    check(program(inputs(dtype), spelled((*ALL, *catalog.MORE_UNARY))), WAYS)


@pytest.mark.parametrize("dtype", DTYPES)
def test_elementwise_small(dtype):
    leaves = {name: f"(2, 3), {dtype!r}, 'wild', seed={k}" for k, name in enumerate("xyz")}
    check(program(leaves, spelled(ALL, ["xyz"])), [Way(2)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_elementwise_between_others(dtype):
    """With producers and consumers, none of which is kept."""
    texts = [f"(({text}) * 2)" for text in spelled([t.replace("{x}", "({x} + {y})") for t in ALL], ["yzz", "zyy"])]
    check(program(inputs(dtype), texts), [Way(2)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_scalars(dtype):
    """Python's numbers of every kind on either side."""
    texts = [
        template.format(x="vx", y=number)
        for spellings in catalog.BINARY.values()
        for template in spellings
        for number in ("2", "-3", "0.5", "0", "True", "inf", "1e-3", "300", "vs", "vt")
    ]
    leaves = inputs(dtype, (2, 5)) | {"s": "(), 'float64', 'positive'", "t": "(), 'int64', 'mild'"}
    check(program(leaves, texts), [Way(2)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_casts(dtype):
    texts = [
        f"{operand}.to(torch.{first}).to(torch.{second})"
        for operand in ("vx", "vy", "(vy * 2)")
        for first in DTYPES
        for second in (first, "float32", "int64")
    ]
    check(program(inputs(dtype), texts), WAYS)


@pytest.mark.parametrize("dtype", DTYPES)
def test_mixed_dtypes(dtype):
    leaves = inputs(dtype, (4, 300)) | {d: f"(300,), {d!r}, 'mild'" for d in DTYPES}
    texts = [
        template.format(x="vy", y=f"v{other}", z=f"v{other}")
        for other in DTYPES
        for template in (
            "{x} + {y}",
            "{y} * {x}",
            "{x} / {y}",
            "torch.where({x} > {y}, {x}, {y})",
            "{x} < {y}",
            "torch.maximum({x}, {y})",
            "torch.lerp({x}, {y}, {z})",
            "torch.pow({y}, {x})",
        )
    ]
    check(program(leaves, texts), [Way(2)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_writes(dtype):
    """Each into a copy of its own."""
    lines = []
    for k, template in enumerate((*catalog.WRITES, *catalog.PARTS)):
        for first, y in (("vx", "vy"), ("vy", "vz")):
            name = f"v{k}{first}"
            lines += [f"{name} = {first}.clone()", template.format(x=name, y=y, z="vz", k=2, i=-1)]
    script = program(inputs(dtype, (6, 6)), [])
    script.lines = [Line(text) for text in lines]
    check(script, [Way(2)])


@pytest.mark.parametrize("shape", [(3, 1025), (130, 9), (2, 5, 7), (4, 0, 3)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions(dtype, shape):
    """Bare, and with producers and consumers; of two layouts."""
    texts = list(spelled(catalog.REDUCTIONS, ["xyy", "yxx"]))
    for d in range(-1, len(shape) - 1):
        texts += spelled(catalog.ROWS, ["xyy", "yxx"], d=d)
    texts += [
        f"({t}) * 2 + 1"
        for t in spelled([t.replace("{x}", "({x} * 2 - {y})") for t in (*catalog.REDUCTIONS, *catalog.ROWS)], ["yzz"])
    ]
    check(program(inputs(dtype, shape), texts), WAYS)


@pytest.mark.parametrize("dtype", FLOATS)
def test_derivatives(dtype):
    """First and second ones of every spelling, with and without the kernels that serve first ones alone."""
    lines = []
    tables = (*ALL, *catalog.MORE_UNARY, *catalog.CASTS, *catalog.REDUCTIONS, *catalog.ROWS)
    rest = "[vx, vy, vz], allow_unused=True"
    for k, text in enumerate(spelled(tables, ["xyz"])):
        lines += [
            f"v{k} = {text}",
            f"g{k} = torch.autograd.grad(v{k}.sum(), {rest}, retain_graph=True)",
            f"h{k} = torch.autograd.grad((v{k} * v{k}).sum(), {rest}, create_graph=True)",
            f"vh{k} = torch.autograd.grad(sum((h * h).sum() for h in h{k} if h is not None), {rest})",
            f"v{k}a, v{k}b, v{k}c = g{k}",
            f"v{k}d, v{k}e, v{k}f = h{k}",
            f"v{k}g, v{k}h, v{k}i = vh{k}",
        ]
    leaves = {
        "x": f"(3, 40), {dtype!r}, 'positive', 'contiguous', True, 0",
        "y": f"(3, 1), {dtype!r}, 'mild', 'contiguous', True, 1",
        "z": f"(40,), {dtype!r}, 'mild', 'strided', True, 2",
    }
    script = program(leaves, [])
    script.lines = [Line(text) for text in lines]
    check(script, [Way(2)])


# ---- Compiled.


@pytest.mark.parametrize("dtype", ["float32", "int64", "bfloat16"])
def test_compiled(dtype):
    check(program(inputs(dtype), spelled(ALL, ["xyz"])), compiled()[1:2])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled_elementwise(dtype):
    check(program(inputs(dtype), spelled((*ALL, *catalog.MORE_UNARY))), compiled())


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled_reductions(dtype):
    texts = [
        f"({t}) * 2 + 1"
        for t in spelled([t.replace("{x}", "({x} * 2 - {y})") for t in (*catalog.REDUCTIONS, *catalog.ROWS)], ["yzz"])
    ]
    check(program(inputs(dtype), texts), compiled())
