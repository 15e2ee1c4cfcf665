"""TINYTORCH_DEBUG: what fused mode writes to stderr."""

import functools
import re

import pytest

import tinytorch
from fuse import helpers
from fuse.helpers import python, ramp
from tinytorch import fuse
from tinytorch.fuse import listeners

line_of = functools.partial(helpers.line_of, __file__)
pytestmark = pytest.mark.usefixtures("idle", "interpreted")  # a test may ask for more


def debug_text(capfd, level, run):
    capfd.readouterr()
    with tinytorch.config(debug=level):
        run()
    return capfd.readouterr().err


def twice(x):
    with fuse():
        y = (x * 0.3).sin() + 1
        y = y.sort().values * 2  # sorted for the debugger
    return y


def test_level_0_writes_nothing(capfd):
    assert debug_text(capfd, 0, lambda: twice(ramp(13))) == ""


def test_level_1_tells_what_is_not_fused_once(capfd):
    text = debug_text(capfd, 1, lambda: [twice(ramp(13)) for _ in range(3)])
    place = listeners.Place(__file__, line_of("sorted for the debugger"))
    assert text == f"tinytorch.fuse: {place}: sort is not fused\n"


def test_level_2_has_a_line_for_each_kernel(capfd):
    text = debug_text(capfd, 2, lambda: [twice(ramp(1017)) for _ in range(2)])
    lines = [line.removeprefix("tinytorch.fuse: ") for line in text.splitlines()]
    kernels = [line for line in lines if "GFLOP/s" in line]
    assert len(kernels) == 4
    pattern = (
        r"mul_sin_add  \(1017,\) float32  pointwise  interpreted  {}  read 4\.1 kB, wrote 4\.1 kB  "
        r"[\d.]+ us  [\d.]+ GB/s  [\d.]+ GFLOP/s"
    )
    assert re.fullmatch(pattern.format("miss"), kernels[0]) and re.fullmatch(pattern.format("hit"), kernels[2])
    place = re.escape(str(listeners.Place(__file__, line_of("sorted for the debugger"))))
    assert re.fullmatch(rf"program \d+: 3 operators, 1 kernel; ended at {place}: sort is not fused", lines[2])


def test_level_3_lists_a_program_once(capfd):
    text = debug_text(capfd, 3, lambda: [twice(ramp(1021)) for _ in range(2)])
    assert len(re.findall(r"program \d+:\n", text)) == 2
    assert re.search(r"  1  s2: float32 \(1021,\) = sin\(s1\) +\S*test_debug\.py:\d+\n", text)


def test_level_4_shows_the_source(capfd):
    def run():
        with tinytorch.config(fuse_hot=0):
            twice(ramp(1023))
            assert fuse.wait(200)

    text = debug_text(capfd, 4, run)
    assert "source of mul_sin_add:\n/* A fused kernel" in text and "void fused_0(" in text
    assert re.search(r"sin_\d+ = sin\(.*\)  f32 +\S*test_debug\.py:\d+", text)
    assert re.search(r"tinytorch\.fuse: mul_sin_add (compiled|found on the disk) in \d+ ms, [0-9a-f]{12}\n", text)


def test_the_environment_sets_the_level():
    script = """
        import os, sys, tinytorch
        os.dup2(1, 2)
        with tinytorch.fuse():
            y = tinytorch.ones(3) * 2
    """
    assert "mul  (3,) float32" in python(script, TINYTORCH_DEBUG="2") and python(script, TINYTORCH_DEBUG="0") == ""
