"""No code: where Python would keep this module's bytecode, generated_code.py keeps what it compiled. pip removes the
bytecode of a package's modules with the package, and no other file beside it."""
