"""A program under ``python -m tinytorch.as_torch``: what is not as with PyTorch. It fails where it is not so."""

import importlib
import importlib.util
import pickle
import sys

import tinytorch
import torch
from torch.nn.parallel import scatter_gather
import torch.multiprocessing as mp


def raised(kind, call):
    """The text of the error that is raised."""
    try:
        call()
    except kind as e:
        return str(e)
    raise AssertionError(f"no {kind.__name__}")


def child(results, x):
    results.put((torch.nn is tinytorch.nn, str(torch.float32)))
    x += 1


def one_module_each():
    for name in (
        "nn",
        "nn.functional",
        "nn.utils.rnn",
        "optim.lr_scheduler",
        "utils.data",
        "autograd",
        "linalg",
        "cuda",
    ):
        assert importlib.import_module(f"torch.{name}") is sys.modules[f"tinytorch.{name}"], name
    assert torch.Tensor is tinytorch.Tensor and torch.add is tinytorch.add and torch.profiler is tinytorch.profiler
    import torch.nn.modules.normalization as by_path

    assert by_path.LayerNorm is torch.nn.LayerNorm and by_path is sys.modules["tinytorch.nn.modules.normalization"]
    assert torch.nn.__spec__.name == "tinytorch.nn" and torch.nn.__name__ == "tinytorch.nn"


def what_is_missing_says_so():
    assert "not in tinytorch" in raised(AttributeError, lambda: torch.nonsense)
    text = raised(AttributeError, lambda: torch.nn.functional.log_softmx)
    assert "not in tinytorch" in text and "log_softmax" in text
    text = raised(ImportError, lambda: exec("from torch.nn import Linaer"))
    assert "not in tinytorch" in text and "near: Linear" in text
    text = raised(ModuleNotFoundError, lambda: importlib.import_module("torch.nn.modulez"))
    assert "not in tinytorch" in text and "modules" in text
    text = raised(ModuleNotFoundError, lambda: importlib.import_module("torch.jit.nonsense"))
    assert "not in tinytorch" in text
    assert not hasattr(torch, "nonsense") and getattr(torch.nn, "nonsense", 7) == 7


def what_is_not_there_refuses():
    for call in (
        lambda: torch.jit.save(torch.nn.Linear(1, 1), "x"),
        lambda: torch.jit.load("x"),
        lambda: torch.fx.symbolic_trace(torch.nn.Linear(1, 1)),
        lambda: torch.onnx.export(torch.nn.Linear(1, 1), torch.ones(1), "x"),
        lambda: torch.export.export(torch.nn.Linear(1, 1), (torch.ones(1),)),
        lambda: torch.distributed.init_process_group("gloo", rank=0, world_size=2),
        lambda: torch.utils._python_dispatch.TorchDispatchMode(),
        lambda: torch.vmap(torch.func.grad(torch.sin))(torch.ones(2)),
        lambda: torch._vmap_internals._vmap(torch.sin)(torch.ones(2)),
        lambda: torch.func.jvp(torch.sin, (torch.ones(2),), (torch.ones(2),)),
    ):
        raised(NotImplementedError, call)
    raised(RuntimeError, lambda: torch.hub.load("someone/something", "model"))
    raised(TypeError, lambda: torch.zeros(2, dtype=torch.float8_e4m3fn))
    raised(ValueError, lambda: torch.nn.DataParallel(torch.nn.Linear(1, 1), device_ids=[0, 1]))


def one_device_gets_all():
    """PyTorch's parts are for GPUs alone."""
    parts = scatter_gather.scatter((torch.tensor([1.0, 2.0]), {"a": 3}), ["cpu", "cpu"])
    assert str(parts) == "[(tensor([1.]), {'a': 3}), (tensor([2.]), {'a': 3})]"
    assert scatter_gather.gather([x for x, _ in parts], "cpu").tolist() == [1, 2]
    args, named = scatter_gather.scatter_kwargs((torch.ones(1),), {"a": [torch.ones(1)]}, ["cpu"])
    assert str(args) == "((tensor([1.]),),)" and str(named) == "({'a': [tensor([1.])]},)"


def pickles_hold_names_of_tinytorch():
    text = pickle.dumps(torch.nn.Linear(1, 1))
    assert b"tinytorch" in text and b"ctorch" not in text


def a_spawned_process_has_torch_too():
    context = mp.get_context("spawn")
    results, x = context.Queue(), torch.zeros(2).share_memory_()
    process = context.Process(target=child, args=(results, x))
    process.start()
    assert results.get(timeout=200) == (True, "torch.float32")
    process.join(100)
    assert x.tolist() == [1.0, 1.0]


if __name__ == "__main__":
    one_module_each()
    what_is_missing_says_so()
    what_is_not_there_refuses()
    one_device_gets_all()
    pickles_hold_names_of_tinytorch()
    a_spawned_process_has_torch_too()
    print("all is so")
