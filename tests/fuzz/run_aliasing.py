"""Runs aliasing programs: eagerly, then fused in each tier, in children; shrinks what fails.

python tests/fuzz aliasing --programs 20000 --tier both --jobs 2
python tests/fuzz aliasing --seed 123 --programs 1          # prints the program, too
"""

import argparse
import contextlib
import shutil
import sys
import time

import tinytorch
from fuse.snapshot import differences, snapshot
from fuzz.aliasing import Program, program
from fuzz.children import Death, spread
from fuzz.tiers import Compiler

TIERS = ("interpreter", "compiler", "both")


def eager(program, device):
    return snapshot(program.run(contextlib.nullcontext, device))


def open_device(device):
    """In the process that is to work: an emulated device where there is no GPU."""
    if device.startswith("cuda"):
        from gpu.emulator import machine
        from tinytorch.backends.cuda import runtime

        if not runtime.device_count():
            machine().plug_in()


class Runner:
    """Compares programs' ends in one process, many at a time."""

    def __init__(self, device="cpu", tier="both"):
        self.device, self.tier = device, tier
        open_device(device)
        self.compiler = Compiler()
        self.before = tinytorch.fuse.stats()

    def compare(self, programs, at=lambda number: None):
        """For each program that ends otherwise than eagerly: (its place, tier, differences). ``at`` hears the place of
        each program before it runs."""
        wanted = {}
        for number, one in enumerate(programs):
            at(number)
            wanted[number] = eager(one, self.device)
            if self.tier != "compiler":
                with tinytorch.config(fuse_hot=-1, fuse_worth=0):
                    yield from self._compared(number, one, wanted[number], "interpreter")
        if self.tier == "interpreter":
            return
        with tinytorch.config(fuse_hot=0, fuse_worth=0):
            for number, one in enumerate(programs):
                at(number)
                yield from self._compared(number, one, wanted[number], "while kernels are compiled")
                self.compiler.want()
            self.compiler.compile()
            for number, one in enumerate(programs):
                at(number)
                yield from self._compared(number, one, wanted[number], "compiler")

    def _compared(self, number, program, wanted, tier):
        told = differences(wanted, snapshot(program.run(tinytorch.fuse, self.device)))
        if told:
            yield number, tier, told

    def counted(self):
        """How often fused mode did what since this runner was made."""
        after = tinytorch.fuse.stats()
        found = {name: after[name] - self.before[name] for name in ("recorded", "interpreted", "compiled")}
        return found | {"kernels": self.compiler.compiled}

    def close(self):
        shutil.rmtree(self.compiler.folder, ignore_errors=True)


def failure(program, device, tier, seconds=60.0):
    """What is wrong with a program, found in a child of its own; "" if nothing is."""

    def work(_, report):
        runner = Runner(device, tier)
        try:
            for _, where, told in runner.compare([program]):
                report(f"{where}: {'; '.join(told)}")
        finally:
            runner.close()

    return "\n".join(str(told) for _, told in spread([0], work, seconds=seconds))


def shrunk(program, device, tier):
    """The shortest program that fails in the same way: by a signal, or by a difference."""
    died = failure(program, device, tier).startswith("SIG")

    def fails(candidate: Program):
        told = failure(candidate, device, tier)
        return bool(told) and told.startswith("SIG") == died

    return program.shrunk(fails)


def fuzz(seeds, device="cpu", tier="both", jobs=1, batch=250, seconds=60.0):
    """Runs the programs of all seeds. Gives {seed: what is wrong}, and what fused mode did."""
    batches = [seeds[k : k + batch] for k in range(0, len(seeds), batch)]
    wrong, counts, suspects = {}, {}, {}

    def work(number, report):
        runner, some = Runner(device, tier), batches[number]
        try:
            at = lambda place: report(("at", some[place]))  # noqa: E731
            for place, where, told in runner.compare([program(seed) for seed in some], at):
                report(("wrong", some[place], f"{where}: {'; '.join(told)}"))
            report(("counted", runner.counted()))
        finally:
            runner.close()

    todo = range(len(batches))
    while todo:
        died = []
        # A child for each batch: kernels that are loaded stay so.
        for number, told in spread(todo, work, jobs=jobs, share=1, seconds=seconds * 10):
            if isinstance(told, Death):  # of the program at work; the others run again
                seed = suspects[number]
                wrong[seed] = str(told)
                batches.append([other for other in batches[number] if other != seed])
                died.append(len(batches) - 1)
            elif told[0] == "at":
                suspects[number] = told[1]
            elif told[0] == "wrong":
                wrong.setdefault(*told[1:])
            else:
                counts = {name: counts.get(name, 0) + n for name, n in told[1].items()}
        todo = died
    return wrong, counts


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="aliasing", description=__doc__.partition("\n")[0])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tier", default="both", choices=TIERS)
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--batch", type=int, default=250, help="programs whose kernels are compiled together")
    parser.add_argument("--seconds", type=float, help="after which no further batch begins")
    options = parser.parse_args(arguments)
    if options.programs == 1:
        print(program(options.seed))
    start, wrong, counts, done = time.perf_counter(), {}, {}, 0
    step = options.programs if options.seconds is None else options.batch * options.jobs
    for first in range(options.seed, options.seed + options.programs, step):
        if options.seconds is not None and time.perf_counter() - start > options.seconds:
            break
        seeds = list(range(first, min(first + step, options.seed + options.programs)))
        found, counted = fuzz(seeds, options.device, options.tier, options.jobs, options.batch)
        wrong, done = wrong | found, done + len(seeds)
        counts = {name: counts.get(name, 0) + n for name, n in counted.items()}
    took = time.perf_counter() - start
    for seed, what in list(wrong.items())[:5]:
        print(f"\nseed {seed}: {what[:2000]}\n{shrunk(program(seed), options.device, options.tier)}", flush=True)
    signals = sum(what.startswith(("SIG", "hangs")) for what in wrong.values())
    did = ", ".join(f"{n} {name}" for name, n in counts.items())
    print(f"{done} programs on {options.device}, {options.tier}: {len(wrong) - signals} differ, {signals} died")
    print(f"{done / took:.0f} programs/s; {did}")
    if wrong:
        print("failing seeds:", sorted(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
