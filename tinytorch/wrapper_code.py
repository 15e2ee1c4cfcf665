"""Code that takes the place of a function's: all references to the function, in whatever module, see it, no other
object changes, and nobody pays while it is not there. The profiler records calls so, ``overrides`` hands them to
others, and autocast casts their arguments.

What else would be seen through a reference held elsewhere (``self.act = torch.relu``), and what a call then pays while
nothing is there, in instructions (callgrind, CPython 3.11, of 4,266 for ``a + b``, 7,113 for a recorded ``relu``, 7,648
for a recorded ``sum``, 6,615 for ``a @ b``, all 4 x 4):

- a flag that every public function looks at: 94 to 120, up to 2.3 %, and two lines in each of 189 functions that are
  written by hand;
- operators as objects of a type in C that calls a function: 35 to 167, up to 2.3 %, through vectorcall, which the
  limited API has from CPython 3.12 on; 237 to 409 without it, up to 6.7 %;
- a flag that the C side of every kernel looks at: none, as it looks at flags anyway; but most of 976 public functions
  are made of other operators, and have no kernel of their own, and the time that Python takes would not be seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FunctionType

from .autograd.formulas import code_of


def wrapper_code(text: str, indent: str, things: dict, filename: str, title: str) -> CodeType:
    """The code of the function ``wrapper`` in a source, under the name ``title``, with ``things`` among its constants:
    it runs with the globals of the function whose code it replaces, and finds nothing there. At ``{things}`` in the
    source, in lines that begin with ``indent``, those that it names become variables."""
    used = [t for t in things if t in text]
    text = text.replace("{things}", f"\n{indent}".join(f"{t} = '<{t}>'" for t in used))
    code = code_of(text, filename)
    while code.co_name != "wrapper":
        code = next(c for c in code.co_consts if isinstance(c, CodeType))
    values = {f"<{t}>": value for t, value in things.items()}
    constants = tuple(values.get(c, c) if isinstance(c, str) else c for c in code.co_consts)
    return code.replace(co_consts=constants, co_name=title)


def original_of(fn: FunctionType) -> FunctionType:
    """A function of the code that ``fn`` has now, for the code that takes its place to call."""
    original = FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    original.__kwdefaults__ = fn.__kwdefaults__
    return original


# By id: codes that stay in the place of a function's, each with a function of what was there before.
_stacked: dict[int, tuple[CodeType, FunctionType]] = {}


def put_over(fn: FunctionType, code: CodeType, original: FunctionType) -> None:
    """Gives ``fn`` the code, which calls ``original``, to stay; others may be put over it."""
    if not hasattr(fn, "__wrapped__") and not hasattr(fn, "__signature__"):
        fn.__wrapped__ = original  # whose signature it has
    _stacked[id(code)] = code, original
    fn.__code__ = code


def _beneath(fn: FunctionType) -> Iterator[CodeType]:
    """The code of ``fn``, and those that it was put over."""
    while fn is not None:
        yield fn.__code__
        fn = _stacked.get(id(fn.__code__), (None, None))[1]


def is_over(fn: FunctionType, code: CodeType | None) -> bool:
    """Does a call of ``fn`` go through the code?"""
    return any(c is code for c in _beneath(fn))


def own_code(fn: FunctionType) -> CodeType:
    """What ``fn`` was written with."""
    return list(_beneath(fn))[-1]
