"""Ctrl-C at any time: the KeyboardInterrupt arrives, and no mode stays behind."""

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json, random, signal, sys
import tinytorch as tt
from tinytorch.backends.cpu import lib

p, q = tt.ones(50, requires_grad=True), tt.ones(50)
armed, fired, unraisable = False, 0, []

def strike(*_):
    global armed, fired
    if armed:
        armed, fired = False, fired + 1
        raise KeyboardInterrupt

def f(x):
    return ((x * x).sin() * x).sum()

def backward():
    f(p).backward()

def create_graph():
    g, = tt.autograd.grad(f(p), p, create_graph=True)
    (g * g).sum().backward()

def fused():
    with tt.fuse():
        f(q)

def fused_backward():
    with tt.fuse():
        f(p).backward()

decorated = tt.fuse(f)

def no_grad():
    with tt.no_grad():
        q + q

def enable_grad():
    with tt.enable_grad():
        q + q

def set_grad():
    with tt.set_grad_enabled(False):
        q + q

def set_anomaly():
    with tt.autograd.set_detect_anomaly(True):
        q + q

def inference_mode():
    with tt.inference_mode():
        q + q

plain = tt.no_grad()(lambda x: x + x)
switched = tt.set_grad_enabled(False)(lambda x: x + x)
loops = {"backward": backward, "create_graph": create_graph, "fused": fused, "fused_backward": fused_backward,
         "decorated": lambda: decorated(q), "no_grad": no_grad, "enable_grad": enable_grad,
         "set_grad": set_grad, "set_anomaly": set_anomaly, "inference_mode": inference_mode,
         "no_grad_decorator": lambda: plain(q), "set_grad_decorator": lambda: switched(q)}
body, count = loops[sys.argv[1]], int(sys.argv[2])

def work():  # CPython 3.13 does not guard the end of a loop that stands in a try
    while armed:
        body()

signal.signal(signal.SIGALRM, strike)
sys.unraisablehook = lambda error: unraisable.append(repr(error.exc_value))
seen = left = 0
for _ in range(count):
    try:
        armed = True
        signal.setitimer(signal.ITIMER_REAL, random.random() * 0.002 + 1e-5)
        work()
    except KeyboardInterrupt:
        seen += 1
    armed, p.grad = False, None
    left += not tt.is_grad_enabled() or tt.is_inference_mode_enabled() or tt.ones(1).is_inference() \\
        or tt.is_anomaly_enabled() or lib.tt_fuse_depth() > 0
print(json.dumps({"fired": fired, "seen": seen, "left": left, "unraisable": unraisable}))
"""
LOOPS = (
    "backward",
    "create_graph",
    "fused",
    "fused_backward",
    "decorated",
    "no_grad",
    "enable_grad",
    "set_grad",
    "set_anomaly",
    "inference_mode",
    "no_grad_decorator",
    "set_grad_decorator",
)


def interrupted(loop: str, count: int) -> dict:
    environment = {**os.environ, "TINYTORCH_FUSE": "0"}  # everywhere in fused mode, the depth is never 0
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, loop, str(count)], capture_output=True, text=True, timeout=900, env=environment
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return json.loads(done.stdout)


def check(loop: str, count: int) -> None:
    assert interrupted(loop, count) == {"fired": count, "seen": count, "left": 0, "unraisable": []}


@pytest.mark.parametrize("loop", LOOPS)
def test_interrupts(loop):
    check(loop, 100)


@pytest.mark.slow
@pytest.mark.parametrize("loop", LOOPS)
def test_many_interrupts(loop):
    check(loop, 1500)
