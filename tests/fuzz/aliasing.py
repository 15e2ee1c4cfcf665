"""Random programs over views of a few buffers: slices written and read in every order, buffers that end before, between
and after their views, and gradients of all that. Fused mode must leave what eager mode leaves, to the bit.

A program is text, drawn from a seed by running it eagerly on the CPU; other devices and tiers run the same text.
"""

import contextlib
import functools
import itertools
import random
import re
from dataclasses import dataclass

import numpy as np

import tinytorch
from fuse.programs import described, left, quiet

NAME = re.compile(r"\bv\d+\b")
NUMBERS = ("2", "-1.5", "0.5", "0", "3")
SIZES = ((5,), (8,), (24,), (31,), (3, 4), (4, 6), (5, 5), (2, 3, 4), (1,), (0,), (), (1030,), (40, 70))
WEIGHTS = (4, 4, 3, 2, 4, 3, 2, 2, 1, 1, 1, 1, 1)
DTYPES = ("float32",) * 8 + ("float64", "int64", "float16", "bfloat16", "int32", "bool")
MOST_STATEMENTS = 22
#: What a program's end may be: anything else is a fault of its own.
RAISED = (RuntimeError, ValueError, TypeError, IndexError, ArithmeticError)


# ---- What is done to a tensor {x}, with an operand {y} or a number {k}.


def templates(text):
    return tuple(re.split(r"\s*;\s*", text.strip()))


VIEWS = templates("{x}.view(-1); {x}.reshape(-1); {x}[...]; {x}.unsqueeze(0); {x}.detach(); {x}.data")
VIEWS_OF_DIMENSIONS = templates("""
    {x}.unbind(0)[-1]; {x}.chunk(2)[0]; {x}.expand(2, *{x}.shape); {x}.unfold(0, 2, 1); {x}.narrow(0, 0, 1);
    {x}.view(-1); {x}.detach(); {x}.data; {x}.squeeze(); {x}.view_as({x})
""")
VIEWS_OF_MATRICES = templates("""
    {x}.t(); {x}.t(); {x}.diagonal(); {x}.transpose(0, -1); {x}.movedim(0, -1); {x}.flatten();
    {x}.permute(*reversed(range({x}.ndim)))
""")
VIEWS_OF_BITS = templates("{x}.view(torch.int32); {x}.view(torch.float32)")
WRITES = templates("""
    {x}.copy_({y}); {x}.copy_({y}); {x}.add_({y}); {x}.mul_({y}); {x}.sub_({y}); {x}.fill_({k}); {x}.zero_();
    {x}.add_({y}, alpha=2); {x}.mul_({k}); {x}.add_({k}); {x}.neg_(); {x}.masked_fill_({x} > 0, {k}); {x}.clamp_(-3, 3);
    {x}.copy_({x}.flip(0)); torch.mul({y}, {k}, out={x}); torch.add({x}, {k}, out={x}); {x}.tanh_();
    {x}.addcmul_({x}, {x})
""")
RESULTS = templates("""
    {x} * 2; {x} + {y}; {x} * {y}; {x} - 1; {x}.clone(); {x}.sum(); torch.where({x} > 0, {x}, 1); {x} * 1 + {y};
    {x}.neg(); {x}.sigmoid(); {x}.contiguous(); torch.zeros_like({x}); {x}.float()
""")
RESULTS_OF_DIMENSIONS = templates("""
    {x}.sum(0); {x}.amax(0); {x}.cumsum(0); torch.cat([{x}, {x}]); {x}.flip(0); {x}[1:] + {x}[:-1];
    {x}.mean(-1, keepdim=True); {x}.softmax(-1); torch.stack([{x}, {x}]); {x}.repeat_interleave(2, 0)
""")

# ---- Programs.


@dataclass(frozen=True)
class Statement:
    text: str
    fused: bool = True

    @functools.cached_property
    def code(self):
        return compile(self.text, f"<{self.text}>", "exec")

    @functools.cached_property
    def names(self):
        """Those it reads, and those it makes."""
        head, assigned, tail = self.text.partition(" = ")
        made = set(NAME.findall(head)) if assigned and re.fullmatch(r"v\d+(, v\d+)*,?", head) else set()
        return set(NAME.findall(tail if made else self.text)), made


@dataclass(frozen=True)
class Program:
    statements: tuple[Statement, ...]

    def __str__(self):
        """As a script."""
        lines = ["import tinytorch as torch", "device = 'cpu'"]
        for fused, group in itertools.groupby(self.statements, lambda s: s.fused):
            lines += ["with torch.fuse():"] if fused else []
            lines += ["    " * fused + s.text for s in group]
        return "\n".join(lines)

    def run(self, mode, device="cpu"):
        """Runs the statements, those that are fused inside of ``mode()``. The names that are left, and exceptions."""
        scope, raised = {"torch": tinytorch, "device": device}, {}
        tinytorch.manual_seed(0)
        with quiet(), contextlib.ExitStack() as entered:
            inside = False
            for number, statement in enumerate(self.statements):
                if statement.fused is not inside:
                    inside = statement.fused
                    entered.enter_context(mode()) if inside else entered.pop_all().close()
                try:
                    exec(statement.code, scope)
                except (*RAISED, NameError) as exc:
                    raised[number] = described(exc)
        return left(scope, raised)

    def without(self, first, count):
        """The program without ``count`` statements, and without those that need them."""
        kept, missing = [], set()
        for number, statement in enumerate(self.statements):
            reads, makes = statement.names
            if first <= number < first + count or reads & missing:
                missing |= makes
            else:
                kept.append(statement)
        return Program(tuple(kept))

    def shrunk(self, fails):
        """The shortest program found for which ``fails`` is still true: statements are left out."""
        program, count = self, max(1, len(self.statements) // 2)
        while True:
            found = None
            for first in range(len(program.statements) - 1, -1, -1):
                candidate = program.without(first, count)
                if len(candidate.statements) < len(program.statements) and fails(candidate):
                    found = candidate
                    break
            if found:
                program = found
            elif count == 1:
                return program
            else:
                count //= 2


def overlaps(t):
    """Do two elements of a tensor lie in one place?"""
    if t.numel() == 0:
        return False
    offsets = np.zeros((), np.int64)
    for n, s in zip(t.shape, t.stride()):
        offsets = offsets[..., None] + np.arange(n) * s
    return len(np.unique(offsets)) < t.numel()


def broadcasts(shape, into):
    shape, into = tuple(shape), tuple(into)
    return len(shape) <= len(into) and all(n in (1, m) for n, m in zip(shape[::-1], into[::-1]))


class Writer:
    """Draws one program, running it as it grows."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.scope = {"torch": tinytorch, "device": "cpu"}
        self.statements, self.count = [], 0
        self.parts = {}  # the last index of a dimension, by size and place
        self.tight = self.chance(0.5)  # slices of one buffer, all in fused mode
        self.gradients = self.chance(0.4)
        self.fused = self.tight or self.chance(0.7)
        self.main = self.one(DTYPES)

    def one(self, choices):
        return self.random.choice(choices)

    def chance(self, of):
        return self.random.random() < of

    def say(self, text, makes=True):
        """Runs a statement and keeps it; one that raises is kept now and then. The name that it made."""
        name = f"v{self.count}"
        statement = Statement(f"{name} = {text}" if makes else text, self.fused)
        try:
            exec(statement.code, self.scope)
        except RAISED:
            if self.chance(0.15):
                self.statements.append(statement)
            return None
        self.statements.append(statement)
        self.count += makes
        return name

    def pick(self, want=lambda t: True):
        names = [n for n, v in self.scope.items() if isinstance(v, tinytorch.Tensor) and want(v)]
        return self.one(names[-4:] if self.chance(0.6) else names) if names else None

    def operand(self, shape):
        """Something that broadcasts into a shape: most often a tensor."""
        name = self.pick(lambda t: broadcasts(t.shape, shape)) if self.chance(0.8) else None
        if not name:
            return self.one(NUMBERS)
        if self.scope[name].ndim and self.chance(0.3):
            part = self.part(self.scope[name], name)
            if broadcasts(eval(part, self.scope).shape, shape):
                return part
        return self.one((name, name, name, f"{name} * 2", f"({name} + 1)", f"{name}.clone()", f"{name}.flip(0)"))

    # The kinds of statements.

    def buffer(self):
        shape = self.random.choices(SIZES, WEIGHTS)[0]
        dtype = self.main if self.chance(0.9) else self.one(DTYPES)
        options = f"dtype=torch.{dtype}, device=device"
        makes = [f"torch.zeros({shape}, {options})", f"torch.ones({shape}, {options})"]
        makes += [f"torch.full({shape}, {self.one(('1', '-2', '3'))}, {options})"]
        count = 1
        for n in shape:
            count *= n
        if dtype != "bool":
            makes += [f"torch.arange({count}, {options}).reshape({shape})"] * 2
        makes += [f"torch.empty({shape}, {options}).fill_(2)"]
        name = self.say(self.one(makes))
        if self.gradients and self.scope[name].is_floating_point() and self.chance(0.4):
            self.say(f"{name}.requires_grad_()", makes=False)
            self.say(f"{name} * 1")

    def part(self, t, x):
        """A slice of a tensor, as source; often one that was taken before, as what was written is read again."""
        dim = self.random.randrange(t.ndim)
        n = t.shape[dim]
        if (n, dim) in self.parts and self.chance(0.5):
            return f"{x}{self.parts[n, dim]}"
        start, stop = sorted((self.random.randint(0, n), self.random.randint(0, n)))
        if self.chance(0.5):
            start, stop = self.one(((1, n), (0, max(0, n - 1)), (0, n // 2), (n // 2, n), (1, max(1, n - 1))))
        index = f"{start}:{stop}{self.one(('', '', '', ':2', ':3'))}"
        if n and self.chance(0.15):
            index = str(self.random.randrange(n))
        self.parts[n, dim] = f"[{':, ' * dim}{index}]"
        return f"{x}{self.parts[n, dim]}"

    def strided(self, t, x):
        """Any view of a storage at all, overlapping itself perhaps."""
        room = t.untyped_storage().nbytes() // t.element_size() if hasattr(t, "untyped_storage") else t.numel()
        size = tuple(self.random.randint(1, 5) for _ in range(self.random.randint(1, 2)))
        stride = tuple(self.one((0, 1, 1, 2, 3, 4)) for _ in size)
        span = sum((n - 1) * s for n, s in zip(size, stride)) + 1
        offset = self.random.randint(0, max(0, room - span))
        return f"{x}.as_strided({size}, {stride}, {offset})"

    def view(self):
        x = self.pick()
        if not x:
            return
        t = self.scope[x]
        texts = VIEWS
        if t.ndim:
            texts = (self.part(t, x),) * 6 + (self.strided(t, x),) * 2 + VIEWS_OF_DIMENSIONS
        if t.ndim > 1:
            texts += VIEWS_OF_MATRICES
        if t.dtype in (tinytorch.float32, tinytorch.int32):
            texts += VIEWS_OF_BITS
        self.say(self.one(texts).format(x=x))

    def write(self):
        x = self.pick(lambda t: not overlaps(t) and not (t.requires_grad and t.is_leaf)) or self.pick()
        if not x or overlaps(self.scope[x]):
            return
        t = self.scope[x]
        target = self.part(t, x) if t.ndim and self.chance(0.5) else x
        try:
            shape = eval(target, self.scope).shape
        except RAISED:
            return
        y, k = self.operand(shape), self.one(NUMBERS)
        if target is not x and self.chance(0.5):
            return self.say(f"{target} = {y}", makes=False)
        text = self.one(WRITES)
        if ".copy_({y})" in text and not NAME.search(y):
            text = "{x}.fill_({y})"
        if "torch.mul" in text and not NAME.search(y):
            text = "torch.mul({x}, {k}, out={x})"
        no_grad = "with torch.no_grad(): " if self.gradients and self.chance(0.25) else ""
        return self.say(no_grad + text.format(x=target, y=y, k=k), makes=False)

    def compute(self):
        x = self.pick()
        if not x:
            return
        if self.scope[x].ndim and self.chance(0.5):
            x = self.part(self.scope[x], x)
        t = eval(x, self.scope)
        y = self.operand(t.shape)
        texts = RESULTS + RESULTS_OF_DIMENSIONS * (t.ndim > 0)
        self.say(self.one(texts).format(x=x, y=y))

    def drop(self):
        """One name goes, or all but a few."""
        names = [n for n, v in self.scope.items() if isinstance(v, tinytorch.Tensor)]
        gone = self.random.sample(names, min(len(names), 1) if self.chance(0.6) else max(0, len(names) - 1))
        if gone:
            self.say(f"del {', '.join(gone)}", makes=False)

    def read(self):
        x = self.pick(lambda t: t.numel() < 200)
        if x:
            self.say(f"{x}{self.one(('.tolist()', '.sum().item()', '._version', '.max().item()'))}")

    def derive(self):
        y = self.pick(lambda t: t.requires_grad and not t.is_leaf)
        leaves = [n for n, v in self.scope.items() if isinstance(v, tinytorch.Tensor) and v.requires_grad and v.is_leaf]
        if not y or not leaves:
            return
        if self.chance(0.5):
            self.say(f"{y}.sum().backward(retain_graph=True)", makes=False)
        else:
            loss = self.one((f"{y}.sum()", f"({y} * {y}).sum()"))
            create = self.one(("retain_graph=True", "create_graph=True"))
            self.say(f"torch.autograd.grad({loss}, {self.one(leaves)}, {create}, allow_unused=True)[0]")

    def switch(self):
        self.fused = not self.fused

    def program(self):
        with quiet():
            tinytorch.manual_seed(0)
            self.buffer()
            kinds = {self.view: 3 if self.tight else 8, self.write: 9, self.compute: 5, self.drop: 3}
            if not self.tight:
                kinds |= {self.buffer: 2, self.read: 1, self.switch: 1}
            if self.gradients:
                kinds[self.derive] = 2
            steps = [kind for kind, weight in kinds.items() for _ in range(weight)]
            for _ in range(self.random.randint(3, MOST_STATEMENTS)):
                self.one(steps)()
            if self.gradients:
                self.derive()
            if self.chance(0.5):
                self.drop()
        return Program(tuple(self.statements))


def program(seed):
    """The program of a seed: the same in every process."""
    return Writer(seed).program()
