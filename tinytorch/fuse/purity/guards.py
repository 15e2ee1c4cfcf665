"""Source and guards: the source that a function was compiled from, and the check that outside names are unchanged."""

from __future__ import annotations

import __future__

import ast
import functools
import linecache
import re
import types
from collections.abc import Callable

from ... import devices, dtypes
from ...tensor import Tensor
from .lattice import DATA, Known, Unproven, is_tensor

_MOST_LINES = 2000  # of a file that is read as a whole
_MOST_FOUND = 256  # functions whose source is kept
_IMPORT = re.compile(r"^[ \t]*(?:from\s+[.\w]+\s+)?import\s+(\([^)]*\)|[^\n#;]*)", re.MULTILINE)
_found: dict[int, tuple] = {}  # by id: the code, so that the id stays its own, and its node
_PARTS = (
    "co_code",
    "co_names",
    "co_varnames",
    "co_freevars",
    "co_cellvars",
    "co_flags",
    "co_argcount",
    "co_name",
    "co_posonlyargcount",
    "co_kwonlyargcount",
    "co_firstlineno",
    "co_linetable",
)
_FEATURES = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


class Proof:
    """What must be as it was for a function to be pure: ``tensors()`` gives those from outside, or None."""

    def __init__(self):
        self.things: dict[int, tuple[str, object]] = {}  # names in the guard's code
        self.tests: dict[str, None] = {}
        self.outside: dict[int, tuple[str, Tensor]] = {}  # tensors, and where they are
        self.tensors: Callable[[], tuple | None] | None = None

    def name(self, thing) -> str:
        """A name for an object in expressions."""
        return self.things.setdefault(id(thing), (f"k{len(self.things)}", thing))[0]

    def take(self, expression: str, value) -> object:
        """The kind of what the expression gives, which from now on it must always give: the value, or some tensor."""
        if is_tensor(value):
            first, _ = self.outside.setdefault(id(value), (expression, value))
            if first != expression:
                self.tests[f"{expression} is {first}"] = None
            return DATA
        self.tests[f"{expression} is {self.name(value)}"] = None
        return Known(value)

    def finish(self) -> None:
        """Makes ``tensors``."""
        self.take(f"{self.name(vars(dtypes))}['_default']", dtypes._default)
        self.take(f"{self.name(vars(devices))}['_default']", devices._default)
        found = "".join(f"{expression}, " for expression, _ in self.outside.values())
        source = (
            f"def tensors():\n    try:\n        if {' and '.join(self.tests)}:\n            return ({found})\n"
            "    except (LookupError, ValueError):\n        pass\n    return None\n"
        )
        names = dict(self.things.values())
        exec(compile(source, "<guard>", "exec"), names)
        self.tensors = names["tensors"]
        self.outside.clear()  # they may go


def source_of(fn: types.FunctionType):
    """The FunctionDef or Lambda that ``fn`` was made from. Unproven if there is none that compiles to its code."""
    code = fn.__code__
    if id(code) in _found:
        return _found[id(code)][1]
    lines = linecache.getlines(code.co_filename, fn.__globals__)
    if not lines:
        raise Unproven(f"the source of {fn.__name__} is not there")
    for text, imports in _texts(lines, code):
        try:
            functions, imported = _parsed(text)
            for node in functions.get(code.co_firstlineno, ()):
                if _alike(_compiled(node, code, imports or imported), code):
                    while len(_found) >= _MOST_FOUND:
                        _found.pop(next(iter(_found)), None)
                    _found[id(code)] = code, node
                    return node
        except (SyntaxError, ValueError):
            continue
    raise Unproven(f"the source of {fn.__name__} is no longer what runs, or was not found in its file")


def _texts(lines: list[str], code: types.CodeType):
    """Where to look for a function, and what its module imports: its own lines, where they are statements, take a
    fraction of the time that a whole file does, which may be 10 us a line."""
    first, last = code.co_firstlineno, _last_line(code)
    indent = len(lines[first - 1]) - len(lines[first - 1].lstrip()) if first <= len(lines) else 0
    while last < len(lines) and (lines[last].isspace() or len(lines[last]) - len(lines[last].lstrip()) > indent):
        last += 1
    above = "\n" * (first - 2) + ("if 1:\n" if indent else "\n" * (first > 1))
    names = {
        part.split(" as ")[-1].strip(" \t\n()").split(".")[0]
        for found in _IMPORT.findall("".join(lines))
        for part in found.split(",")
    }
    yield above + "".join(lines[first - 1 : last]), f"import {', '.join(filter(str.isidentifier, {*names, 'ast'}))}"
    if len(lines) <= _MOST_LINES:
        yield "".join(lines), ""


def _last_line(code: types.CodeType) -> int:
    inner = [_last_line(c) for c in code.co_consts if isinstance(c, types.CodeType)]
    return max([line for _, _, line in code.co_lines() if line] + inner)


@functools.lru_cache(maxsize=4)
def _parsed(text: str) -> tuple[dict[int, list], str]:
    """The functions of a file's text, by first line; and an import of all names that the file imports."""
    whole = ast.parse(text)
    functions: dict[int, list] = {}
    for node in ast.walk(whole):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            functions.setdefault(first, []).append(node)
    imported, left = {"ast"}, list(whole.body)
    while left:
        node = left.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imported.update((alias.asname or alias.name).split(".")[0] for alias in node.names if alias.name != "*")
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            left += ast.iter_child_nodes(node)
    return functions, f"import {', '.join(imported)}"


def _alike(a, b) -> bool:
    """Are two codes, or constants, the same? Codes have an == that looks at what they have specialized to, too."""
    if type(a) is not type(b):
        return False
    if isinstance(a, types.CodeType):
        return all(getattr(a, part) == getattr(b, part) for part in _PARTS) and _alike(a.co_consts, b.co_consts)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_alike, a, b))
    if isinstance(a, frozenset):
        return sorted(map(repr, a)) == sorted(map(repr, b))
    return repr(a) == repr(b)  # numbers with their sign, NaN


def _compiled(node, code: types.CodeType, imports: str) -> types.CodeType | None:
    """The code of a function's source, compiled as if it stood where ``code`` did: in a function, if that did; and in a
    module with the same imports, since CPython calls functions of what is imported otherwise than methods."""
    whole = node if isinstance(node, ast.FunctionDef) else ast.Expr(node)
    if code.co_flags & 0x10:  # CO_NESTED
        around = ast.parse(f"def around({', '.join(code.co_freevars)}): pass").body[0]
        around.body = [whole]
        whole = around
    module = ast.Module([*ast.parse(imports).body, whole], [])
    made = compile(ast.fix_missing_locations(module), code.co_filename, "exec", code.co_flags & _FEATURES, True)
    for _ in range(1 + bool(code.co_flags & 0x10)):
        made = next(
            (c for c in made.co_consts if isinstance(c, types.CodeType) and c.co_name in (code.co_name, "around")), None
        )
        if made is None:
            return None
    return made
