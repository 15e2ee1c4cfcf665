"""The pool of threads: how many there are, and regions one after the other."""

import os
import subprocess
import sys
import time

import pytest
from fuse.helpers import python

import tinytorch as tt
from tinytorch.profiler import profile


@pytest.mark.parametrize("wish, threads", [("4,2", 4), ("999", 256), ("0", None)])
def test_threads_that_the_environment_wants(wish, threads):
    program = "import tinytorch; print(tinytorch.get_num_threads())"
    environment = os.environ | {"OMP_NUM_THREADS": wish}
    found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert int(found.stdout) == (threads or len(os.sched_getaffinity(0)))


@pytest.mark.parametrize("threads", [0, 257])
def test_a_number_of_threads_that_cannot_be(threads):
    before = tt.get_num_threads()
    with pytest.raises(RuntimeError, match=f"expected 1 to 256 threads, got {threads}"):
        tt.set_num_threads(threads)
    assert tt.get_num_threads() == before


def test_threads_that_sleep_are_woken():
    x, before = tt.ones(1 << 21), tt.get_num_threads()
    tt.set_num_threads(2)
    try:
        x.exp().sum().item()
        with profile() as p:
            for _ in range(50):
                time.sleep(0.005)
                x.exp().sum().item()
    finally:
        tt.set_num_threads(before)
    assert any(e.kind == "kernel" and e.name.endswith("(pool)") for e in p.events())


# Workers that sleep, that wait, and that are more or fewer than there were. A lost piece ends in a wrong result, or in
# none within the limit of time.
REGIONS = """
    import random, threading, time
    import tinytorch as tt

    x = tt.arange(1 << 19).float()
    tall = tt.arange(1 << 19).reshape(1 << 13, 64)
    whole, turned = x.sqrt(), tall.t().contiguous()
    wrong = []

    def regions(seed):
        draw = random.Random(seed)
        for _ in range(400):
            tt.set_num_threads(draw.choice([1, 2, 3, 5, 16]))
            first, n = draw.randrange(1000), draw.randrange(1, 1 << draw.randrange(1, 19))
            if not tt.equal(x[first : first + n].sqrt(), whole[first : first + n]):
                wrong.append((seed, first, n))
            if not tt.equal(tall[:n].t().contiguous(), turned[:, :n]):
                wrong.append((seed, n))
            time.sleep(draw.choice([0, 0, 0, 0, 1e-5, 1e-4, 2e-3]))

    callers = [threading.Thread(target=regions, args=(k,)) for k in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong, wrong
    print("every region")
"""


def test_regions_of_any_number_of_threads():
    assert python(REGIONS) == "every region\n"
