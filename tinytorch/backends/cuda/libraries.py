"""Where NVIDIA's libraries are: the wheels of the ``nvidia`` namespace package, then CUDA_HOME, then the loader's
path."""

from __future__ import annotations

import glob
import importlib.util
import os


def candidates(name: str, versions: tuple[int, ...] = (13, 12)) -> list[str]:
    """Paths and names under which ``lib<name>.so`` may be opened, best first; the loader knows it with one of the
    versions behind its name."""
    found = []
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        for pattern in (f"*/lib/lib{name}.so*", f"*/lib64/lib{name}.so*"):
            found += sorted(glob.glob(os.path.join(root, pattern)), key=_newest, reverse=True)
    for home in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        for folder in ("lib64", "lib", "targets/x86_64-linux/lib", "extras/CUPTI/lib64") if home else ():
            found += sorted(glob.glob(os.path.join(home, folder, f"lib{name}.so*")), key=_newest, reverse=True)
    return [*found, f"lib{name}.so", *(f"lib{name}.so.{version}" for version in versions)]


def _newest(path: str) -> list[int]:
    """The numbers after ``.so``; of several versions the newest goes first."""
    return [int(part) for part in path.rsplit(".so", 1)[1].split(".") if part.isdigit()]


def opened(ffi, path: str):
    """The library of that file, which stays: at the interpreter's exit some of what it made is ended after its object,
    with which ffi.dlopen alone would take its functions away."""
    return ffi.dlopen(path, ffi.RTLD_NOW | ffi.RTLD_NODELETE)


def open_library(ffi, name: str, versions: tuple[int, ...] = (13, 12), wheel: str = "tinytorch[cuda]"):
    """``lib<name>.so``, opened through ``ffi``; OSError naming the wheel that has it, and where it was looked for."""
    tried = []
    for candidate in candidates(name, versions):
        try:
            return opened(ffi, candidate)
        except OSError as exc:
            tried.append(f"{candidate}: {exc}")
    raise OSError(
        f"NVIDIA's library lib{name}.so was not found. Install its wheel (pip install '{wheel}') or "
        "set CUDA_HOME. Tried:\n  " + "\n  ".join(tried)
    )
