"""The sides of the suites for GPUs and of training. A row asks its side for tensors on the device, and hands it what is
to be timed: a function of tensors, a model, or a training step. What a side makes of these is what sets it apart.

Data and weights are NumPy's, so that all sides compute the same.
"""

import gc
import importlib
import logging
import math
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from .suite import Row
from .timing import together

#: Calls before a side is timed or recorded.
WARM_UP = 3
#: The number of the training step whose loss is compared besides the first one's, and how much further from PyTorch's
#: it may be, after so many updates.
LAST_STEP, DRIFT = 12, 10
#: As many elements from either end of a result are compared.
COMPARED = 1 << 16


class Eager:
    """tinytorch, one operator after the other."""

    module = "tinytorch"
    #: Further arguments of optimizers.
    optimizing = {}
    #: `gradients` differentiates tensors that require it.
    requires_leaves = True

    def __init__(self, device="cuda"):
        self.device = device
        self.torch = importlib.import_module(self.module)
        # An earlier row may have set these: each library's own defaults.
        self.torch.backends.cuda.matmul.allow_tf32 = False
        cudnn = self.torch.backends.cudnn
        cudnn.allow_tf32, cudnn.deterministic = True, self.module == "tinytorch"

    def tensor(self, data, dtype="float32", differentiable=False):
        """NumPy's ``data`` on the device."""
        tensor = self.torch.from_numpy(data)
        if data.dtype.kind == "f":
            tensor = tensor.to(getattr(self.torch, dtype))
        tensor = tensor.to(self.device)
        return tensor.requires_grad_() if differentiable else tensor

    def placed(self, model, dtype="float32"):
        """The model on the device, with weights that keep the size of what passes through them."""
        random = np.random.default_rng(0)
        with self.torch.no_grad():
            for name, parameter in model.named_parameters():
                shape = tuple(parameter.shape)
                if len(shape) > 1:
                    data = random.standard_normal(shape, dtype=np.float32) * np.float32(math.prod(shape[1:]) ** -0.5)
                else:
                    data = np.full(shape, 0.0 if "bias" in name else 1.0, np.float32)
                parameter.copy_(self.torch.from_numpy(data))
        return model.to(self.device, getattr(self.torch, dtype))

    def function(self, function):
        """``function`` of tensors, without effects."""
        return function

    def pure(self, function):
        """The same, of which more may be promised."""
        return self.function(function)

    def vjp(self, function):
        """A function of (upstream gradient, x): the elementwise ``function`` of x, and the gradient of x."""
        grad = self.torch.autograd.grad

        def run(upstream, x):
            result = function(x)
            return result.detach(), *grad(result, x, upstream)

        return self.function(run)

    def gradients(self, function):
        r"""A function of (tensors, \*args): the gradients of ``function``'s scalar result, to be derived again."""
        grad = self.torch.autograd.grad
        return lambda tensors, *args: grad(function(tensors, *args), tensors, create_graph=True)

    def model(self, model):
        """A model, or a function of tensors, as it is called in a training step."""
        return model

    def step(self, step):
        """``step()``, which trains a model or keeps gradients."""
        return step

    def warm(self, call):
        """Get ready to be timed, after the first call; how many calls were run."""
        for _ in range(WARM_UP):
            call()
        return WARM_UP

    def clear(self):
        """Give back the memory of a row."""
        self.torch.cuda.empty_cache()


class Fused(Eager):
    """tinytorch's fused mode, once the programs are compiled."""

    def __init__(self, device="cuda"):
        super().__init__(device)
        self.torch.config(fuse_hot=1)

    def function(self, function):
        return self.torch.fuse(function)

    step = function

    def pure(self, function):
        return self.torch.fuse(function, pure=True)

    def warm(self, call):
        super().warm(call)
        self.torch.fuse.wait()
        before = self.torch.fuse.stats()
        call()
        runs = {name: count - before[name] for name, count in self.torch.fuse.stats().items()}
        if runs["left"]:
            print(f"    fused: {runs['left']} operators of a call were left to eager mode, {runs['recorded']} recorded")
        elif not runs["recorded"] and not runs["compiled"]:  # a pure function is not recorded again
            raise RuntimeError("fused mode recorded nothing, so this would be eager mode's time")
        elif 0 < runs["interpreted"] < runs["recorded"] and not runs["compiled"]:  # lone operators run as in eager mode
            raise RuntimeError(f"nothing ran compiled: {runs}")
        return WARM_UP + 1


class Graph(Eager):
    """tinytorch's operators as a CUDA graph, recorded once."""

    optimizing = {"capturable": True}

    def __init__(self, device="cuda"):
        super().__init__(device)
        self.recording = False

    def function(self, function):
        graph = result = None

        def run(*args):
            nonlocal graph, result
            if graph is None and self.recording:
                graph, result = self._recorded(function, args)
            if graph is None:
                return function(*args)
            graph.replay()
            return result

        return run

    step = function

    def _recorded(self, function, args):
        cuda = self.torch.cuda
        stream = cuda.Stream()
        stream.wait_stream(cuda.current_stream())
        with cuda.stream(stream):
            for _ in range(WARM_UP):
                function(*args)
        cuda.current_stream().wait_stream(stream)
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            result = function(*args)
        return graph, result

    def warm(self, call):
        self.recording = True
        return WARM_UP + super().warm(call)  # the first call runs some more before it is recorded


class Torch(Eager):
    """PyTorch, one operator after the other."""

    module = "torch"


class TorchFused(Torch):
    """PyTorch with its own fused optimizers."""

    optimizing = {"fused": True}


class TorchGraph(Graph):
    """PyTorch's operators as a CUDA graph of its own, its fused optimizer's step among them."""

    module = "torch"
    optimizing = {"fused": True, "capturable": True}


class Compile(Torch):
    """torch.compile: of a function, or of the model in a training step."""

    def __init__(self, device="cuda"):
        super().__init__(device)
        self.torch._logging.set_logs(all=logging.ERROR)

    def function(self, function):
        return self.torch.compile(function)

    def vjp(self, function):
        """Derivatives inside of the compiled function: quicker than a compiled forward and its own backward."""
        func = self.torch.func

        def run(upstream, x):
            result, pull = func.vjp(function, x)
            return result, *pull(upstream)

        return self.function(run)

    #: It does not compile autograd.grad, and what it has compiled has no second derivatives.
    requires_leaves = False

    def gradients(self, function):
        return self.torch.func.grad(function)

    def model(self, model):
        return self.torch.compile(model)

    def clear(self):
        self.torch._dynamo.reset()
        super().clear()


class ReduceOverhead(Compile):
    """torch.compile with CUDA graphs, of a function, or of the model and the whole training step around it."""

    optimizing = {"fused": True, "capturable": True}

    def function(self, function):
        return self.torch.compile(function, mode="reduce-overhead")

    step = function

    def model(self, model):
        return model  # the step is compiled around it


class Copy(Torch):
    """PyTorch's copy of as many bytes as the row cannot but move: what the memory can do."""


DEVICES = {
    "eager": Eager,
    "fused": Fused,
    "graph": Graph,
    "torch": Torch,
    "torch-fused": TorchFused,
    "torch-graph": TorchGraph,
    "compile": Compile,
    "reduce-overhead": ReduceOverhead,
    "copy": Copy,
}


@dataclass(frozen=True)
class DeviceRow(Row):
    """A row whose ``make(side)`` receives one of these sides."""

    device: str = "cuda"
    sides: tuple[str, ...] = ("eager", "torch")
    #: How far from PyTorch's a result may be, relative to the largest element.
    tolerance: float = 1e-4
    batch: float = 0.01
    #: Every call has the same result, so that it can be compared again once the side is ready to be timed.
    repeatable: bool = True
    #: tinytorch's, while the row is measured.
    settings: dict[str, int] = field(default_factory=dict)

    def on(self, side):
        return side in self.sides

    def prepare(self, side, threads):
        device = DEVICES[side](self.device)
        if self.device == "cpu":
            device.torch.set_num_threads(threads)
        if side == "copy":
            return _copy(device, self.nbytes)
        call = self.make(device)
        if self.megabytes:
            call()
            return call
        self._compare(call(), 0)
        run = 1 + device.warm(call)
        if self.repeatable:
            self._compare(call(), 0)
        else:
            for _ in range(LAST_STEP - run):
                result = call()
            self._compare(result, 1, DRIFT * self.tolerance)
        return call

    def _compare(self, result, number, tolerance=None):
        """With that of the side that was prepared first."""
        result = ends_of(result)
        if len(self.first_results) <= number:
            self.first_results.append(result)
        compare(result, self.first_results[number], tolerance or self.tolerance)

    def waiter(self, side):
        return importlib.import_module(DEVICES[side].module).cuda.synchronize if self.device == "cuda" else None


def _copy(device, nbytes):
    """A copy that reads and writes so many bytes together."""
    source = device.torch.empty(int(nbytes) // 8, device=device.device)
    target = device.torch.empty_like(source)
    return lambda: target.copy_(source)


def ends_of(result):
    """What is compared of a result, which is a tensor or a tuple of tensors: the ends of each, as NumPy's float64."""
    arrays = []
    for tensor in result if isinstance(result, (tuple, list)) else [result]:
        flat = tensor.detach().reshape(-1)
        for part in (flat[:COMPARED], flat[-COMPARED:]):
            arrays.append(part.float().cpu().numpy().astype(np.float64))
    return arrays


def compare(result, expected, tolerance):
    """Raise an error if a result's ends are further from the expected than ``tolerance`` of the largest element."""
    for number, (found, true) in enumerate(zip(result, expected, strict=True)):
        scale = np.abs(true).max(initial=np.finfo(np.float32).tiny)
        error = np.abs(found - true).max(initial=0) / scale
        if not error <= tolerance:  # nor if it is NaN
            raise ArithmeticError(f"result {number // 2} is {error:.1e} away from the first side's")


def on_gpu(row, sides, rounds):
    """Measure a row on a GPU, all sides in this process, a batch each in turn. PyTorch goes first, and the others'
    results are compared with its. A row leaves no memory behind."""
    row.first_results.clear()
    gc.unfreeze()
    try:
        with importlib.import_module("tinytorch").config(**row.settings):
            return together(row, sorted(sides, key=lambda side: side != "torch"), rounds)
    finally:
        gc.unfreeze()
        gc.collect()
        for side in sides:
            with suppress(Exception):  # a device that a kernel has broken fails at everything
                DEVICES[side]().clear()
