"""The public surface: names, modules, pickling, signatures."""

import copy
import importlib
import inspect
import pickle
import subprocess
import sys
import types

import pytest

import tinytorch
from tinytorch.ops.declare import NAMESPACES, OPS

PUBLIC = {namespace: names for namespace, names in NAMESPACES.items() if namespace != "internal"}
FUNCTIONS = [(namespace, name) for namespace, names in PUBLIC.items() for name in names]
METHODS = [name for name, member in vars(tinytorch.Tensor).items() if isinstance(member, types.FunctionType)]
VARIADIC = {"rest", "size", "sizes", "shape", "shapes", "dim", "dims", "tensors", "matrices", "operands"}


def module_of(namespace):
    module = tinytorch
    for part in filter(None, namespace.split(".")):
        module = getattr(module, part)
    return module


def label(function):
    return ".".join(filter(None, function))


def test_dir_is_what_is_public():
    assert dir(tinytorch) == sorted(tinytorch.__all__) and len(set(tinytorch.__all__)) == len(tinytorch.__all__)
    for name in tinytorch.__all__:
        getattr(tinytorch, name)
    internal = {"importlib", "cache", "warn_once", "pickling", "interop", "ops", "backends", "devices", "dtypes"}
    assert not internal & set(dir(tinytorch))
    assert not hasattr(tinytorch, "importlib") and not hasattr(tinytorch.cpu, "wrap")


def test_names_follow_torch(torch):
    """Every public name is PyTorch's, but for those listed."""
    own = {"channels_last_3d", "config", "fuse", "default_generator"}
    strangers = {name for name in tinytorch.__all__ if not hasattr(torch, name)} - own
    assert {name for name in strangers if not hasattr(torch.Tensor, name)} == set()


@pytest.mark.parametrize("namespace", [n for n in PUBLIC if n])
def test_namespaces(namespace):
    """A namespace's ``__all__`` holds its functions, under its module's name."""
    module = module_of(namespace)
    assert set(NAMESPACES[namespace]) <= set(module.__all__)
    for name in module.__all__:
        getattr(module, name)


@pytest.mark.parametrize("name", [
    "autograd", "autograd.functional", "autograd.graph", "cpu", "cuda", "fft", "fuse", "linalg", "nn", "nn.functional",
    "nn.init", "nn.modules", "nn.modules.module", "nn.parameter", "nn.utils", "nn.utils.parametrizations",
    "nn.utils.parametrize", "nn.utils.stateless", "func", "optim", "optim.lr_scheduler",
    "optim.swa_utils", "overrides", "profiler", "random", "return_types",
    "serialization", "signal", "signal.windows", "special", "storage", "utils", "utils.checkpoint",
    "utils.data", "utils.dlpack", "utils.hooks"])  # fmt: skip
def test_public_modules_say_what_is_public(name):
    """``__all__`` names tinytorch's own things, and each once."""
    module = importlib.import_module(f"tinytorch.{name}")
    assert module.__all__ and len(set(module.__all__)) == len(module.__all__)
    for public in module.__all__:
        value = getattr(module, public)
        home = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
        assert home.partition(".")[0] == "tinytorch", public


def test_a_function_knows_where_it_is():
    for namespace, name in FUNCTIONS:
        fn = PUBLIC[namespace][name]
        assert fn is getattr(module_of(namespace), name)
        own = "tinytorch" + ("." + namespace if namespace else "")
        op = fn.op
        assert fn.__module__ in (own, "tinytorch") or label((namespace, name)) in op.aliases, label((namespace, name))
        assert fn.__module__.startswith("tinytorch") and fn.__qualname__ == fn.__name__
        assert name == fn.__name__ or label((namespace, name)) in op.aliases
        assert OPS[op.qualified] is op


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_functions_are_pickled_by_name(protocol):
    for namespace, name in FUNCTIONS:
        fn = PUBLIC[namespace][name]
        assert pickle.loads(pickle.dumps(fn, protocol)) is fn, label((namespace, name))
        assert copy.deepcopy(fn) is fn


def test_methods_are_pickled_by_name():
    assert len(METHODS) > 400
    for name in METHODS:
        method = getattr(tinytorch.Tensor, name)
        assert method.__module__ == "tinytorch", name
        assert pickle.loads(pickle.dumps(method)) is method, name


@pytest.mark.parametrize("name", ["bool", "float32", "bfloat16", "int64", "strided", "channels_last"])
def test_constants_are_pickled(name):
    value = getattr(tinytorch, name)
    assert pickle.loads(pickle.dumps(value)) is value


@pytest.mark.parametrize("value", [tinytorch.device("cuda", 1), tinytorch.Size([2, 3])], ids=str)
def test_values_are_pickled(value):
    again = pickle.loads(pickle.dumps(value))
    assert again == value and type(again) is type(value)


class Block(tinytorch.nn.Module):
    def __init__(self, act):
        super().__init__()
        self.act, self.linear = act, tinytorch.nn.Linear(2, 2)

    def forward(self, x):
        return self.act(self.linear(x))


@pytest.mark.parametrize(
    "act",
    [
        tinytorch.relu,
        tinytorch.Tensor.sigmoid,
        tinytorch.nn.functional.gelu,
        tinytorch.nn.functional.celu,
        tinytorch.absolute,
    ],
    ids=lambda fn: fn.__qualname__,
)
def test_modules_that_hold_functions(act, tmp_path):
    block = Block(act)
    tinytorch.save(block, tmp_path / "block")
    x = tinytorch.randn(3, 2)
    for again in (
        pickle.loads(pickle.dumps(block)),
        copy.deepcopy(block),
        tinytorch.load(tmp_path / "block", weights_only=False),
    ):
        assert again.act is act and again(x).equal(block(x))


@pytest.mark.parametrize(
    "name,signature",
    [
        ("exp", "(input, *, out=None)"),
        ("exp_", "(input)"),
        ("add", "(input, other, *rest, alpha=1, out=None)"),
        ("nan_to_num", "(input, nan=0.0, posinf=None, neginf=None, *, out=None)"),
        ("Tensor.nan_to_num_", "(input, nan=0.0, posinf=None, neginf=None)"),
        ("Tensor.transpose_", "(input, dim0, dim1)"),
        ("cumsum", "(input, dim, *, dtype=None, out=None, axis=None)"),
        ("Tensor.addmm_", "(input, mat1, mat2, *rest, beta=1, alpha=1)"),
        ("einsum", "(equation=None, *operands)"),
    ],
)
def test_signatures(name, signature):
    fn = tinytorch
    for part in name.split("."):
        fn = getattr(fn, part)
    assert str(inspect.signature(fn)) == signature


def test_parameters_have_names():
    """No ``*args, **kwargs``: a star is for sizes, dimensions or tensors; ``**named`` for a name that Python reserves
    or that follows a star (``from``, ``size``)."""
    functions = {label(f): PUBLIC[f[0]][f[1]] for f in FUNCTIONS}
    functions |= {f"Tensor.{n}": getattr(tinytorch.Tensor, n) for n in METHODS if not n.startswith("_")}
    several = {"randint", "Tensor.to", "Tensor.new"}  # forms that no one signature shows; the stubs do
    for name, fn in functions.items():
        for p in inspect.signature(fn).parameters.values():
            if p.kind is p.VAR_POSITIONAL:
                assert p.name in VARIADIC or name in several, name
            elif p.kind is p.VAR_KEYWORD:
                assert p.name == "named", name


@pytest.mark.parametrize(
    "fn",
    [tinytorch.exp, tinytorch.add, tinytorch.Tensor.view, tinytorch.cat, tinytorch.matmul, tinytorch.Tensor.__add__],
    ids=lambda fn: fn.__qualname__,
)
def test_source_can_be_read(fn):
    """Generated functions show their source, through linecache."""
    assert "def " in inspect.getsource(fn)


def test_an_import_leaves_out_what_few_programs_need():
    late = ("pycparser", "tinytorch.profiler", "tinytorch.fuse.shrink")
    code = f"import sys, tinytorch; print([name for name in {late} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
