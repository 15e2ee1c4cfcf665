"""Comparisons and random tensors for tests. Follows ``torch.testing``."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from .dtypes import bfloat16, complex32, complex64, complex128, dtype, float16, float32, float64, iinfo
from .dtypes import bool as _bool
from .dtypes import dtype as _dtype
from .layouts import strided
from .tensor import FUNCTIONS, Tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

TOLERANCES = {  # (rtol, atol); 0 for others
    float16: (1e-3, 1e-5),
    bfloat16: (1.6e-2, 1e-5),
    float32: (1.3e-6, 1e-5),
    float64: (1e-7, 1e-7),
    complex32: (1e-3, 1e-5),
    complex64: (1.3e-6, 1e-5),
    complex128: (1e-7, 1e-7),
}
_NUMBERS = (bool, int, float, complex)


def _tolerances(dtypes, rtol: float | None, atol: float | None) -> tuple[float, float]:
    found = [TOLERANCES.get(d, (0.0, 0.0)) for d in dtypes]
    return (max(r for r, _ in found) if rtol is None else rtol, max(a for _, a in found) if atol is None else atol)


class _Comparison:
    """The rules of one call of assert_close."""

    def __init__(self, subclasses: bool, rtol, atol, equal_nan: bool, checks: dict[str, bool]):
        self.subclasses, self.rtol, self.atol, self.equal_nan, self.checks = subclasses, rtol, atol, equal_nan, checks

    def difference(self, actual, expected, path: tuple) -> str | None:
        """What is wrong, or None."""
        if isinstance(actual, Mapping) and isinstance(expected, Mapping):
            return self.of_mappings(actual, expected, path)
        if _is_sequence(actual) and _is_sequence(expected):
            if len(actual) != len(expected):
                return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}" + _at(path)
            pairs = ((k, actual[k], expected[k]) for k in range(len(actual)))
        elif actual is None or expected is None:
            return None if actual is expected else f"None mismatch: {actual} is not {expected}" + _at(path)
        else:
            text = self.of_values(actual, expected)
            return text and text + _at(path)
        return next((d for k, a, e in pairs if (d := self.difference(a, e, (*path, k)))), None)

    def of_mappings(self, actual: Mapping, expected: Mapping, path: tuple) -> str | None:
        missing, more = set(expected) - set(actual), set(actual) - set(expected)
        if missing or more:
            lines = ["The keys of the mappings do not match:"]
            lines += [f"Missing keys in the actual mapping: {sorted(missing)}"] * bool(missing)
            lines += [f"Additional keys in the actual mapping: {sorted(more)}"] * bool(more)
            return "\n".join(lines) + _at(path)
        return next((d for k in expected if (d := self.difference(actual[k], expected[k], (*path, k)))), None)

    def of_values(self, actual, expected) -> str | None:
        kinds = [isinstance(v, (Tensor, np.ndarray, np.generic)) for v in (actual, expected)]
        related = self.subclasses or type(actual) is type(expected)
        if all(kinds) and related and (isinstance(actual, type(expected)) or isinstance(expected, type(actual))):
            return self.of_tensors(FUNCTIONS["as_tensor"](actual), FUNCTIONS["as_tensor"](expected))
        if isinstance(actual, _NUMBERS) and isinstance(expected, _NUMBERS):
            return self.of_numbers(actual, expected)
        raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.")

    def of_numbers(self, actual, expected) -> str | None:
        if self.checks["dtype"] and type(actual) is not type(expected):
            return f"The (d)types do not match: {type(actual)} != {type(expected)}."
        rtol, atol = _tolerances([{float: float64, complex: complex128}.get(type(actual))], self.rtol, self.atol)
        gap, nan = abs(actual - expected), actual != actual and expected != expected
        if (
            actual == expected
            or (nan and self.equal_nan)
            or (math.isfinite(gap) and gap <= atol + rtol * abs(expected))
        ):
            return None
        limits = [f" (up to {limit} allowed)" if rtol or atol else "" for limit in (atol, rtol)]
        relative = gap / abs(expected) if expected else math.inf
        return (
            f"Scalars are not {'close' if rtol or atol else 'equal'}!\n\nExpected {expected} but got {actual}.\n"
            f"Absolute difference: {gap}{limits[0]}\nRelative difference: {relative}{limits[1]}"
        )

    def of_tensors(self, actual: Tensor, expected: Tensor) -> str | None:
        attributes = ["shape", *(name for name in ("device", "dtype", "layout") if self.checks[name])]
        for name in attributes:
            values = getattr(actual, name), getattr(expected, name)
            if values[0] != values[1]:
                return f"The values for attribute '{name}' do not match: {values[0]} != {values[1]}."
        if actual.layout is not strided or expected.layout is not strided:
            actual, expected = actual.to_dense(), expected.to_dense()
        if self.checks["stride"] and actual.stride() != expected.stride():
            return f"The values for attribute 'stride()' do not match: {actual.stride()} != {expected.stride()}."
        rtol, atol = _tolerances((actual.dtype, expected.dtype), self.rtol, self.atol)
        actual, expected = actual.detach(), expected.detach().to(actual.device)
        common = FUNCTIONS["promote_types"](actual.dtype, expected.dtype)
        actual, expected = actual.to(common), expected.to(common)
        close = FUNCTIONS["isclose"](actual, expected, rtol, atol, self.equal_nan)
        return None if close.all().item() else _report(actual, expected, close, rtol, atol)


def _report(actual: Tensor, expected: Tensor, close: Tensor, rtol: float, atol: float) -> str:
    """Where tensors differ, and by how much."""
    if not actual.dtype.is_differentiable:
        actual, expected = actual.long(), expected.long()
    gap = (actual - expected).abs()
    relative = gap / expected.abs()
    one = actual.ndim == 0
    kind, close_to = ("Scalars" if one else "Tensor-likes"), ("close" if rtol or atol else "equal")
    limits = [f" (up to {limit} allowed)" if rtol or atol else "" for limit in (atol, rtol)]
    if one:
        return (
            f"{kind} are not {close_to}!\n\nExpected {expected.item()} but got {actual.item()}.\n"
            f"Absolute difference: {gap.item()}{limits[0]}\nRelative difference: {relative.item()}{limits[1]}"
        )
    lines = []
    for name, values, limit in (("absolute", gap, limits[0]), ("relative", relative, limits[1])):
        values = FUNCTIONS["where"](close, 0, values)
        k = int(values.argmax())
        index = tuple(int(i) for i in np.unravel_index(k, tuple(values.shape)))
        lines.append(f"Greatest {name} difference: {values.flatten()[k].item()} at index {index}{limit}")
    wrong, total = int((~close).sum()), close.numel()
    return f"{kind} are not {close_to}!\n\nMismatched elements: {wrong} / {total} ({wrong / total:.1%})\n" + "\n".join(
        lines
    )


def _is_sequence(value) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _at(path: tuple) -> str:
    return f"\n\nThe failure occurred for item {''.join(f'[{key!r}]' for key in path)}" if path else ""


def assert_close(
    actual, expected, *, allow_subclasses: bool = True, rtol: float | None = None, atol: float | None = None,
    equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True, check_layout: bool = True,
    check_stride: bool = False, msg: str | Callable[[str], str] | None = None,
) -> None:  # fmt: skip
    """Compares tensors, arrays, numbers, None, and sequences and mappings of these: ``abs(actual - expected) <= atol +
    rtol * abs(expected)``. Follows ``torch.testing.assert_close``, whose tolerances for each dtype are the defaults.

    Args:
        msg: the text of the error, or a function that makes it from the text that would have been
    Raises:
        AssertionError: they differ
        TypeError: values that cannot be compared, or of unrelated types
        ValueError: one tolerance of two
    """
    if (rtol is None) != (atol is None):
        raise ValueError(
            "Both 'rtol' and 'atol' must be either specified or omitted, but got no "
            f"{'rtol' if rtol is None else 'atol'}."
        )
    checks = {"device": check_device, "dtype": check_dtype, "layout": check_layout, "stride": check_stride}
    text = _Comparison(allow_subclasses, rtol, atol, equal_nan, checks).difference(actual, expected, ())
    if text:
        raise AssertionError(msg(text) if callable(msg) else msg or text)


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg="") -> None:
    """``assert_close`` with fewer checks, as once. Follows ``torch.testing.assert_allclose``."""
    warnings.warn("assert_allclose() is deprecated: use assert_close()", FutureWarning, stacklevel=2)
    actual = actual if isinstance(actual, Tensor) else FUNCTIONS["as_tensor"](actual)
    expected = expected if isinstance(expected, Tensor) else FUNCTIONS["as_tensor"](expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        rtol, atol = _tolerances((actual.dtype, expected.dtype), None, None)
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=True,
        check_dtype=False,
        msg=msg or None,
    )


def make_tensor(
    *shape, dtype: dtype, device, low: float | None = None, high: float | None = None, requires_grad: bool = False,
    noncontiguous: bool = False, exclude_zero: bool = False, memory_format=None,
) -> Tensor:  # fmt: skip
    """A tensor of random numbers, evenly distributed over ``low`` up to ``high``: by default 0 and 1 of bool, 0 to 9 of
    uint8, -9 to 9 of others. Follows ``torch.testing.make_tensor``.

    Args:
        shape: the sizes, or one sequence of them
        noncontiguous: every second element of a larger tensor
        exclude_zero: 0 becomes the smallest number above it
    Raises:
        ValueError: ``low`` is not less than ``high``, or both layouts were asked for
    """
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        shape = tuple(shape[0])
    if noncontiguous and memory_format is not None:
        raise ValueError("make_tensor: the options noncontiguous and memory_format are mutually exclusive")
    if not isinstance(dtype, _dtype):
        raise TypeError(f"The requested dtype '{dtype}' is not supported by make_tensor()")
    exact = not dtype.is_differentiable
    lowest, highest = {True: (0, 2), False: (-9, 10 if exact else 9)}[dtype is _bool]
    lowest = 0 if exact and not dtype.is_signed else lowest
    low, high = lowest if low is None else low, highest if high is None else high
    if not low < high:
        raise ValueError(f"make_tensor: low must be less than high, got {low} and {high}")
    count = math.prod(shape) * (2 if noncontiguous else 1)
    if exact:
        top = 1 if dtype is _bool else iinfo(dtype).max
        bounds = math.ceil(low), min(math.ceil(high), top + 1)
        flat = FUNCTIONS["randint"](*bounds, (count,), device=device).to(dtype)
    else:
        part = dtype.to_real()
        parts = FUNCTIONS["rand"](count, 2, device=device, dtype=float64 if part is float64 else float32)
        parts = (parts * (high - low) + low).to(part)
        flat = FUNCTIONS["view_as_complex"](parts.contiguous()) if dtype.is_complex else parts[:, 0].contiguous()
    if exclude_zero:
        flat[flat == 0] = 1 if exact else 2.0**-14 if dtype is float16 else 1.17549435e-38
    t = flat[::2].view(shape) if noncontiguous and count else flat.view(shape)
    if memory_format is not None:
        t = t.contiguous(memory_format=memory_format)
    return t.requires_grad_() if requires_grad else t
