"""Creating tensors, casting them, and the dtype of what two of them give."""

import math
import pickle

import numpy as np
import pytest
from compare import DTYPES, FLOATS, INTS, assert_same, dtype_name

import tinytorch

# ---- Creation.

CREATION = {
    "tensor of ints": lambda m: m.tensor([1, 2, 3]),
    "tensor of floats": lambda m: m.tensor([[1.0, 2], [3, 4]]),
    "tensor of bools": lambda m: m.tensor([True, False]),
    "tensor of mixed numbers": lambda m: m.tensor([True, 2, 3.5]),
    "tensor of a scalar": lambda m: m.tensor(3.0),
    "tensor of an int": lambda m: m.tensor(2**40),
    "tensor of nothing": lambda m: m.tensor([]),
    "tensor of empty rows": lambda m: m.tensor([[], []]),
    "tensor of an array": lambda m: m.tensor(np.arange(3, dtype=np.int16)),
    "tensor of a NumPy scalar": lambda m: m.tensor(np.float32(1.5)),
    "tensor of tensors": lambda m: m.tensor([m.tensor(1.0), m.tensor(2.0)]),
    "tensor of a list of arrays": lambda m: m.tensor([np.float64(1.0), np.float64(2.0)]),
    "tensor with a dtype": lambda m: m.tensor([1.7, -1.7], dtype=m.int32),
    "tensor of inf": lambda m: m.tensor([math.inf, -math.inf, math.nan]),
    "as_tensor": lambda m: m.as_tensor([1, 2], dtype=m.float64),
    "zeros": lambda m: m.zeros(2, 3),
    "zeros of a tuple": lambda m: m.zeros((2, 3), dtype=m.int8),
    "zeros 0-d": lambda m: m.zeros(()),
    "zeros empty": lambda m: m.zeros(0, 3),
    "ones": lambda m: m.ones(2, dtype=m.bool),
    "full of ints": lambda m: m.full((2, 2), 7),
    "full of floats": lambda m: m.full((2,), 1.5),
    "full of bools": lambda m: m.full((2,), True),
    "full with a dtype": lambda m: m.full((2,), 3, dtype=m.bfloat16),
    "arange": lambda m: m.arange(5),
    "arange from": lambda m: m.arange(2, 7),
    "arange step": lambda m: m.arange(1, 8, 3),
    "arange down": lambda m: m.arange(5, 0, -2),
    "arange of floats": lambda m: m.arange(0, 1, 0.3),
    "arange of nothing": lambda m: m.arange(3, 3),
    "arange with a dtype": lambda m: m.arange(3, dtype=m.float16),
    "arange past the end": lambda m: m.arange(0.0, 2.1, 0.7),
    "linspace": lambda m: m.linspace(0, 1, 5),
    "linspace of one": lambda m: m.linspace(3, 9, 1),
    "linspace of none": lambda m: m.linspace(3, 9, 0),
    "arange of int32 from fractions": lambda m: m.arange(-0.9, 2.1, 2.0, dtype=m.int32),
    "arange of int32 by a fraction": lambda m: m.arange(1, 3.0, 1 / 3, dtype=m.int32),
    "arange of uint8 to a fraction": lambda m: m.arange(0, 2.5, 1, dtype=m.uint8),
    "arange of int64 to a fraction": lambda m: m.arange(0, 2.5, 1, dtype=m.int64),
    "linspace of integers": lambda m: m.linspace(4.3, 50, 50, dtype=m.int64),
    "logspace of integers": lambda m: m.logspace(4.3, -3, 2, 3.0, dtype=m.int64),
    "linspace down": lambda m: m.linspace(1, -1, 4, dtype=m.float64),
    "eye": lambda m: m.eye(3),
    "eye of two sizes": lambda m: m.eye(2, 4, dtype=m.int64),
    "zeros_like": lambda m: m.zeros_like(m.ones(2, 3, dtype=m.int16)),
    "ones_like with a dtype": lambda m: m.ones_like(m.zeros(2), dtype=m.float64),
    "full_like": lambda m: m.full_like(m.zeros(2, dtype=m.int32), 4),
    "new_zeros": lambda m: m.ones(2, dtype=m.float64).new_zeros(3),
    "new_full": lambda m: m.ones(2).new_full((2,), 3),
    "new_tensor": lambda m: m.ones(2, dtype=m.float64).new_tensor([1, 2]),
}


@pytest.mark.parametrize("name", CREATION)
def test_creation(torch, name):
    assert_same(CREATION[name](tinytorch), CREATION[name](torch))


@pytest.mark.parametrize("dtype", [*FLOATS, "int32"])
def test_linspace_has_pytorchs_bits(torch, dtype):
    """Programs take differences of its numbers: one unit in the last place is much of them."""
    for n in (1, 2, 3, 7, 10, 64, 128, 1001):
        for start, end in ((0, 1), (-1.2, 1.2), (0.0001, 0.02), (3.7, -11.3), (5, 70)):
            ours, theirs = (m.linspace(start, end, n, dtype=getattr(m, dtype)) for m in (tinytorch, torch))
            assert ours.tolist() == theirs.tolist(), (start, end, n)
    if dtype == "float64":
        ours, theirs = (m.logspace(-3, 2.3, 50, dtype=m.float64) for m in (tinytorch, torch))
        assert ours.tolist() == theirs.tolist()


def test_empty():
    x = tinytorch.empty(2, 3, dtype=tinytorch.int16)
    assert (tuple(x.shape), dtype_name(x)) == ((2, 3), "int16")
    assert tinytorch.empty_like(x.t()).stride() == x.t().stride(), "empty_like keeps the layout of a dense tensor"
    assert (
        not tinytorch.empty(2, requires_grad=False).requires_grad
        and tinytorch.ones(2, requires_grad=True).requires_grad
    )


LAST = [(2, 3, 5, 7), (1, 3, 5, 7), (2, 1, 5, 7), (0, 3, 5, 7), (2, 3, 5)]


@pytest.mark.parametrize("shape", LAST, ids=str)
def test_formats(torch, shape):
    """Strides of new tensors in a format, and the order of dimensions that they leave open."""

    def run(m):
        found = []
        for form in (None, m.contiguous_format, m.channels_last, m.preserve_format):
            for make in (m.empty, lambda s, memory_format: m.empty_like(m.ones(s), memory_format=memory_format)):
                try:
                    t = make(shape, memory_format=form)
                except RuntimeError:
                    found.append("refused")
                    continue
                found.append(t.stride())
                for check in (False, True, [], [m.contiguous_format], [m.contiguous_format, m.channels_last], "no"):
                    try:
                        found.append(t.dim_order(ambiguity_check=check))
                    except (RuntimeError, TypeError) as exc:
                        found.append(type(exc))
        return found

    assert run(tinytorch) == run(torch)


@pytest.mark.parametrize("dtype", ["int64", "float64", "complex64"])
@pytest.mark.parametrize("name", ["as_strided", "diagonal", "select", "slice"])
def test_scattered_parts_are_cast(torch, name, dtype):
    places = {"as_strided": ((3,), (4,)), "diagonal": (), "select": (0, 1), "slice": (1, 0, 1)}[name]

    def run(m):
        x, part = m.zeros(3, 3, requires_grad=True), m.ones(3, dtype=getattr(m, dtype))
        part = (part[:, None] if name == "slice" else part).clone()
        part = part.requires_grad_() if dtype == "float64" else part
        y = getattr(m, f"{name}_scatter")(x, part, *places)
        y.backward(m.arange(9.0).reshape(3, 3))
        return y.tolist(), str(y.dtype).rpartition(".")[2], part.grad is not None and part.grad.tolist()

    assert run(tinytorch) == run(torch)


def test_default_dtype():
    assert tinytorch.get_default_dtype() is tinytorch.float32
    tinytorch.set_default_dtype(tinytorch.float64)
    try:
        assert [
            dtype_name(t)
            for t in (tinytorch.zeros(1), tinytorch.tensor([1.0]), tinytorch.rand(1), tinytorch.arange(3) / 2)
        ] == ["float64"] * 4
    finally:
        tinytorch.set_default_dtype(tinytorch.float32)


def test_tensor_copies_and_as_tensor_shares():
    array = np.zeros(3)
    copied, shared = tinytorch.tensor(array), tinytorch.as_tensor(array)
    array[0] = 5
    assert copied.tolist() == [0, 0, 0] and shared.tolist() == [5, 0, 0]
    x = tinytorch.ones(2)
    assert tinytorch.as_tensor(x) is x


@pytest.mark.parametrize("name", DTYPES)
def test_dtype_facts(torch, name):
    ours, theirs = getattr(tinytorch, name), getattr(torch, name)
    assert (ours.is_floating_point, ours.itemsize) == (theirs.is_floating_point, theirs.itemsize)
    assert repr(ours).rpartition(".")[2] == name
    assert pickle.loads(pickle.dumps(ours)) is ours
    info = (lambda m: m.finfo(getattr(m, name))) if ours.is_floating_point else (lambda m: m.iinfo(getattr(m, name)))
    if name != "bool":
        assert (info(tinytorch).max, info(tinytorch).min) == (info(torch).max, info(torch).min)
    if ours.is_floating_point:
        assert (info(tinytorch).eps, info(tinytorch).tiny) == (info(torch).eps, info(torch).tiny)


def test_dtype_aliases():
    for alias, name in {
        "float": "float32",
        "double": "float64",
        "half": "float16",
        "long": "int64",
        "int": "int32",
        "short": "int16",
    }.items():
        assert getattr(tinytorch, alias) is getattr(tinytorch, name)


# ---- Casts: every dtype into every other, at the ends of the range.

VALUES = {
    "float": [0.0, -0.0, 0.4, -1.6, 2.5, 100.7, 1e-8],
    "int": [0, 1, 5, 100, 127],
    "bool": [True, False],
}


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_cast(torch, source, target):
    kind = "float" if source in FLOATS else "bool" if source == "bool" else "int"
    values = VALUES[kind] + ([-1, -128] if source in INTS[1:] else [])
    if kind == "float" and target == "uint8":
        values = [abs(v) for v in values]  # a negative float has no value as uint8
    results = [m.tensor(values, dtype=getattr(m, source)).to(getattr(m, target)) for m in (tinytorch, torch)]
    assert_same(*results, rtol=0, atol=0)


@pytest.mark.parametrize("target", ["float16", "bfloat16"])
def test_rounding_to_half_is_to_nearest_even(torch, target):
    values = np.concatenate(
        [
            np.linspace(-70000, 70000, 999),
            2.0 ** np.arange(-30, 17),
            1 + np.arange(64) * 2.0**-14,
            [np.inf, -np.inf, np.nan, 65504, 65519, 65520, 3e38, 3.4e38],
        ]
    ).astype(np.float32)
    results = [m.from_numpy(values.copy()).to(getattr(m, target)).float() for m in (tinytorch, torch)]
    assert_same(*results, rtol=0, atol=0)


def test_to():
    x = tinytorch.ones(2)
    assert x.to(tinytorch.float32) is x and x.to("cpu") is x and x.float() is x
    assert x.to(tinytorch.float32, copy=True) is not x
    assert dtype_name(x.to(tinytorch.zeros(1, dtype=tinytorch.int8))) == "int8"
    assert dtype_name(x.to("cpu", tinytorch.float64)) == "float64"
    assert dtype_name(x.to(device="cpu", dtype=tinytorch.int32)) == "int32"
    assert dtype_name(x.type(tinytorch.int16)) == "int16"
    assert x.cpu() is x and str(x.device) == "cpu" and x.device == tinytorch.device("cpu")


# ---- Promotion.

KINDS = ["tensor", "0-d", "int", "float", "bool"]


def operand(m, kind, dtype):
    if kind in ("tensor", "0-d"):
        return m.ones((2,) if kind == "tensor" else (), dtype=getattr(m, dtype))
    return {"int": 2, "float": 1.5, "bool": True}[kind]


@pytest.mark.parametrize("left", DTYPES)
def test_promotion(torch, left):
    """The whole matrix of dtypes, dimensioned and 0-d tensors and Python numbers, both ways round."""
    for kind_left in ("tensor", "0-d"):
        for kind in KINDS:
            for right in DTYPES if kind in ("tensor", "0-d") else ["bool"]:
                a, b = [(operand(m, kind_left, left), operand(m, kind, right)) for m in (tinytorch, torch)]
                message = f"{kind_left} {left} with {kind} {right}"
                expected = str(torch.result_type(*b)).rpartition(".")[2]
                assert str(tinytorch.result_type(*a)).rpartition(".")[2] == expected, message
                assert_same(a[0] + a[1], b[0] + b[1], message)
                assert_same(a[1] * a[0], b[1] * b[0], message)
                assert_same(a[0] / a[1], b[0] / b[1], message)
                assert_same(a[0] < a[1], b[0] < b[1], message)


@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("right", DTYPES)
def test_promotion_of_dtypes(torch, left, right):
    pairs = [(getattr(m, left), getattr(m, right)) for m in (tinytorch, torch)]
    assert (
        repr(tinytorch.promote_types(*pairs[0])).rpartition(".")[2]
        == repr(torch.promote_types(*pairs[1])).rpartition(".")[2]
    )
    assert tinytorch.can_cast(*pairs[0]) == torch.can_cast(*pairs[1])


@pytest.mark.parametrize(
    "call",
    [
        lambda m, x, y: m.where(x > 0, x, y),
        lambda m, x, y: m.cat([x, y]),
        lambda m, x, y: m.stack([x, y]),
        lambda m, x, y: m.maximum(x, y),
        lambda m, x, y: m.where(x > 0, x, 1.5),
        lambda m, x, y: x.clamp(0.5, 2),
        lambda m, x, y: m.pow(x, y),
        lambda m, x, y: m.outer(x, y),
        lambda m, x, y: m.atan2(x, y),
        lambda m, x, y: x.masked_fill(y > 0, 2),
    ],
)
def test_promotion_elsewhere(torch, call):
    for left in ("float16", "float32", "float64", "int8", "int64", "uint8"):
        for right in ("bfloat16", "float32", "int32", "uint8"):
            results = [
                call(m, m.tensor([1, 2], dtype=getattr(m, left)), m.tensor([2, 1], dtype=getattr(m, right)))
                for m in (tinytorch, torch)
            ]
            assert_same(*results, f"{left} {right}")


FACTORS = {
    "add": lambda m, x, y: x.add(y, alpha=0.37),
    "add_": lambda m, x, y: x.clone().add_(y, alpha=0.37),
    "sub": lambda m, x, y: x.sub(y, alpha=0.37),
    "rsub": lambda m, x, y: m.rsub(y, x, alpha=0.37),
    "addcmul": lambda m, x, y: m.addcmul(x, y, y, value=0.37),
    "addcmul_": lambda m, x, y: x.clone().addcmul_(y, x, value=0.37),
    "addcdiv": lambda m, x, y: m.addcdiv(x, y.bool(), x, value=0.37),
    "addcdiv_": lambda m, x, y: x.clone().addcdiv_(y, x, value=0.37),
    "addr": lambda m, x, y: m.addr(x, y, x, beta=0.3, alpha=0.37),
}


@pytest.mark.parametrize("name", FACTORS)
def test_a_factor_is_applied_in_the_results_dtype(torch, name):
    for left in ("float16", "float32", "float64", "complex64"):
        for right in ("bfloat16", "float16", "float32", "int32", "uint8", "bool"):
            values = ([0.3, 0.7, 1.1], [3, 0.7, 1.3])
            outcome = []
            for m in (tinytorch, torch):
                x, y = (m.tensor(v).to(getattr(m, d)) for v, d in zip(values, (left, right), strict=True))
                try:
                    outcome.append(FACTORS[name](m, x, y))
                except RuntimeError:
                    outcome.append(None)
            if None in outcome:
                assert outcome == [None, None], f"{left} {right}"
            else:
                assert_same(*outcome, f"{left} {right}", rtol=2e-3 if left == "float16" else 2e-6)


def test_in_place_keeps_its_dtype(torch):
    for left in DTYPES:
        for right in DTYPES:
            outcome = []
            for m in (tinytorch, torch):
                x = m.ones(2, dtype=getattr(m, left))
                try:
                    x += m.ones(2, dtype=getattr(m, right))
                    outcome.append((dtype_name(x), x.tolist()))
                except RuntimeError:
                    outcome.append(x.tolist())
            assert outcome[0] == outcome[1], (left, right)


def test_integer_arithmetic_wraps(torch):
    for name in INTS:
        top, bottom = np.iinfo(name).max, np.iinfo(name).min
        results = []
        for m in (tinytorch, torch):
            x = m.tensor([top, bottom, top - 1], dtype=getattr(m, name))
            results.append([x + 1, x - 1, x * 2, -x, x.sum(), x.abs(), x * x])
        for a, e in zip(*results):
            assert_same(a, e, name)


@pytest.mark.parametrize(
    "args",
    [
        (tinytorch.float16, "cuda"),
        ("cpu", tinytorch.float16, "cpu"),
        (tinytorch.ones(1), 1),
        (tinytorch.float16, False, True, True),
    ],
)
def test_to_takes_nothing_for_a_bool(args):
    with pytest.raises(TypeError, match="bools non_blocking and copy, got"):
        tinytorch.ones(2).to(*args)


def test_devices_are_given_in_several_ways():
    device = tinytorch.device
    same = device("cuda", 1), device(1), device(type="cuda", index=np.int64(1)), device(np.int64(1)), device(device(1))
    assert all(d == device("cuda:1") for d in same)
    assert device("cuda:1") != device("cuda") and device("cuda").index is None
    assert str(device("cuda", 2)) == "cuda:2" and repr(device("cpu")) == "device(type='cpu')"


@pytest.mark.parametrize(
    "given, kind, text",
    [
        ((None,), TypeError, "argument 'type' must be str, int or device, not NoneType"),
        ((True,), TypeError, "argument 'type' must be str, int or device, not bool"),
        ((1.5,), TypeError, "argument 'type' must be str, int or device, not float"),
        (("cuda", "1"), TypeError, "argument 'index' must be int, not str"),
        (("cuda", -1), RuntimeError, "index must not be negative, but got -1"),
        (("cuda:1", 1), RuntimeError, "must not include an index"),
        (("cuda:-1",), RuntimeError, "Invalid device string: 'cuda:-1'"),
        (("cuda:01",), RuntimeError, "Invalid device string: 'cuda:01'"),
        (("cuda:",), RuntimeError, "Invalid device string: 'cuda:'"),
        (("gpu",), RuntimeError, "Expected one of cpu, cuda .*: 'gpu'"),
        (("",), RuntimeError, "Expected one of cpu, cuda .*: ''"),
    ],
)
def test_what_is_no_device(given, kind, text):
    with pytest.raises(kind, match=text):
        tinytorch.device(*given)


def test_other_kinds_of_devices_are_names():
    meta = tinytorch.device("meta")
    assert meta != tinytorch.device("cpu") and str(tinytorch.device("mps:0")) == "mps:0"
    for make in (
        lambda: tinytorch.zeros(2, device=meta),
        lambda: tinytorch.ones(2).to("mps"),
        lambda: tinytorch.set_default_device(meta),
    ):
        with pytest.raises(RuntimeError, match="has no (meta|mps) devices"):
            make()
    with pytest.raises(AssertionError, match="has no xpu devices"):  # as PyTorch that was built without them
        tinytorch.ones(2).to("xpu")
    with pytest.raises(RuntimeError, match="mps is not supported"):
        tinytorch.Generator("mps")


def test_precision_of_float32_products():
    assert tinytorch.get_float32_matmul_precision() == "highest"
    try:
        tinytorch.set_float32_matmul_precision("high")
        assert tinytorch.backends.cuda.matmul.allow_tf32 and tinytorch.get_float32_matmul_precision() == "high"
    finally:
        tinytorch.set_float32_matmul_precision("highest")
    assert not tinytorch.backends.cuda.matmul.allow_tf32
    with pytest.raises(RuntimeError, match="expected one of highest, high, medium, got 'low'"):
        tinytorch.set_float32_matmul_precision("low")
