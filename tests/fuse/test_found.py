"""Programs that random testing found to go wrong once, as it printed them."""

import pytest

from fuse.programs import Line, Program
from fuse.test_programs import INTERPRETED, check, compiled

FOUND = {
    "a reduction's result is read and then written over": """
        v0 = leaf((3, 3))
        v1 = v0.sum()
        v2 = F.elu(v1)
        v1.acos_()
    """,
    "a value for each row is made in its place": """
        v0 = leaf((4, 1024))
        v1 = v0.mean(1)
    """,
    "a number is stored beside results that fill more than a block": """
        v0 = leaf((3, 5, 211), grad=True)
        v1 = torch.acos(v0)
        v2, = torch.autograd.grad(v1.sum(), [v0], create_graph=True)
        v3, = torch.autograd.grad(v2, [v0], torch.ones_like(v2), create_graph=True)
    """,
    "from a float to an integer and back is not truncation": """
        v0 = leaf((64,), kind='wild')
        v1 = leaf((5,), 'float64')
        v2 = v0.to(torch.int32).float() + 0
        v3 = torch.atan2(v1.to(torch.int32), 2)
        v4 = v1.to(torch.int64).double() * 1
        v5 = v0.half().to(torch.int32).half()
    """,
    "a copy of what NumPy may write is summed in the order of the original": """
        v0 = leaf((4, 3, 2), layout='numpy')
        v1 = v0.permute(2, 1, 0)[0].sum((0, -1))
    """,
    "the rest of a buffer is never read": """
        v0 = leaf((23,))
        v1 = torch.zeros(24)
        v1[1:] = v0
        v2 = v1[1:] * 2
        v1 = None
    """,
    "values in a part of a buffer that is written over": """
        v0 = leaf((4, 64))
        v1 = torch.zeros(5)
        v1[:4] = v0.sum(1)
        v2 = v0 * 2
        v1[:4] = 3
        v3 = v1[:4] + 1
        v1 = None
    """,
    "a variance whose means come from a kernel before it": """
        v0 = leaf((4, 1024))
        v1 = v0.var(1)
    """,
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    lines = [Line(text.strip()) for text in FOUND[name].strip().splitlines()]
    leaves = [line for line in lines if "leaf(" in line.text]
    check(Program(leaves, [line for line in lines if line not in leaves], False), [*INTERPRETED, *compiled()])
