"""A program that compiles with NVRTC what it reads: ``python -I -S nvrtc_process.py PATHS``, the places where the
library may be, best first. Reads lines of JSON (the source, its name, the options), and answers each by a line with
the size of the machine code and the code itself; the size is 0 where it does not compile. It needs nothing but Python,
so that it starts in a moment."""

import ctypes
import json
import sys


def open_library(paths):
    """The first of them that can be opened."""
    for path in paths:
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise SystemExit("no NVRTC")


def compile_cubin(nvrtc, source, name, options):
    """The machine code; nothing where it does not compile."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    texts = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None, None)
    try:
        if nvrtc.nvrtcCompileProgram(program, len(options), texts):
            return b""
        nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
        code = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetCUBIN(program, code)
        return code.raw
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def main(paths):
    nvrtc = open_library(paths)
    for line in sys.stdin.buffer:
        code = compile_cubin(nvrtc, *json.loads(line))
        sys.stdout.buffer.write(b"%d\n" % len(code) + code)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
