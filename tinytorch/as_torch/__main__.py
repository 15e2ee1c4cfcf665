"""``python -m tinytorch.as_torch script.py args...`` or ``-m module args...``: runs a program, to which ``import
torch`` means tinytorch."""

import os
import runpy
import sys

USAGE = "usage: python -m tinytorch.as_torch script.py [args...] | -m module [args...]"


def main(args: list[str]) -> int:
    if not args or (args[0] == "-m" and len(args) < 2) or args[0] in ("-h", "--help"):
        print(USAGE, file=sys.stderr)
        return 0 if args and args[0] in ("-h", "--help") else 2
    if args[0] == "-m":
        sys.argv = args[1:]
        runpy.run_module(args[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = args
        sys.path[0] = os.path.dirname(os.path.abspath(args[0]))  # as Python does for a script
        runpy.run_path(args[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
