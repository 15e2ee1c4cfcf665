"""A program for PyTorch: what it prints must be the same with either library under the name torch."""

import importlib.metadata
import importlib.util
import pickle
import sys

import torch
import torch._dynamo
import torch.backends.cudnn
import torch.utils.collect_env
import torch.utils.cpp_extension
import torch.distributed as dist
import torch.distributed.nn as distributed_nn
from torch.distributed.optim import ZeroRedundancyOptimizer
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Variable
from torch import distributions
from torch.autograd.function import Function
from torch.distributions.transforms import _InverseTransform
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.loss import _Loss
from torch.nn.modules.utils import _ntuple, _pair
from torch.nn.parameter import Parameter
from torch.nn.utils import stateless
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.optimizer import Optimizer
from torch.testing import assert_close, make_tensor
from torch.utils import _pytree
from torch.utils.data.dataloader import DataLoader, default_collate
from torch.utils.hooks import RemovableHandle


def tell(*values):
    print(*values)


def error_of(call):
    """The error's kind and text."""
    try:
        call()
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return "no error"


# How things are called.
tell(sys.argv[1:], __name__, torch.__name__)
tell(torch.float32, torch.Size([2, 3]), torch.ones(2).type(), torch.ones(2, dtype=torch.int64).type(), torch.strided)
tell(torch.ones(2, dtype=torch.float64), torch.preserve_format, repr(torch.max(torch.ones(1, 2), 1)))
tell(
    torch.typename(torch.ones(1)), torch.LongTensor([1, 2]), torch.FloatTensor(2, 3).shape, torch.float32 == torch.float
)
tell(isinstance(torch.ones(2), torch.FloatTensor), isinstance(torch.ones(2), torch.cuda.FloatTensor))
tell(str(torch.uint16), torch.uint16.itemsize, torch.float8_e4m3fn.is_floating_point)
tell(torch.__version__ >= "2.0", torch.__version__ >= (1, 13), torch.__version__ < "10", torch.__version__ > "2.13.0a0")
tell(
    torch.__version__.split("+")[0],
    importlib.metadata.version("torch").split("+")[0],
    torch.version.cuda,
    torch.version.hip,
)
tell(importlib.util.find_spec("torch.nothing"), importlib.util.find_spec("torch.nn") is not None)

# Old paths lead to the same classes.
bn, conv, linear = nn.BatchNorm2d(2), nn.Conv2d(1, 2, 3), nn.Linear(2, 2)
tell(isinstance(bn, _BatchNorm), isinstance(conv, _ConvNd), isinstance(nn.MSELoss(), _Loss), Parameter is nn.Parameter)
tell(torch.nn.modules.linear.Linear is nn.Linear, torch.nn.modules.activation.ReLU is nn.ReLU, DataLoader.__name__)
tell(issubclass(torch.optim.Adam, Optimizer), issubclass(torch.optim.lr_scheduler.StepLR, LRScheduler))
tell(isinstance(linear.register_forward_hook(print), RemovableHandle), _pair(3), _ntuple(2)((1, 2)), Function.__name__)
tell(isinstance(torch.ones(1), Variable), default_collate([1, 2]), torch.utils.data.DataLoader is DataLoader)
tell(nn.DataParallel(nn.Linear(2, 2)).state_dict().keys(), F is torch.nn.functional, torch.backends.mps.is_available())
tell(torch.torch is torch, torch.backends.cudnn.benchmark, torch.backends.cuda.matmul.allow_tf32)

# Trees.
tree = {"b": [torch.tensor(1), (2, 3)], "a": None, "c": torch.nn.utils.rnn}
leaves, spec = _pytree.tree_flatten({"x": [1, (2, 3)], "y": {}, "z": 4})
tell(leaves, spec.num_leaves, _pytree.tree_unflatten([k * 2 for k in leaves], spec))
tell(_pytree.tree_map(lambda a, b: a + b, [1, (2,)], [3, (4,)]), _pytree.tree_map_only(int, str, [1, 2.0, {"k": 3}]))
tell([(_pytree.keystr(path), leaf) for path, leaf in _pytree.tree_flatten_with_path({"x": [1, 2]})[0]])
tell(error_of(lambda: _pytree.tree_unflatten([1], spec)).partition(":")[0])
tell(_pytree.tree_all(bool, [1, (0,)]), _pytree.tree_any(bool, [1, (0,)]), spec == _pytree.tree_structure(
    {"x": [5, (6, 7)], "y": {}, "z": 8}))  # fmt: skip

tell(_pytree.tree_flatten(torch.Size([2, 3]))[0], _pytree.tree_map(lambda v: v + 1, torch.max(torch.ones(1, 2), 1)))

# Comparisons.
T = torch.tensor
for actual, expected, options in (
    (T([1.0, 2.0]), T([1.0, 2.0 + 1e-6]), {}),
    (T([1.0, 2.0]), T([1.0, 3.0]), {}),
    (T([1, 2]), T([1, 3]), {}),
    (T([[1.0]]), T([1.0]), {}),
    (T([1.0]), T([1.0], dtype=torch.float64), {}),
    (T([1.0]), T([1.0001], dtype=torch.float64), {"check_dtype": False}),
    (T(1.0), T(2.0), {"rtol": 0.1, "atol": 0.2}),
    ([T(1.0), {"k": 2}], [T(1.0), {"k": 3}], {}),
    ({"a": 1}, {"b": 1}, {}),
    ([1], [1, 2], {}),
    (None, 1, {}),
    (1, 1.0, {}),
    (1.0, 1.1, {}),
    (T([float("nan")]), T([float("nan")]), {}),
    (T([float("nan")]), T([float("nan")]), {"equal_nan": True}),
    (T([1.0]), T([2.0]), {"msg": lambda text: text.upper()}),
    (T([1.0]), T([2.0]), {"rtol": 1.0}),
    (torch.empty(2, 3).t(), torch.empty(3, 2), {"check_stride": True}),
    (T([True]), T([False]), {}),
    ("a", "a", {}),
):
    tell(error_of(lambda: assert_close(actual, expected, **options)))  # noqa: B023 (called at once)
for d in (torch.bool, torch.uint8, torch.int16, torch.float16, torch.float64, torch.complex64):
    made = make_tensor(4, 5, dtype=d, device="cpu", noncontiguous=True)
    parts = torch.view_as_real(made) if d.is_complex else made.double()
    tell(made.dtype, made.shape, made.is_contiguous(), bool((parts.abs() <= 9).all()), made.requires_grad)
tell(error_of(lambda: make_tensor(2, dtype=torch.float32, device="cpu", low=1, high=0)).partition(":")[0])


# Compilers that are not there, and one process.
@torch.jit.script
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@torch.compiler.disable
def thrice(x):
    return x * 3


tell(twice(T([1.0])), thrice(T([1.0])), torch.jit.is_scripting(), torch.compiler.is_compiling())
tell(torch.jit.annotate(int, 3), torch.fx.wrap("len"), torch.onnx.is_in_onnx_export(), torch.accelerator.is_available())
tell(dist.is_initialized(), error_of(dist.get_rank))
store = dist.HashStore()
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
x, out = T([1.0, 2.0]), [torch.zeros(2)]
tell(dist.is_initialized(), dist.get_rank(), dist.get_world_size(), dist.get_backend())
tell(dist.all_reduce(x), x, dist.all_gather(out, x), out, dist.broadcast(x, 0), dist.barrier())
tell(
    dist.all_reduce(x, async_op=True).wait() is not None,
    dist.reduce(x, 0),
    dist.all_gather_into_tensor(out[0], x * 2),
    out,
)
objects = [None]
dist.all_gather_object(objects, {"k": 1})
ddp = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
with ddp.no_sync():
    ddp(torch.ones(1, 2)).sum().backward()
tell(objects, [name for name, p in ddp.named_parameters() if p.grad is not None])
x = torch.ones(2, requires_grad=True)
parts = distributed_nn.all_gather(x) + (distributed_nn.all_reduce(x * 2), distributed_nn.reduce(x, 0))
tell(len(parts), torch.autograd.grad(sum(parts), x, torch.ones(2)), distributed_nn.functional.gather(x)[0].detach())
parts = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(3))
sharded = ZeroRedundancyOptimizer(parts[:1], torch.optim.SGD, lr=0.5)
sharded.add_param_group({"params": parts[1:], "lr": 0.25})
sum((part**2).sum() for part in parts).backward()
sharded.step()
tell([part.tolist() for part in parts], isinstance(sharded, Optimizer), error_of(sharded.state_dict)[:60])
sharded.consolidate_state_dict()
tell([group["lr"] for group in sharded.state_dict()["param_groups"]])
dist.destroy_process_group()
tell(dist.is_initialized(), error_of(torch.hub._get_torch_home) == "no error")

# Lists of tensors.
tensors = [torch.ones(2), torch.full((1,), 4.0)]
tell(torch._foreach_add(tensors, 1), torch._foreach_sqrt(tensors), torch._foreach_mul(tensors, tensors))
torch._foreach_addcmul_(tensors, tensors, tensors, value=2)
tell(tensors, torch._foreach_norm(tensors), torch._foreach_maximum(tensors, [2.0, 5.0]), torch._foreach_pow(tensors, 2))
torch._foreach_lerp_(tensors, [torch.zeros(2), torch.zeros(1)], 0.5)
torch._foreach_zero_(tensors[:1])
tell(tensors, error_of(lambda: torch._foreach_add([], 1)).partition(":")[0])

# What is compiled gives what was given to it.
model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
fast = torch.compile(model, backend="eager")
tell(list(fast.state_dict())[:1], torch.equal(fast(torch.ones(2, 2)), model(torch.ones(2, 2))), fast._orig_mod is model)
tell(torch.compile(lambda v: v + 1, backend="eager")(T([1.0])), isinstance(fast, nn.Module))
again = pickle.loads(pickle.dumps(model))
tell(torch.equal(again[0].weight, model[0].weight), type(again).__name__)


# An operator of the program's own, and what subclasses of layers do.
@torch.library.custom_op("program::cube", mutates_args=())
def cube(x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    return x**3 * scale


cube.register_fake(lambda x, scale=1.0: torch.empty_like(x))
torch.library.register_autograd(
    "program::cube",
    lambda ctx, grad: (grad * 3 * ctx.saved_tensors[0] ** 2 * ctx.scale, None),
    setup_context=lambda ctx, inputs, output: (ctx.save_for_backward(inputs[0]), setattr(ctx, "scale", inputs[1])),
)
x = T([2.0], requires_grad=True)
torch.ops.program.cube(x).backward()
tell(x.grad, cube(T([3.0]), 2.0), hasattr(torch.ops.program, "nothing"))


class Mine(nn.Linear):
    def to(self, device):
        return self.cpu() if device == "cpu" else super().to(device)


tell(type(Mine(2, 2).to("cpu")).__name__, type(Mine(2, 2).float().double()).__name__)
lstm, x = nn.LSTM(2, 3), torch.ones(4, 1, 2)
expected = lstm(x)[0]
lstm._flat_weights = [w * 1 for w in lstm._flat_weights]
tell(torch.equal(lstm(x)[0], expected), lstm(x)[0].requires_grad)
lstm._flat_weights = [w * 0 for w in lstm._flat_weights]
tell(lstm(x)[0].abs().sum().item())
lstm._flat_weights = list(lstm.parameters())
tell(torch.equal(lstm(x)[0], expected))
tell((torch.eye(2) + torch.sparse_coo_tensor([[0], [1]], [3], (2, 2))).tolist())
tell(nn.Linear(2, 2).to("cpu").share_memory().weight.is_shared(), torch.finfo(torch.float8_e4m3fn).max)
tell(torch.device("meta"), torch.device("mps:0").type, torch.device("cpu") == torch.device("meta"))

# Sparse tensors in the older way, and numbers from old files.
places = T([[0, 1], [1, 0]])
for sparse in (torch.sparse.FloatTensor(places, T([1.0, 2.0]), torch.Size([2, 3])), torch.sparse.DoubleTensor(2, 3)):
    tell(sparse.to_dense(), sparse.mT.to_dense(), torch.dsmm(sparse, torch.ones(3, 1, dtype=sparse.dtype)))


class Scalar(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = nn.Parameter(T(1.0))


tell(
    Scalar().load_state_dict({"k": T([2.0])}),
    error_of(lambda: Scalar().load_state_dict({"k": torch.ones(2)})) != "no error",
)

# Further modules at their paths.
tell(torch.utils.collect_env.run("echo yes; exit 3"), torch.utils.collect_env.run(["echo", "no"])[:2])
future = torch.futures.Future()
tell(isinstance(future, torch.Future), len(torch._dynamo.list_backends()) > 0)
following = future.then(lambda f: f.value() + 1)
tell(future.done(), error_of(lambda: future.set_exception(1)).partition(":")[0])
future.set_result(3)
failed = future.then(lambda f: 1 / 0)
tell(
    future.wait(), following.wait(), torch.futures.wait_all([future, following]), torch.futures.Future[int] is not None
)
tell(error_of(failed.wait).partition(":")[0], error_of(lambda: future.set_result(4)).partition(":")[0])
tell(
    len(torch.futures.collect_all([]).wait()), torch.functional.norm(T([3.0, 4.0])), torch.functional.F.relu(T([-1.0]))
)
layer = nn.Linear(2, 1, bias=False)
with stateless._reparametrize_module(layer, {"weight": torch.ones(1, 2)}):
    tell(layer(torch.ones(1, 2)))
tell(
    torch.equal(layer.weight, layer.weight * 1), isinstance(distributions.AffineTransform(1, 2).inv, _InverseTransform)
)

# What programs import from inner modules.
from torch import _VF, _custom_ops  # noqa: E402
from torch._utils import ExceptionWrapper  # noqa: E402
from torch.autograd.functional import (  # noqa: E402
    _as_tuple,
    _construct_standard_basis_for,
    _grad_postprocess,
    _tuple_postprocess,
)
from torch.cpu.amp.grad_scaler import GradScaler as CPUScaler  # noqa: E402
from torch.cuda._utils import _get_device_index  # noqa: E402
from torch.cuda.amp.autocast_mode import autocast  # noqa: E402
from torch.cuda.amp.grad_scaler import GradScaler  # noqa: E402
from torch.nn import _reduction as _Reduction  # noqa: E402
from torch.nn.functional import _canonical_mask, _in_projection_packed, handle_torch_function  # noqa: E402
from torch.nn.init import _calculate_correct_fan, _no_grad_trunc_normal_  # noqa: E402
from torch.nn.modules.rnn import apply_permutation  # noqa: E402
from torch.nn.modules.transformer import _get_activation_fn  # noqa: E402
from torch.nn.utils.spectral_norm import SpectralNorm, spectral_norm  # noqa: E402
from torch.nn.utils.weight_norm import WeightNorm  # noqa: E402
from torch.optim.adamw import AdamW  # noqa: E402
from torch.optim.lbfgs import _cubic_interpolate, _strong_wolfe  # noqa: E402
from torch.overrides import has_torch_function_unary, has_torch_function_variadic  # noqa: E402
from torch.utils._contextlib import _DecoratorContextManager  # noqa: E402
from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype  # noqa: E402

tell([c.__name__ for c in (CPUScaler, autocast, GradScaler, SpectralNorm, WeightNorm, AdamW, ExceptionWrapper)])
tell(_VF.relu(T([-1.0, 2.0])), torch._C._nn.gelu(T([0.0])), torch._C._TensorBase.__name__ is not None)
tell([_Reduction.get_enum(word) for word in ("none", "mean", "sum")], error_of(lambda: _Reduction.get_enum("all")))
tell(_Reduction.legacy_get_string(None, False, emit_warning=False), _Reduction.legacy_get_enum(False, None, False))
x = torch.arange(6.0).reshape(2, 3)
w, b = torch.arange(27.0).reshape(9, 3), torch.arange(9.0)
tell([[t.tolist() for t in _in_projection_packed(*qkv, w, b)] for qkv in ((x, x, x), (x, x + 1, x + 1), (x, x, x + 2))])
mask = T([True, False])
tell(_canonical_mask(mask, "a", None, "b", torch.float32), _canonical_mask(x, "a", torch.float32, "b", torch.float32))
tell(error_of(lambda: _canonical_mask(T([1]), "a", None, "b", torch.float32)).partition(":")[0])
tell([_calculate_correct_fan(w, mode) for mode in ("fan_in", "fan_out")], handle_torch_function is not None)
tell(_no_grad_trunc_normal_(torch.empty(50), 0.0, 1.0, -1.0, 1.0).abs().max() <= 1, _get_device_index(1))
tell(
    apply_permutation(x, T([2, 0]), 1), _get_activation_fn("gelu") is F.gelu, error_of(lambda: _get_activation_fn("no"))
)
tell(has_torch_function_unary(x), has_torch_function_variadic(x, 1, None), F.GRID_SAMPLE_PADDING_MODES["border"])
tell([name for name, _ in torch.nn.utils.spectral_norm(nn.Linear(2, 2)).named_parameters()], spectral_norm.__name__)
groups = _group_tensors_by_device_and_dtype([[x, x.double(), x + 1], [w, w, b]], with_indices=True)
tell([(str(d), str(t), [len(part) for part in lists], at) for (d, t), (lists, at) in sorted(groups.items(), key=str)])


class Counting(_DecoratorContextManager):
    entered = 0

    def __enter__(self):
        Counting.entered += 1

    def __exit__(self, *exc):
        pass


Counting()(abs)(-1), Counting()(abs)(-2)
tell(Counting.entered, error_of(lambda: torch.utils.cpp_extension.load_inline()).partition(":")[0] != "no error")

# The CPU as a device.
cpu = torch.cpu
tell(cpu.is_available(), cpu.device_count(), cpu.current_device(), cpu.synchronize(), cpu.is_initialized())
with cpu.stream(cpu.current_stream()) as inside:
    event = cpu.current_stream().record_event() if hasattr(cpu.Stream, "record_event") else None
chosen, first = cpu.Stream(), cpu.current_stream()
with cpu.stream(chosen), cpu.stream(None):
    tell(cpu.current_stream() is chosen)
tell(cpu.current_stream() is first)
tell(inside, cpu.Stream().wait_stream(cpu.current_stream()), cpu.Event().query(), cpu.set_device("cpu"))
tell(issubclass(torch.AcceleratorError, RuntimeError), torch.cuda.AcceleratorError is torch.AcceleratorError)
if not torch.cuda.is_available():
    tell(torch.cuda.is_tf32_supported(), torch.cuda.memory_stats_as_nested_dict(), torch.cuda.get_gencode_flags())

keys = torch._C.DispatchKey
autocast_keys = torch._C.DispatchKeySet(keys.AutocastCPU) | torch._C.DispatchKeySet(keys.AutocastCUDA)
with torch._C._ExcludeDispatchKeyGuard(autocast_keys):
    tell(autocast_keys.has(keys.AutocastCPU), autocast_keys.has(keys.CPU), torch.ones(2) + 1)
tell(all(map(callable, (_custom_ops.custom_op, _custom_ops.impl, _custom_ops.impl_abstract))))
pair = torch.ones(2), torch.ones(3, dtype=torch.float64)
tell(_as_tuple(pair[0], "x", "f"), _as_tuple(pair, "x", "f"), _as_tuple([1]), _as_tuple(2))
tell(_construct_standard_basis_for(pair, (2, 3)))
tell(error_of(lambda: _as_tuple(3, "x", "f"))[:9], error_of(lambda: _as_tuple((3,), "x", "f"))[:9])
x = torch.ones(1, requires_grad=True)
tell([_grad_postprocess(((x * 2,),), flag)[0][0].requires_grad for flag in (False, True)])
tell([_tuple_postprocess(((1,),), pair) for pair in ((True, True), (True, False), (False, True), (False, False))])


def far(x, t, d):
    """A loss with several minima, and its gradient."""
    x = (x + t * d).detach().requires_grad_()
    loss = ((x**2 - 1) ** 2 + x.sin()).sum()
    loss.backward()
    return loss.item(), x.grad


for bounds in (None, (0.8, 0.9)):
    tell(f"{float(_cubic_interpolate(0.0, 1.0, T(-1.0), 1.0, 0.6, T(0.5), bounds)):.4f}")
x = T([2.0, -1.5, 0.3])
loss, grad = far(x, 0.0, x)
for t in (0.001, 0.01, 0.1, 1.0, 10.0):
    loss_there, grad_there, t, calls = _strong_wolfe(far, x, t, -grad, loss, grad, -grad.dot(grad))
    tell(f"{loss_there:.3f} {float(t):.4f} {calls}", [f"{g:.2f}" for g in grad_there.tolist()])
