"""What of the process a test might change and leave behind. The test that does fails (conftest.py), and not another one
that comes after it in some order."""

import gc
import importlib
import os
import resource
import shutil
import signal
import sys
import threading

import numpy as np
from gpu.emulator import Emulator

import tinytorch
from tinytorch import printing
from tinytorch.autograd import engine
from tinytorch.backends import native
from tinytorch.backends.cpu import lib
from tinytorch.backends.cuda import flags, runtime
from tinytorch.config import config
from tinytorch.fuse import listeners
from tinytorch.fuse.worker import worker
from tinytorch.utils.checkpoint import _backwards


def _paths(variables: dict[str, str]) -> list[str]:
    return [f"{module}.{name}" for module, names in variables.items() for name in names.split()]


# Variables of tinytorch's modules, which every test leaves as they were: their values, or what is in them.
WATCHED = _paths(
    {
        "amp.autocast_mode": "_caching _defaults",
        "autograd.engine": "afterwards carried nested owned_refcount",
        "backends.cpu": "_kept",
        "backends.cuda.runtime": "_captures _profiled",
        "config": "_changed _values",
        "cpu.streams": "_current",
        "determinism": "_asked",
        "devices": "_default",
        "dtypes": "_default",
        "generator": "default_generator",
        "locations": "_registry",
        "multiprocessing": "_strategy",
        "nn.hooks": "GLOBAL REGISTRATION",
        "nn.utils.parametrize": "_cache _contexts",
        "ops.attention": "chosen",
        "optim.optimizer": "_post_hooks _pre_hooks",
        "overrides.overridable": "plain",
        "profiler.collect": "_open",
        "profiler.scopes": "_inside",
        "profiler.session": "_lock _open",
        "safe_names": "_allowed",
        "torch_function": "_all_off _off modes",
        "utils.checkpoint": "_groups _settings",
        "utils.data._utils.blocks": "outgoing",
        "utils.data._utils.collate": "default_collate_fn_map",
        "utils.data._utils.worker": "_worker_info",
        "utils.selective": "_entered _open _originals",
        "utils.serialization": "_load _save",
    }
)
# Those that may grow: what was found or made once is kept.
KEPT = _paths(
    {
        "amp.autocast_mode": "_wrapped",
        "autograd.engine": "_accumulating observers",  # of a child after a fork; but see below
        "autograd.formulas": "_owners",
        "autograd.modes": "inference_used",
        "autograd.node": "overwrites writers",
        "autograd.views": "_writer_numbers",
        "backends.cuda.ahead": "_asked _begun _lock _processes _started _threads _waiting",
        "backends.cuda.cublas": "_handles _plans _retired",
        "backends.cuda.cudnn": "_graphs _handles _retired",
        "backends.cuda.cufft": "_plans",
        "backends.cuda.allocations": "_idle _recorded",
        "backends.cuda.cusolver": "_handles",
        "backends.cuda.runtime": "_devices _driver _kept _several",
        "backends.native": "last_write",
        "cuda.graphs": "_pools",
        "devices": "_KNOWN",
        "fuse.purity.guards": "_found",
        "generated_code": "_found _made",
        "generator": "_defaults _seed",
        "pickler": "_NAMED _globals",
        "ops.declare.refusals": "_published",
        "overrides.overridable": "_codes _installed _placed ordinary plain",
        "profiler.ceilings": "_known",
        "profiler.instrument": "_codes",
        "shared_memory": "_blocks _received",
        "storage": "_alive",
        "warn_once": "told",
        "torch_function": "on_subclass",
        "utils.data._utils.blocks": "_leases",
        "utils.data._utils.channel": "ends",
        "wrapper_code": "_stacked",
    }
)

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD, signal.SIGSEGV]
MAY_BE_HIDDEN = ("cffi", "cupy", "numpy", "pycuda", "pycuda.driver", "torch", "torch_tb_profiler")
# Variables of the environment that pytest, PyTorch and scikit-learn set.
OF_OTHERS = {"PYTEST_CURRENT_TEST", "TORCHINDUCTOR_CACHE_DIR", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"}
COMPILES = any(map(shutil.which, ("cc", "gcc", "clang")))  # else all that is tried fails
SEED = 2026


def _variable(path: str):
    """A function that gives the variable's value; of a container, what is in it."""
    name, _, variable = path.rpartition(".")
    space = vars(importlib.import_module(f"tinytorch.{name}"))
    if isinstance(space[variable], dict):
        return lambda: (*space[variable].items(),)
    if isinstance(space[variable], (list, set)):
        return lambda: (*space[variable],)
    return lambda: space[variable]


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in OF_OTHERS}


def _threads() -> tuple[str, ...]:
    """The names of the threads that are neither tinytorch's own nor another language's."""
    return tuple(
        t.name
        for t in threading.enumerate()
        if not t.name.startswith("tinytorch") and not isinstance(t, threading._DummyThread)
    )


def _torch():
    """PyTorch, if a test has imported it."""
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "set_num_threads") else None


def _of_torch() -> dict:
    """PyTorch's modes; nothing if it was not imported before the test."""
    torch = _torch()
    if torch is None:
        return {}
    return {
        "dtype": torch.get_default_dtype(),
        "threads": torch.get_num_threads(),
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "anomaly": torch.is_anomaly_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
    }


STATE = {
    **{path: _variable(path) for path in WATCHED},
    "observers of backwards": lambda: [o for o in engine.observers if o is not _backwards],  # it goes with the next one
    "grad modes of threads": lambda: (*native.modes.items(),),
    "depth of fused mode": lambda: config.get("fuse") or lib.tt_fuse_depth(),  # which the first operator enters
    "threads of kernels": lib.tt_get_num_threads,
    "listeners of fused mode": lambda: listeners._listeners.callbacks,
    "the compiler's listener": lambda: worker.on_event,
    "the compiler": lambda: (worker._stopping, COMPILES and worker._failures, worker.cache.folder),
    "options of printing": lambda: printing.get_printoptions(),
    "precision of products": lambda: [getattr(flags.matmul, name) for name in flags.MatmulFlags.__slots__],
    "emulated CUDA devices": lambda: runtime._driver.count if isinstance(runtime._driver, Emulator) else 0,
    "current CUDA device": lambda: runtime._thread.device,
    "current streams": lambda: [lib.tt_cuda_stream(k) for k in (0, 1)],
    "PyTorch": _of_torch,
    "NumPy's errors": lambda: tuple(np.geterr().values()),
    "environment": _environment,
    "folder": os.getcwd,
    "handlers of signals": lambda: [signal.getsignal(number) for number in SIGNALS],
    "timer": lambda: signal.getitimer(signal.ITIMER_REAL)[0] > 0,
    "limit of memory": lambda: [resource.getrlimit(what) for what in (resource.RLIMIT_AS, resource.RLIMIT_DATA)],
    "garbage collector": lambda: (gc.isenabled(), gc.get_threshold(), gc.get_debug()),
    "Python's limits": lambda: (sys.getrecursionlimit(), sys.getswitchinterval()),
    "tracing": lambda: (sys.gettrace(), sys.getprofile(), sys.displayhook, sys.excepthook),
    "path": lambda: tuple(sys.path),
    "hidden modules": lambda: [name for name in MAY_BE_HIDDEN if sys.modules.get(name, gc) is None],
    "threads": _threads,
}


def snapshot() -> list:
    """The state now."""
    return [read() for read in STATE.values()]


def left_behind(before: list) -> str:
    """What is not as it was then, one a line."""
    now = snapshot()
    if now == before:
        return ""
    changed = [(name, was, is_) for name, was, is_ in zip(STATE, before, now) if was != is_ and was != {}]
    return "\n".join(f"{name}: {_told(was, is_)}" for name, was, is_ in changed)


def _told(was, now) -> str:
    """How they differ; of long ones only that."""
    if isinstance(was, dict):
        was, now = (*was.items(),), (*now.items(),)
    if isinstance(was, tuple):
        was, now = [v for v in was if v not in now], [v for v in now if v not in was]
    return f"it was {was!r}, it is {now!r}"


def seed() -> None:
    """Starts every stream of random numbers: what a test draws does not depend on the tests before it, and neither what
    fused mode records."""
    tinytorch.manual_seed(SEED)
    lib.tt_fuse_forget()
    if _torch() is not None:
        _torch().default_generator.manual_seed(SEED)
