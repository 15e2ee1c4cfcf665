"""A case as a script, and as functions made from the script's text."""

from __future__ import annotations

import base64
import sys
import zlib
from collections.abc import Callable

import numpy as np

from ..backends.cpu import check, ffi, lib
from ..dtypes import ALL
from ..generator import Generator
from ..interop import from_numpy
from ..ops.declare import Elementwise
from ..tensor import Tensor
from .case import Case, number_text

LITERALS = 256  # elements of an input that stand in a script as numbers
_WIDTH = 100  # characters of a line of bytes


def kernel(name: str, *args, out=None):
    """An elementwise operator that has no public function."""
    info = Elementwise.TABLE[name]
    return info.slow(args) if out is None else info.into(out, args, name)


def stream(seed: int, draw: int) -> Generator:
    """A generator at a place in a stream."""
    state = np.array([seed, draw], np.uint64).view(np.uint8)
    return Generator().set_state(from_numpy(state))


def function_of(case: Case) -> Callable[..., tuple]:
    """The function that computes the case's results from its inputs."""
    names = {"torch": sys.modules["tinytorch"], "kernel": kernel, "stream": stream}
    exec(compile(case.run_source(), "<minify>", "exec"), names)
    return names["run"]


def inputs_of(case: Case) -> list[Tensor]:
    """Fresh tensors."""
    made = []
    for v, array in case.inputs.items():
        of = ALL[case.values[v].dtype]
        t = from_numpy(array if of.numpy else array.view(f"i{array.itemsize}")).clone()  # bits of what NumPy has not
        made.append(t if of.numpy else t.view(of))
    return made


def bits_of(t: Tensor) -> bytes:
    """The elements in row-major order."""
    t = t.detach().contiguous()
    check(lib.tt_sync(t._h, 0), "minify")
    return bytes(ffi.buffer(t._h.data, t.nbytes))


def array_of(t: Tensor, dtype: int) -> np.ndarray:
    """The elements, as a case holds them."""
    raw = np.frombuffer(bits_of(t), np.uint8)
    return raw.view(ALL[dtype].stored).reshape(tuple(t.shape)).copy()


def random_array(shape: tuple[int, ...], dtype: int) -> np.ndarray:
    """Numbers that a script can name by their seed."""
    torch = sys.modules["tinytorch"]
    t = torch.randn(*shape, dtype=ALL[dtype], generator=Generator().manual_seed(0))
    return array_of(t, dtype)


_SCRIPT = '''"""Fused mode ({tier}) against eager mode: {complaint}."""
{imports}import tinytorch as torch
{helpers}

def inputs():
{inputs}    return {names},


{run}

def bits(t):
    return t.contiguous().reshape(-1).view(torch.uint8).tolist()


if __name__ == "__main__":
    eager = run(*inputs())
    torch.config(fuse_hot={hot}){comment}
    fused = torch.fuse(run)(*inputs())
{again}    for k, (f, e) in enumerate(zip(fused, eager)):
        print(f"result {{k}}:", "the same" if bits(f) == bits(e) else f"fused {{f}}, eager {{e}}")
'''
_AGAIN = "    torch.fuse.wait()\n    fused = torch.fuse(run)(*inputs())\n"


def script_of(case: Case, hot: int, complaint: str) -> str:
    """The whole script; ``hot``: the setting fuse_hot with which it fails."""
    run = case.run_source()
    names = [f"x{v}" for v in case.inputs]
    lines = "".join(
        f"    {name} = {input_text(array, case.values[v].dtype)}\n"
        for name, (v, array) in zip(names, case.inputs.items())
    )
    needed = [name for name in ("kernel", "stream") if f"{name}(" in run]
    imports = "import base64\nimport zlib\n\n" if "zlib." in lines else ""
    return _SCRIPT.format(
        tier="interpreted" if hot < 0 else "compiled",
        complaint=complaint.replace("\\", "/").replace('"', "'"),
        run=run,
        inputs=lines,
        names=", ".join(names),
        imports=imports,
        helpers=f"from tinytorch.fuse.script import {', '.join(needed)}\n" if needed else "",
        hot=hot,
        comment="  # nothing is compiled" if hot < 0 else "  # every kernel is compiled after its first run",
        again="" if hot < 0 else _AGAIN,
    )


def input_text(a: np.ndarray, dtype: int) -> str:
    """An input as an expression: its numbers, a seed, or its bytes."""
    kind, shape, size = f"torch.{ALL[dtype].name}", tuple(a.shape), 8 * a.itemsize
    if ALL[dtype].numpy:
        if a.size > 4 and a.tobytes() == a.reshape(-1)[:1].tobytes() * a.size:
            return f"torch.full({shape}, {number_text(a.reshape(-1)[0].item())}, dtype={kind})"
        if a.size <= LITERALS and not (a.dtype.kind == "f" and np.isnan(a).any()):
            return f"torch.tensor({_nested(a.tolist())}, dtype={kind})"
        if (
            a.size > LITERALS
            and dtype in (lib.TT_F32, lib.TT_F64)
            and a.tobytes() == random_array(shape, dtype).tobytes()
        ):
            return f"torch.randn({shape}, dtype={kind}, generator=torch.Generator().manual_seed(0))"
    if a.size <= LITERALS:
        whole = a.reshape(-1).view(f"int{size}").tolist()
        return f"torch.tensor({whole}, dtype=torch.int{size}).view({kind}).reshape({shape})"
    packed = base64.b64encode(zlib.compress(a.tobytes(), 9)).decode()
    parts = "\n".join(f'        "{packed[k : k + _WIDTH]}"' for k in range(0, len(packed), _WIDTH))
    return (
        f"torch.frombuffer(bytearray(zlib.decompress(base64.b64decode(\n{parts}))), dtype={kind})"
        f".reshape({shape}).clone()"
    )


def _nested(values) -> str:
    if isinstance(values, list):
        return f"[{', '.join(map(_nested, values))}]"
    return number_text(values)
