"""The types of parameters, as the stubs give them (.ci/stubs.py) and as a call that fails is judged by (refusals.py).

Parameters of one name have one type (shared_kinds.py), but for the exceptions (own_kinds.py), and for those whose
declaration has an annotation: ``def renorm(input, p: float, ...)``."""

from __future__ import annotations

import inspect
import re

from .own_kinds import OWN
from .shared_kinds import SHARED

PARAMETERS = SHARED | OWN
_OF_NUMBERS = frozenset(("add", "sub", "mul", "div", "floor_divide"))


def only_tensors(fn: str, *names: str) -> tuple[str | None, ...]:
    """The parameters ``names`` of an elementwise function, with None for those that may be numbers. One argument of it
    must be a tensor: but for the operators that PyTorch computes of numbers alone, for which this is empty."""
    if fn in _OF_NUMBERS:
        return ()
    kinds = [PARAMETERS.get(f"{fn}.{name}", PARAMETERS.get(name, "Tensor")) for name in names]
    return tuple([None if "Number" in kind else name for name, kind in zip(names, kinds)])


# Functions of several forms: each one's parameters, and its result. ``{t}`` is the tensor, a method's ``self``.
_MADE = (
    "dtype: _dtype | None = None, layout: _layout | None = None, device: Device = None, "
    "requires_grad: _bool = False, pin_memory: _bool = False"
)
_NEW = (
    "dtype: _dtype | None = None, device: Device = None, requires_grad: _bool = False, "
    "layout: _layout | None = None, pin_memory: _bool = False"
)
_KEPT = "keepdim: _bool = False, *, out: tuple[Tensor, Tensor] | None = None"


def _sizes(lead: str, options: str) -> list[tuple[str, str]]:
    """``f(2, 3)`` and ``f((2, 3))``."""
    return [
        (f"{lead}*size: _int, {options}", "Tensor"),
        (f"{lead}size: Sequence[_int], /, *, {options}", "Tensor"),
        (f"{lead}*, size: Sequence[_int], {options}", "Tensor"),
    ]


def _extreme(name: str) -> list[tuple[str, str]]:
    return [
        ("{t}, *, out: Tensor | None = None", "Tensor"),
        (f"{{t}}, dim: _int, {_KEPT}", f"return_types.{name}"),
        ("{t}, *, axis: _int, keepdims: _bool = False", f"return_types.{name}"),
        ("{t}, other: Tensor, /, *, out: Tensor | None = None", "Tensor"),
        ("{t}, *, other: Tensor, out: Tensor | None = None", "Tensor"),
    ]


def _middle(name: str) -> list[tuple[str, str]]:
    return [
        ("{t}", "Tensor"),
        (f"{{t}}, dim: _int, {_KEPT}", f"return_types.{name}"),
        ("{t}, *, axis: _int, keepdims: _bool = False", f"return_types.{name}"),
    ]


def _recurrent(state: str, results: int) -> list[tuple[str, str]]:
    options = "has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool"
    states = f"hx: {state}, params: Sequence[Tensor], {options}"
    result = f"tuple[{', '.join(['Tensor'] * results)}]"
    return [
        (f"input: Tensor, {states}, batch_first: _bool", result),
        (f"data: Tensor, batch_sizes: Tensor, {states}", result),
    ]


def _clamp(out: str) -> list[tuple[str, str]]:
    return [
        (f"{{t}}, min: {kind} | None = None, max: {kind} | None = None{out}", "Tensor") for kind in ("Tensor", "Number")
    ]


FORMS: dict[str, list[tuple[str, str]]] = {
    "zeros": _sizes("", f"{_MADE}, out: Tensor | None = None"),
    "ones": _sizes("", f"{_MADE}, out: Tensor | None = None"),
    "empty": _sizes("", f"{_MADE}, memory_format: _memory_format | None = None, out: Tensor | None = None"),
    "rand": _sizes("", f"generator: Generator | None = None, out: Tensor | None = None, {_MADE}, names: Any = None"),
    "randn": _sizes("", f"generator: Generator | None = None, out: Tensor | None = None, {_MADE}, names: Any = None"),
    "randint": [
        (
            f"{lead}size: Sequence[_int], *, generator: Generator | None = None, out: Tensor | None = None, {_MADE}",
            "Tensor",
        )
        for lead in ("high: _int, ", "low: _int, high: _int, ")
    ],
    "new_zeros": _sizes("{t}, ", _NEW),
    "new_ones": _sizes("{t}, ", _NEW),
    "new_empty": _sizes("{t}, ", _NEW),
    "where": [
        ("condition: Tensor", "tuple[Tensor, ...]"),
        ("condition: Tensor, input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None", "Tensor"),
    ],
    "Tensor.where": [("{t}, condition: Tensor, other: Tensor | Number", "Tensor")],
    "clamp": _clamp(", *, out: Tensor | None = None"),
    "clamp_": _clamp(""),
    "rsub": [
        ("{t}, other: Tensor, *, alpha: Number = 1", "Tensor"),
        ("{t}, other: Number, alpha: Number = 1", "Tensor"),
    ],
    "movedim": [
        ("{t}, source: _int, destination: _int", "Tensor"),
        ("{t}, source: Sequence[_int], destination: Sequence[_int]", "Tensor"),
    ],
    "max": _extreme("max"),
    "min": _extreme("min"),
    "median": _middle("median"),
    "nanmedian": _middle("nanmedian"),
    "nonzero": [
        ("{t}, *, out: Tensor | None = None, as_tuple: Literal[False] = False", "Tensor"),
        ("{t}, *, as_tuple: Literal[True]", "tuple[Tensor, ...]"),
    ],
    "einsum": [
        ("equation: str, *operands: Tensor | Sequence[Tensor]", "Tensor"),
        ("equation: Tensor, *operands: Any", "Tensor"),
    ],
    "lstm": _recurrent("Sequence[Tensor]", 3),
    "gru": _recurrent("Tensor", 2),
    "rnn_tanh": _recurrent("Tensor", 2),
    "rnn_relu": _recurrent("Tensor", 2),
    "size": [("{t}", "Size"), ("{t}, dim: _int", "_int")],
    "stride": [("{t}", "tuple[_int, ...]"), ("{t}, dim: _int", "_int")],
    "type": [("{t}", "str"), ("{t}, dtype: _dtype | str, non_blocking: _bool = False", "Tensor")],
    "to": [
        (
            "{t}, dtype: _dtype, non_blocking: _bool = False, copy: _bool = False, /, *, "
            "memory_format: _memory_format | None = ...",
            "Tensor",
        ),
        (
            "{t}, other: Tensor, non_blocking: _bool = False, copy: _bool = False, /, *, "
            "memory_format: _memory_format | None = ...",
            "Tensor",
        ),
        (
            "{t}, device: Device, dtype: _dtype | None = None, non_blocking: _bool = False, copy: _bool = False, "
            "/, *, memory_format: _memory_format | None = ...",
            "Tensor",
        ),
        (
            "{t}, device: Device = None, /, *, dtype: _dtype | None = None, non_blocking: _bool = False, "
            "copy: _bool = False, memory_format: _memory_format | None = ...",
            "Tensor",
        ),
        (
            "{t}, *, dtype: _dtype | None = None, device: Device = None, non_blocking: _bool = False, "
            "copy: _bool = False, memory_format: _memory_format | None = ...",
            "Tensor",
        ),
    ],
}


def annotated(text: str) -> str:
    """An annotation as it stands in a source file, in names that no method hides."""
    text = str(text).replace("np.ndarray", "numpy.ndarray[Any, Any]").replace("Stream", "Any")
    return re.sub(r"\b(?<!_)(int|float|bool|complex|dtype|device)\b", r"_\1", text)


def keys_of(fn, name: str, home: str = "") -> list[str]:
    """What the tables may call a function that is public under ``name`` in ``home``, a namespace or "Tensor": the most
    particular first."""
    plain = fn.op.name.rstrip("_") if hasattr(fn, "op") and not name.startswith("__") else name
    called = fn.__name__
    return [*([f"{home}.{called}"] if home else []), called, called.rstrip("_"), plain]


def kind_of(p: inspect.Parameter, keys: list[str]) -> tuple[str | None, str | None]:
    """The type of a parameter of the function that the tables know by ``keys``, and the entry of PARAMETERS that says
    so. None where nothing is known; no entry where the function is annotated itself."""
    name = "dim" if p.name == "axis" else p.name
    exact = name == "input" and keys[0].endswith("_")  # what is written into is a tensor, a number in no form
    entry = next((e for e in [f"{key}.{name}" for key in keys if not exact or key[-1] == "_"] if e in PARAMETERS), None)
    if entry is None and p.annotation is not p.empty:
        kind = annotated(p.annotation)
    else:
        entry = entry or (name if name in PARAMETERS else None)
        kind = PARAMETERS.get(entry)
    if kind is None:
        return None, entry
    if p.default is None and "None" not in kind and kind not in ("Any", "Device"):
        kind += " | None"
    if p.default == () and "Sequence" not in kind:
        kind += " | Sequence[_int]"
    return kind, entry
