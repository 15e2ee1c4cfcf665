"""Calls of everything public with hostile arguments, as source: one for each number."""

import functools
import inspect
import random
import re

import tinytorch
from compare import DTYPES as TABLE_DTYPES
from fuse.catalog import words
from fuzz import arguments
from optable import OPS
from optable.core import Spec
from tinytorch.ops.declare import NAMESPACES

MUTATED = 0.5  # of all calls, those of the table with one thing wrong
MODULES = words("""
    nn nn.init nn.utils nn.utils.rnn nn.utils.parametrize nn.utils.parametrizations nn.attention nn.parameter autograd
    autograd.functional autograd.graph optim optim.lr_scheduler optim.swa_utils utils.data utils.checkpoint
    utils.dlpack overrides cpu func nn.grad nn.utils.prune amp distributions distributions.constraints testing
""")
#: What a process-wide setting is set back to after a call.
RESTORED = {
    "torch.set_default_device": "torch.set_default_device(None)",
    "torch.set_default_dtype": "torch.set_default_dtype(torch.float32)",
    "torch.set_num_threads": "torch.set_num_threads(1)",
    "torch.set_printoptions": "torch.set_printoptions(profile='default')",
    "torch.set_float32_matmul_precision": "torch.set_float32_matmul_precision('highest')",
    "torch.set_grad_enabled": "torch.autograd.set_grad_enabled(True)",
    "torch.autograd.set_grad_enabled": "torch.autograd.set_grad_enabled(True)",
    "torch.autograd.set_detect_anomaly": "torch.autograd.set_detect_anomaly(False)",
    "torch.seed": "torch.manual_seed(0)",
    "torch.set_rng_state": "torch.manual_seed(0)",
}
#: Whose methods are called, beside Tensor's.
OBJECTS = (
    "torch.nn.Linear(3, 2)",
    "torch.nn.LSTM(3, 2)",
    "torch.nn.BatchNorm1d(3)",
    "torch.nn.MultiheadAttention(4, 2)",
    "torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())",
    "torch.nn.ModuleList([torch.nn.ReLU()])",
    "torch.nn.ModuleDict({'a': torch.nn.ReLU()})",
    "torch.nn.ParameterList([torch.ones(2)])",
    "torch.nn.ParameterDict({'a': torch.ones(2)})",
    "torch.nn.Parameter(torch.ones(2, 3))",
    "torch.nn.utils.rnn.pack_sequence([torch.ones(2, 3)])",
    "torch.optim.Adam([torch.ones(2, requires_grad=True)])",
    "torch.optim.lr_scheduler.StepLR(torch.optim.SGD([torch.ones(2, requires_grad=True)], 0.1), 2)",
    "torch.optim.lr_scheduler.ReduceLROnPlateau(torch.optim.SGD([torch.ones(2, requires_grad=True)], 0.1))",
    "torch.optim.swa_utils.AveragedModel(torch.nn.Linear(3, 2))",
    "torch.distributions.Normal(torch.zeros(3), torch.ones(3))",
    "torch.distributions.Categorical(torch.ones(2, 3))",
    "torch.distributions.ExpTransform()",
    "torch.utils.data.TensorDataset(torch.ones(3, 2))",
    "torch.amp.GradScaler('cpu')",
    "torch.Generator()",
    "torch.ones(3).untyped_storage()",
    "torch.ones(2, requires_grad=True).sum().grad_fn",
    "torch.ones(2, 3).to_sparse()",
    "torch.ones(2, 3).to_sparse_csr()",
    "torch.Size([2, 3])",
    "torch.float32",
)
#: Not called: what changes the process for the calls that follow, writes files, starts processes, or asks for devices
#: that are not there.
LEFT_OUT = {
    "save", "load", "config", "fuse", "cuda.manual_seed", "cuda.manual_seed_all", "detect_anomaly", "from_file",
    "get_worker_info", "DataLoader", "set_default_validate_args",
    "graph_to_dot", "OutOfMemoryError", "LinAlgError", "no_grad", "enable_grad", "inference_mode", "GradcheckError",
    "SDPBackend", "share_memory_", "xpu", "mtia", "__dir__", "__setstate__", "__reduce_ex__", "__new__", "set_",
    "Function", "Node",
}  # fmt: skip


def _functions():
    """(source of a function, its parameters)"""
    for namespace, names in NAMESPACES.items():
        if namespace != "internal":
            for name, function in names.items():
                yield ".".join(filter(None, ("torch", namespace, name))), function
    for name in tinytorch.__all__:
        if callable(getattr(tinytorch, name)) and name not in NAMESPACES[""]:
            yield f"torch.{name}", getattr(tinytorch, name)
    for module in MODULES:
        home = functools.reduce(getattr, module.split("."), tinytorch)
        for name in home.__all__:
            if callable(getattr(home, name)):
                yield f"torch.{module}.{name}", getattr(home, name)


def _parameters(function):
    try:
        return tuple(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return ()


@functools.cache
def functions():
    """{source: parameters} of all public functions and classes."""
    found = {text: _parameters(f) for text, f in _functions() if text.rpartition(".")[2] not in LEFT_OUT}
    return dict(sorted(found.items()))


@functools.cache
def methods():
    """{name: parameters without self} of Tensor's methods."""
    found = {}
    for name, method in vars(tinytorch.Tensor).items():
        special = name.startswith("_") and not name.startswith("__")
        if callable(method) and name not in LEFT_OUT and not special and name != "__hash__":
            found[name] = _parameters(method)[1:]
    return dict(sorted(found.items()))


@functools.cache
def attributes():
    return sorted(name for name, value in vars(tinytorch.Tensor).items() if isinstance(value, property))


def _source(entry):
    """What an entry of the table calls: "torch.add", "torch.nn.functional.gelu"; None if it is no function."""
    name = entry.name.replace("F.", "nn.functional.")
    for namespace in ("", "nn.functional") if entry.call is None else ("nn.functional", ""):
        source = ".".join(filter(None, ("torch", namespace, name)))
        if source in functions() and not (entry.call is None and namespace):
            return source
    return None


@functools.cache
def samples():
    """(source of a function, entry, sample, dtype) of the table."""
    return [
        (source, entry, sample, dtype)
        for entry in OPS
        if (source := _source(entry)) and not entry.name.endswith("_")
        for sample in entry.samples
        for dtype in TABLE_DTYPES
        if dtype in sample.only and dtype in entry.dtypes
    ]


@functools.cache
def object_methods():
    """(source of an object, name, parameters) of the methods of OBJECTS."""
    found = []
    for source in OBJECTS:
        made = eval(source, {"torch": tinytorch})
        for name in dir(type(made)):
            method = getattr(type(made), name)
            own = not isinstance(made, tinytorch.Tensor) or not hasattr(tinytorch.Tensor, name)
            if callable(method) and own and not name.startswith("_") and name not in LEFT_OUT:
                found.append((source, name, _parameters(getattr(made, name))))
    return found


class Caller(arguments.Chooser):
    single = False  # is one thing wrong with the call, and no other?
    twice = False  # is the wrong argument a tensor of another dtype, and another shape, too?

    def arguments(self, parameters, first=()):
        """Arguments for parameters, by place and by name; now and then one too many, or unknown."""
        texts, named = list(first), False
        for p in parameters:
            if p.kind is p.VAR_POSITIONAL:
                texts += [self.named(p.name) for _ in range(self.random.randint(0, 3))] if not named else []
                continue
            if p.kind is p.VAR_KEYWORD:
                continue
            optional = p.default is not p.empty
            if optional and self.chance(0.75):
                named = True
                continue
            if not optional and self.chance(0.02):
                continue
            named = named or p.kind is p.KEYWORD_ONLY
            value = self.named(p.name)
            texts.append(f"{p.name}={value}" if named and p.kind is not p.POSITIONAL_ONLY else value)
        if self.chance(0.02):
            texts.append("unknown=1")
        return ", ".join(texts)

    def function(self):
        name = self.one(list(functions()))
        made = f"{name}({self.arguments(functions()[name])})"
        if re.match(r"torch\.nn\.[A-Z]", name) and self.chance(0.8):
            made += f"({self.tensor()}{', ' + self.tensor() if self.chance(0.3) else ''})"
        elif re.match(r"torch\.optim\.[A-Z]", name):
            made += ".step()"
        return made

    def method(self):
        name = self.one(list(methods()))
        if name == "__setitem__" or name == "__getitem__":
            index = self.one((self.anything(), self.anything(), f"({self.anything()}, {self.anything()})"))
            return f"{self.tensor()}.{name}({index}{', ' + self.anything() if name == '__setitem__' else ''})"
        return f"{self.tensor()}.{name}({self.arguments(methods()[name])})"

    def of_an_object(self):
        source, name, parameters = self.one(object_methods())
        return f"{source}.{name}({self.arguments(parameters)})"

    def attribute(self):
        name = self.one(attributes())
        if self.chance(0.5):
            return f"{self.tensor()}.{name}"
        return f"setattr({self.tensor()}, {name!r}, {self.anything()})"

    def mutated(self):
        """A call of the table, with one thing wrong."""
        source, entry, sample, dtype = self.one(samples())
        places = [*range(len(sample.args)), *sample.kwargs]
        texts = [self.argument(value, dtype) for value in (*sample.args, *sample.kwargs.values())]
        at = self.random.randrange(len(places) + 1)
        if at < len(texts):
            value = (*sample.args, *sample.kwargs.values())[at]
            texts[at] = self.wrong(value, dtype, texts[at])
        named = [f"{p}={text}" if isinstance(p, str) else text for p, text in zip(places, texts)]
        out = (at == len(texts) or self.chance(0.1)) and entry.out
        self.single = not (out and at < len(texts)) and not self.twice
        if out:
            first = named[0] if named and named[0].startswith("T(") else None
            if first:
                named[0] = f"(x := {first})"
            named.append(f"out={self.out(dtype, bool(first))}")
        elif at == len(texts):
            named.append(self.one((f"dtype={self.named('dtype')}", f"unknown={self.anything()}", self.anything())))
            if "=" not in named[-1].partition("(")[0] and any("=" in n.partition("(")[0] for n in named[:-1]):
                named.insert(0, named.pop())
        if entry.method and named and named[0].startswith("T(") and self.chance(0.4):
            inplace = "_" if entry.inplace and not out and self.chance(0.5) else ""
            return f"{named[0]}.{entry.name}{inplace}({', '.join(named[1:])})"
        return f"{source}({', '.join(named)})"

    def argument(self, value, dtype):
        """The source of a sample's argument."""
        if isinstance(value, Spec):
            how = "index" if value.dtype in ("int64", "int32") and value.layout == "plain" else value.layout
            return f"T({value.dtype or dtype!r}, {value.shape}, {how!r})"
        if isinstance(value, (tuple, list)):
            inner = ", ".join(self.argument(v, dtype) for v in value)
            return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
        return repr(value).replace("tinytorch.", "torch.")

    def wrong(self, value, dtype, text):
        """In the place of an argument: nearly the same, or anything."""
        if isinstance(value, Spec) and self.chance(0.6):
            return self.one(
                (
                    self.tensor(self.one(arguments.DTYPES), str(value.shape)),
                    self.tensor(value.dtype or dtype),
                    f"{self.tensor(value.dtype or dtype, str(value.shape))}.unsqueeze(0)",
                    f"{self.tensor(value.dtype or dtype, str(value.shape))}.numpy()",
                    f"{text}.tolist()",
                )
            )
        if isinstance(value, int) and self.chance(0.5):
            return self.one(arguments.NUMBERS)
        if isinstance(value, (tuple, list)) and self.chance(0.5):
            return self.one(arguments.DIMS + arguments.SIZES)
        other = self.anything()
        if isinstance(value, Spec) and (found := re.match(r"T\('(\w+)', (\(.*?\)), ", other)):
            self.twice = found[1] != (value.dtype or dtype) and found[2] != str(value.shape)
        return other

    def out(self, dtype, alias):
        if alias and self.chance(0.4):
            return self.one(words("x x[1:] x.t() x.unsqueeze(0) x.detach() x.view(-1) (x,x) x.expand(2,3)"))
        return self.one((self.tensor(dtype), self.tensor(), self.anything(), f"({self.tensor()}, {self.tensor()})"))

    def call(self):
        kind = self.random.random()
        if kind < MUTATED:
            return self.mutated()
        if kind < 0.75:
            return self.function()
        if kind < 0.92:
            return self.method()
        return self.of_an_object() if kind < 0.97 else self.attribute()


def call(number):
    """The source of a call."""
    return Caller(random.Random(number)).call()


def is_mutated(number):
    """Is it a call of the table with one thing wrong?"""
    caller = Caller(random.Random(number))
    caller.call()
    return caller.single
