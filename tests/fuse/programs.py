"""Random programs: lines of source that hypothesis draws, to be run eagerly and fused.

A program is drawn while it runs eagerly, so that a line is chosen by the dtypes and shapes that are there. What comes
of it is text: a failing case shrinks to a short listing, which is a script. A line that raises stays now and then: its
exception is a result like any other, and must have changed nothing.
"""

import contextlib
import functools
import math
import warnings
import zlib
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

import tinytorch
from fuse import catalog
from tinytorch.nn import functional as F

inf, nan = math.inf, math.nan
NAMES = {"torch": tinytorch, "F": F, "np": np, "inf": inf, "nan": nan}
RAISED = (RuntimeError, ValueError, TypeError, IndexError, ArithmeticError, AttributeError, BufferError)
HEADER = """\
import contextlib
import tinytorch as torch
from fuse.programs import F, inf, leaf, nan, np
torch.manual_seed(0)"""

# ---- Inputs.

SPECIAL = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    inf,
    -inf,
    nan,
    1e-45,
    -1e-40,
    1e-300,
    -5e-324,
    6e-8,
    6e4,
    3.4e38,
    -3.4e38,
    1e300,
    88.8,
    -103.0,
    1e5,
    2.0**30,
    2.0**63,
    -(2.0**31),
    255.0,
)


@functools.lru_cache(maxsize=64)
def values(shape, dtype, kind, seed):
    """An array for a leaf. "mild": between -2 and 2; "positive": between 1/4 and 2; "wild": all magnitudes, infinities,
    NaN, signed zeros and subnormal numbers, or any integer at all."""
    rng = np.random.default_rng(zlib.crc32(f"{shape} {dtype} {kind} {seed}".encode()))
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in catalog.INTS:
        limits = np.iinfo(dtype)
        low, high = (limits.min, limits.max) if kind == "wild" else (1 if kind == "positive" else -4, 5)
        return rng.integers(max(low, limits.min), high, shape, endpoint=True, dtype=dtype)
    if kind == "wild":
        a = rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 7, shape)
        return np.where(rng.random(shape) < 0.3, rng.choice(SPECIAL, shape), a)
    return rng.uniform(*((0.25, 2) if kind == "positive" else (-2, 2)), shape)


def leaf(shape, dtype="float32", kind="mild", layout="contiguous", grad=False, seed=0):
    """A new tensor, the same at every call, computed at once. layout "numpy": on memory that NumPy has too."""
    array = values(tuple(shape), dtype, kind, seed)
    with np.errstate(over="ignore"):
        array = array.astype("float64" if dtype == "bfloat16" else dtype)

    def own(array):
        return tinytorch.tensor(array).to(getattr(tinytorch, dtype))

    if layout == "numpy":
        t = tinytorch.from_numpy(array.copy()).to(getattr(tinytorch, dtype))
    elif array.ndim == 0 or layout == "contiguous":
        t = own(array)
    elif layout == "transposed":
        t = own(array.T).permute(*reversed(range(array.ndim)))
    elif layout == "strided":
        t = own(np.repeat(array, 2, -1))[..., ::2]
    elif layout == "offset":
        t = own(np.stack([array, array]))[1]
    elif layout == "expanded":
        t = own(array[:1]).expand(array.shape)
    else:
        raise ValueError(f"leaf: there is no layout {layout!r}")
    return t.requires_grad_() if grad else t


# ---- Programs.


@dataclass(frozen=True)
class Line:
    text: str
    raises: str = ""  # what it raised when it was drawn

    @functools.cached_property
    def code(self):
        return compile(self.text, f"<{self.text}>", "exec")


class Program:
    """``lines`` to be run; ``leaves`` among them, the first ones, belong outside of the mode. ``stops``: the first
    exception ends it."""

    def __init__(self, leaves, lines, stops):
        raising = [k for k, line in enumerate(lines) if line.raises]
        self.leaves, self.lines, self.stops = leaves, lines[: raising[0] + 1] if stops and raising else lines, stops

    def __repr__(self):
        """As a script."""
        text = [HEADER, *(line.text for line in self.leaves), "with torch.fuse():"]
        for line in self.lines or [Line("pass")]:
            if line.raises and not self.stops:
                text += [f"    with contextlib.suppress({line.raises.partition(':')[0]}):", f"        {line.text}"]
            else:
                text += [f"    {line.text}"]
        return "\n" + "\n".join(text) + "\n"

    def scope(self, call=0):
        """The names that the lines may use, leaves among them: with other values at every call."""

        def another(shape, dtype="float32", kind="mild", layout="contiguous", grad=False, seed=0):
            return leaf(shape, dtype, kind, layout, grad, seed + 100 * call)

        found = dict(NAMES, leaf=another)
        for line in self.leaves:
            exec(line.code, found)
        return found

    def do(self, scope, mode):
        """Runs the lines inside the context manager ``mode``; the exceptions, as {line number: text}."""
        raised, number = {}, -1
        try:
            with mode:
                for number, line in enumerate(self.lines):  # noqa: B007 (read after an exception)
                    try:
                        exec(line.code, scope)
                    except (*RAISED, NameError) as exc:
                        if self.stops:
                            raise
                        raised[number] = described(exc)
        except (*RAISED, NameError) as exc:
            raised[number] = described(exc)
        return raised

    def run(self, mode, call=0):
        """Runs the lines inside the context manager ``mode``. Gives every name that is left, and under ``raised`` the
        exceptions."""
        tinytorch.manual_seed(call)
        with quiet():
            scope = self.scope(call)
            raised = self.do(scope, mode)
        return left(scope, raised)

    def calls(self, wrap, count):
        """The lines as a function of the leaves, made by ``wrap`` into another, and called ``count`` times. For every
        call the tensors that are left and its arguments, as they are after it."""
        names = [line.text.split()[0] for line in self.leaves]

        def function(*leaves):
            scope = dict(NAMES, **dict(zip(names, leaves)))
            self.do(scope, contextlib.nullcontext())
            return tuple(v for n, v in scope.items() if isinstance(v, tinytorch.Tensor) and n not in names)

        called, found = wrap(function), []
        with quiet():
            for call in range(count):
                tinytorch.manual_seed(call)
                scope = self.scope(call)
                leaves = [scope[name] for name in names]
                found.append(
                    {f"call {call}, result {k}": t for k, t in enumerate(called(*leaves))}
                    | {f"call {call}, argument {name}": t for name, t in zip(names, leaves)}
                )
        return found


def left(scope, raised):
    """A program's names in a scope, and its exceptions."""
    return {name: value for name, value in scope.items() if name[0] == "v"} | {"raised": raised}


@contextlib.contextmanager
def quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def described(exc):
    return f"{type(exc).__name__}: {exc}"


# ---- Drawing.


def broadcasts(shape, into):
    try:
        return np.broadcast_shapes(shape, into) == into
    except ValueError:
        return False


class Author:
    """Writes one program: draws a line, runs it eagerly, keeps it."""

    def __init__(self, draw):
        self.draw = draw
        self.scope = dict(NAMES, leaf=leaf)
        self.lines, self.dull, self.arrays = [], set(), []
        self.count = 0

    def tensors(self, want=lambda t: True):
        """The names of the tensors there are, the last one first."""
        return [n for n, v in reversed(self.scope.items()) if isinstance(v, tinytorch.Tensor) and want(v)]

    def one_of(self, choices):
        return self.draw(st.sampled_from(choices))

    def chance(self, n):
        """True once in ``n`` times; False is the simpler case."""
        return self.draw(st.integers(0, n - 1)) == n - 1

    def pick(self, want=lambda t: True):
        """The name of a tensor, of those worth working with if there are any; None if there is none."""
        names = self.tensors(want)
        names = [n for n in names if n not in self.dull] or names
        return self.one_of(names if self.chance(3) else names[:4]) if names else None

    def say(self, text, assign=True):
        """Runs a line, and keeps it unless it raises: then once in a while. Returns the new name, or None."""
        name = f"v{self.count}"
        text = f"{name} = {text}" if assign else text
        line = Line(text)
        try:
            exec(line.code, self.scope)
        except RAISED as exc:
            if self.chance(6):
                self.lines.append(Line(text, described(exc)))
            return None
        self.lines.append(line)
        if not assign:
            return None
        self.count += 1
        value = self.scope[name]
        if (
            isinstance(value, tinytorch.Tensor)
            and value.is_floating_point()
            and value.numel()
            and (value.numel() > 300_000 or not bool(value.detach().isfinite().double().mean() > 0.5))
        ):
            self.dull.add(name)
        return name

    def fill(self, template, x):
        """The template with x and operands that go with it."""
        t = self.scope[x]
        found = {"x": self.wrapped(x)}
        inplace = template.startswith(("{x}[", "{x} ")) or "_(" in template or "out={x}" in template
        if inplace or template.startswith("{x}."):
            found["x"] = x
        for letter in "yz":
            if f"{{{letter}}}" in template:
                found[letter] = self.operand(t.shape, inplace)
        if "{k}" in template:
            found["k"] = self.one_of(catalog.NUMBERS)
        if "{i}" in template:
            found["i"] = self.one_of([0, -1])
        if "{d}" in template:
            found["d"] = self.draw(st.integers(-t.ndim, t.ndim - 1)) if t.ndim else 0
        return template.format(**found)

    def operand(self, shape, inplace):
        """A tensor that broadcasts with ``shape`` (into it, in place), a number, and rarely anything."""
        kind = self.draw(st.integers(0, 11))
        if kind < 3:
            return self.one_of(catalog.NUMBERS)
        if kind == 11:
            return self.pick()
        name = self.pick(lambda t: broadcasts(t.shape, shape) or (not inplace and broadcasts(shape, t.shape)))
        return self.wrapped(name) if name else "2"

    def wrapped(self, x):
        return self.one_of(catalog.WRAPPED).format(x=x) if self.chance(5) else x

    # The kinds of steps.

    def compute(self, templates, want=lambda t: True):
        x = self.pick(want)
        if x:
            self.say(self.fill(self.one_of(templates), x))

    def elementwise(self):
        table = self.one_of([catalog.UNARY, catalog.BINARY, catalog.BINARY, catalog.TERNARY])
        self.compute(table[self.one_of(sorted(table))])

    def more(self):
        self.compute(catalog.MORE_UNARY)

    def cast(self):
        self.compute(catalog.CASTS)

    def fresh(self):
        self.compute(catalog.FRESH)

    def random(self):
        x = self.pick(lambda t: t.is_floating_point() and not t.requires_grad) if self.chance(3) else None
        if x:
            self.say(self.one_of(catalog.RANDOM_WRITES).format(x=x), assign=False)
        else:
            self.compute(catalog.RANDOM)

    def view(self):
        x = self.pick()
        many = self.scope[x].ndim > 0 and self.chance(2)
        self.say(self.fill(self.one_of(catalog.VIEWS_OF_DIMENSIONS if many else catalog.VIEWS), x))

    def write(self):
        x = self.pick() if self.chance(8) else self.pick(lambda t: not t.is_leaf or not t.requires_grad)
        if not x:
            return
        parts = self.scope[x].ndim > 0 and self.chance(2)
        text = self.fill(self.one_of(catalog.PARTS if parts else catalog.WRITES), x)
        if self.chance(5):
            text = f"with torch.no_grad(): {text}"
        self.say(text, assign=False)

    def reduce(self):
        self.compute(catalog.REDUCTIONS)

    def rows(self):
        self.compute(catalog.ROWS, lambda t: t.ndim > 0)

    def barrier(self):
        self.compute(catalog.BARRIERS, lambda t: t.ndim > 0 and t.numel() < 50_000)

    def read(self):
        x = self.pick(lambda t: t.numel() < 5000)
        if x:
            self.say(self.fill(self.one_of(catalog.READS), x))

    def drop(self):
        names = self.tensors()
        if len(names) > 2:
            name = self.one_of(names)
            self.say(f"del {name}", assign=False)

    def share(self):
        if self.arrays and self.chance(2):
            n = self.one_of(self.arrays)
            if self.chance(4):
                self.say(f"torch.from_numpy({n})")
            else:
                self.say(self.one_of(catalog.NUMPY_WRITES).format(n=n), assign=False)
        else:
            x = self.pick(lambda t: t.dtype is not tinytorch.bfloat16)
            make = self.one_of(["{x}.detach().numpy()", "np.from_dlpack({x}.detach())"])
            name = x and self.say(make.format(x=x))
            if name:
                self.arrays.append(name)

    def leaf(self, family, kinds, grad):
        """A leaf whose shape broadcasts with every other's: the last sizes of ``family``, some of them 1."""
        shape = family[self.draw(st.integers(0, len(family))) if self.chance(3) else 0 :]
        shape = tuple(1 if self.chance(6) else n for n in shape)
        dtype = self.one_of(catalog.DTYPES if self.chance(2) else catalog.FLOATS[: 1 if not self.chance(2) else 4])
        layout = self.one_of(["contiguous", "contiguous", "transposed", "strided", "offset", "expanded", "numpy"])
        grad = grad and dtype in catalog.FLOATS and not self.chance(4)
        seed = self.count
        self.say(f"leaf({shape}, {dtype!r}, {self.one_of(kinds)!r}, {layout!r}, {grad}, {seed})")

    # Derivatives.

    def leaves(self):
        return self.tensors(lambda t: t.requires_grad and t.is_leaf)[::-1]

    def derive(self, again=True):
        """Gradients of something for all leaves that require them."""
        y = self.pick(lambda t: t.requires_grad and not t.is_leaf)
        leaves = self.leaves()
        if not y or not leaves:
            return
        what = self.one_of(["{y}.sum()", "({y} * {y}).mean()", "{y}, {leaves}, torch.ones_like({y})"])
        what = what if "leaves" in what else what + ", {leaves}"
        how = self.one_of(["create_graph=True", "retain_graph=True"]) if again else "create_graph=True"
        targets = [f"v{self.count + k}" for k in range(len(leaves))]
        text = f"torch.autograd.grad({what}, {how}, allow_unused=True)".format(y=y, leaves=f"[{', '.join(leaves)}]")
        before = len(self.lines)
        self.say(f"{', '.join(targets)}, = {text}", assign=False)
        if len(self.lines) > before and not self.lines[-1].raises:
            self.count += len(leaves)

    def accumulate(self):
        y = self.pick(lambda t: t.requires_grad and not t.is_leaf)
        if y:
            self.say(f"{y}.sum().backward(retain_graph=True)", assign=False)

    def history(self):
        x = self.pick(lambda t: t.is_floating_point())
        if x:
            texts = ("{x}.detach().clone().requires_grad_()", "{x}.retain_grad()", "{x}.requires_grad_()")
            text = self.one_of(texts).format(x=x)
            self.say(text, assign="clone" in text)


FORWARD = {
    "elementwise": 12,
    "more": 1,
    "cast": 2,
    "fresh": 2,
    "random": 1,
    "view": 4,
    "write": 6,
    "reduce": 2,
    "rows": 3,
    "barrier": 1,
    "read": 1,
    "drop": 2,
    "share": 1,
}
DERIVATIVES = FORWARD | {"derive": 3, "accumulate": 1, "history": 1}
SMALL = ((2, 3, 4), (3, 3), (5,), (2, 0, 3))
BLOCKS = ((3, 5, 211), (2, 2, 1100), (1025,), (4, 1024), (700, 3))
LARGE = ((2, 151, 251), (70001,), (40, 3, 601), (30011, 3))


@st.composite
def programs(draw, families=SMALL, derivatives=False, kinds=("mild", "wild", "positive"), steps=24, without=()):
    """Programs on leaves whose shapes come from one of ``families``, of steps of every kind but ``without``."""
    author = Author(draw)
    family = author.one_of(families)
    with quiet():
        tinytorch.manual_seed(0)
        for _ in range(draw(st.integers(1, 5))):
            author.leaf(family, kinds, derivatives)
        leaves, author.lines = author.lines, []
        weights = DERIVATIVES if derivatives else FORWARD
        bag = [name for name, weight in weights.items() if name not in without for _ in range(weight)]
        for _ in range(draw(st.integers(1, steps))):
            getattr(author, author.one_of(bag))()
        if derivatives:
            author.derive(again=False)
            author.derive()
    return Program(leaves, author.lines, draw(st.booleans()))
