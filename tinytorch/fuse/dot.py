"""A fused program as a picture: its operators, grouped into the kernels that they were run as."""

from __future__ import annotations

from ..dot import Edge, Node, Picture
from ..dtypes import ALL
from .trace import Operand, Trace


def program_picture(program) -> Picture:
    """Of a ``Program`` of describe.py. Values flow along the arrows; a label gives the dtype and the shape of what
    another kernel or the caller gets to see: the rest never leaves the registers and the cache."""
    recorded: Trace = program.trace
    kernel_of = {n: k for k, kernel in enumerate(program.kernels) for n in kernel.nodes}
    nodes, edges = [], []
    writer: dict[int, int] = {}  # storage -> the box that last wrote it, or stands for it from outside
    boxes = _operators(program, kernel_of)
    nodes += boxes
    for n, node in enumerate(recorded.nodes):
        for o in node.inputs:
            if o.number:
                continue
            if o.id not in writer:
                writer[o.id] = len(nodes)
                nodes.append(Node((f"s{o.id}", _of(o)), "value"))
            source = writer[o.id]
            inside = source < len(boxes) and kernel_of.get(source) == kernel_of.get(n)
            edges.append(Edge(source, n, "" if inside or source >= len(boxes) else _of(o)))
        if node.out.id in writer and not recorded.storages[node.out.id].made:
            edges.append(Edge(writer[node.out.id], n, "written over", dashed=True))
        writer[node.out.id] = n
    for storage, n in writer.items():
        if n < len(boxes) and recorded.storages[storage].seen:
            edges.append(Edge(n, len(nodes)))
            nodes.append(Node((f"s{storage}", _of(recorded.nodes[n].out)), "result"))
    groups = [
        f"kernel {k}: {kernel.pattern}, {'compiled' if kernel.compiled else 'interpreted'}"
        for k, kernel in enumerate(program.kernels, 1)
    ]
    where = f" at {program.place}" if program.place else ""
    return Picture(f"program of {len(boxes)} operators, ended{where}: {program.reason}", nodes, edges, groups)


def _operators(program, kernel_of: dict[int, int]) -> list[Node]:
    """A box for each recorded operator; one that no kernel runs was found to be the same as another, or unseen."""
    boxes = []
    for n, node in enumerate(program.trace.nodes):
        call = node.name
        if numbers := [
            repr(program.trace.numbers[o.id]) for o in node.inputs if o.number and o.id < len(program.trace.numbers)
        ]:
            call += f" {', '.join(numbers)}"
        if node.dims:
            call += f" over {', '.join(map(str, node.dims))}"
        place = program.places[n] if n < len(program.places) else None
        boxes.append(
            Node(
                (call, _of(node.out), *([str(place)] if place else [])),
                "operator" if n in kernel_of else "note",
                kernel_of.get(n),
            )
        )
    return boxes


def _of(o: Operand) -> str:
    return f"{ALL[o.dtype].name} {o.shape}"
