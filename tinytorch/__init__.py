"""tinytorch: eager tensors with a dynamic tape, C kernels, and PyTorch's names.

What ``__all__`` names is public, and ``dir()`` and the stubs show nothing else. Python makes every imported module an
attribute of its package: the other modules (``tinytorch.ops``, ``tinytorch.backends``, ...) are internal, and may
change in any version.
"""

import gc as _gc
from contextlib import contextmanager as _contextmanager
from importlib import import_module as _import_module
from math import e, inf, nan, pi


@_contextmanager
def _collector_paused():
    """What a module defines stays: collections while it is imported find nothing, and took 30 of 175 ms; so did the
    first one afterwards, which is told that all of it is old."""
    enabled = _gc.isenabled()
    _gc.disable()
    try:
        yield
    finally:
        if not _gc.get_freeze_count():  # else the program's own frozen objects would thaw, too
            _gc.freeze()
            _gc.unfreeze()
        if enabled:
            _gc.enable()


with _collector_paused():
    from . import (
        _C,
        amp,
        autograd,
        cpu,
        cuda,
        fft,
        func,
        fuse,
        interop,
        linalg,
        multiprocessing,
        nn,
        ops,
        optim,
        overrides,
        pickling,
        random,
        return_types,
        serialization,
        signal,
        sparse,
        special,
        storage,
        utils,
    )
from .amp.autocast_mode import (
    autocast,
    clear_autocast_cache,
    get_autocast_dtype,
    is_autocast_cache_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_dtype,
)
from .amp.switches import (
    autocast_decrement_nesting,
    autocast_increment_nesting,
    get_autocast_cpu_dtype,
    get_autocast_gpu_dtype,
    is_autocast_cpu_enabled,
    set_autocast_cpu_dtype,
    set_autocast_cpu_enabled,
    set_autocast_enabled,
    set_autocast_gpu_dtype,
)
from .autograd.anomaly import is_anomaly_check_nan_enabled, is_anomaly_enabled
from .autograd.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .backends.cpu import OutOfMemoryError, get_num_threads, set_num_threads
from .backends.cuda.flags import get_float32_matmul_precision, set_float32_matmul_precision
from .config import config
from .determinism import (
    are_deterministic_algorithms_enabled,
    get_deterministic_debug_mode,
    is_deterministic_algorithms_warn_only_enabled,
    set_deterministic_debug_mode,
    use_deterministic_algorithms,
)
from .devices import device, get_default_device, set_default_device
from .dtypes import (
    Size,
    bfloat16,
    bool,
    cdouble,
    cfloat,
    chalf,
    complex32,
    complex64,
    complex128,
    double,
    dtype,
    finfo,
    float16,
    float32,
    float64,  # noqa: A004
    get_default_dtype,
    half,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    long,
    set_default_dtype,
    short,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .generated_code import keep as _keep
from .generator import Generator, default_generator
from .layouts import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    jagged,
    layout,
    memory_format,
    preserve_format,
    sparse_coo,
    sparse_bsc,
    sparse_bsr,
    sparse_csc,
    sparse_csr,
    strided,
)
from .ops.declare import name_methods as _name_methods
from .ops.storage_types import STORAGE_TYPES as _STORAGE_TYPES
from .ops.typed import TYPES as _TYPES
from .ops.typed import set_default_tensor_type, typename
from .ops.variates import _dirichlet_grad as _dirichlet_grad
from .ops.variates import _sample_dirichlet as _sample_dirichlet
from .ops.variates import _standard_gamma as _standard_gamma
from .ops.variates import _standard_gamma_grad as _standard_gamma_grad
from .printing import set_printoptions
from .serialization import load, save
from .storage import TypedStorage, UntypedStorage
from .tensor import Tensor

float = float32  # noqa: A001 (torch's name)
int = int32  # noqa: A001
newaxis = None
globals().update(ops.FUNCTIONS)
globals().update(_TYPES)
globals().update(_STORAGE_TYPES)
_name_methods()
_keep()

__version__ = "0.1.0"
__all__ = [
    "Generator", "OutOfMemoryError", "Size", "Tensor", "TypedStorage", "UntypedStorage", "__version__", "amp",
    "are_deterministic_algorithms_enabled", "autocast", "autocast_decrement_nesting", "autocast_increment_nesting",
    "autograd", "bfloat16", "bool", "cdouble", "cfloat",
    "channels_last", "channels_last_3d", "chalf", "clear_autocast_cache", "complex128", "complex32",
    "complex64", "config",
    "contiguous_format", "cpu", "cuda", "default_generator", "device", "distributions", "double", "dtype", "e",
    "enable_grad", "fft", "finfo", "float", "float16", "float32", "float64", "func", "fuse", "get_autocast_cpu_dtype",
    "get_autocast_dtype", "get_autocast_gpu_dtype", "get_default_device",
    "get_default_dtype", "get_deterministic_debug_mode", "get_float32_matmul_precision", "get_num_threads", "half",
    "iinfo", "inf", "inference_mode", "int", "int16", "int32", "int64", "int8", "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled", "is_autocast_cache_enabled", "is_autocast_cpu_enabled", "is_autocast_enabled",
    "is_deterministic_algorithms_warn_only_enabled", "is_grad_enabled", "is_inference_mode_enabled", "jagged", "layout",
    "linalg", "load", "long", "memory_format", "multiprocessing", "nan", "newaxis", "nn", "no_grad", "optim",
    "overrides", "pi", "preserve_format", "profiler", "random", "return_types", "save", "serialization",
    "set_autocast_cache_enabled", "set_autocast_cpu_dtype", "set_autocast_cpu_enabled",
    "set_autocast_dtype", "set_autocast_enabled", "set_autocast_gpu_dtype", "set_default_device", "set_default_dtype",
    "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_grad_enabled",
    "set_num_threads", "set_printoptions", "short", "signal", "sparse", "sparse_bsc", "sparse_bsr", "sparse_coo",
    "sparse_csc", "sparse_csr", "special",
    "storage", "strided", "testing", "typename", "uint16", "uint32", "uint64", "uint8",
    "use_deterministic_algorithms", "utils", *_TYPES, *_STORAGE_TYPES,
    *ops.FUNCTIONS,
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str):
    """Packages that are imported when they are first asked for: most programs do without."""
    if name in ("distributions", "profiler", "testing"):
        return _import_module(f".{name}", __name__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
