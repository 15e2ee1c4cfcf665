"""Pictures of graphs: DOT text, which graphviz's program ``dot`` turns into SVG where it is installed."""

import pathlib
from typing import NamedTuple

_MOST = 800  # nodes that a notebook has drawn unasked: dot's time grows faster than the graph
_SECONDS = 60

#: How each kind of node looks.
STYLES = {
    "root": 'shape=box, style="rounded,filled,bold", fillcolor="#ffe3b3", color="#b86e00"',
    "operator": 'shape=box, style="rounded,filled", fillcolor="#e8eef7", color="#4a6fa5"',
    "leaf": 'shape=box, style="filled", fillcolor="#d8f0d8", color="#3c7d3c"',
    "value": 'shape=box, style="filled", fillcolor="#f5f5f5", color="#888888"',
    "result": 'shape=box, style="filled,bold", fillcolor="#ffe3b3", color="#b86e00"',
    "note": 'shape=plaintext, fontcolor="#666666"',
}


class Node(NamedTuple):
    """A box: its lines of text, its kind (of ``STYLES``), and the group it stands in."""

    lines: tuple[str, ...]
    kind: str = "operator"
    group: int | None = None


class Edge(NamedTuple):
    """An arrow between two boxes, by their numbers."""

    start: int
    end: int
    label: str = ""
    dashed: bool = False


class Picture(str):
    """A graph; the string is its DOT text. ``svg()`` draws it, as notebooks do; ``text()`` is a listing for those who
    have no graphviz; ``save(path)`` writes one of the three, by the name's ending."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    groups: tuple[str, ...]

    def __new__(cls, title: str, nodes, edges, groups=(), direction: str = "TB"):
        nodes, edges, groups = tuple(nodes), tuple(edges), tuple(groups)
        made = super().__new__(cls, _dot(title, nodes, edges, groups, direction))
        made.title, made.nodes, made.edges, made.groups = title, nodes, edges, groups
        return made

    def svg(self, timeout: float = _SECONDS) -> str:
        """The drawing, as SVG text. RuntimeError if graphviz is not installed, fails, or takes longer than ``timeout``
        seconds."""
        import subprocess  # when used: a start of Python does not wait for it

        program = _program()
        if program is None:
            raise RuntimeError(
                "svg: graphviz's program 'dot' was not found: install graphviz (Debian: apt install "
                "graphviz), or take text(), or the picture itself, which is DOT text"
            )
        try:
            done = subprocess.run(
                [program, "-Tsvg"], input=self.encode(), capture_output=True, timeout=timeout, check=True
            )
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"svg: 'dot' did not draw {len(self.nodes)} nodes in {timeout:g} s") from None
        except subprocess.CalledProcessError as failed:
            raise RuntimeError(f"svg: 'dot' failed: {failed.stderr.decode(errors='replace').strip()}") from None
        return done.stdout.decode()

    def _repr_svg_(self) -> str | None:
        """For notebooks, which show the text where this gives None."""
        if len(self.nodes) > _MOST or _program() is None:
            return None
        return self.svg()

    def text(self) -> str:
        """A line for each node, with the numbers of the nodes its arrows lead to."""
        after: dict[int, list[str]] = {}
        for edge in self.edges:
            after.setdefault(edge.start, []).append(f"{edge.end} ({edge.label})" if edge.label else str(edge.end))
        width, lines, group = len(str(len(self.nodes))), [self.title], None
        for number, node in enumerate(self.nodes):
            if node.group != group:
                group = node.group
                lines.append("" if group is None else f"{self.groups[group]}:")
            leads = f"  -> {', '.join(after[number])}" if number in after else ""
            lines.append(f"{number:{width + 2}}  {'; '.join(node.lines)}{leads}")
        return "\n".join(lines)

    def save(self, path) -> None:
        """Writes SVG, DOT or the listing: ``.svg``, ``.dot`` (or ``.gv``), ``.txt``. ValueError for other names."""
        path = pathlib.Path(path)
        makers = {".svg": self.svg, ".dot": lambda: str(self), ".gv": lambda: str(self), ".txt": self.text}
        if path.suffix not in makers:
            raise ValueError(f"save: the name must end in one of {', '.join(makers)}, got '{path.name}'")
        path.write_text(makers[path.suffix](), encoding="utf-8")

    def __repr__(self):
        return self.text()

    def __str__(self):
        return "".join(self)  # without the class, which prints as a listing


def _program() -> str | None:
    from shutil import which

    return which("dot")


def quoted(text: str) -> str:
    """A DOT string: whatever stands in ``text`` is shown as it is."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "").replace("\n", "\\n")
    return f'"{escaped.replace(chr(0), "")}"'


def _dot(title, nodes, edges, groups, direction) -> str:
    lines = [
        "digraph {",
        f"  label={quoted(title)}; labelloc=t; rankdir={direction};",
        '  fontname="sans-serif"; node [fontname="sans-serif", fontsize=11]; '
        'edge [fontname="sans-serif", fontsize=9, color="#666666"];',
    ]
    members: dict[int | None, list[int]] = {}
    for number, node in enumerate(nodes):
        members.setdefault(node.group, []).append(number)
    for group, numbers in members.items():
        indent = "  "
        if group is not None:
            lines.append(
                f"  subgraph cluster_{group} {{ label={quoted(groups[group])}; "
                'style="rounded,dashed"; color="#999999"; fontsize=10;'
            )
            indent = "    "
        for number in numbers:
            node = nodes[number]
            lines.append(f"{indent}n{number} [label={quoted(chr(10).join(node.lines))}, {STYLES[node.kind]}];")
        if group is not None:
            lines.append("  }")
    for edge in edges:
        look = [f"label={quoted(edge.label)}"] if edge.label else []
        look += ['style=dashed, color="#aaaaaa"'] if edge.dashed else []
        lines.append(f"  n{edge.start} -> n{edge.end}{f' [{chr(44).join(look)}]' if look else ''};")
    return "\n".join([*lines, "}"]) + "\n"
