"""Tensors as text, like PyTorch's."""

from __future__ import annotations

import math

import numpy as np

from .dtypes import bool as _bool
from .dtypes import default_complex, get_default_dtype, int64


class _Options:
    """How tensors are printed; see set_printoptions."""

    precision, threshold, edgeitems, linewidth, sci_mode = 4, 1000, 3, 80, None


options = _Options()
_PROFILES = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, math.inf, 3, 80)}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """How tensors are printed: digits, the number of elements from which on a summary is shown, the items shown at each
    end then, characters a line, a profile ("default", "short", "full"), scientific notation on, off or (None) by need.
    Follows ``torch.set_printoptions``."""
    names = ("precision", "threshold", "edgeitems", "linewidth")
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"set_printoptions: profile must be one of {sorted(_PROFILES)}, got {profile!r}")
        for name, value in zip(names, _PROFILES[profile]):
            setattr(options, name, value)
    for name, value in zip(names, (precision, threshold, edgeitems, linewidth)):
        if value is not None:
            setattr(options, name, value)
    options.sci_mode = sci_mode


def get_printoptions() -> dict:
    """The present settings of ``set_printoptions``."""
    return {name: getattr(options, name) for name in ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")}


class _Format:
    """The one form in which all shown numbers of a tensor are written, from those numbers."""

    def __init__(self, values: np.ndarray):
        self.floating = values.dtype.kind == "f"
        self.whole, self.scientific, self.width = True, False, 1
        if not self.floating:
            self.width = max([len(str(v)) for v in values.ravel().tolist()], default=1)
            return
        values = values.astype(np.float64).ravel()
        values = values[np.isfinite(values) & (values != 0)]
        if not values.size:
            return
        sizes = np.abs(values)
        low, high = float(sizes.min()), float(sizes.max())
        self.whole = bool((values == np.ceil(values)).all())
        self.scientific = high / low > 1000 or high > 1e8 or (not self.whole and low < 1e-4)
        if options.sci_mode is not None:
            self.scientific = options.sci_mode
        self.width = max(len(self.plain(v)) for v in values.tolist())

    def plain(self, v) -> str:
        """The number, as wide as it comes."""
        if not self.floating:
            return str(v)
        if self.scientific:
            return f"{v:.{options.precision}e}"
        if self.whole:
            return f"{v:.0f}" if math.isinf(v) or math.isnan(v) else f"{v:.0f}."
        return f"{v:.{options.precision}f}"

    def __call__(self, v) -> str:
        return self.plain(v).rjust(self.width)


class _ComplexFormat:
    """The same for complex numbers: a form for each part, of which the imaginary one stands as wide as it comes."""

    def __init__(self, values: np.ndarray):
        self.real, self.imag = _Format(values.real), _Format(values.imag)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, v) -> str:
        imaginary = self.imag(v.imag).lstrip(" ") + "j"
        return self.real(v.real) + ("" if imaginary[0] == "-" else "+") + imaginary


def _ends(values: np.ndarray) -> np.ndarray:
    """Only the items that a summary shows."""
    n = options.edgeitems
    for axis in range(values.ndim):
        if values.shape[axis] > 2 * n:
            before = (slice(None),) * axis
            first, last = before + (slice(n),), before + (slice(values.shape[axis] - n, None),)
            values = np.concatenate([values[first], values[last]], axis)  # copies these alone, of an expanded view, too
    return values


def _vector(values: np.ndarray, indent: int, summary: bool, form: _Format | _ComplexFormat) -> str:
    per_line = max(1, (options.linewidth - indent) // (form.width + 2))
    n = options.edgeitems
    if summary and not n:
        items = ["..."]
    elif summary and values.size > 2 * n:
        items = [form(v) for v in values[:n].tolist()] + [" ..."] + [form(v) for v in values[-n:].tolist()]
    else:
        items = [form(v) for v in values.tolist()]
    lines = [", ".join(items[k : k + per_line]) for k in range(0, len(items), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _body(values: np.ndarray, indent: int, summary: bool, form: _Format | _ComplexFormat) -> str:
    if values.ndim == 0:
        return form(values.item())
    if values.ndim == 1:
        return _vector(values, indent, summary, form)
    n = options.edgeitems
    if summary and len(values) > 2 * n:
        parts = [_body(v, indent + 1, summary, form) for v in values[:n]] + ["..."]
        parts += [_body(v, indent + 1, summary, form) for v in values[len(values) - n :]]
    else:
        parts = [_body(v, indent + 1, summary, form) for v in values]
    return "[" + ("," + "\n" * (values.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def tensor_text(t, values: np.ndarray, contents: str | None = None) -> str:
    """``tensor(...)`` for the tensor ``t`` with these values; ``contents`` stands for the numbers if given."""
    prefix = "tensor("
    indent = len(prefix)
    notes = []
    default = get_default_dtype()
    if values.size == 0:
        if values.ndim != 1:
            notes.append(f"size={tuple(t.shape)}")
        if t.dtype is not default:
            notes.append(f"dtype={t.dtype!r}")
        body = "[]" if contents is None else contents
    else:
        if t.dtype not in (default, default_complex(), int64, _bool):
            notes.append(f"dtype={t.dtype!r}")
        summary = values.size > options.threshold
        body = contents
        form = _ComplexFormat if values.dtype.kind == "c" else _Format
        if contents is None:
            body = _body(values, indent, summary, form(_ends(values) if summary else values))
    if t.is_cuda:
        notes.insert(0, f"device='{t.device}'")
    try:
        node = type(t.grad_fn).__name__
    except RuntimeError:  # of a view whose base was written
        node = "Invalid"
    if node != "NoneType":
        notes.append(f"grad_fn=<{node}>")
    elif t.requires_grad:
        notes.append("requires_grad=True")
    return with_notes(prefix + body, notes, indent)


def with_notes(text: str, notes: list[str], indent: int, new_line: bool = False) -> str:
    """The text, with the notes behind it, in lines that break where PyTorch breaks them; ``new_line``: the first note
    begins one."""
    used = len(text) - text.rfind("\n") + 1
    for note in notes:
        width = len(note.replace("tinytorch.", "torch."))
        if new_line or used + width + 2 > options.linewidth:
            text += ",\n" + " " * indent + note
            used, new_line = indent + width, False
        else:
            text += ", " + note
            used += width + 2
    return text + ")"
