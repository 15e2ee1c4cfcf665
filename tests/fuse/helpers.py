"""What the tests of fused mode share."""

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np

import tinytorch
from tinytorch.backends.cpu import ffi, lib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def pending():
    """Operators that this thread has recorded and not run."""
    return lib.tt_fuse_pending()


def held():
    """Bytes of live tensors; asking for it runs nothing, unlike tinytorch.cpu.memory_stats()."""
    out = ffi.new("int64_t[7]")
    lib.tt_memory_stats(out)
    return out[0]


def ramp(*shape):
    """Numbers from -2 to 2, computed."""
    return tinytorch.tensor(np.linspace(-2, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape))


def same(a, b):
    """Equal, bit by bit."""
    assert a.dtype == b.dtype and a.shape == b.shape
    return a.detach().numpy().tobytes() == b.detach().numpy().tobytes()


def chain(x):
    """Six elementwise operators."""
    return ((x * 1.5 + 2).tanh() - x).exp() / 3


def line_of(file, mark):
    """The number of the line of a file that ends in a comment."""
    with open(file) as lines:
        found = [k for k, text in enumerate(lines, 1) if text.rstrip().endswith(f"  # {mark}")]
    assert len(found) == 1, mark
    return found[0]


def in_threads(n, work):
    """Runs work(k) in n threads at once; raises what they raised."""
    failed, start = [], threading.Barrier(n)

    def run(k):
        try:
            start.wait()
            work(k)
        except BaseException as exc:  # noqa: B036 (it is raised below)
            failed.append(exc)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failed:
        raise failed[0]


def environment(**more):
    """Of a new process, where the mode is off unless ``more`` says otherwise."""
    return {**os.environ, "PYTHONPATH": ROOT, "TINYTORCH_FUSE": "0", **more}


def python(source, **more):
    """What a script prints in a new process. It must not fail."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment(**more),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
