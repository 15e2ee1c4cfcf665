"""Settings of the process: ``tinytorch.config(debug=2)``, or ``TINYTORCH_DEBUG=2`` in the environment."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable

__all__ = ["config", "setting"]

_values: dict[str, int] = {}
_changed: dict[str, Callable[[int], None]] = {}


def setting(name: str, default: int, changed: Callable[[int], None] | None = None) -> None:
    """Declares a setting: ``TINYTORCH_<NAME>`` gives its first value, ``changed`` is told of every one."""
    text = os.environ.get(f"TINYTORCH_{name.upper()}", "")
    try:
        value = int(text) if text else default
    except ValueError:
        raise ValueError(f"TINYTORCH_{name.upper()} must be an integer, got {text!r}") from None
    _values[name] = value
    if changed is not None:
        _changed[name] = changed
        changed(value)


def _apply(values: dict[str, int]) -> dict[str, int]:
    old = {name: _values[name] for name in values}
    _values.update(values)
    try:
        for name, value in values.items():
            if name in _changed:
                _changed[name](value)
    except BaseException:
        _values.update(old)
        for name in values.keys() & _changed.keys():
            with contextlib.suppress(Exception):  # the first one is raised
                _changed[name](old[name])
        raise
    return old


class config:
    """Changes settings, at once; as a context manager until its end, as a decorator during each call.

    ``debug``     what is written to stderr: 1 cache and fallback events, 2 a line for each kernel run by fused mode,
                  3 the recorded programs, 4 the generated source
    ``fuse``      1: every thread is in fused mode
    ``fuse_hot``  runs of a fused kernel after which it is compiled; negative never, and what is compiled is not used
    ``fuse_worth``  bytes of memory traffic that fusion is to spare for each kernel: the CPU's operators of up to 8192
                  elements that spare less, time and again, are left to eager mode; 0: everything is recorded
    ``approximate``  1: CUDA devices compute exp, log, tanh, sigmoid, silu and gelu in float32 (so in softmax and in
                  half precision, too) by their special function units: faster, but with errors of up to 5 + 1.2 |x|
                  ulp (log between 1/2 and 2: 2e-7; gelu: 16 + 2 x^2 ulp), and no longer with the CPU's bits. Eager and
                  fused mode still agree to the bit
    ``cuda_caching``  0: each tensor of a CUDA device has an allocation of its own from the driver, of its exact size,
                  and what is freed goes back before the next one: slow, for tools such as compute-sanitizer, which then
                  see an access beyond a tensor's end. Graphs and page-locked memory keep their caches

    TypeError for an unknown name or a value that is no integer.
    """

    def __init__(self, **values: int):
        for name, value in values.items():
            if name not in _values:
                raise TypeError(f"config: there is no setting '{name}'; there are {', '.join(sorted(_values))}")
            if not isinstance(value, int):
                raise TypeError(f"config: '{name}' must be an integer, not {type(value).__name__}")
        self._new = values
        self._old = [_apply(values)]
        self._entered = False

    def __enter__(self):
        if self._entered:
            self._old.append(_apply(self._new))
        self._entered = True
        return self

    def __exit__(self, *exc_info):
        _apply(self._old.pop())

    def __call__(self, fn):
        _apply(self._old.pop())  # as a decorator it leaves the present settings alone

        @functools.wraps(fn)
        def inside(*args, **kwargs):
            with config(**self._new):
                return fn(*args, **kwargs)

        return inside

    @staticmethod
    def get(name: str) -> int:
        """The present value of a setting."""
        return _values[name]
