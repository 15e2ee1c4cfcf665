"""Code of functions that are made from source text: the hot paths of operators, which nobody writes out for each.

Note [Kept code]
Python compiles a module once and keeps the code in __pycache__; so does this file with what ``import tinytorch``
compiles, 460 texts: that took 35 % of the instructions of an import, and reading what was kept takes 1 %. Code is
kept under its own source, so that none is ever out of date. As for modules, nothing is written where the folder is
read-only, or where Python is told to write no bytecode. The file begins with a checksum, since marshal may give
anything, or raise anything, for one that was damaged.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import marshal
import os
import sys
import types
import zlib
from importlib.util import MAGIC_NUMBER, cache_from_source

from .atomic_file import replacing

Codes = dict[tuple[str, str], types.CodeType]  # by source and the file name that was asked for


def _read(path: str) -> Codes:
    """What the file holds; nothing if there is none, it was damaged, or another version of Python wrote it."""
    try:
        with open(path, "rb") as file:
            head, content = file.read(_HEAD), file.read()
    except OSError:
        return {}
    return marshal.loads(content) if head == _head(content) else {}


_HEAD = len(MAGIC_NUMBER) + 4


def _head(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(4, "little") + MAGIC_NUMBER


# In the place of kept_code.py's bytecode; None: this Python keeps none.
_path = __spec__.cached and cache_from_source(os.path.join(os.path.dirname(__file__), "kept_code.py"))
_found = _read(_path) if _path else {}
_made: Codes | None = {}  # None: the import is over


@functools.cache
def code_of(source: str, filename: str) -> types.CodeType:
    """Compiled source: most operators share theirs with others. Tracebacks and inspect.getsource show it: a file name
    stands for one source."""
    code = _found.get((source, filename))
    if code is None or code.co_filename in linecache.cache:
        shown = f"{filename[:-1]}, {len(linecache.cache)}>" if filename in linecache.cache else filename
        code = compile(source, shown, "exec")
    linecache.cache[code.co_filename] = (len(source), None, source.splitlines(True), code.co_filename)
    if _made is not None:
        _made[source, filename] = code
    return code


def keep() -> None:
    """Keeps the code that was made so far for the next import; what is made from now on is not kept."""
    global _found, _made
    if _made and _path and not sys.dont_write_bytecode and not all(_found.get(key) is _made[key] for key in _made):
        with contextlib.suppress(OSError, RuntimeError), replacing(_path) as file:
            content = marshal.dumps(_made)
            file.write(_head(content) + content)
    _found, _made = {}, None
