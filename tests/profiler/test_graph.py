"""Pictures of graphs: autograd.graph_to_dot, and to_dot() of fused programs."""

import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import pytest

import tinytorch as torch
from tinytorch import nn
from tinytorch.autograd import graph_to_dot
from tinytorch.dot import Edge, Node, Picture, quoted

needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz is not installed")


def boxes(picture):
    """By number: the lines of each box in the DOT text."""
    return {int(n): text.split("\\n") for n, text in re.findall(r'^\s*n(\d+) \[label="(.*?)", shape', picture, re.M)}


def arrows(picture):
    """(from, to) of each arrow in the DOT text."""
    return [(int(a), int(b)) for a, b in re.findall(r"^\s*n(\d+) -> n(\d+)", picture, re.M)]


def test_names_shapes_leaves_and_what_is_saved():
    model = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 2))
    dot = graph_to_dot(model(torch.randn(5, 3)).sum(), model)
    shown = boxes(dot)
    assert shown[0] == ["SumBackward0", "float32 (), the root"]
    assert ["GeluBackward0", "saved input: float32 (5, 4)"] in shown.values()
    leaves = [lines for lines in shown.values() if lines[0] == "AccumulateGrad"]
    assert sorted(leaf[1:] for leaf in leaves) == [
        ["0.bias", "float32 (4,)"],
        ["0.weight", "float32 (4, 3)"],
        ["2.bias", "float32 (2,)"],
        ["2.weight", "float32 (2, 4)"],
    ]
    assert len(arrows(dot)) == len(shown) - 1  # a tree, and no box stands alone
    assert all(
        lines[1:] == [] or "saved" not in lines[1]
        for lines in boxes(graph_to_dot(model(torch.randn(5, 3)), model, saved=False)).values()
    )


def test_arrows_are_the_edges_of_the_graph():
    a = torch.randn(3, requires_grad=True)
    b = a * 2
    out = (b * b + a).sum()
    dot = graph_to_dot(out, {"a": a})
    names = {n: lines[0] for n, lines in boxes(dot).items()}
    assert sorted((names[x], names[y]) for x, y in arrows(dot)) == [
        ("AddBackward0", "AccumulateGrad"),
        ("AddBackward0", "MulBackward0"),
        ("MulBackward0", "AccumulateGrad"),
        ("MulBackward0", "MulBackward0"),
        ("MulBackward0", "MulBackward0"),
        ("SumBackward0", "AddBackward0"),
    ]


def test_several_outputs_broadcasts_and_freed_values_are_reported():
    x = torch.randn(4, 3, requires_grad=True)
    bias = torch.randn(3, requires_grad=True)
    first, second = (x + bias).unbind(0)[:2]
    dot = graph_to_dot((first, second))
    assert boxes(dot)[0] == ["UnbindBackward0", "float32 (3,), output 0, the root", "float32 (3,), output 1, the root"]
    assert 'label="output 1"' in graph_to_dot((first * second).sum()) and 'label="back to (3,)"' in dot
    out = x.exp().sum()
    out.backward()
    assert "saved: freed by backward" in str(graph_to_dot(out))


def test_a_leaf_that_is_gone_and_a_function_of_the_users():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    dot = graph_to_dot(Twice.apply(torch.randn(2, requires_grad=True)))
    assert sorted(lines[0] for lines in boxes(dot).values()) == ["AccumulateGrad", "TwiceBackward"]
    assert "saved [0]: float32 (2,)" in dot


def test_a_long_chain_needs_no_recursion():
    x = torch.zeros(1, requires_grad=True)
    y = x
    for _ in range(3 * sys.getrecursionlimit()):
        y = y + 1
    dot = graph_to_dot(y)
    assert len(arrows(dot)) == 3 * sys.getrecursionlimit()
    assert dot._repr_svg_() is None  # nobody wants to wait for that unasked


def test_what_is_no_graph_is_refused():
    with pytest.raises(TypeError, match="graph_to_dot: argument 'tensor' must be a Tensor.*got int"):
        graph_to_dot(3)
    with pytest.raises(TypeError, match="got none"):
        graph_to_dot([])
    with pytest.raises(RuntimeError, match=r"no graph: a tensor of shape \(2,\) that does not require grad"):
        graph_to_dot(torch.zeros(2))


def test_what_stands_in_names_is_quoted():
    hostile = 'a"];\n evil [label="<b>\\'
    assert quoted(hostile) == '"a\\"];\\n evil [label=\\"<b>\\\\"'
    x = torch.randn(2, requires_grad=True)
    dot = graph_to_dot(x * 2, {hostile: x})
    assert len(arrows(dot)) == 1 and "\n evil" not in dot


@needs_dot
def test_graphviz_draws_it():
    x = torch.randn(2, requires_grad=True)
    picture = graph_to_dot((x * 2).sum(), {'<&"\\N': x})
    drawn = xml.etree.ElementTree.fromstring(picture.svg())
    texts = [t.text for t in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert drawn.tag.endswith("svg") and "MulBackward0" in texts and '<&"\\N' in texts
    assert picture._repr_svg_() == picture.svg()


def test_without_graphviz_there_is_text(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    x = torch.randn(2, requires_grad=True)
    picture = graph_to_dot((x * 2).sum(), {"x": x})
    assert picture._repr_svg_() is None
    with pytest.raises(RuntimeError, match="graphviz's program 'dot' was not found"):
        picture.svg()
    assert (
        repr(picture)
        == picture.text()
        == (
            "backward graph\n  0  SumBackward0; float32 (), the root  -> 1\n  1  MulBackward0  -> 2\n"
            "  2  AccumulateGrad; x; float32 (2,)"
        )
    )
    picture.save(tmp_path / "graph.dot")
    assert (tmp_path / "graph.dot").read_text() == str(picture)
    assert str(picture).startswith("digraph {")
    with pytest.raises(ValueError, match="must end in one of"):
        picture.save(tmp_path / "graph.png")


def test_failures_of_graphviz_are_reported(monkeypatch):
    picture = Picture("two", [Node(("a",)), Node(("b",))], [Edge(0, 1)])
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/dot")

    def slow(command, timeout, **options):
        raise subprocess.TimeoutExpired(command, timeout)

    def broken(command, **options):
        raise subprocess.CalledProcessError(1, command, stderr=b"syntax error")

    monkeypatch.setattr(subprocess, "run", slow)
    with pytest.raises(RuntimeError, match="did not draw 2 nodes in 0.5 s"):
        picture.svg(timeout=0.5)
    monkeypatch.setattr(subprocess, "run", broken)
    with pytest.raises(RuntimeError, match="'dot' failed: syntax error"):
        picture.svg()


def softmax(x):
    e = (x - x.amax(1, keepdim=True)).exp()
    return e / e.sum(1, keepdim=True)


def test_a_fused_program():
    told = torch.fuse.explain(lambda x: softmax(x) * 2, torch.randn(8, 5))
    (program,) = told.programs
    picture = program.to_dot()
    shown = boxes(picture)
    names = {n: lines[0] for n, lines in shown.items()}
    assert [names[n] for n in range(6)] == ["max over 1", "sub", "exp", "sum over 1", "div", "mul 2"]
    assert shown[3][1] == "float32 (8, 1)" and all("test_graph.py" in shown[n][2] for n in range(6))
    steps = [(names[a], names[b]) for a, b in arrows(picture)]
    assert ("sub", "exp") in steps and ("exp", "div") in steps and ("exp", "sum over 1") in steps
    (value,) = (n for n, name in names.items() if n > 5 and (n, 0) in arrows(picture))
    (result,) = (n for n, name in names.items() if (5, n) in arrows(picture))
    assert shown[value][1] == shown[result][1] == "float32 (8, 5)"
    assert picture.count("subgraph cluster_") == len(program.kernels)
    assert "ended at" in picture.title and "\nkernel 1: " in picture.text()


def test_a_fused_program_that_writes_in_place():
    x = torch.zeros(4)
    with torch.fuse():
        x += 1
        told = torch.fuse.explain(lambda: x[1:].mul_(3))
    picture = told.programs[0].to_dot()
    assert 'label="written over"' in picture
