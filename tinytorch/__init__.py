"""tinytorch: eager tensors with a dynamic tape, C kernels, and PyTorch's names."""

import importlib

from . import autograd, cuda, dlpack, fuse, interop, linalg, nn, ops, optim, pickling, random, utils
from .backends import cpu
from .backends.cpu import OutOfMemoryError, get_num_threads, set_num_threads
from .backends.cuda.flags import get_float32_matmul_precision, set_float32_matmul_precision
from .config import config
from .devices import device, get_default_device, set_default_device
from .dtypes import (Size, bfloat16, bool, double, dtype, finfo, float16, float32, float64,  # noqa: A004
                     get_default_dtype, half, iinfo, int8, int16, int32, int64, long, set_default_dtype, short, uint8)
from .autograd.anomaly import is_anomaly_check_nan_enabled, is_anomaly_enabled
from .autograd.modes import (enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad,
                             set_grad_enabled)
from .generator import Generator
from .layouts import (channels_last, channels_last_3d, contiguous_format, layout, memory_format, preserve_format,
                      strided)
from .printing import set_printoptions
from .serialization import load, save
from .tensor import Tensor

float = float32  # noqa: A001 (torch's name)
int = int32  # noqa: A001
globals().update(ops.FUNCTIONS)

__version__ = "0.1.0"


def __getattr__(name: str):
    """``tinytorch.profiler`` is imported when it is first asked for: most programs do without."""
    if name == "profiler":
        return importlib.import_module(".profiler", __name__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
