"""A process that uses fused mode's compiled tier, for tests that need one of their own: prints what came of it as JSON.

child.py [number of kernels] [bytes a file may have] [what to do afterwards: "fork", "exit"] [file to wait for]
"""

import json
import os
import resource
import sys
import time
import warnings

import tinytorch as tt
from tinytorch import cache
from tinytorch.fuse import compiler
from tinytorch.fuse.worker import worker


def program(k, x):
    """A kernel of its own for every k."""
    for step in range(k + 1):
        x = (x * 0.5 + step).exp().log() - x
    return x


def bits(tensor):
    """The bytes of a tensor without NaN."""
    return tensor.numpy().tobytes()


def run(kernels, seed=0):
    """Runs the programs interpreted and compiled; are all results those of eager mode?"""
    x = tt.linspace(-1, 1, 1000 + seed)
    same = True
    for k in range(kernels):
        want = bits(program(k, x))
        for _ in range(3):
            with tt.fuse():
                got = program(k, x)
            same &= bits(got) == want
    finished = tt.fuse.wait(600)
    for k in range(kernels):
        with tt.fuse():
            got = program(k, x)
        same &= bits(got) == bits(program(k, x))
    return same and finished


def main(kernels=1, limit=0, then="", file=""):
    """Everything, with the warnings that were given."""
    cache.LOCK_PATIENCE = compiler.TIMEOUT = 600.0  # a machine that has other work takes its time
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    print("ready", flush=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if then == "exit":  # while the compiler is at work
            with tt.fuse():
                program(0, tt.ones(1000)).sum().item()
            while not os.path.exists(file) or not os.path.getsize(file):
                time.sleep(0.01)
            return
        same = run(kernels)
        if then == "fork":
            before = worker.compiled + worker.hits
            if child := os.fork():
                same &= os.waitpid(child, 0)[1] == 0
            else:
                os._exit(not (run(kernels + 1, seed=1) and worker.compiled + worker.hits > before))
    texts = [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]
    print(
        json.dumps(
            {
                "same": same,
                "warnings": texts,
                "hits": worker.hits,
                "compiled": worker.compiled,
                "refused": worker.refused,
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main(*(int(a) for a in sys.argv[1:3]), *sys.argv[3:])
