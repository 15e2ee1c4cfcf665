"""Docstrings. A declaration or a function's docstring says what is the operator's own; the rest of its sections, Args,
Returns, Raises and Example, is written here from its record.

    softmax.__doc__ = documented(softmax, op, "softmax")

A docstring may have any of the sections itself. Under "Args:" it describes what PARAMETERS does not, or describes
otherwise. "Otherwise like ``softmax``." takes what it lacks from a function before it in the same module.
"""

from __future__ import annotations

import inspect
import re

from ...scalar import OPERATORS
from .examples import EXAMPLES

PARAMETERS = {
    "input": "a tensor",
    "other": "a tensor, or a number",
    "dim": "the dimension; negative ones count from the end",
    "axis": "NumPy's name of ``dim``",
    "keepdim": "whether reduced dimensions stay, with size 1",
    "keepdims": "NumPy's name of ``keepdim``",
    "out": "a tensor to write the result into, resized if need be; not where gradients are recorded",
    "dtype": "the dtype of the result",
    "device": "where the result's memory is; the default device unless given",
    "requires_grad": "whether gradients of the result are wanted",
    "layout": "taken as in PyTorch; tensors are strided",
    "pin_memory": "whether the result is in page-locked memory",
    "memory_format": "the order of the result's elements in memory",
    "generator": "the source of random numbers; the default one of the device unless given",
    "inplace": "whether to write the result over ``input``",
    "names": "taken as in PyTorch, and not used",
    "reduction": "``'mean'`` or ``'sum'`` of the losses, or ``'none'``: all of them",
    "size_average": "an older form of ``reduction``",
    "reduce": "an older form of ``reduction``",
    "alpha": "a number that multiplies ``other``",
    "size": "the sizes, as numbers or as one sequence",
    "eps": "a small number added for numerical stability",
    "training": "whether to drop at all",
}
_DOMAINS = {
    "FLT": "Floating dtypes stay; integers and bools give the default dtype.",
    "NUM": "Of the dtype that the inputs promote to: any but bool.",
    "ALL": "Of the dtype that the inputs promote to.",
    "INT": "Of the dtype that the inputs promote to: integers or bool.",
    "REAL": "Of the dtype that the inputs promote to, a floating one.",
    "INTS": "Of the dtype that the inputs promote to: integers.",
    "NONE": "Of the dtype of ``input``.",
}
_REFUSED = {"NUM": "a bool", "INT": "of a floating dtype", "REAL": "of an integer dtype", "INTS": "no integer tensor"}
_SECTION = re.compile(r"\n    (Args|Returns|Raises|Example):(?=\n)")
_ENTRY = re.compile(r"\n        (\w+): ")
_LIKE = re.compile(r"\s+Otherwise\s+like\s+``(\w+)``\.")
_LINES = {name: f"        {name}: {text}\n" for name, text in {**PARAMETERS, "self": PARAMETERS["input"]}.items()}


def documented(fn, op, name: str) -> str | None:
    """The docstring of the function that is published as ``name``: "exp", "linalg.svd", "Tensor.view"."""
    text = fn.__doc__
    if not text or name.endswith("_"):
        return text
    head, sections = _sections(fn)
    scalar = OPERATORS.get(op.name) if op.kind == "elementwise" and "." not in name else None
    args = _args(fn, sections.get("Args", ""))
    if args:
        sections["Args"] = args
    if scalar is not None:
        sections.setdefault("Returns", _returns(scalar))
        sections.setdefault("Raises", _raises(scalar))
    example = EXAMPLES.get(name)
    if example:
        sections["Example"] = "        >>> {}\n        {}\n".format(*example)
    if not sections:
        return text
    written = head.rstrip()
    if "Follows" not in head:
        written += f" Follows ``torch.{name}``."
    for title in ("Args", "Returns", "Raises", "Example"):
        if title in sections:
            written += f"\n\n    {title}:\n{sections[title].strip(chr(10)).rstrip()}"
    return written + "\n    "


def _sections(fn) -> tuple[str, dict[str, str]]:
    """What stands before the sections of a docstring, and these, with those of a function that it is like."""
    text = fn.__doc__.rstrip()
    head, *parts = _SECTION.split(text) if ":\n" in text else (text,)
    sections = dict(zip(parts[::2], parts[1::2]))
    like = "Otherwise" in head and _LIKE.search(head)  # most are like none, and a search took 13,000 instructions
    if like:
        head = head[: like.start()] + head[like.end() :]
        _, others = _sections(inspect.unwrap(fn).__globals__[like[1]])
        others.pop("Example", None)
        args = others.get("Args", "").rstrip() + sections.get("Args", "")  # of two entries the last counts
        sections = others | sections | ({"Args": args} if args else {})
    return head, sections


def _args(fn, own: str) -> str:
    """The lines of "Args:"; none where a parameter has no description."""
    code = getattr(fn, "__wrapped__", fn).__code__
    entries = _ENTRY.split(own) if own else ()
    told = {name: f"        {name}: {text.rstrip()}\n" for name, text in zip(entries[1::2], entries[2::2])}
    count = code.co_argcount + code.co_kwonlyargcount
    params = [*code.co_varnames[: code.co_argcount]]
    if code.co_flags & 4 and code.co_varnames[count] != "rest":  # which goes on with the parameter before it
        params.append(code.co_varnames[count])
    params += code.co_varnames[code.co_argcount : count]
    lines = []
    for name in params:
        line = told.get(name) or _LINES.get(name)
        if line is None:
            return own
        lines.append(line)
    return "".join(lines)


def _returns(scalar) -> str:
    """The lines of "Returns:" of an elementwise operator."""
    shape = "the shape of ``input``" if scalar.arity == 1 else "the shape that the inputs broadcast to"
    kind = "A bool tensor" if scalar.gives_bool else "A tensor"
    dtype = "" if scalar.gives_bool else " " + _DOMAINS[scalar.domain]
    return f"        {kind} of {shape}.{dtype}\n"


def _raises(scalar) -> str:
    """The lines of "Raises:" of an elementwise operator."""
    types = "an input is neither a tensor nor a number"
    reasons = ["the shapes do not broadcast"] if scalar.arity > 1 else []
    if scalar.domain in _REFUSED:
        reasons.append(f"an input is {_REFUSED[scalar.domain]}")
    return f"        TypeError: {types}\n" + (f"        RuntimeError: {', or '.join(reasons)}\n" if reasons else "")
