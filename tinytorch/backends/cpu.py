"""The CPU: C kernels behind cffi. Errors of the C side become Python exceptions here."""

from __future__ import annotations

from _thread import get_ident

try:
    from ._cpu import ffi, lib
except ImportError as exc:
    raise ImportError(
        f"tinytorch's C kernels are not built here ({exc}): run 'pip install -e .' in its source tree, "
        "or start Python outside of it to use the installed package"
    ) from None

__all__ = [
    "ffi",
    "lib",
    "OutOfMemoryError",
    "LinAlgError",
    "error",
    "keep_exception",
    "check",
    "get_num_threads",
    "set_num_threads",
]


class OutOfMemoryError(RuntimeError):
    """No memory for an array; the message names the bytes that were asked for. Follows ``torch.OutOfMemoryError``."""


class LinAlgError(RuntimeError):
    """A matrix that has no such decomposition, or for which the algorithm did not converge; the message names the
    first of a batch. Follows ``torch.linalg.LinAlgError``."""


_EXCEPTIONS = {
    lib.TT_DECLINED: NotImplementedError,
    lib.TT_VALUE_ERROR: ValueError,
    lib.TT_RUNTIME_ERROR: RuntimeError,
    lib.TT_TYPE_ERROR: TypeError,
    lib.TT_INDEX_ERROR: IndexError,
    lib.TT_OUT_OF_MEMORY: OutOfMemoryError,
    lib.TT_ZERO_DIVISION: RuntimeError,
    lib.TT_PYTHON_ERROR: RuntimeError,
    lib.TT_NOT_IMPLEMENTED: NotImplementedError,
    lib.TT_LINALG_ERROR: LinAlgError,
}
_kept: dict[int, BaseException] = {}  # by thread: what a callback of the C side raised


def keep_exception(kind, exception, traceback) -> None:
    """For callbacks of the C side, as cffi's ``onerror``: the exception waits until the C call has returned, and is
    raised by whoever looks at that call's error."""
    _kept[get_ident()] = exception


def error(op: str | None = None) -> Exception:
    """The exception for what the last C call of this thread refused, which is told once; ``op`` is put in front where
    the text lacks it."""
    kind, text = lib.tt_error_kind(), ffi.string(lib.tt_error_text()).decode()
    lib.tt_error_clear()
    if kind == lib.TT_PYTHON_ERROR and get_ident() in _kept:
        return _kept.pop(get_ident())
    if kind == lib.TT_DECLINED:
        text = "not implemented for tensors of this device"
    if op and not text.startswith(op):
        text = f"{op}: {text}"
    return _EXCEPTIONS[kind](text)


def check(status: int, op: str | None = None) -> int:
    """Raises when a C call that returns a status refused."""
    if status < 0:
        raise error(op)
    return status


def get_num_threads() -> int:
    """Threads that kernels and BLAS may use: at first as many as the environment variable OMP_NUM_THREADS says, or as
    there are cores that the process may run on."""
    return lib.tt_get_num_threads()


def set_num_threads(n: int) -> None:
    """Lets kernels and BLAS use ``n`` threads; results do not depend on it. RuntimeError unless 1 <= n <= 256."""
    check(lib.tt_set_num_threads(n))
