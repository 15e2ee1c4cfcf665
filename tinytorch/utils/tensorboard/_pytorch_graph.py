"""A model as a graph that TensorBoard shows: its modules are boxes, its calls of operators the nodes in them.

The model is run once: hooks of its modules tell in which one an operator is called, a TorchFunctionMode what it is
given and what it makes.
"""

from __future__ import annotations

import inspect

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.config_pb2 import RunMetadata
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.step_stats_pb2 import DeviceStepStats, StepStats
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.versions_pb2 import VersionDef

from ...autograd.modes import no_grad
from ...overrides import TorchFunctionMode
from ...tensor import Tensor

_PRODUCER = 22  # the version of TensorFlow's graphs that TensorBoard takes ours for


def tensors_in(value):
    """The tensors in nested lists, tuples and dictionaries."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)


def _name_of(func) -> str:
    """The name of a function, or of the property that it gets."""
    return func.__name__ if func.__name__ != "__get__" else getattr(func.__self__, "__name__", "get")


class Recorder(TorchFunctionMode):
    """The nodes of one run of a model."""

    def __init__(self, model):
        self.nodes: dict[str, NodeDef] = {}
        self.made: dict[int, tuple[Tensor, str]] = {}  # by id: tensors, which are kept, and the nodes that made them
        self.scopes = [type(model).__name__]
        self.paths = {id(model): self.scopes[0]}
        for name, module in model.named_modules():
            parent, _, last = name.rpartition(".")
            if name:
                above = self.paths[id(model.get_submodule(parent))]
                self.paths.setdefault(id(module), f"{above}/{type(module).__name__}[{last}]")
        self.owned = {}  # by id: names of parameters and buffers that were not met yet
        for module in model.modules():
            own = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
            for name, t in own:
                self.owned.setdefault(id(t), (name, f"{self.paths[id(module)]}/{name}"))

    def add(self, name: str, op: str, inputs: list[str], shape=None, attributes: str = "") -> str:
        """Adds a node; returns its name, which has a number if there is such a one."""
        unique, k = name, 0
        while unique in self.nodes:
            k += 1
            unique = f"{name}_{k}"
        attr = {"attr": AttrValue(s=attributes.encode())}
        if shape is not None:
            sizes = TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in shape])
            attr["_output_shapes"] = AttrValue(list=AttrValue.ListValue(shape=[sizes]))
        self.nodes[unique] = NodeDef(name=unique, op=op, input=inputs, attr=attr)
        return unique

    def input(self, name: str, value) -> None:
        """Adds what the model is given."""
        for t in tensors_in(value):
            self.made[id(t)] = t, self.add(f"input/{name}", "IO Node", [], t.shape)

    def source(self, t: Tensor) -> str:
        """The node that made a tensor: a new one for a parameter, and for what was there before."""
        if id(t) not in self.made and t._base is not None and id(t._base) in self.made:
            return self.source(t._base)
        if id(t) not in self.made:
            name, path = self.owned.get(id(t), ("constant", f"{self.scopes[-1]}/constant"))
            op = "prim::GetAttr" if id(t) in self.owned else "prim::Constant"
            self.made[id(t)] = t, self.add(path, op, [], t.shape, str({"name": name}).replace("'", " "))
        return self.made[id(t)][1]

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        inputs = list(dict.fromkeys(self.source(t) for t in tensors_in([args, kwargs])))
        out = func(*args, **kwargs)
        name = _name_of(func)
        for t in tensors_in(out):
            node = self.add(f"{self.scopes[-1]}/{name}", f"aten::{name}", inputs, t.shape, "{}")
            self.made[id(t)] = t, node
        return out

    def enter(self, module, args) -> None:
        """A module is called."""
        self.scopes.append(self.paths.get(id(module), f"{self.scopes[-1]}/{type(module).__name__}"))

    def leave(self, module, args, output) -> None:
        """Its call is over."""
        self.scopes.pop()

    def output(self, value) -> None:
        """Adds what the model gives."""
        for k, t in enumerate(tensors_in(value)):
            self.add(f"output/output.{k + 1}", "IO Node", [self.source(t)], t.shape)


def _arguments(model, args) -> list[tuple[str, object]]:
    """What the model is given, with the names of its parameters."""
    try:
        bound = inspect.signature(model.forward).bind(*args)
    except (TypeError, ValueError):
        return [(str(k), value) for k, value in enumerate(args)]
    return list(bound.arguments.items())


def graph(model, args, verbose: bool = False, use_strict_trace: bool = True) -> tuple[GraphDef, RunMetadata]:
    """The graph of a Module's run with ``args``, in evaluation mode, and what the run took, of which nothing is
    told."""
    if args is None or isinstance(args, Tensor):
        args = () if args is None else (args,)
    recorder = Recorder(model)
    for name, value in _arguments(model, args):
        recorder.input(name, value)
    below = [module for module in model.modules() if module is not model]
    hooks = [module.register_forward_pre_hook(recorder.enter) for module in below]
    hooks += [module.register_forward_hook(recorder.leave, always_call=True) for module in below]
    training = {module: module.training for module in model.modules()}
    try:
        model.eval()
        with no_grad(), recorder:
            out = model(*args)
        recorder.output(out)
    finally:
        for module, was in training.items():
            module.training = was
        for hook in hooks:
            hook.remove()
    made = GraphDef(node=recorder.nodes.values(), versions=VersionDef(producer=_PRODUCER))
    if verbose:
        print(made)
    return made, RunMetadata(step_stats=StepStats(dev_stats=[DeviceStepStats(device="/device:CPU:0")]))
