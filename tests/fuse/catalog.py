"""What a random program may say: the public spellings of the operators that fused mode records, and of some that it
does not. ``{x}``, ``{y}``, ``{z}`` stand for operands that broadcast together, ``{d}`` for a dimension of x."""

import itertools

from tinytorch import Tensor, special
from tinytorch.scalar import ELEMENTWISE
from tinytorch.scalar import REDUCTIONS as REDUCTIONS_OF_C
from tinytorch.tensor import FUNCTIONS


def words(text):
    return text.split()


FLOATS = ("float32", "float64", "float16", "bfloat16")
INTS = ("int64", "int32", "int16", "int8", "uint8")
DTYPES = (*FLOATS, *INTS, "bool")

# ---- Elementwise, by the scalar function each comes down to: the keys are the names of kernels/scalar/ops.h.

_SAME_NAME = [op.name for op in ELEMENTWISE if op.arity == 1 and op.name in FUNCTIONS]
_IN_PLACE = frozenset(name for name in _SAME_NAME if hasattr(Tensor, f"{name}_"))
UNARY = {name: [f"torch.{name}({{x}})", f"{{x}}.{name}()"] for name in _SAME_NAME} | {
    "logsigmoid": ["F.logsigmoid({x})"],
    "softplus": ["F.softplus({x})"],
    "silu": ["F.silu({x})"],
    "gelu": ["F.gelu({x})"],
    "gelu_tanh": ["F.gelu({x}, approximate='tanh')"],
    "hardswish": ["F.hardswish({x})"],
    "hardsigmoid": ["F.hardsigmoid({x})"],
    "mish": ["F.mish({x})"],
    "selu": ["torch.selu({x})"],
    "zeta": ["torch.polygamma(2, torch.clamp({x}, -9, 50))"],  # far below 0 its series is long
}
UNARY |= {
    op.name: [f"torch.special.{op.name}({{x}})"]
    for op in ELEMENTWISE
    if op.arity == 1 and op.name not in UNARY and hasattr(special, op.name)
}
UNARY["neg"] += ["-{x}"]
UNARY["abs"] += ["abs({x})"]
UNARY["bitwise_not"] += ["~{x}"]
UNARY["round"] += ["torch.round({x}, decimals=1)"]
# Made of several.
MORE_UNARY = (
    "F.hardtanh({x})",
    "F.relu6({x})",
    "torch.deg2rad({x})",
    "torch.logit({x}, 0.1)",
    "torch.nan_to_num({x}, 0.5, 2.0, -2.0)",
)

_BINARY_NAMES = [op.name for op in ELEMENTWISE if op.arity == 2 and op.name in FUNCTIONS]
BINARY = {name: [f"torch.{name}({{x}}, {{y}})"] for name in _BINARY_NAMES}
BINARY |= {
    op.name: [f"torch.special.{op.name}({{x}}, torch.clamp({{y}}, -3, 70))"]
    for op in ELEMENTWISE
    if op.arity == 2 and op.name not in BINARY and op.name != "zeta" and hasattr(special, op.name)
}
for _name, _symbol in zip(
    words(
        "add sub mul div pow remainder floor_divide eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor "
        "bitwise_left_shift bitwise_right_shift"
    ),
    words("+ - * / ** % // == != < <= > >= & | ^ << >>"),
):
    BINARY[_name] += [f"{{x}} {_symbol} {{y}}", f"{{y}} {_symbol} {{x}}"]
BINARY["smooth_l1"] = ["F.smooth_l1_loss({x}, {y}, reduction='none', beta=0.75)"]
BINARY["huber"] = ["F.huber_loss({x}, {y}, reduction='none', delta=1.5)"]
BINARY["leaky_relu"] = ["F.leaky_relu({x}, 0.1)"]
BINARY["elu"] = ["F.elu({x})", "F.elu({x}, 0.7)"]
BINARY["celu"] = ["F.celu({x})", "F.celu({x}, 0.7)"]
BINARY["hardshrink"] = ["F.hardshrink({x}, 0.25)", "{x}.hardshrink()"]
BINARY["softshrink"] = ["F.softshrink({x}, 0.25)"]
BINARY["gated"] = ["F.glu(torch.stack(torch.broadcast_tensors({x}, {y})), 0).squeeze(0)"]
BINARY["squared_difference"] = ["F.mse_loss({x}, {y}, reduction='none')"]
BINARY["trunc_divide"] = ["torch.div({x}, {y}, rounding_mode='trunc')"]
BINARY["add"] += ["torch.add({x}, {y}, alpha=2)", "{x}.add({y}, alpha=0.5)"]
BINARY["sub"] += ["torch.sub({x}, {y}, alpha=3)", "torch.rsub({x}, {y})"]
BINARY["floor_divide"] += ["torch.div({x}, {y}, rounding_mode='floor')"]
BINARY["maximum"] += ["torch.clamp({x}, {y})"]
BINARY["minimum"] += ["torch.clamp({x}, None, {y})"]

TERNARY = {
    "where": [
        "torch.where({x} > 0, {y}, {z})",
        "torch.where({x} != {y}, {x}, {z})",
        "{x}.masked_fill({y} > 0, 0.5)",
        "{x}.masked_fill({x} == {y}, {k})",
    ],
    "clamp": ["torch.clamp({x}, {y}, {z})", "torch.clamp({x}, {k}, 2)", "{x}.clamp(-0.5, 0.75)"],
    "lerp": ["torch.lerp({x}, {y}, {z})", "{x}.lerp({y}, 0.3)"],
    "addcmul": ["torch.addcmul({x}, {y}, {z})", "torch.addcmul({x}, {y}, {z}, value=0.5)"],
    "threshold": ["F.threshold({x}, 0.5, 2.0)"],
    "softplus_below": ["F.softplus({x}, beta=2.0, threshold=3.0)"],
    "addcdiv": ["torch.addcdiv({x}, {y}, {z})", "torch.addcdiv({x}, {y}, {z}, value=-2.0)"],
}
# What other operators are computed by: derivatives, losses without one, and the power 3.
HIDDEN = {"cube", "masked_scale", "smooth_l1_between", "huber_between"} | {
    op.name for op in ELEMENTWISE if op.name.endswith(("_backward", "_slope", "_grad"))
}

CASTS = (
    *(f"{{x}}.to(torch.{name})" for name in DTYPES),
    "{x}.float()",
    "{x}.long()",
    "{x}.type_as(torch.ones(1))",
)

# ---- New tensors of x's shape.

FRESH = (
    "{x}.clone()",
    "{x}.contiguous()",
    "torch.clone({x}, memory_format=torch.contiguous_format)",
    "torch.zeros_like({x})",
    "torch.ones_like({x})",
    "torch.full_like({x}, {k})",
    "{x}.new_full({x}.shape, 2)",
    "torch.empty_like({x}).fill_({k})",
    "torch.empty_like({x}).copy_({x})",
    "torch.zeros({x}.shape)",
    "torch.full({x}.shape, 0.5, dtype=torch.float64)",
    "torch.fill({x}, {k})",
    "torch.arange({x}.numel()).reshape({x}.shape)",
)
RANDOM = (
    "torch.rand({x}.shape)",
    "torch.randn({x}.shape, dtype=torch.float64)",
    "torch.rand_like({x}.float())",
    "torch.randint(-3, 4, {x}.shape)",
    "F.dropout({x}.float(), 0.4)",
    "torch.bernoulli(torch.full({x}.shape, 0.3))",
)

# ---- Writes.

RANDOM_WRITES = ("{x}.uniform_()", "{x}.normal_()", "{x}.bernoulli_(0.25)", "{x}.exponential_()")
WRITES = (
    *(f"{{x}}.{name}_()" for name in sorted(_IN_PLACE)),
    *(f"{{x}}.{name}_({{y}})" for name in _BINARY_NAMES if hasattr(Tensor, f"{name}_")),
    "{x} += {y}",
    "{x} -= {y}",
    "{x} *= {y}",
    "{x} /= {y}",
    "{x}.add_({y}, alpha=2)",
    "{x}.fill_({k})",
    "{x}.zero_()",
    "{x}.copy_({y})",
    "{x}.copy_({y} * 2)",
    "{x}.masked_fill_({y} > 0, {k})",
    "{x}.clamp_(-0.5, 0.5)",
    "{x}.clamp_({y}, None)",
    "{x}.lerp_({y}, 0.25)",
    "{x}.addcmul_({y}, {z})",
    "{x}.addcdiv_({y}, {z}, value=0.5)",
    "F.relu({x}, inplace=True)",
    "F.elu({x}, inplace=True)",
    "F.hardtanh({x}, inplace=True)",
    "F.threshold({x}, 0.5, 2, inplace=True)",
    "{x}.detach().mul_({y})",
    "{x}.data.add_({y})",
    "{x}.detach_()",
    "torch.add({x}, {y}, out={x})",
    "torch.exp({y}, out={x})",
    "torch.mul({y}, {z}, out={x})",
)
# Through views: {i} is a valid first index.
PARTS = (
    "{x}[...] = {y}",
    "{x}[{i}] = {k}",
    "{x}[1:] = {k}",
    "{x}[::2] *= 2",
    "{x}[..., 0] = {k}",
    "{x}[..., 1:] += 0.5",
    "{x}[{i}] = {x}[0]",
    "{x}[{x} > 0.5] = {k}",
    "{x}[..., ::2].exp_()",
    "{x}.select(0, {i}).mul_(0.5)",
    "{x}.narrow(0, 0, 1).copy_({k} * {x}[:1])",
    "{x}.view(-1)[1:].sub_(1)",
    "{x}.unsqueeze(0).add_({y})",
    "{x}.transpose(0, -1).add_(1)",
    "{x}.transpose(0, -1)[0].zero_()",
    "{x}.diagonal().fill_({k})",
    # Operands that overlap what is written.
    "{x}[1:].add_({x}[:-1])",
    "{x}[1:].copy_({x}[:-1])",
    "{x}[:-1] = {x}[1:]",
    "{x}[..., 1:] *= {x}[..., :-1]",
    "{x}.copy_({x}.flip(0))",
    "{x} += {x}[0]",
    "{x} *= {x}.sum()",
)

# ---- Views.

VIEWS = (
    "{x}[...]",
    "{x}.detach()",
    "{x}.view_as({x})",
    "{x}.unsqueeze({d})",
    "{x}[None]",
    "{x}.expand(2, *{x}.shape)",
    "{x}.reshape(-1)",
    "{x}.view(-1)",
    "{x}.squeeze()",
    "{x}.flatten()",
)
VIEWS_OF_DIMENSIONS = (
    "{x}[{i}]",
    "{x}[1:]",
    "{x}[..., ::2]",
    "{x}[..., -1]",
    "{x}[:, None]",
    "{x}.select({d}, 0)",
    "{x}.narrow({d}, 0, 1)",
    "{x}.transpose({d}, -1)",
    "{x}.permute(*reversed(range({x}.ndim)))",
    "{x}.movedim({d}, 0)",
    "{x}.unbind({d})[-1]",
    "{x}.chunk(2, {d})[0]",
    "{x}.diagonal()",
    "{x}.unfold({d}, 1, 2)",
    "{x}.mT",
)

# ---- Reductions, of everything and along a dimension; and what is made of them.

_BY_REDUCER = [name for name in REDUCTIONS_OF_C if name in FUNCTIONS]
_REDUCTIONS = (*_BY_REDUCER, *words("norm var std argmax"))
REDUCTIONS = (
    *(f"{{x}}.{name}()" for name in _REDUCTIONS),
    "{x}.sum(dtype=torch.float64)",
    "{x}.logsumexp(tuple(range({x}.ndim)))",
    "torch.var({x}, correction=0)",
    "torch.norm({x}, 1)",
    "torch.norm({x}, inf)",
    "F.mse_loss({x}, {y})",
    "F.smooth_l1_loss({x}, {y})",
    "F.binary_cross_entropy_with_logits({x}, torch.sigmoid({y}))",
    "torch.dist({x}, {y})",
)
_OTHERS = {"prod", "count_nonzero", "max", "min"}  # along one dimension, or without keepdim, or with indices
_ALONG = (*(name for name in _BY_REDUCER if name not in _OTHERS), *words("var std logsumexp"))
ROWS = (
    *(f"{{x}}.{name}({{d}})" for name in (*_ALONG, "prod", "argmax", "count_nonzero")),
    *(f"{{x}}.{name}({{d}}, keepdim=True)" for name in (*_ALONG, "prod")),
    *(f"{{x}}.{name}((0, -1))" for name in ("sum", "mean", "amax", "var")),
    "{x}.norm(dim={d})",
    "{x}.norm(dim={d}, keepdim=True)",
    "{x}.max({d}).values",
    "{x}.min({d}).indices",
    "torch.var_mean({x}, {d})[1]",
    "{x}.sum_to_size({x}.shape[-1:])",
    # Rows worked on again.
    "torch.softmax({x}, {d})",
    "torch.log_softmax({x}, {d})",
    "F.layer_norm({x}, {x}.shape[-1:])",
    "F.layer_norm({x}, {x}.shape[-1:], {x}.detach()[(0,) * ({x}.ndim - 1)])",
    "F.normalize({x}, dim={d})",
    "{x} - {x}.mean({d}, keepdim=True)",
    "({x} - {x}.amax({d}, keepdim=True)).exp().sum({d})",
    "{x} / ({x} * {x}).sum({d}, keepdim=True).sqrt()",
    "({x} * {y}).sum({d})",
    "({x} - {x}.mean()) * {x}.std()",
    "{x}.sum({d}).exp() + 1",
)

# ---- What is not fused.

BARRIERS = (
    "{x}.sort({d}).values",
    "{x}.argsort({d})",
    "{x}[[0, -1]]",
    "{x}[{x} > 0]",
    "{x}.index_select({d}, torch.tensor([0, 0]))",
    "{x}.gather({d}, {x}.argsort({d}))",
    "torch.cat([{x}, {x} * 2], {d})",
    "torch.stack([{x}, {x}])",
    "{x}.cumsum({d})",
    "{x}.flip({d})",
    "{x}.roll(1, {d})",
    "{x}.topk(1, {d}).values",
    "{x}.tril()",
    "{x} @ {x}.mT",
    "{x}.mT @ {y}",
    "F.linear({x}, {y})",
    "torch.einsum('...i->...', {x})",
    "{x}.unique()",
    "{x}.nonzero()",
    "{x}.index_add(0, torch.tensor([0]), {x}[:1])",
    "{x}.repeat_interleave(2, {d})",
    "{x}.median()",
    "F.cross_entropy({x}, {x}.argmax(-1))",
)

# ---- Values taken out: the program goes on with a Python object.

READS = (
    "{x}.sum().item()",
    "bool(({x} > 0).any())",
    "{x}.flatten()[:3].tolist()",
    "repr({x})",
    "len({x}.flatten())",
    "[float(t) for t in {x}.flatten()[:2]]",
    "torch.equal({x}, {y})",
    "f'{{{x}.sum():.3f}}'",
    "{x}.sum() > 0 and 1",
    "int({x}.argmax())",
    "({x}.shape, {x}.stride(), {x}.dtype, {x}.is_contiguous(), {x}._version, {x}.requires_grad)",
)
NUMPY_WRITES = ("{n}[...] = 2", "{n} += 1", "{n}[..., :1] = 3")

# ---- In the place of an operand: temporaries without a name.

WRAPPED = ("{x}.tanh()", "({x} * 2)", "({x} + {x})", "({x} - 0.5)", "{x}.abs()", "({x} > 0)", "{x}.clone()", "{x}[...]")

NUMBERS = words("2 0.5 -1.5 3 0 True -2 1e-3 0.0 -1 1e30 inf -inf nan 255 2**40")


def elementwise():
    """(scalar function, template) of every spelling."""
    for table in (UNARY, BINARY, TERNARY):
        for name, spellings in table.items():
            yield from zip(itertools.repeat(name), spellings)
