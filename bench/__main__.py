"""``python -m bench``: list the suites, or run one."""

import argparse
import os
import pathlib
import sys
from importlib.util import find_spec

from . import cpu, cuda_layers, fuse, markdown, overhead, profiler, report, train

RESULTS = pathlib.Path(__file__).parent / "results"
SUITES = {
    "overhead": overhead.SUITE,
    "cpu": cpu.SUITE,
    "fuse": fuse.SUITE,
    "cuda": cuda_layers.SUITE,
    "profiler": profiler.SUITE,
    "train": train.SUITES["cpu"],
}
#: Suites that have other rows on another device than that of `SUITES`.
ON_DEVICE = {("train", device): suite for device, suite in train.SUITES.items()}


def main():
    options = parse()
    if options.suite is None:
        print("python -m bench SUITE, where SUITE is one of\n")
        for name, suite in SUITES.items():
            print(f"    {name:10} {suite.about} ({len(suite.rows)} rows)")
        return 0
    # The one pins OpenBLAS to old kernels; the other makes every import compile a source tree anew.
    start_over_without("OPENBLAS_CORETYPE", "PYTHONDONTWRITEBYTECODE")
    return run(options)


def parse():
    parser = argparse.ArgumentParser(prog="python -m bench", description="Race tinytorch and its peers.")
    parser.add_argument("suite", nargs="?", choices=SUITES, help="without one: list the suites")
    parser.add_argument("--device", choices=["cpu", "cuda"], help="where to train, in the suite train (default: cpu)")
    parser.add_argument(
        "--only", metavar="TEXT", default="", help="only the row of that name, or the rows whose name contains TEXT"
    )
    parser.add_argument("--sides", metavar="NAMES", default="", help="only these columns of the table: a,b,c")
    parser.add_argument("--rounds", metavar="N", type=int, help="how often every side has its turn")
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="write the figures and their circumstances to FILE, "
        "for a whole suite bench/results/SUITE.json unless given",
    )
    parser.add_argument("--merge", action="store_true", help="leave the other rows of the --json FILE as they are")
    parser.add_argument("--markdown", metavar="FILE", help="write them to FILE as a table")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a row misses its target")
    options = parser.parse_args()
    if options.device and (options.suite, options.device) not in ON_DEVICE:
        parser.error(f"{options.suite} takes no --device")
    if options.suite and not (options.json or options.only or options.sides):
        options.json = str(RESULTS / f"{'_'.join(filter(None, [options.suite, options.device]))}.json")
    if options.merge and not options.json:
        parser.error("--merge needs a --json FILE")
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds must be at least 1")
    return options


def start_over_without(*variables):
    """Start this very command again if one of these environment variables is set.

    OpenBLAS chooses its kernels while it is loaded, so a pinned core type must be gone before that.
    """
    found = [os.environ.pop(variable, None) for variable in variables]
    if any(value is not None for value in found):
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def run(options):
    suite = ON_DEVICE[options.suite, options.device] if options.device else SUITES[options.suite]
    sides = wanted_sides(suite, options)
    rows = wanted_rows(suite, options.only.lower())
    if not rows:
        raise SystemExit(f"no row of {options.suite} has {options.only!r} in its name")

    obstacle = suite.obstacle() if suite.obstacle else None
    if obstacle:
        raise SystemExit(f"{options.suite} cannot run here: {obstacle}")
    facts = report.circumstances(suite, sides)
    print(f"{options.suite}: {suite.about}")
    print(report.described(facts), end="\n\n")
    width = max(len(row.name) for row in rows) + 2
    print(report.header(suite, width))
    outcomes = []
    for row in rows:
        able = [side for side in sides if row.on(side)]
        measured = suite.measure(row, able, options.rounds or row.rounds or suite.rounds)
        outcomes.append(report.Outcome(suite, row, measured))
        print(outcomes[-1].line(width), flush=True)
        keep(options, report.whole(options.suite, facts, outcomes))  # what there is, should a later row end it all

    missed = [outcome.row.name for outcome in outcomes if outcome.ok is False]
    if missed:
        print(f"\n{len(missed)} of {len(outcomes)} rows miss their target:", *missed, sep="\n    ")
    return 1 if missed and options.check else 0


def keep(options, results):
    """Write the results to the files that were asked for."""
    if options.merge:
        results = report.merged(options.json, results)
    if options.json:
        report.save(options.json, results)
    if options.markdown:
        markdown.save(options.markdown, results)


def wanted_rows(suite, text):
    """The row of that name, or those with that in their names."""
    named = [row for row in suite.rows if row.name.lower() == text]
    return named or [row for row in suite.rows if text in row.name.lower()]


def wanted_sides(suite, options):
    """The sides that are installed and asked for."""
    asked = options.sides.split(",") if options.sides else list(suite.sides)
    for side in asked:
        if side not in suite.sides:
            raise SystemExit(f"{options.suite} has no side {side!r}; its sides are {', '.join(suite.sides)}")
        if suite.sides[side] == "tinytorch" and find_spec("tinytorch") is None:
            raise SystemExit("tinytorch cannot be found: install it, or run from the root of its repository")
    return [side for side, module in suite.sides.items() if side in asked and find_spec(module)]


if __name__ == "__main__":
    sys.exit(main())
