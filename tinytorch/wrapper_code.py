"""Code that takes the place of a function's: all references to the function, in whatever module, see it, no other
object changes, and nobody pays while it is not there. The profiler records calls so, and ``overrides`` hands them to
others."""

from __future__ import annotations

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
