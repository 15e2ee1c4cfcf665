"""Plants faults, one at a time, and says which of them the tests do not notice. Run by hand:

    python tests/mutants.py                    # all of tests/planted/, but for those that were noticed before
    python tests/mutants.py python views.py    # those whose room, file or text has one of these words
    python tests/mutants.py --check            # only whether every text is still there, once

A fault is a paragraph of a file tests/planted/<room>.txt: the file and the tests that are to notice it, the lines that
are there, and what they become.

    tinytorch/autograd/engine.py  tests/autograd/test_accumulation.py -k adopted
    -    if old is None:
    +    if True:

The tree is copied to build/mutants, and a fault in C compiled there (CC="ccache gcc" saves time). The test that has
noticed a fault must pass without it, else "fails without a fault" is said.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLANTED = ROOT / "tests" / "planted"
TIMEOUT = 600.0  # seconds, for one run of tests


class Mutant(NamedTuple):
    """A fault: ``old`` becomes ``new`` in ``file``, and ``tests`` are pytest's arguments."""

    room: str
    file: str
    tests: str
    old: str
    new: str

    @property
    def key(self) -> str:
        """What tells it from every other."""
        return hashlib.sha256("\0".join(self).encode()).hexdigest()[:16]

    @property
    def compiled(self) -> bool:
        """Is it in what the extension is made of?"""
        return self.file.startswith("kernels/") and not self.file.endswith((".cuh", ".cu"))

    def __str__(self):
        return f"{self.file}\n    - {self.old.strip()}\n    + {self.new.strip()}\n    {self.tests}"


def read() -> list[Mutant]:
    """All faults."""
    found = []
    for path in sorted(PLANTED.glob("*.txt")):
        for paragraph in path.read_text().split("\n\n"):
            lines = [line for line in paragraph.split("\n") if line and not line.startswith("#")]
            if lines:
                file, _, tests = lines[0].partition("  ")
                old, new = ("\n".join(line[1:] for line in lines[1:] if line[0] == sign) for sign in "-+")
                found.append(Mutant(path.stem, file, tests.strip(), old, new))
    return found


def misplaced(mutants: list[Mutant], tree: pathlib.Path) -> list[Mutant]:
    """Those whose text is not there, or more than once: the code has changed since."""
    texts = {m.file: (tree / m.file).read_text() if (tree / m.file).exists() else "" for m in mutants}
    return [m for m in mutants if texts[m.file].count(m.old) != 1 or m.old == m.new]


def command(tree: pathlib.Path, *words: str) -> tuple[int, str]:
    """Runs a command in the tree; its status (-1: it was stopped), and the end of what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "TINYTORCH_CACHE_DIR": ""}
    environment["TINYTORCH_EMULATOR_DIR"] = str(tree.parent / "emulator")  # kernels, by their source and its headers
    try:
        done = subprocess.run(
            words, cwd=tree, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return -1, f"stopped after {TIMEOUT:g} s"
    return done.returncode, (done.stdout + done.stderr)[-2000:]


def build(tree: pathlib.Path) -> tuple[int, str]:
    """Compiles what has changed."""
    return command(tree, sys.executable, "setup.py", "-q", "build_ext", "--inplace")


def test(tree: pathlib.Path, *tests: str) -> tuple[int, str]:
    """Runs tests up to the first that fails."""
    return command(tree, sys.executable, "-m", "pytest", "-q", "-x", "--no-header", *tests)


def copied(folder: pathlib.Path) -> pathlib.Path:
    """A copy of the tree, with what git does not ignore; files that have not changed keep their time, and C files that
    are not there any more go."""
    tree = folder / "tree"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = set(filter(None, listed.stdout.split("\0")))
    for path in (tree / "kernels").rglob("*"):
        if path.is_file() and path.relative_to(tree).as_posix() not in names:
            path.unlink()
    for name in names:
        source, target = ROOT / name, tree / name
        if source.is_file() and (not target.exists() or source.read_bytes() != target.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    return tree


def tried(tree: pathlib.Path, mutant: Mutant) -> dict:
    """What became of one fault."""
    path, tests = tree / mutant.file, shlex.split(mutant.tests)
    shutil.rmtree(tree / ".pytest_cache", ignore_errors=True)  # which tests have failed
    whole = path.read_text()
    path.write_text(whole.replace(mutant.old, mutant.new))
    started = time.monotonic()
    try:
        status, text = build(tree) if mutant.compiled else (0, "")
        if status:
            return {"end": "does not compile", "text": text}
        status, text = test(tree, *tests)
    finally:
        path.write_text(whole)
        if mutant.compiled:
            build(tree)
    seconds = round(time.monotonic() - started, 1)
    if status == 0:
        return {"end": "survived", "text": text, "seconds": seconds}
    if status == 5 or status == 4:  # pytest: no tests, or wrong arguments
        return {"end": "no tests", "text": text}
    status, without = test(tree, "--last-failed", *tests)
    if status:
        return {"end": "fails without a fault", "text": without}
    return {"end": "noticed", "text": text, "seconds": seconds}


def main() -> None:
    """Tries the faults that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", help="faults whose room, file or text has one of these")
    parser.add_argument("--check", action="store_true", help="only look whether the texts are there")
    parser.add_argument("--again", action="store_true", help="also those that were noticed before")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "mutants", help="where to work")
    options = parser.parse_args()
    mutants = [m for m in read() if not options.words or any(word in "\n".join(m) for word in options.words)]
    for mutant in (lost := misplaced(mutants, ROOT)):
        print("not there, or more than once:", mutant)
    if options.check:
        sys.exit(len(lost) > 0)
    options.folder.mkdir(parents=True, exist_ok=True)
    kept = options.folder / "results.json"
    results = json.loads(kept.read_text()) if kept.exists() else {}
    tree = copied(options.folder)
    status, text = build(tree)
    if status:
        sys.exit(text)
    for number, mutant in enumerate(mutants, 1):
        if mutant in lost or (results.get(mutant.key, {}).get("end") == "noticed" and not options.again):
            continue
        results[mutant.key] = tried(tree, mutant)
        kept.write_text(json.dumps(results, indent=1))
        print(f"{number}/{len(mutants)} {results[mutant.key]['end']}: {mutant}", flush=True)
    ends = [results[m.key]["end"] if m.key in results else "not tried" for m in mutants]
    print("\n" + ", ".join(f"{ends.count(end)} {end}" for end in sorted(set(ends))))
    for mutant, end in zip(mutants, ends):
        if end not in ("noticed", "not tried"):
            print(f"\n{end}: {mutant}")


if __name__ == "__main__":
    main()
