"""A trace as a small program of its own: inputs, operators, results, and its text as a script.

Values are numbered: first the inputs, then what each step makes. A step that writes into a value that is there already
makes none. Operands show values as views.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..backends.cpu import lib
from ..dtypes import ALL
from ..layouts import row_major
from ..scalar import ELEMENTWISE, REDUCERS
from ..tensor import FUNCTIONS
from .trace import COPY, OP, RANDOM, REDUCE, Node, Operand, Trace

_FUNCTIONAL = {
    "silu": "nn.functional.silu({})",
    "gelu": "nn.functional.gelu({})",
    "gelu_tanh": 'nn.functional.gelu({}, approximate="tanh")',
    "logsigmoid": "nn.functional.logsigmoid({})",
    "trunc_divide": 'div({}, rounding_mode="trunc")',
    "cube": "pow({}, 3)",
}
_DRAWS = (
    "uniform_({a}, {b}{g})",
    "normal_({a}, {b}{g})",
    "log_normal_({a}, {b}{g})",
    "exponential_({a}{g})",
    "cauchy_({a}, {b}{g})",
    "geometric_({a}{g})",
    "bernoulli_({a}{g}).mul_({b})",
)


class View(NamedTuple):
    """Elements of a value. Either its dimensions in another order, with others put in (``dims``: for each dimension of
    the view that of the value, None for one that is not its), or any elements (``strides`` and ``offset``, in elements
    of ``dtype``)."""

    value: int
    shape: tuple[int, ...]
    dims: tuple[int | None, ...] | None = None
    strides: tuple[int, ...] = ()
    offset: int = 0
    dtype: int = 0


class Constant(NamedTuple):
    """A Python number."""

    value: float | int


class Value(NamedTuple):
    """What an input is, or a step makes."""

    dtype: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class Step(NamedTuple):
    """An operator applied to views and numbers, into a view; ``made``: the value it makes, or None."""

    kind: int
    op: int
    dtype: int
    shape: tuple[int, ...]
    dims: tuple[int, ...]  # reduced
    inputs: tuple[View | Constant, ...]
    out: View
    made: int | None
    place: str

    def reads(self) -> set[int]:
        """The values it looks at, or leaves parts of as they were."""
        found = {v.value for v in self.inputs if isinstance(v, View)}
        return found if self.made is not None else found | {self.out.value}


class Case(NamedTuple):
    """Inputs (arrays; bfloat16 as its bits), steps, and the values that are looked at in the end."""

    values: dict[int, Value]
    inputs: dict[int, np.ndarray]
    steps: tuple[Step, ...]
    results: tuple[int, ...]

    def run_source(self) -> str:
        """The function that computes the results, as text."""
        names = {v: f"x{v}" for v in self.inputs}
        lines = []
        for step in self.steps:
            if step.made is not None:
                names[step.made] = f"t{step.made}"
            text = _Text(self.values, names).statement(step)
            lines.append(f"    {text}  # {step.place}" if step.place else f"    {text}")
        head = f"def run({', '.join(names[v] for v in self.inputs)}):"
        return "\n".join([head, *lines, f"    return {', '.join(names[v] for v in self.results)},", ""])

    def without_unused(self) -> Case:
        """Without steps that no result depends on, and without inputs that no step reads."""
        wanted, kept = set(self.results), []
        for step in reversed(self.steps):
            if step.out.value in wanted:
                kept.append(step)
                wanted |= step.reads()
        return self.with_steps(kept[::-1])

    def with_steps(self, steps) -> Case:
        """Other steps; values and inputs that these do not mention go."""
        used = set(self.results).union(*(s.reads() | {s.out.value} for s in steps))
        return Case(
            {v: x for v, x in self.values.items() if v in used},
            {v: x for v, x in self.inputs.items() if v in used},
            tuple(steps),
            self.results,
        )

    def with_input(self, value: int, array: np.ndarray) -> Case:
        """With an input more, or another value of one."""
        old = self.values[value]
        values = {**self.values, value: Value(old.dtype, array.shape, row_major(array.shape))}
        return Case(values, {**self.inputs, value: array}, self.steps, self.results)

    def resized(self, size: int, low: int, high: int) -> Case | None:
        """With every dimension of that size cut to the places from ``low`` to ``high``; None where that cannot be."""

        def cut(shape):
            return tuple(high - low if n == size else n for n in shape)

        def view(v):
            if isinstance(v, Constant) or (v.dims is None and size not in (*v.shape, *self.values[v.value].shape)):
                return v
            return None if v.dims is None else v._replace(shape=cut(v.shape))

        steps = []
        for step in self.steps:
            operands, out = tuple(map(view, step.inputs)), view(step.out)
            if out is None or None in operands:
                return None
            steps.append(step._replace(shape=cut(step.shape), inputs=operands, out=out))
        inputs = {
            v: x[tuple(slice(low, high) if n == size else slice(None) for n in x.shape)].copy()
            for v, x in self.inputs.items()
        }
        values = {v: Value(x.dtype, cut(x.shape), row_major(cut(x.shape))) for v, x in self.values.items()}
        return Case(values, inputs, tuple(steps), self.results)


class _Text:
    """Steps as Python, with the values under these names."""

    def __init__(self, values: dict[int, Value], names: dict[int, str]):
        self.values, self.names = values, names

    def statement(self, step: Step) -> str:
        arguments = [self.operand(v) for v in step.inputs]
        text = self.call(step, arguments)
        if step.made is None:
            return text
        value = self.values[step.made]
        if step.kind in (COPY, RANDOM) or self.dtype_of(step) == value.dtype:
            return f"{self.names[step.made]} = {text}"
        out = self.names[step.made]
        return (
            f"{out} = torch.empty({value.shape}, dtype=torch.{ALL[value.dtype].name}); "
            f"{self.call(step._replace(made=None), arguments)}"
        )

    def dtype_of(self, step: Step) -> int:
        """Of what the public function gives."""
        if step.kind == OP:
            return lib.TT_BOOL if ELEMENTWISE[step.op].gives_bool else step.dtype
        return self.values[step.made].dtype

    def operand(self, v: View | Constant) -> str:
        """An operand as an expression."""
        if isinstance(v, Constant):
            return number_text(v.value)
        name, shape = self.names[v.value], self.values[v.value].shape
        if v.dims is None:
            dtype = ALL[v.dtype].name
            return (
                f"{name}.view(-1).view(torch.{dtype}).as_strided({v.shape}, {v.strides}, {v.offset})"
                if v.dtype != self.values[v.value].dtype
                else f"{name}.as_strided({v.shape}, {v.strides}, {v.offset})"
            )
        if v.dims == tuple(range(len(shape))):
            return name
        used = [d for d in v.dims if d is not None]
        unused = [d for d in range(len(shape)) if d not in used]  # of size 1
        if used + unused != list(range(len(shape))):
            name += f".permute({', '.join(map(str, used + unused))})"
        if unused:
            name += f"[{', '.join([':'] * len(used) + ['0'] * len(unused))}]"
        if None in v.dims:
            name += f"[{', '.join('None' if d is None else ':' for d in v.dims)}]"
        if any(d is None and n != 1 for d, n in zip(v.dims, v.shape)):
            name += f".expand({v.shape})"
        return name

    def call(self, step: Step, arguments: list[str]) -> str:
        """The call that computes a step; into its view where it makes no value."""
        out = None if step.made is not None else self.operand(step.out)
        if step.kind == COPY:
            return self.copy(step, arguments[0], out)
        if step.kind == RANDOM:
            return self.draw(step, out)
        if step.kind == REDUCE:
            text = self.reduction(step, arguments)
            return text if out is None else f"{out}.copy_({text})"
        name = ELEMENTWISE[step.op].name
        given = ", ".join(arguments)
        if name in _FUNCTIONAL and out is None:
            return f"torch.{_FUNCTIONAL[name].format(given)}"
        if name in FUNCTIONS:
            return f"torch.{name}({given}{f', out={out}' if out else ''})"
        return f'kernel("{name}", {given}{f", out={out}" if out else ""})'

    def copy(self, step: Step, argument: str, out: str | None) -> str:
        constant = isinstance(step.inputs[0], Constant)
        if out is not None:
            return f"{out}.fill_({argument})" if constant else f"{out}.copy_({argument})"
        value = self.values[step.made]
        dtype = f"torch.{ALL[value.dtype].name}"
        if constant:
            return f"torch.full({value.shape}, {argument}, dtype={dtype})"
        source = step.inputs[0]
        if source.shape != value.shape or source.dims != tuple(range(len(source.shape))):
            return f"torch.empty({value.shape}, dtype={dtype}).copy_({argument})"
        return f"{argument}.clone()" if self.values[source.value].dtype == value.dtype else f"{argument}.to({dtype})"

    def draw(self, step: Step, out: str | None) -> str:
        seed, draw, a, b, low, count = (c.value for c in step.inputs)
        g = f", generator=stream({seed & (1 << 64) - 1}, {draw & (1 << 64) - 1})"
        if out is None:
            value = self.values[step.made]
            out = f"torch.empty({value.shape}, dtype=torch.{ALL[value.dtype].name})"
        if step.dtype == lib.TT_I64:
            return f"{out}.random_({low}, {low + (count & (1 << 64) - 1)}{g})"
        text = _DRAWS[step.op & 7].format(a=a, b=b, g=g)
        return f"{out}.{text.removesuffix('.mul_(1.0)').replace('.mul_(0.0)', '.zero_()')}"

    def reduction(self, step: Step, arguments: list[str]) -> str:
        reducer, x = REDUCERS[step.op], arguments[0]
        kept = len(step.out.shape) == len(step.shape) and len(step.shape) > 0
        which = (
            ""
            if len(step.dims) == len(step.shape) and not kept
            else f", dim={step.dims[0] if len(step.dims) == 1 else step.dims}"
        )
        how = which + (", keepdim=True" if kept else "")
        if len(arguments) == 2:  # the reducer's parameter, one for each result
            each = tuple(1 if d in step.dims else n for d, n in enumerate(step.shape))
            moved = f"({x} - {arguments[1]}.reshape({each}))"
            return f"torch.sum({moved}.{'exp' if reducer.name == 'expsum' else 'square'}(){how})"
        name = reducer.reductions[0]
        if name.startswith("norm_"):
            p = name.removeprefix("norm_")
            return f"torch.norm({x}, {p if p.isdigit() else number_text(float(p))}{how})"
        if step.dtype == lib.TT_BOOL and name in ("amax", "amin"):
            return f"torch.{'any' if name == 'amax' else 'all'}({x}{how})"
        if name == "count_nonzero":
            how = which
        if name == "count_valid":
            name, x = "sum", f"{x}.eq({x})"
        if name in ("sum", "prod", "nansum"):
            how += f", dtype=torch.{ALL[step.dtype].name}"
        return f"torch.{name}({x}{how})"


def number_text(value: float | int) -> str:
    """A number as Python reads it."""
    return repr(value) if not isinstance(value, float) or math.isfinite(value) else f'float("{value}")'


def from_trace(recorded: Trace, before: dict[int, bytes], origins: list[int], places: Callable[[int], str]) -> Case:
    """The case of a trace; ``before`` holds the bytes of the storages that were there, ``places`` the user's
    line by node."""
    values: dict[int, Value] = {}
    inputs: dict[int, np.ndarray] = {}
    starts: dict[int, int] = {}  # of each storage's value, in bytes from the storage's origin
    seen_by: dict[int, list[Operand]] = {}
    nodes = {k: node for k, node in enumerate(recorded.nodes) if 0 not in node.shape}
    for node in nodes.values():
        for o in (*node.inputs, node.out):
            if not o.number:
                seen_by.setdefault(o.id, []).append(o)
    for s, operands in seen_by.items():
        first = operands[0]
        if recorded.storages[s].made:
            made = next(n.out for n in nodes.values() if n.out.id == s)
            values[s], starts[s] = Value(made.dtype, made.shape, made.strides), made.offset
            continue
        low = min(o.offset for o in operands)
        high = max(o.offset + _reach(o) for o in operands)
        whole = next((o for o in operands if o.offset == low and _reach(o) == high - low and _is_dense(o)), None)
        dtype = (whole or first).dtype
        if whole is None:
            high += -(high - low) % ALL[dtype].itemsize
        at = origins[s] + low
        array = np.frombuffer(before[s][at : at + high - low].ljust(high - low, b"\0"), ALL[dtype].stored)
        shape = _in_memory(whole)[0] if whole else array.shape
        values[s], starts[s], inputs[s] = Value(dtype, shape, row_major(shape)), low, array.reshape(shape).copy()
    steps, there = [], set(inputs)
    for k, node in nodes.items():
        if steps and _is_norm(steps[-1], node):  # the public function does both
            steps[-1] = steps[-1]._replace(
                out=_view(node.out, values[node.out.id], starts[node.out.id]),
                made=steps[-1].made if node.out.id in there else node.out.id,
            )
            continue
        operands = (
            _draw_numbers(recorded, node)
            if node.kind == RANDOM
            else tuple(
                Constant(recorded.numbers[o.id]) if o.number else _view(o, values[o.id], starts[o.id])
                for o in node.inputs
            )
        )
        made = None if node.out.id in there else node.out.id
        there.add(node.out.id)
        steps.append(
            Step(
                node.kind,
                node.op,
                node.dtype,
                node.shape,
                node.dims,
                operands,
                _view(node.out, values[node.out.id], starts[node.out.id]),
                made,
                places(k),
            )
        )
    written = dict.fromkeys(n.out.id for n in nodes.values())
    results = tuple(s for s in written if recorded.storages[s].seen)
    return Case(values, inputs, tuple(steps), results).without_unused()


def _is_norm(step: Step, node: Node) -> bool:
    """Is the node the root of the step's sum of squares?"""
    return (
        step.kind == REDUCE
        and REDUCERS[step.op].name == "sqsum"
        and node.kind == OP
        and node.name == "sqrt"
        and node.inputs[0].id == step.out.value
    )


def _draw_numbers(recorded: Trace, node: Node) -> tuple[Constant, ...]:
    first = node.inputs[0].id
    return tuple(map(Constant, recorded.numbers[first : first + 6]))


def _in_memory(o: Operand) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides with the dimensions in the order in which they lie."""
    order = sorted(range(len(o.shape)), key=lambda d: -o.strides[d])
    return tuple(o.shape[d] for d in order), tuple(o.strides[d] for d in order)


def _is_dense(o: Operand) -> bool:
    shape, strides = _in_memory(o)
    return strides == row_major(shape)


def _reach(o: Operand) -> int:
    """Bytes from an operand's first element to behind its last."""
    return (sum((n - 1) * s for n, s in zip(o.shape, o.strides)) + 1) * ALL[o.dtype].itemsize


def _view(o: Operand, value: Value, start: int) -> View:
    """An operand as a view of its storage's value."""
    offset = (o.offset - start) // ALL[o.dtype].itemsize
    raw = View(o.id, o.shape, None, o.strides, offset, o.dtype)
    if o.dtype != value.dtype or o.offset != start:
        return raw
    if o.shape == value.shape and all(n == 1 or s == t for n, s, t in zip(o.shape, o.strides, value.strides)):
        return View(o.id, o.shape, tuple(range(len(o.shape))))
    left = {d for d, n in enumerate(value.shape) if n > 1}
    dims: list[int | None] = []
    for n, s in zip(o.shape, o.strides):
        same = next((d for d in sorted(left) if value.shape[d] == n and value.strides[d] == s), None) if n > 1 else None
        if n > 1 and s != 0 and same is None:
            return raw
        dims.append(same)
        left.discard(same)
    return raw if left else View(o.id, o.shape, tuple(dims))
