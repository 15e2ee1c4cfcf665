"""CUDA graphs: work recorded once and run many times, without Python or the launching of single kernels.

What is recorded reads and writes the same memory whenever it runs. So a graph allocates from a private pool (Note
[Memory of devices] in kernels/cuda/host/pool.h) whose memory nothing else gets while the graph lives; new inputs
are copied into the old ones, and the results of the last run are overwritten by the next.
"""

from __future__ import annotations

import contextlib
import gc
import weakref
from itertools import count

from ..autograd.api import grad
from ..autograd.function import Function
from ..backends.cpu import check, lib
from ..backends.cuda import runtime
from ..generator import Generator, pointer
from ..nn.module import Module
from ..tensor import Tensor
from .devices import synchronize
from .memory import empty_cache
from .streams import Stream, StreamContext, current_stream


class _Pool:
    """A private pool; its memory can be given back when the last graph of it goes."""

    def __init__(self, number: int):
        self.number = number

    def __del__(self):
        lib.tt_cuda_retire_pool(self.number)


_pools: weakref.WeakValueDictionary[int, _Pool] = weakref.WeakValueDictionary()
_number = count(1).__next__


def graph_pool_handle() -> tuple[int, int]:
    """A name for a private pool, which several graphs may share if they never run at the same time, and run in the
    order in which they were captured."""
    return 0, _number()


def is_current_stream_capturing() -> bool:
    """Is what this thread launches recorded as a graph?"""
    return runtime.is_capturing(runtime.current_device())


class CUDAGraph:
    """Recorded work. Follows ``torch.cuda.CUDAGraph``."""

    def __init__(self, keep_graph: bool = False):
        self._capture: runtime.Capture | None = None
        self._pool: _Pool | None = None
        self._before = 0
        self._recording = False

    def capture_begin(self, pool=None, capture_error_mode: str = "global") -> None:
        """Starts recording what this thread gives to the current stream. RuntimeError on the default stream, or for a
        graph that was recorded already."""
        if self._capture is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, create "
                "a new instance or call reset()."
            )
        stream = current_stream()
        if stream.stream_id == 0:
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok "
                "to replay them on the default stream.)"
            )
        number = _number() if pool is None else int(pool[1])
        check(lib.tt_fuse_flush(), "capture_begin")  # what fused mode has put off does not belong to the graph
        found = _pools.get(number)
        if found is None:
            found = _pools[number] = _Pool(number)
        capture = runtime.Capture(stream.device_index, stream.stream_id)
        self._pool, self._capture, self._recording = found, capture, True
        self._before = check(lib.tt_cuda_use_pool(number))

    def capture_end(self) -> None:
        """Ends recording. RuntimeError if something was done that cannot be recorded, or nothing was begun."""
        if not self._recording:
            raise RuntimeError("capture_end: capture_begin was not called")
        try:
            check(lib.tt_fuse_flush(), "capture_end")
        finally:
            self._end()

    def _end(self) -> None:
        self._recording = False
        lib.tt_cuda_use_pool(self._before)
        try:
            self._capture.end()
        except RuntimeError:
            self.reset()
            raise

    def register_generator_state(self, generator: Generator) -> None:
        """Says that what is recorded may draw from ``generator``. Nothing has to: each generator that is drawn from
        registers itself. TypeError for anything else, RuntimeError for one of the CPU."""
        pointer(generator, "register_generator_state", 1)

    def replay(self) -> None:
        """Runs the recorded work on the current stream. RuntimeError if there is none."""
        if self._recording or self._capture is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        runtime.run_pending("replay")  # it may write what the graph reads, or read what the graph writes
        self._capture.run()

    def reset(self) -> None:
        """Lets go of the recorded work and of the memory that its tensors do not hold. What is being recorded ends."""
        if self._recording:
            self._recording = False
            lib.tt_cuda_use_pool(self._before)
            with contextlib.suppress(RuntimeError):  # of work that nobody wants any more
                self._capture.end()
        if self._capture is not None:
            self._capture.drop()
        self._capture = self._pool = None

    def pool(self) -> tuple[int, int]:
        """The name of the private pool, for graphs that are to share it."""
        if self._pool is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return 0, self._pool.number

    def __del__(self):
        if self._capture is not None and not self._recording:
            self._capture.drop()


class graph:
    """A context that records what is done in it as ``cuda_graph``, on ``stream`` (a stream of its own). Follows
    ``torch.cuda.graph``."""

    _stream: Stream | None = None  # of all graphs that name none

    def __init__(
        self, cuda_graph: CUDAGraph, pool=None, stream: Stream | None = None, capture_error_mode: str = "global"
    ):
        if not isinstance(cuda_graph, CUDAGraph):
            raise TypeError(f"graph(): argument 'cuda_graph' must be CUDAGraph, not {type(cuda_graph).__name__}")
        if stream is None:
            if graph._stream is None or graph._stream.device_index != runtime.current_device():
                graph._stream = Stream()
            stream = graph._stream
        self.cuda_graph, self.pool = cuda_graph, pool
        self._context = StreamContext(stream)

    def __enter__(self):
        synchronize()
        gc.collect()
        empty_cache()
        self._context.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool)
        except BaseException:
            self._context.__exit__()
            raise

    def __exit__(self, kind, exception, traceback):
        try:
            self.cuda_graph.capture_end()
        except RuntimeError:
            if exception is None:  # else it is why the recording failed
                raise
        finally:
            self._context.__exit__()


def make_graphed_callables(
    callables, sample_args, num_warmup_iters: int = 3, allow_unused_input: bool = False, pool=None
):
    """Functions or modules as graphs, forward and backward, for arguments like ``sample_args``: a tuple of tensors, or
    for several callables a tuple of such tuples. What they return are the same tensors each time. Follows
    ``torch.cuda.make_graphed_callables``."""
    single = not isinstance(callables, tuple)
    if single:
        callables, sample_args = (callables,), (sample_args,)
    for args in sample_args:
        if not isinstance(args, (tuple, list)) or not all(isinstance(a, Tensor) for a in args):
            raise TypeError(
                "make_graphed_callables: the sample arguments of each callable must be a tuple of tensors, "
                f"got {type(args).__name__}"
            )
    for fn in callables:
        if isinstance(fn, Module) and any(b.requires_grad for b in fn.buffers()):
            raise RuntimeError(
                "In any :class:`~torch.nn.Module` passed to :func:`~make_graphed_callables`, only "
                "parameters may be trainable. All buffers must have ``requires_grad=False``."
            )
    pool = graph_pool_handle() if pool is None else pool
    inputs = [(*args, *(fn.parameters() if isinstance(fn, Module) else ())) for fn, args in zip(callables, sample_args)]
    synchronize()
    with StreamContext(Stream()):
        for fn, args, given in zip(callables, sample_args, inputs):
            for _ in range(num_warmup_iters):
                _gradients(_tuple(fn(*args)), given, None, allow_unused_input)
    synchronize()
    # Memory is shared: backward graphs run in the opposite order of the forward ones.
    forwards = []
    for fn, args in zip(callables, sample_args):
        recorded = CUDAGraph()
        with graph(recorded, pool):
            outputs = fn(*args)
        forwards.append((recorded, _tuple(outputs), isinstance(outputs, Tensor)))
    backwards = []
    for (_, outputs, _), given in zip(reversed(forwards), reversed(inputs)):
        recorded = CUDAGraph()
        seeds = tuple(o.new_empty(o.shape) if o.requires_grad else None for o in outputs)
        with graph(recorded, pool):
            grads = _gradients(outputs, given, seeds, allow_unused_input)
        backwards.append((recorded, seeds, grads))
    made = [
        _graphed(fn, args, given, *forward, *backward)
        for fn, args, given, forward, backward in zip(callables, sample_args, inputs, forwards, reversed(backwards))
    ]
    return made[0] if single else tuple(made)


def _tuple(outputs) -> tuple:
    return (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)


def _gradients(outputs: tuple, inputs: tuple, seeds, allow_unused: bool) -> tuple:
    """The gradient of each input, None where it wants none; ``seeds``: those of the outputs, None: ones."""
    differentiable = [o for o in outputs if o.requires_grad]
    wanted = [t for t in inputs if t.requires_grad]
    if not differentiable or not wanted:
        return (None,) * len(inputs)
    given = [o.new_ones(o.shape) for o in differentiable] if seeds is None else [s for s in seeds if s is not None]
    grads = iter(grad(differentiable, wanted, given, allow_unused=allow_unused))
    return tuple(next(grads) if t.requires_grad else None for t in inputs)


def _graphed(
    fn,
    args: tuple,
    inputs: tuple,
    forward: CUDAGraph,
    outputs: tuple,
    single: bool,
    backward: CUDAGraph,
    seeds: tuple,
    grads: tuple,
):
    """``fn`` by its graphs; a module is changed, and used so while it is in the mode in which it was recorded."""

    class Graphed(Function):
        @staticmethod
        def forward(ctx, *values):
            for static, value in zip(args, values):
                if static.data_ptr() != value.data_ptr():
                    static.detach().copy_(value)
            forward.replay()
            return tuple(o.detach() for o in outputs)

        @staticmethod
        def backward(ctx, *given):
            for static, value in zip(seeds, given):
                if static is not None:
                    static.copy_(value)
            backward.replay()
            # Copies: a leaf may keep its first gradient as its own, and the next run overwrites these.
            return tuple(g if g is None else g.clone() for g in grads)

    def run(*values):
        if len(values) != len(args):
            raise TypeError(f"the graphed callable takes {len(args)} tensors, got {len(values)}")
        for k, (static, value) in enumerate(zip(args, values)):
            if value.shape != static.shape or value.dtype != static.dtype:
                raise RuntimeError(
                    f"the graphed callable's argument {k} has shape {tuple(value.shape)} and dtype "
                    f"{value.dtype!r}; it was recorded for {tuple(static.shape)} and {static.dtype!r}"
                )
        results = Graphed.apply(*values, *inputs[len(args) :])
        return results[0] if single else results

    if not isinstance(fn, Module):
        return run
    training, plain = fn.training, fn.forward
    fn.forward = lambda *values: run(*values) if fn.training == training else plain(*values)
    return fn
