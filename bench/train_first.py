"""The first training step of a process on a GPU, which compiles and loads what later ones find."""

import importlib
import os
import subprocess
import sys
import tempfile
from time import perf_counter

from .devices import DEVICES, on_gpu
from .timing import CACHES, Measured


def measure_on_gpu(row, sides, rounds):
    """As the suite for GPUs does, but first steps in processes of their own."""
    return first_steps(row, sides) if row.first else on_gpu(row, sides, rounds)


def first_steps(row, sides):
    """Seconds of each side's first step, without those of the imports, of the model and of waking the GPU."""
    result = Measured()
    for side in sides:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as caches:
            environment = os.environ | dict.fromkeys(CACHES, caches)
            command = [sys.executable, "-m", __name__, row.name, side]
            for _ in range(2 if row.warm else 1):
                done = subprocess.run(command, env=environment, capture_output=True, text=True)
                if done.returncode:
                    result.errors[side] = done.stderr.strip().rpartition("\n")[2]
                    break
            else:
                result.seconds[side] = float(done.stdout)
    return result


def main(name, side):
    """Time the first step of a row on a side."""
    suite = importlib.import_module("bench.train").CUDA
    row = next(row for row in suite.rows if row.name == name)
    device = DEVICES[side](row.device)
    step, synchronize = row.make(device), device.torch.cuda.synchronize
    synchronize()
    start = perf_counter()
    step()
    synchronize()
    print(perf_counter() - start)


if __name__ == "__main__":
    main(*sys.argv[1:])
