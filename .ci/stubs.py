"""Writes the type stubs (*.pyi) of tinytorch's generated surface: functions, methods, named tuples. Names, parameters
and defaults come from the operators' records (tinytorch/ops/declare/op.py) and signatures, types from annotations.py.

    python .ci/stubs.py            writes them
    python .ci/stubs.py --check    exits with 1 where one is not up to date
"""

import importlib
import inspect
import math
import pathlib
import re
import sys
import textwrap
import types

from annotations import ASSIGNABLE, OVERLOADS, PARAMETERS, PROPERTIES, RESULTS

import tinytorch
from tinytorch import return_types
from tinytorch.ops.declare import NAMESPACES

ROOT = pathlib.Path(tinytorch.__file__).parent
HEADER = '"""{what} Written by .ci/stubs.py: do not edit."""\n\n'
IMPORTS = """from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, overload

import numpy

from {up} import return_types
from {up}dtypes import Size
from {up}generator import Generator
from {up}tensor import Tensor
from {up}types import Device, Number, _bool, _complex, _device, _dtype, _float, _int, _layout, _memory_format
"""
WIDTH = 120
used: set[str] = set()  # entries of the tables
unknown: set[str] = set()  # parameters that no entry knows


def look_up(table: dict, *keys: str):
    """The first entry there is."""
    for key in keys:
        if key in table:
            used.add(key)
            return table[key]
    return None


def annotated(text: str) -> str:
    """An annotation as it stands in a source file, in names that no method hides."""
    text = str(text).replace("np.ndarray", "numpy.ndarray[Any, Any]")
    return re.sub(r"\b(?<!_)(int|float|bool|complex|dtype|device)\b", r"_\1", text)


def default(value) -> str:
    """The text of a parameter's default."""
    plain = value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value))
    return repr(value) if plain or value == () else "..."


def parameter(p: inspect.Parameter, keys: list[str]) -> str:
    """A parameter with its type and default."""
    kind = look_up(PARAMETERS, *[f"{key}.{p.name}" for key in keys])
    kind = kind or (annotated(p.annotation) if p.annotation is not p.empty else look_up(PARAMETERS, p.name))
    if kind is None:
        unknown.add(f"{keys[0]}.{p.name}")
        kind = "Any"
    if p.default is None and "None" not in kind and kind not in ("Any", "Device"):
        kind += " | None"
    if p.default == () and "Sequence" not in kind:
        kind += " | Sequence[_int]"
    star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    return f"{star}{p.name}: {kind}" + ("" if p.default is p.empty else f" = {default(p.default)}")


def lines(name: str, params: list[str], result: str, suffix: str = "") -> str:
    """The text of one signature, broken where it is long."""
    text = f"def {name}({', '.join(params)}) -> {result}: ...{suffix}"
    if len(text) > WIDTH - 4:
        rows = textwrap.wrap(", ".join(params), WIDTH - 8, break_long_words=False)
        text = f"def {name}(\n    " + "\n    ".join(rows) + f"\n) -> {result}: ...{suffix}"
    return text


def stub(name: str, fn, namespace: str = "", method: bool = False) -> str:
    """The stub of a function, or of a method."""
    plain = fn.op.name.rstrip("_") if hasattr(fn, "op") and not name.startswith("__") else name
    called = fn.__name__
    keys = [f"{namespace}.{called}"] if namespace else []
    keys += [f"{called}", f"{called.rstrip('_')}", plain]
    given = list(inspect.signature(fn).parameters.values())
    forms = look_up(OVERLOADS, *([f"Tensor.{called}"] if method else []), *keys)
    if forms:
        own = given[0].name if method else "input: Tensor"
        text = [lines(name, [params.replace("{t}", own)], result) for params, result in forms]
        return "\n".join("@overload\n" + t for t in text) if len(text) > 1 else text[0]
    params, star = [], False
    for k, p in enumerate(given):
        if p.kind is p.KEYWORD_ONLY and not star:
            params.append("*")
            star = True
        star = star or p.kind is p.VAR_POSITIONAL
        if method and k == 0:
            params.append(p.name)
        elif p.name == "out" and (tuples := pairs(keys)):
            params.append(f"out: {tuples} | None = None")
        elif p.name != "named":
            params.append(parameter(p, keys))
        else:
            params.append("**named: Any")
    result = look_up(RESULTS, *keys)
    if result is None:
        annotation = inspect.signature(fn).return_annotation
        result = "Tensor" if annotation is inspect.Signature.empty else annotated(annotation)
    override = name in ("__eq__", "__ne__")
    return lines(name, params, result, "  # type: ignore[override]" if override else "")


def pairs(keys: list[str]) -> str:
    """The type of ``out`` where there are several results."""
    result = look_up(RESULTS, *keys) or ""
    if not result.startswith("return_types."):
        return ""
    return f"tuple[{', '.join(['Tensor'] * len(getattr(return_types, result.partition('.')[2])._fields))}]"


def all_of(names) -> str:
    """``__all__``."""
    text = textwrap.wrap(", ".join(f'"{n}"' for n in names), WIDTH - 4)
    return "__all__ = [\n    " + "\n    ".join(text) + ",\n]\n"


def functions(namespace: str, names) -> str:
    table = NAMESPACES[namespace]
    return "\n".join(stub(name, table[name], namespace) for name in names) + "\n"


def package() -> str:
    """tinytorch/__init__.pyi: what is imported there as it is, and the functions."""
    own = [name for name in tinytorch.__all__ if name not in NAMESPACES[""]]
    source = (ROOT / "__init__.py").read_text()
    tree = source[source.index("from . import"):source.index("globals()")]
    text = re.sub(r"#.*", "", tree)
    out = [HEADER.format(what="PyTorch's names.")]
    out.append(IMPORTS.format(up=".").replace("from .dtypes import Size\n", "").replace(
        "from .generator import Generator\n", "").replace("from .tensor import Tensor\n", "").replace(
        "from . import return_types\n", ""))
    for module, names in re.findall(r"^from (\.[\w.]*) import (\([^)]*\)|[^\n]*)", text, re.M):
        public = [n for n in re.findall(r"\w+", names) if n in own and n != "fuse"]
        if public:
            out.append(lines_of_import(module, public))
    out.append("from . import profiler as profiler\nfrom .fuse import _Callable\n")
    out.append("\nfuse: _Callable\nfloat = float32\nint = int32\n__version__: str\n\n")
    out.append(all_of(sorted(tinytorch.__all__)) + "\n")
    return "".join(out) + functions("", sorted(NAMESPACES[""]))


def lines_of_import(module: str, names: list[str]) -> str:
    return "".join(f"from {module} import {n} as {n}\n" for n in names)


def tensor() -> str:
    """tinytorch/tensor.pyi: the class Tensor."""
    members = vars(tinytorch.Tensor)
    body = ["def __new__(cls, *args: Any, device: Device = None, dtype: _dtype | None = None, **kwargs: Any) -> "
            "Tensor: ...", "__array_priority__: _int"]
    for name, kind in PROPERTIES.items():
        body.append(f"@property\ndef {name}(self) -> {kind}: ...")
    for name, kind in ASSIGNABLE.items():
        body.append(f"@property\ndef {name}(self) -> {kind}: ...\n@{name}.setter\ndef {name}(self, value: {kind}) -> "
                    "None: ...")
    body.append("@grad.deleter\ndef grad(self) -> None: ...")
    for name, member in sorted(members.items()):
        private = name.startswith("_") and not name.startswith("__")
        if isinstance(member, types.FunctionType) and not private and name != "__new__":
            body.append(stub(name, member, method=True))
    grad = body.pop(next(k for k, text in enumerate(body) if text.startswith("@grad.deleter")))
    at = next(k for k, text in enumerate(body) if "@grad.setter" in text)
    body.insert(at + 1, grad)
    text = IMPORTS.format(up=".").replace("from .tensor import Tensor\n", "")
    return (HEADER.format(what="Tensor and its methods.") + text + "\n\nclass Tensor:\n" +
            textwrap.indent("\n".join(body), "    ") + "\n\n\ndef __getattr__(name: str) -> Any: ...  # internal\n")


def namespace(name: str) -> tuple[pathlib.Path, str]:
    """The stub of a namespace's module."""
    module = importlib.import_module(f"tinytorch.{name}")
    path = pathlib.Path(module.__file__).with_suffix(".pyi")
    up = "." * (len(path.relative_to(ROOT).parts))
    text = HEADER.format(what=f"Functions of tinytorch.{name}.") + IMPORTS.format(up=up)
    others = [n for n in module.__all__ if n not in NAMESPACES[name]]
    for other in others:
        where = getattr(module, other).__module__.removeprefix("tinytorch.")
        text += f"from {up}{where} import {other} as {other}\n"
    return path, text + "\n" + all_of(sorted(module.__all__)) + "\n" + functions(name, sorted(NAMESPACES[name]))


def results() -> str:
    """tinytorch/return_types.pyi."""
    text = HEADER.format(what="Named tuples.") + "from .tensor import Tensor\n"
    for name, kind in sorted(vars(return_types).items()):
        if isinstance(kind, type) and not name.startswith("_"):
            fields = "".join(f"    @property\n    def {field}(self) -> Tensor: ...\n" for field in kind._fields)
            text += f"\n\nclass {name}(tuple[{', '.join(['Tensor'] * len(kind._fields))}]):\n" + fields
    return text


def main() -> int:
    stubs = {ROOT / "__init__.pyi": package(), ROOT / "tensor.pyi": tensor(), ROOT / "return_types.pyi": results()}
    stubs.update(namespace(name) for name in NAMESPACES if name not in ("", "internal"))
    unused = {*PARAMETERS, *RESULTS, *OVERLOADS} - used
    if unknown:
        print("annotations.py: parameters without type:", *sorted(unknown))
        return 1
    if unused:
        print("annotations.py: entries without use:", *sorted(unused))
        return 1
    old = [path for path, text in stubs.items() if not path.exists() or path.read_text() != text]
    for path in old:
        if "--check" in sys.argv[1:]:
            print(f"{path} is not up to date: run python .ci/stubs.py")
        else:
            path.write_text(stubs[path])
    return int(bool(old) and "--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
