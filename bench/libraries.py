"""The libraries of the fused suite, each behind the same few methods, so that a row is written once.

A program is a function ``program(xp, *arrays)`` of the operators that all libraries have under one name, from the
module or namespace ``xp``. A library makes arrays of NumPy's, fuses functions of arrays, and turns a function into
one that gives derivatives too. What a fused function returns is computed. What a library does not have is None
there, and it stays away from the rows that need it.
"""

import contextlib
import importlib.util
import logging
import os
import pathlib
import sys
from types import SimpleNamespace


#: Calls before the one whose result is checked.
WARM_UP = 3


class Library:
    """What a row may ask of a library."""

    #: What is imported.
    module: str
    #: Whether arrays can be written, so that an update returns nothing new.
    in_place = False
    #: The arguments that make a reduction one over rows that keeps its dimension.
    rows = {"axis": -1, "keepdims": True}
    #: Whether an operator is recorded, to be run later; whether it makes a Node.
    lazy = taped = None
    #: What not every library, or not every way of using it, has.
    #: The only such thing for which it is a side; None: all that it has.
    only = None
    vjp = second = recording = gelu = cross_entropy = adam = example = None

    def __init__(self, threads):
        """Import the library and limit it to ``threads``."""
        self.np = importlib.import_module("numpy")

    def array(self, data, differentiable=False):
        """NumPy's ``data`` as an array of the library, ``differentiable`` if its gradient will be asked for."""

    def number(self, value):
        """A Python float that differs from call to call, as a fused function takes it best."""
        return value

    def fused(self, function, donated=(), asynchronous=False):
        """``function`` of arrays (or lists of arrays, or numbers), fused. It may overwrite the ``donated`` arguments.

        ``asynchronous``: it may return before its result is there, if that is being computed.
        """

    def pure(self, function):
        """``function`` of arrays, fused, with the promise that it has no effects and need not be called again."""
        return self.fused(function, asynchronous=True)

    def warm(self, call):
        """Make ``WARM_UP`` calls, and wait for what they set going in the background."""
        for _ in range(WARM_UP):
            call()

    def verify(self):
        """Raise an error if calls since the warm-up were not made as the side's name says."""

    def fixed(self, array):
        """The array, as a constant to derivatives."""

    def numpy(self, array):
        """The elements, as a NumPy array."""


class Eager(Library):
    """tinytorch, one operator after the other."""

    module = "tinytorch"
    in_place = taped = True
    rows = {"dim": -1, "keepdim": True}

    def __init__(self, threads):
        super().__init__(threads)
        self.xp = importlib.import_module(self.module)
        self.xp.set_num_threads(threads)

    def array(self, data, differentiable=False):
        array = self.xp.tensor(data)  # a copy: memory that NumPy may write at any time cannot be read later
        return array.requires_grad_() if differentiable else array

    def fused(self, function, donated=(), asynchronous=False):
        return function

    def fixed(self, array):
        return array.detach()

    def recording(self):
        """The context in which operators are recorded; here they are computed at once."""
        return contextlib.nullcontext()

    def run_pending(self, array):
        """Compute what was recorded and ``array`` needs, if leaving the context has not."""

    def vjp(self, function, upto):
        """A function of (upstream gradient, \\*arrays): the result, and the gradients of the first ``upto`` arrays."""
        grad = self.xp.autograd.grad

        def run(upstream, *arrays):
            result = function(*arrays)
            return result, *grad(result, arrays[:upto], upstream)

        return run

    def second(self, function):
        """A function of one array: the first and second derivatives of the elementwise ``function``."""
        grad = self.xp.autograd.grad

        def run(x):
            (first,) = grad(function(x).sum(), x, create_graph=True)
            return first, *grad(first.sum(), x)

        return run

    def gelu(self, x):
        return self.xp.nn.functional.gelu(x)

    def cross_entropy(self, logits, target):
        return self.xp.nn.functional.cross_entropy(logits, target)

    #: How the optimizer is asked to update all parameters at once.
    optimizing = {"foreach": True}

    def adam(self, parameters, gradients, rate):
        """A function that makes a step and returns the parameters."""
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient
        step = self.fused(self.xp.optim.Adam(parameters, lr=rate, **self.optimizing).step)

        def run():
            step()
            return parameters

        return run

    def example(self, name):
        """The module examples/``name``.py, which imports tinytorch."""
        path = pathlib.Path(__file__).parents[1] / "examples" / f"{name}.py"
        if str(path.parent) not in sys.path:  # where it finds what the examples share
            sys.path.append(str(path.parent))
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def numpy(self, array):
        return array.detach().numpy()


class Interpreted(Eager):
    """tinytorch's fused mode, where nothing is ever compiled."""

    lazy = True

    def __init__(self, threads):
        super().__init__(threads)
        self.xp.config(fuse_hot=-1)

    def fused(self, function, donated=(), asynchronous=False):
        return self.xp.fuse(function)

    def pure(self, function):
        return self.xp.fuse(function, pure=True)

    @contextlib.contextmanager
    def recording(self):
        """Small tensors are recorded, too, not left to eager mode."""
        with self.xp.config(fuse_worth=0), self.xp.fuse():
            yield


class Compiled(Interpreted):
    """tinytorch's fused mode, once the programs are compiled."""

    def __init__(self, threads):
        Eager.__init__(self, threads)  # a first call finds the setting that a user has

    def warm(self, call):
        self.xp.config(fuse_hot=1)
        super().warm(call)
        self.xp.fuse.wait()
        self.warm_stats = self.xp.fuse.stats()

    def verify(self):
        runs = {name: count - self.warm_stats[name] for name, count in self.xp.fuse.stats().items()}
        if runs["interpreted"] and not (runs["compiled"] or runs["left"]):
            raise RuntimeError(f"nothing ran compiled: {runs}")


class Torch(Eager):
    """PyTorch, one operator after the other."""

    module = "torch"
    example = None


class TorchFused(Torch):
    """PyTorch's own fused optimizers."""

    only = "adam"
    optimizing = {"fused": True}


class Inductor(Torch):
    """torch.compile."""

    taped = recording = None

    def __init__(self, threads):
        super().__init__(threads)
        self.xp._logging.set_logs(all=logging.ERROR)

    def array(self, data, differentiable=False):
        return self.xp.tensor(data)

    def fused(self, function, donated=(), asynchronous=False):
        return self.xp.compile(function)

    def vjp(self, function, upto):
        """Derivatives inside of the compiled function: quicker than a compiled forward and its own backward."""
        func = self.xp.func

        def run(upstream, *arrays):
            result, pull = func.vjp(lambda *leaves: function(*leaves, *arrays[upto:]), *arrays[:upto])
            return result, *pull(upstream)

        return run

    def second(self, function):
        grad = self.xp.func.grad

        def first(x):
            gradient = grad(lambda x: function(x).sum())(x)
            return gradient.sum(), gradient

        def run(x):
            second, gradient = grad(first, has_aux=True)(x)
            return gradient, second

        return run


class Jax(Library):
    """jax.jit."""

    module = "jax"

    def __init__(self, threads):
        super().__init__(threads)
        os.environ["JAX_PLATFORMS"] = "cpu"
        self.jax = importlib.import_module("jax")
        self.xp = importlib.import_module("jax.numpy")

    def array(self, data, differentiable=False):
        return self.xp.asarray(data)

    def fused(self, function, donated=(), asynchronous=False):
        jitted, ready = self.jax.jit(function, donate_argnums=donated), self.jax.block_until_ready
        return jitted if asynchronous else lambda *arrays: ready(jitted(*arrays))

    def fixed(self, array):
        return self.jax.lax.stop_gradient(array)

    def vjp(self, function, upto):
        def run(upstream, *arrays):
            result, pull = self.jax.vjp(lambda *leaves: function(*leaves, *arrays[upto:]), *arrays[:upto])
            return result, *pull(upstream)

        return run

    def second(self, function):
        def first(x):
            gradient = self.jax.grad(lambda x: function(x).sum())(x)
            return gradient.sum(), gradient

        def run(x):
            second, gradient = self.jax.grad(first, has_aux=True)(x)
            return gradient, second

        return run

    def gelu(self, x):
        return self.jax.nn.gelu(x, approximate=False)

    def cross_entropy(self, logits, target):
        chosen = self.xp.take_along_axis(self.jax.nn.log_softmax(logits), target[:, None], axis=-1)
        return -chosen.mean()

    def numpy(self, array):
        return self.np.asarray(array)


class Mlx(Library):
    """mx.compile."""

    module = "mlx"
    lazy = True

    def __init__(self, threads):
        super().__init__(threads)
        self.mx = importlib.import_module("mlx.core")
        self.nn = importlib.import_module("mlx.nn")
        self.mx.set_default_device(self.mx.cpu)
        self.xp = SimpleNamespace(**vars(self.mx), amax=self.mx.max)

    def array(self, data, differentiable=False):
        array = self.mx.array(data)
        self.mx.eval(array)
        return array

    def number(self, value):
        return self.mx.array(value)  # of a Python float it would make a constant

    def fused(self, function, donated=(), asynchronous=False):
        compiled, compute = self.mx.compile(function), self.mx.eval

        def run(*arrays):
            result = compiled(*arrays)
            compute(result)
            return result

        return run

    def fixed(self, array):
        return self.mx.stop_gradient(array)

    def recording(self):
        return contextlib.nullcontext()  # it always records

    def run_pending(self, array):
        self.mx.eval(array)

    def vjp(self, function, upto):
        def run(upstream, *arrays):
            (result,), gradients = self.mx.vjp(
                lambda *leaves: function(*leaves, *arrays[upto:]), arrays[:upto], (upstream,)
            )
            return result, *gradients

        return run

    def second(self, function):
        def first(x):
            gradient = self.mx.grad(lambda x: function(x).sum())(x)
            return gradient.sum(), gradient

        def run(x):
            (_, gradient), second = self.mx.value_and_grad(first)(x)
            return gradient, second

        return run

    def gelu(self, x):
        return self.nn.gelu(x)

    def cross_entropy(self, logits, target):
        return self.nn.losses.cross_entropy(logits, target, reduction="mean")

    def adam(self, parameters, gradients, rate):
        optimizer = importlib.import_module("mlx.optimizers").Adam(learning_rate=rate, bias_correction=True)
        state = {"parameters": parameters}
        optimizer.init(state)
        gradients = {"parameters": gradients}
        compiled = self.mx.compile(optimizer.apply_gradients, inputs=optimizer.state, outputs=optimizer.state)

        def run():
            nonlocal state
            state = compiled(gradients, state)
            self.mx.eval(state, optimizer.state)
            return state["parameters"]

        return run

    def numpy(self, array):
        return self.np.array(array)


class Numexpr(Library):
    """numexpr: a program becomes one expression."""

    module = "numexpr"

    def __init__(self, threads):
        super().__init__(threads)
        self.numexpr = importlib.import_module("numexpr")
        self.numexpr.set_num_threads(threads)
        self.expressions = importlib.import_module("numexpr.expressions")
        self.xp = SimpleNamespace(**self.expressions.functions)

    def array(self, data, differentiable=False):
        return data

    def fused(self, function, donated=(), asynchronous=False):
        expression = None

        def run(x):
            nonlocal expression
            if expression is None:
                expression = self._expression(function)
            return expression(x)

        return run

    def _expression(self, function):
        tree = function(self.expressions.VariableNode("x", "float"))
        nodes = [tree]
        while nodes:  # Python's numbers count as double, and would make everything double
            node = nodes.pop()
            if node.astKind == "double":
                node.astKind = "float"
            if node.astType == "op":
                nodes += node.children
        return self.numexpr.NumExpr(tree, [("x", float)])  # which is float32, in numexpr's words

    def numpy(self, array):
        return array


LIBRARIES = {
    "eager": Eager,
    "interpreted": Interpreted,
    "compiled": Compiled,
    "torch": Torch,
    "torch-fused": TorchFused,
    "inductor": Inductor,
    "jax": Jax,
    "mlx": Mlx,
    "numexpr": Numexpr,
}
