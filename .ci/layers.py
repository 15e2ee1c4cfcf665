"""Prints the folders of the project and the arrows between them, and fails where one points upwards or closes a circle.

The C side (kernels/): an arrow is an include of another folder's header, or the use of a function or variable that
another folder's file defines. FLOORS gives the order: a folder may use those of lower floors, and no other one of its
own floor. The Python side (tinytorch/): an arrow is an import at the top of a module. Modules may not import one
another in a circle.

ALLOWED lists what is still wrong, with the number of symbols or modules; it may only shrink.

    python .ci/layers.py [--uses]     --uses: also which symbols make each arrow
"""

import ast
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

FLOORS = [  # see kernels/README.md
    ["scalar"],
    ["api", "cuda/device"],
    ["core"],
    ["backend"],
    ["cpu", "cuda/host"],
    ["fuse"],
    ["ops"],
    ["python"],
]
ALLOWED = {}  # (from, to): how many symbols and headers

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.M)
NAME = re.compile(r"\btt_\w+")
# At the margin, not static or a declaration: a function's head up to its brace, or a variable.
FUNCTION = re.compile(
    r"^(?!static|typedef|extern|#|struct \w+ \{|enum)[A-Za-z_][\w \*]*?"
    r"\b(tt_\w+)\([^;{}]*\)\s*\{",
    re.M,
)
VARIABLE = re.compile(
    r"^(?!static|typedef|extern|#|return)(?:[A-Za-z_][\w \*]*?[ \*]|[\w ]+\(\*)(tt_\w+)\)?"
    r"(?:\[[^\]]*\])*(?:\([^)]*\))?(?: = [^;]*?)?;",
    re.M,
)


def folder_of(path: pathlib.Path) -> str:
    parts = path.relative_to(ROOT / "kernels").parts
    return "/".join(parts[:2]) if parts[0] == "cuda" else parts[0]


def c_arrows() -> dict:
    """(from, to) -> the symbols and headers of the second that the first names."""
    texts = {}
    for path in sorted((ROOT / "kernels").rglob("*")):
        if path.suffix in (".c", ".h", ".cuh", ".inc"):
            texts[path] = COMMENT.sub(" ", path.read_text())
    home = {}
    for path, text in texts.items():
        if path.suffix == ".c":
            for found in (*FUNCTION.finditer(text), *VARIABLE.finditer(text)):
                home.setdefault(found[1], folder_of(path))
    arrows = collections.defaultdict(set)
    for path, text in texts.items():
        here = folder_of(path)
        for header in INCLUDE.findall(text):
            target = ROOT / "kernels" / header
            there = folder_of(target if target.exists() else path.parent / header)
            if there != here:
                arrows[here, there].add(header)
        if path.suffix == ".c":
            for name in set(NAME.findall(text)):
                if home.get(name, here) != here:
                    arrows[here, home[name]].add(name)
    return arrows


def modules() -> dict:
    """The Python modules by dotted name: what they import at the top."""
    found = {}
    for path in sorted((ROOT / "tinytorch").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    imports = {}
    for name, path in found.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        imports[name] = set()
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ImportFrom):
                base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                source = ".".join([*base, *([node.module] if node.module else [])])
                for alias in node.names:
                    whole = f"{source}.{alias.name}"
                    imports[name].add(whole if whole in found else source)
            elif isinstance(node, ast.Import):
                imports[name].update(alias.name for alias in node.names)
        imports[name] = {other for other in imports[name] if other in found and other != name}
    return imports


def circles(graph: dict) -> list:
    """The strongly connected components of more than one node (Tarjan)."""
    index, low, stack, on, out = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on.add(node)
        for other in graph.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = []
            while not part or part[-1] != node:
                part.append(stack.pop())
                on.discard(part[-1])
            if len(part) > 1:
                out.append(sorted(part))

    for node in graph:
        if node not in index:
            visit(node)
    return out


def check_c(show: bool) -> list:
    floor = {name: k for k, names in enumerate(FLOORS) for name in names}
    wrong = []
    arrows = c_arrows()
    print("kernels/, from the ground up:")
    for name in [name for names in FLOORS for name in names]:
        to = {b: uses for (a, b), uses in sorted(arrows.items()) if a == name}
        print(f"  {floor[name]} {name:12} -> " + (", ".join(f"{b} ({len(u)})" for b, u in to.items()) or "nothing"))
        for b, uses in to.items():
            if show:
                print(f"      {b}: {' '.join(sorted(uses))}")
            if floor.get(b, -1) >= floor[name] and len(uses) > ALLOWED.get((name, b), 0):
                wrong.append(f"kernels/{name} may not use kernels/{b}: {' '.join(sorted(uses))}")
    for a in {a for a, _ in arrows} - set(floor):
        wrong.append(f"kernels/{a} has no floor")
    return wrong


def check_python() -> list:
    imports = modules()
    packages = collections.defaultdict(set)
    for name, others in imports.items():
        for other in others:
            a, b = (".".join(n.split(".")[:2]) for n in (name, other))
            if a != b:
                packages[a].add(b.removeprefix("tinytorch."))
    print("tinytorch/:")
    for name in sorted(packages):
        print(f"  {name.removeprefix('tinytorch.'):12} -> {', '.join(sorted(packages[name]))}")
    graph = {name: {o for o in others if not name.startswith(o + ".")} for name, others in imports.items()}
    return [f"modules import one another in a circle: {' '.join(part)}" for part in circles(graph)]


def main() -> int:
    wrong = check_c("--uses" in sys.argv) + check_python()
    for line in wrong:
        print("WRONG:", line)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
