"""The fuzzers by hand: ``python tests/fuzz aliasing --programs 20000``."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:1] = [os.path.dirname(HERE), os.path.dirname(os.path.dirname(HERE))]

from fuzz import allocations, interrupts, run_aliasing, run_callables  # noqa: E402 (the path is set above)

COMMANDS = {
    "aliasing": run_aliasing.main,
    "callables": run_callables.main,
    "allocations": allocations.main,
    "interrupts": interrupts.main,
}

if __name__ == "__main__":
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in COMMANDS:
        sys.exit(f"usage: python tests/fuzz {{{','.join(COMMANDS)}}} [options]")
    sys.exit(COMMANDS[name](sys.argv[2:]))
