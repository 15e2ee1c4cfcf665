"""A step of training in which one allocation fails, once for each that the library makes.

    python tests/fuzz allocations train [--every 7] [--times 2]

The step must raise OutOfMemoryError (or MemoryError, or do without), leave no memory and no mode behind, and compute
the same when it is run again. It runs in a new thread, since every thread keeps small blocks of its own.
"""

import argparse
import ctypes
import functools
import gc
import json
import os
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))


@functools.cache
def preload() -> str:
    """The library that makes allocations fail, compiled."""
    path = os.path.join(tempfile.mkdtemp(prefix="tinytorch-failing-"), "failing.so")
    command = ["cc", "-O1", "-shared", "-fPIC", "-fno-builtin", os.path.join(HERE, "failing.c"), "-o", path]
    subprocess.run(command, check=True)
    return path


def run(step, every=1, times=1, timeout=900) -> dict:
    """What came of a step in a process of its own. ``every``: of so many allocations one is made to fail. ``times``:
    how many then fail one after the other; 0: all."""
    command = [sys.executable, HERE, "allocations", step, "--child", "--every", str(every)]
    command += ["--times", str(times)]
    environment = {**os.environ, "LD_PRELOAD": preload(), "TINYTORCH_FUSE": "0", "TINYTORCH_FUSE_WORTH": "0"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment)
    lines = done.stdout.splitlines()
    if done.returncode:
        return {"died": done.returncode, "at": lines[-1:], "error": done.stderr[-1500:]}
    return json.loads(lines[-1])


def _code():
    """Where the library's code lies in this process."""
    from tinytorch.backends import _cpu

    found = []
    with open("/proc/self/maps") as maps:
        for line in maps:
            if _cpu.__file__ in line:
                found += [int(at, 16) for at in line.split()[0].split("-")]
    return min(found), max(found)


class Failing:
    """``with Failing(first, last)``: these allocations fail."""

    library = None

    def __init__(self, first, last):
        Failing.library = Failing.library or ctypes.CDLL(None)
        self.first, self.last, self.code = first, last, _code()
        Failing.library.failing_seen.restype = ctypes.c_long
        Failing.library.failing_place.restype = ctypes.c_size_t

    def __enter__(self):
        begin, end = map(ctypes.c_size_t, self.code)
        self.library.failing_set(begin, end, ctypes.c_long(self.first), ctypes.c_long(self.last))
        return self

    def __exit__(self, *_):
        self.seen, self.place = self.library.failing_seen(), hex(self.library.failing_place())
        self.library.failing_set(ctypes.c_size_t(0), ctypes.c_size_t(0), ctypes.c_long(0), ctypes.c_long(0))


def child(name, every, times):
    """Makes the allocations fail, one after the other; prints what came of it."""
    import tinytorch as tt
    from fuzz.steps import EVERY

    step = EVERY[name]
    unraisable = []
    sys.unraisablehook = lambda error: unraisable.append(repr(error.exc_value))

    def attempt(first, last):
        """(result, exception, allocations seen)"""
        found = []

        def work():
            failing = Failing(first, last)
            try:
                with failing:
                    found.append((step(), None))
            except BaseException as exc:
                found.append((None, f"{type(exc).__name__}: {exc}"))
            found.append((failing.seen, failing.place))
            found.append((tt.is_grad_enabled(), tt.is_inference_mode_enabled(), tt.backends.cpu.lib.tt_fuse_depth()))

        tt.cpu.empty_cache()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        gc.collect()
        (result, raised), seen, modes = found
        return result, raised, seen, modes

    for _ in range(3):  # what is made once is made
        wanted, raised, (count, _), modes = attempt(0, 0)
        assert raised is None, raised
    before = tt.cpu.memory_allocated()
    told, raises, without = [], {}, 0
    for at in range(1, count + 1, every):
        print("at", at, flush=True)
        result, raised, (_, place), left = attempt(at, at + times - 1 if times else 1 << 60)
        held = tt.cpu.memory_allocated() - before
        again, failed, _, _ = attempt(0, 0)
        kind = (raised or "").partition(":")[0]
        raises[kind] = raises.get(kind, 0) + 1
        if raised is None and result != wanted:
            told.append(f"{at} ({place}): another result")
        without += raised is None
        if kind not in ("", "OutOfMemoryError", "MemoryError"):
            told.append(f"{at} ({place}): {raised}")
        if left != modes:
            told.append(f"{at} ({place}): modes {left}")
        if held:
            told.append(f"{at} ({place}): {held} bytes are left")
        if failed or again != wanted:
            told.append(f"{at} ({place}): the next run {failed or 'gives another result'}")
    print(json.dumps({"allocations": count, "raised": raises, "wrong": told, "unraisable": unraisable}))


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="allocations", description=__doc__.partition("\n")[0])
    parser.add_argument("step")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--times", type=int, default=1, help="so many fail one after the other; 0: all that follow")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        return child(options.step, options.every, options.times)
    print(json.dumps(run(options.step, options.every, options.times, timeout=None), indent=1))
