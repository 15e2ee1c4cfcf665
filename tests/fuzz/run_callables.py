"""Calls of everything public with hostile arguments, in children: nothing may die, hang, or raise what it should not.

    python tests/fuzz callables --calls 200000 --jobs 2
    python tests/fuzz callables --first 1234 --calls 1       # prints the call and what both libraries do

What is wrong:
- a signal, a hang where PyTorch has none, a mode that stays behind;
- an exception that tells of a fault inside (NEVER), unless PyTorch raises it, too, or the argument itself does;
- where one argument of a good call was made wrong (callables.is_mutated), and PyTorch raises, too: an exception that
  is neither of PyTorch's class nor of a subclass, unless ALLOWED says why;
- in any other call, where several things are wrong at once and each library finds another one first: an exception that
  is none of ORDINARY, nor PyTorch's.
"""

import argparse
import collections
import contextlib
import importlib
import os
import re
import resource
import sys
import tempfile
import time
import warnings

import numpy as np

import tinytorch
from fuzz import arguments, callables
from fuzz.children import Death, spread
from fuzz.run_aliasing import open_device
from fuzz.sweep import Sweep
from tinytorch.backends.cpu import lib

SECONDS = 100.0  # PyTorch's first optimizer takes seconds, and ten times as many beside other work
NEVER = {
    "AttributeError", "KeyError", "AssertionError", "StopIteration", "UnboundLocalError", "NameError", "SystemError",
    "RecursionError", "UnicodeDecodeError", "UnicodeEncodeError", "InterfaceError",
}  # fmt: skip
ORDINARY = {"TypeError", "ValueError", "RuntimeError", "IndexError", "NotImplementedError", "OverflowError"}
#: Integers beyond 64 bits, for which PyTorch itself raises five classes of exceptions; complex numbers, which it has.
OPEN = re.compile(r"2\*\*(6[2-9]|80)|10\*\*30|\b\dj\b")


def outcome(m, source, names, inside=contextlib.nullcontext):
    """("absent",), ("raised", classes, words) or ("answer", type): what a call does in a library."""
    try:
        with inside():
            settle(eval(source, dict(names)))
    except Exception as exc:
        if isinstance(exc, AttributeError) and re.search(r"module '[\w.]+' has no attribute", str(exc)):
            return ("absent",)
        return "raised", tuple(c.__name__ for c in type(exc).__mro__), str(exc)[:300], where(exc)
    return ("answer",)


def where(exc):
    """The innermost line of the library that an exception passed."""
    found, at = "", exc.__traceback__
    while at:
        file = at.tb_frame.f_code.co_filename
        if "tinytorch" in file and "/tests/" not in file:
            found = f"{os.path.basename(file)}:{at.tb_lineno}"
        at = at.tb_next
    return found


def settle(value):
    """Looks at an answer: what is wrong with it should show."""
    if isinstance(value, tinytorch.Tensor):
        value.shape, value.dtype, value.requires_grad  # noqa: B018
        if (
            value.layout is tinytorch.strided and all(size < 2000 for size in value.shape) and value.numel() < 2000
        ):  # (2**40, 0) is as many lists
            value.detach().tolist()
    elif isinstance(value, (tuple, list)) and len(value) < 50:
        for item in value:
            settle(item)


def modes():
    return (
        tinytorch.is_grad_enabled(),
        tinytorch.is_inference_mode_enabled(),
        lib.tt_fuse_depth(),
    )


def quiet():
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    os.chdir(tempfile.gettempdir())
    sys.unraisablehook = lambda _: None
    out = os.open(os.devnull, os.O_WRONLY)
    os.dup2(out, 1)
    os.dup2(out, 2)


def memory():
    """The address space that a child may have: what this process has, and 1 GB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize() + (1 << 30)


def run(m, numbers, jobs, fused=False, seconds=SECONDS, device="cpu", calls=callables):
    """{number: what its call does in a library}. ``fused``: every fourth in fused mode. ``calls``: whose they are."""
    names, before = arguments.scope(m, device), None
    # A GPU's driver reserves addresses without end; what is written counts there.
    limits = {"share": 2000, "as": memory()} if device == "cpu" else {"share": 60, "data": 8 << 30}

    def work(number, report):
        nonlocal before
        if before is None:
            quiet()
            open_device(device)
            before = modes()
        inside = tinytorch.fuse if fused and number % 4 == 3 else contextlib.nullcontext
        source = calls.call(number)
        found = outcome(m, source, names, inside)
        if back := callables.RESTORED.get(source.partition("(")[0]):
            eval(back, dict(names))
        report(found if modes() == before else ("left behind", str(modes())))

    return {
        number: ("died", str(told)) if isinstance(told, Death) else told
        for number, told in spread(numbers, work, jobs=jobs, seconds=seconds, **limits)
    }


#: What PyTorch says where it has not checked an argument itself; of int32 indices (of int64 it is IndexError).
SLIPS = re.compile(
    "Boolean value of Tensor|unsupported operand|INTERNAL ASSERT|bad_alloc|max_size|not supported between"
    "|can only concatenate|object is not callable|INDICES element is out of DATA bounds|ufunc '\\w+'|by zero"
    "|truth value of an array|setStorage|Overflow when unpacking|Could this error message be improved"
    "|tuple index out of range|(not enough|too many) values to unpack|has no len\\(\\)|slow_conv_dilated"
    "|len\\(\\) of a 0-d"
    "|addmm_\\w*sparse|cannot convert float|only one element tensors can|ZeroDivisionError"
    "|internal error|not implemented for 'Complex|narrow\\(\\): length must"
    "|add\\(sparse, dense\\) is not supported|tensors do not have strides|output_size\\[\\d\\]=-inf"
    '|reduction operations on CSR tensors|bmm_sparse_dense" not implemented'
    "|can't concat str to bytes|could not be broadcast together"
    "|more than one element of the written-to tensor|got: anchor (\\w+|<attribute.*), positive"
    "|Coefficients cannot be empty|Could not run 'aten|unsupported tensor layout|unexpected error"
    "|invalid literal for int|cond must be a bool"
)
#: PyTorch's arithmetic takes a number for ``out``, and writes the result into a tensor that nobody sees.
NUMBER_FOR_OUT = re.compile("argument 'out' must be Tensor, not (int|float|bool|complex)")


def allowed(source, wanted, words, got, ours):
    """May a call with one thing wrong raise another class than PyTorch's? ``words`` are PyTorch's, ``ours`` ours."""
    if (
        re.search("not implemented for (these dense and )?sparse tensors$|of a sparse tensor alone$", ours)
        and wanted in ORDINARY
    ):
        return True  # before any value is looked at
    if OPEN.search(source) and {wanted, got} <= ORDINARY:
        return True
    return (
        wanted in NEVER
        or wanted == "MemoryError"
        or "must be int, not Index" in words  # a dimension is any index here
        or SLIPS.search(words) is not None
        or NUMBER_FOR_OUT.search(ours) is not None
        or "element of spacing to have size" in ours  # PyTorch takes places of another length, and slips or answers
        or "to be divisible by num_groups" in ours  # PyTorch counts the numbers of a group before, rounded down
        or "general_hamming(): argument 'alpha' must be float" in ours  # PyTorch broadcasts it
        or "expected an input of 3 dimensions" in ours  # a wrong one: which fault is found first differs between dtypes
        or (wanted == "NotImplementedError" and "same dtype" in ours)  # of bool a layout says what is looked at first
    )


def import_modules():
    """PyTorch's modules that are called: ``import torch`` leaves some of them out."""
    for module in callables.MODULES:
        importlib.import_module(f"torch.{module}")


def wrong(number, ours, theirs, calls=callables):
    """Why an outcome is wrong, in a few words; "" if it is not."""
    if ours[0] == "died" and "hangs" in ours[1] and ours == theirs:  # as many steps as were asked for
        return ""
    if ours[0] in ("died", "left behind"):
        return f"{ours[0]}: {ours[1]}"
    if ours[0] != "raised" or "Fault" in ours[1]:
        return ""
    if ours[2].startswith("CUDA error") and "invalid device ordinal" not in ours[2]:  # which any integer may be
        return "CUDA error"
    classes = ours[1]
    raised = theirs is not None and theirs[0] == "raised"
    if raised and theirs[1][0].lstrip("_") in classes:
        return ""
    if classes[0] == "KeyError" and raised and theirs[1][0] == "AttributeError":
        return ""  # of a container, whose keys are attributes in PyTorch
    if classes[0] == "AssertionError" and re.search(r"testing\.assert_|\bEmbeddingBag\(", calls.call(number)):
        return ""  # PyTorch's class, too
    if classes[0] in NEVER:
        return f"{classes[0]} from inside"
    if not raised or "Fault" in theirs[1] or not calls.is_mutated(number):
        return "" if ORDINARY & set(classes) or classes[0] in ("MemoryError", "BufferError") else classes[0]
    if allowed(calls.call(number), theirs[1][0], theirs[2], classes[0], ours[2]):
        return ""
    return f"{classes[0]} for {theirs[1][0]}"


def fuzz(numbers, torch=None, jobs=1, seconds=SECONDS, device="cpu", calls=callables):
    """Makes the calls. Gives [(number, why it is wrong, what it does here, what in PyTorch)] and counts. Of
    another device than the CPU, for which kernels may be missing, the classes of exceptions are not compared."""
    ours = run(tinytorch, numbers, jobs, fused=True, seconds=seconds, device=device, calls=calls)
    theirs = {}
    if torch is not None:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # a forked process has no others
        try:
            asked = [n for n in numbers if ours[n][0] in ("raised", "died")]
            theirs = run(torch, asked, jobs, seconds=seconds, calls=calls)
        finally:
            torch.set_num_threads(threads)
    counts = collections.Counter(told[0] for told in ours.values())
    found = [(n, wrong(n, ours[n], theirs.get(n), calls), ours[n], theirs.get(n)) for n in numbers]
    return [row for row in found if row[1] and (device == "cpu" or " for " not in row[1])], counts


def main(argv=None):
    parser = argparse.ArgumentParser(prog="callables", description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="of the arguments' tensors")
    parser.add_argument("--show", type=int, default=3, help="calls shown of each kind of fault")
    parser.add_argument("--sweep", metavar="DTYPE", help="each argument of the table's samples in turn, all values")
    parser.add_argument("--samples", type=int, default=1, help="--sweep: of how many samples of each function")
    options = parser.parse_args(argv)
    try:
        import torch
    except ImportError:
        torch = None
    else:
        import_modules()
    start = time.perf_counter()
    calls = Sweep(options.sweep, options.samples) if options.sweep else callables
    last = len(calls.calls) if options.sweep else options.first + options.calls
    numbers = list(range(options.first, last))
    if len(numbers) == 1:
        print(calls.call(options.first))
    found, counts = fuzz(numbers, torch, options.jobs, SECONDS, options.device, calls)
    kinds = collections.defaultdict(list)
    for number, why, ours, theirs in found:
        kinds[why, ours[3] if ours[0] == "raised" else ""].append((number, ours, theirs))
    for (why, place), rows in sorted(kinds.items(), key=lambda item: -len(item[1])):
        print(f"\n{len(rows)} x {why} ({place})")
        for number, ours, theirs in rows[: options.show]:
            print(f"  {number}: {calls.call(number)}")
            print(f"    {': '.join((ours[1][0], ours[2])) if ours[0] == 'raised' else ours[1]}")
            if theirs is not None and theirs[0] == "raised":
                print(f"    torch: {theirs[1][0]}: {theirs[2]}")
    done = ", ".join(f"{n} {what}" for what, n in sorted(counts.items()))
    took = time.perf_counter() - start
    print(f"\n{len(numbers)} calls ({done}): {len(found)} wrong; {len(numbers) / took:.0f} calls/s")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
