"""Writes the type stubs (*.pyi) of tinytorch's generated surface: functions, methods, named tuples. Names, parameters
and defaults come from the operators' records (tinytorch/ops/declare/op.py) and signatures, types of parameters from
tinytorch/ops/declare/kinds.py, those of results from annotations.py.

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

from annotations import ASSIGNABLE, PROPERTIES, RESULTS

import tinytorch
from tinytorch import return_types
from tinytorch.ops.declare import NAMESPACES
from tinytorch.ops.storage_types import STORAGE_TYPES
from tinytorch.ops.typed import TYPES
from tinytorch.ops.declare.kinds import FORMS, PARAMETERS, annotated, keys_of, kind_of

ROOT = pathlib.Path(tinytorch.__file__).parent
HEADER = '"""{what} Written by .ci/stubs.py: do not edit."""\n\n'
IMPORTS = {
    "collections.abc": "Callable Iterator Sequence",
    "typing": "Any Literal overload",
    "": "numpy",
    "{up}": "return_types",
    "{up}ops.linear_cross_entropy": "LinearCrossEntropyOptions",
    "{up}dtypes": "Size",
    "{up}generator": "Generator",
    "{up}tensor": "Tensor",
    "{up}types": "Device Number _bool _complex _device _dtype _float _int _layout _memory_format",
}
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


def default(value) -> str:
    """The text of a parameter's default."""
    plain = value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value))
    return repr(value) if plain or value == () else "..."


def parameter(p: inspect.Parameter, keys: list[str]) -> str:
    """A parameter with its type and default."""
    kind, entry = kind_of(p, keys)
    if entry:
        used.add(entry)
    if kind is None:
        unknown.add(f"{keys[0]}.{p.name}")
        kind = "Any"
    star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    return f"{star}{p.name}: {kind}" + ("" if p.default is p.empty else f" = {default(p.default)}")


def lines(name: str, params: list[str], result: str, suffix: str = "") -> str:
    """The text of one signature, broken where it is long."""
    text = f"def {name}({', '.join(params)}) -> {result}: ...{suffix}"
    if len(text) > WIDTH - 4:
        rows = [""]
        for param in ", ".join(params).split(", "):
            if len(rows[-1]) + len(param) > WIDTH - 12:
                rows.append("")
            rows[-1] += f"{param}, "
        text = f"def {name}(\n    " + "\n    ".join(row.rstrip() for row in rows) + f"\n) -> {result}: ...{suffix}"
    return text


def stub(name: str, fn, namespace: str = "", method: bool = False) -> str:
    """The stub of a function, or of a method."""
    keys = keys_of(fn, name, "Tensor" if method else namespace)
    given = list(inspect.signature(fn).parameters.values())
    forms = look_up(FORMS, *keys)
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
    result = look_up(RESULTS, *keys) or named_tuple(keys)
    if not result:
        annotation = inspect.signature(fn).return_annotation
        result = "Tensor" if annotation is inspect.Signature.empty else annotated(annotation)
    override = name in ("__eq__", "__ne__")
    return lines(name, params, result, "  # type: ignore[override]" if override else "")


def named_tuple(keys: list[str]) -> str:
    """The named tuple of an operator with several results: ``return_types.linalg_svd``; "" where there is none."""
    name = keys[0].removeprefix("Tensor.").replace(".", "_")
    return f"return_types.{name}" if isinstance(getattr(return_types, name, None), type) else ""


def pairs(keys: list[str]) -> str:
    """The type of ``out`` where there are several results."""
    result = named_tuple(keys)
    if not result:
        return ""
    return f"tuple[{', '.join(['Tensor'] * len(getattr(return_types, result.partition('.')[2])._fields))}]"


def all_of(names) -> str:
    """``__all__``."""
    text = textwrap.wrap(", ".join(f'"{n}"' for n in names), WIDTH - 4)
    return "__all__ = [\n    " + "\n    ".join(text) + ",\n]\n"


def functions(namespace: str, names) -> str:
    table = NAMESPACES[namespace]
    return "\n".join(stub(name, table[name], namespace) for name in names) + "\n"


def imports(text: str, up: str, own=()) -> str:
    """The imports that a stub's text needs, but for names that are its ``own``."""
    needed = []
    for module, names in IMPORTS.items():
        found = [name for name in names.split() if name not in own and re.search(rf"\b{name}\b", text)]
        if found:
            needed.append(
                f"from {module.format(up=up)} import {', '.join(found)}\n"
                if module
                else f"\nimport {', '.join(found)}\n\n"
            )
    return "".join(needed)


def again(module: str, names) -> str:
    """Imports that are public here, too."""
    return "".join(f"from {module} import {name} as {name}\n" for name in names)


def package() -> str:
    """tinytorch/__init__.pyi: what is imported there as it is, and the functions."""
    own = [name for name in tinytorch.__all__ if name not in NAMESPACES[""]]
    source = (ROOT / "__init__.py").read_text()
    source = re.sub(r"#.*", "", source[source.index("from . import") : source.index("globals()")])
    public = ""
    for module, names in re.findall(r"^from (\.[\w.]*) import (\([^)]*\)|[^\n]*)", source, re.M):
        public += again(module, [name for name in re.findall(r"\w+", names) if name in own and name != "fuse"])
    public += again(".", ["distributions", "profiler", "testing"]) + "from .fuse import _Callable\n"
    public += "from .ops.storage_types import StorageType as _StorageType\n"
    public += "from .ops.typed import TensorType as _TensorType\n"
    public += "\nfuse: _Callable\nfloat = float32\nint = int32\nnewaxis: None\n"
    public += "".join(f"{name}: _float\n" for name in ("e", "inf", "nan", "pi"))
    public += "".join(f"{name}: _TensorType\n" for name in TYPES)
    public += "".join(f"{name}: _StorageType\n" for name in STORAGE_TYPES) + "__version__: str\n\n"
    text = functions("", sorted(NAMESPACES[""]))
    return (
        HEADER.format(what="PyTorch's names.")
        + imports(text, ".", own)
        + public
        + all_of(sorted(tinytorch.__all__))
        + "\n"
        + text
    )


def tensor() -> str:
    """tinytorch/tensor.pyi: the class Tensor."""
    body = [
        "def __new__(cls, *args: Any, device: Device = None, dtype: _dtype | None = None, **kwargs: Any) -> "
        "Tensor: ...",
        "__array_priority__: _int",
        "@classmethod\ndef __torch_function__("
        "cls, func: Any, types: Any, args: Any = ..., kwargs: Any = ...) -> Any: ...",
    ]
    body += [f"@property\ndef {name}(self) -> {kind}: ..." for name, kind in PROPERTIES.items()]
    for name, kind in ASSIGNABLE.items():
        body.append(
            f"@property\ndef {name}(self) -> {kind}: ...\n@{name}.setter\ndef {name}(self, value: {kind}) -> None: ..."
        )
        if name == "grad":
            body[-1] += "\n@grad.deleter\ndef grad(self) -> None: ..."
    for name, member in sorted(vars(tinytorch.Tensor).items()):
        private = name.startswith("_") and not name.startswith("__")
        if isinstance(member, types.FunctionType) and not private and name != "__new__":
            body.append(stub(name, member, method=True))
    text = "class Tensor:\n" + textwrap.indent("\n".join(body), "    ")
    text += "\n\n\ndef __getattr__(name: str) -> Any: ...  # internal\n"
    return HEADER.format(what="Tensor and its methods.") + imports(text, ".", ("Tensor",)) + "\n\n" + text


def namespace(name: str) -> tuple[pathlib.Path, str]:
    """The stub of a namespace's module."""
    module = importlib.import_module(f"tinytorch.{name}")
    path = pathlib.Path(module.__file__).with_suffix(".pyi")
    up = "." * len(path.relative_to(ROOT).parts)
    text = functions(name, sorted(NAMESPACES[name]))
    public = ""
    for other in module.__all__:
        if other not in NAMESPACES[name]:
            public += again(up + getattr(module, other).__module__.removeprefix("tinytorch."), [other])
    return path, (
        HEADER.format(what=f"Functions of tinytorch.{name}.")
        + imports(text, up)
        + public
        + "\n"
        + all_of(sorted(module.__all__))
        + "\n"
        + text
    )


def results() -> str:
    """tinytorch/return_types.pyi."""
    text = HEADER.format(what="Named tuples.") + "from .tensor import Tensor\n"
    text += "\n" + all_of(return_types.__all__)
    for name in return_types.__all__:
        names = getattr(return_types, name)._fields
        fields = "".join(f"    @property\n    def {field}(self) -> Tensor: ...\n" for field in names)
        text += f"\n\nclass {name}(tuple[{', '.join(['Tensor'] * len(names))}]):\n" + fields
    return text


def main() -> int:
    stubs = {ROOT / "__init__.pyi": package(), ROOT / "tensor.pyi": tensor(), ROOT / "return_types.pyi": results()}
    stubs.update(namespace(name) for name in NAMESPACES if name not in ("", "internal"))
    unused = {*PARAMETERS, *RESULTS, *FORMS} - used
    if unknown:
        print("kinds.py: parameters without type:", *sorted(unknown))
        return 1
    if unused:
        print("annotations.py, kinds.py: entries without use:", *sorted(unused))
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
