"""What programs written for PyTorch need beside tinytorch's own names, each module at PyTorch's path. This one holds
further names of ``torch`` itself.

Where PyTorch has another implementation to offer (compilers, several processes, other devices), a stand-in says that it
is not there, does what one process on one device would do, or refuses.
"""

from __future__ import annotations

import builtins

import tinytorch
from tinytorch.autograd import set_detect_anomaly

from .compile import compile as compile
from .cuda import AcceleratorError as AcceleratorError
from .dtypes import ABSENT
from .dtypes import finfo as finfo
from .foreach import FOREACH
from .func import vmap as vmap
from .futures import Future as Future

globals().update(ABSENT)
globals().update(FOREACH)

Storage = tinytorch.FloatStorage
Event, Stream = tinytorch.cuda.Event, tinytorch.cuda.Stream
set_anomaly_enabled = set_detect_anomaly
legacy_contiguous_format = tinytorch.contiguous_format
_standard_gamma, _standard_gamma_grad = tinytorch._standard_gamma, tinytorch._standard_gamma_grad
_sample_dirichlet, _dirichlet_grad = tinytorch._sample_dirichlet, tinytorch._dirichlet_grad
SymInt = type("SymInt", (), {"__doc__": "Shapes are integers here: there is none."})
SymFloat = type("SymFloat", (), {"__doc__": "There is none."})
SymBool = type("SymBool", (), {"__doc__": "There is none."})
sym_int, sym_float, sym_max, sym_min, sym_sum = builtins.int, builtins.float, max, min, sum


def sym_not(a) -> builtins.bool:
    """``not a``."""
    return not a


def sym_ite(b, t, f):
    """``t if b else f``."""
    return t if b else f


def _assert(condition, message: str) -> None:
    """AssertionError with the message where the condition does not hold."""
    assert condition, message


def _assert_async(condition, message: str = "") -> None:
    """RuntimeError where the tensor is 0; waits for a device."""
    if not condition:
        raise RuntimeError(message or "Expected Tensor with single nonzero value, but got zero")


def _checker(error: type[Exception]):
    def check(cond, message=None) -> None:
        if not cond:
            raise error(message() if callable(message) else message or "Expected cond to be True, but got False.")

    return check


_check, _check_index = _checker(RuntimeError), _checker(IndexError)
_check_value, _check_type = _checker(ValueError), _checker(TypeError)
_check_not_implemented = _checker(NotImplementedError)


def _check_with(error, cond, message) -> None:
    """Raises ``error(message())`` unless ``cond``."""
    _checker(error)(cond, message)


def _check_tensor_all(cond, message=None) -> None:
    """RuntimeError unless all elements are true."""
    _check(cond.all().item(), message)


def _check_is_size(i, message=None, *, max=None) -> None:
    """RuntimeError for a negative number."""
    _check(i >= 0 and (max is None or i <= max), message)


def _shape_as_tensor(t):
    """The shape as a tensor of int64."""
    return tinytorch.tensor(t.shape, dtype=tinytorch.int64)


def get_num_interop_threads() -> builtins.int:
    """1: operators run one after the other."""
    return 1


def set_num_interop_threads(n: builtins.int) -> None:
    """Changes nothing: operators run one after the other."""


def set_flush_denormal(mode: builtins.bool) -> builtins.bool:
    """False: denormal numbers are kept."""
    return False


def get_device_module(device=None):
    """The module of a device: ``torch.cuda`` or ``torch.cpu``."""
    kind = tinytorch.device("cuda" if tinytorch.cuda.is_available() else "cpu") if device is None else device
    return tinytorch.cuda if tinytorch.device(kind).type == "cuda" else tinytorch.cpu


def set_warn_always(b: builtins.bool) -> None:
    """Changes nothing."""


def is_warn_always_enabled() -> builtins.bool:
    """False."""
    return False


def _is_functional_tensor(t) -> builtins.bool:
    """False: there are none."""
    return False


def compiled_with_cxx11_abi() -> builtins.bool:
    """True."""
    return True


def is_vulkan_available() -> builtins.bool:
    """False."""
    return False


def vander(x, N=None, increasing=False):
    """``linalg.vander``, with the highest power first unless ``increasing``."""
    out = tinytorch.linalg.vander(x, N=N)
    return out if increasing else out.flip(-1)


def dsmm(input, mat2):
    """A sparse matrix times a dense one."""
    return tinytorch.sparse.mm(input, mat2)


has_lapack = has_openmp = has_mkl = has_spectral = True

_OWN = {
    "annotations", "builtins", "tinytorch", "_checker", "ABSENT", "FOREACH", "dtypes",
    "foreach", "func",
}  # fmt: skip
__all__ = [name for name in globals() if name not in _OWN and not name.startswith("__")]
