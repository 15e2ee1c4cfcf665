"""Bad input: the exception is of torch's type, its message names the culprit, and nothing has changed."""

import re

import numpy as np
import pytest
from compare import allocated, to_numpy

import tinytorch


class Case:
    """A call that must fail, call(m, x, ...) on tensors made from `inputs`, and the words of its message."""

    def __init__(self, call, inputs, *words, id=None):
        self.call, self.inputs, self.words, self.id = call, inputs, words, id

    def tensors(self, m):
        return [m.from_numpy(np.array(a)).requires_grad_(False) for a in self.inputs]


def f(*shape, dtype=np.float32):
    return (np.arange(np.prod(shape)).reshape(shape) % 7).astype(dtype)


def i(*shape):
    return f(*shape, dtype=np.int64)


A, B, V, SQUARE = f(2, 3), f(4, 5), f(3), f(3, 3)

SHAPES = [
    *(
        Case(lambda m, x, y, n=n: getattr(m, n)(x, y), (A, B), n, "2", "3", "4", "5", id=n)
        for n in (
            "add",
            "sub",
            "mul",
            "div",
            "pow",
            "maximum",
            "atan2",
            "fmod",
            "remainder",
            "eq",
            "lt",
            "logical_and",
        )
    ),
    Case(lambda m, x, y: x + y, (A, B), "add", "2, 3", "4, 5", id="x + y"),
    Case(lambda m, x, y: x.add_(y), (A, B), "add", "2, 3", "4, 5", id="add_"),
    Case(lambda m, x, y: x.mul_(y), (V, A), "mul", "3", "2, 3", id="mul_ would grow"),
    Case(lambda m, x, y: m.where(x > 0, x, y), (A, B), "where", "2, 3", "4, 5", id="where"),
    Case(lambda m, x, y: x @ y, (A, B), "2", "3", "4", "5", id="x @ y"),
    Case(lambda m, x, y: m.mm(x, y), (A, B), "mm", "2", "3", "4", "5", id="mm"),
    Case(lambda m, x, y: m.mm(x, y), (A, V), "mm", id="mm of a vector"),
    Case(lambda m, x, y: m.bmm(x, y), (f(2, 3, 4), f(3, 4, 5)), "bmm", "2", "3", id="bmm batches"),
    Case(lambda m, x, y: m.dot(x, y), (f(2), f(3)), "dot", "2", "3", id="dot"),
    Case(lambda m, x, y: m.dot(x, y), (A, A), "dot", id="dot of matrices"),
    Case(lambda m, x, y: m.outer(x, y), (A, V), "outer", id="outer of a matrix"),
    Case(lambda m, x: m.matmul(x, m.ones(())), (A,), "matmul", id="matmul 0-d"),
    Case(lambda m, x, y, z: m.addmm(x, y, z), (f(7), A, f(3, 4)), "addmm", "7", "4", id="addmm"),
    Case(lambda m, x, y: m.einsum("ij,jk->ik", x, y), (A, B), "einsum", "3", "4", id="einsum sizes"),
    Case(lambda m, x: m.einsum("ijk->i", x), (A,), "einsum", id="einsum rank"),
    Case(lambda m, x: m.einsum("ij->k", x), (A,), "einsum", "k", id="einsum output"),
    Case(lambda m, x, y: m.nn.functional.linear(x, y), (A, B), "linear", "3", "5", id="linear"),
    Case(lambda m, x, y: m.cat([x, y]), (A, B), "cat", "3", "5", id="cat"),
    Case(lambda m, x, y: m.stack([x, y]), (A, B), "stack", "2, 3", "4, 5", id="stack"),
    Case(lambda m: m.cat([]), (), "cat", id="cat of nothing"),
    Case(lambda m: m.stack([]), (), "stack", id="stack of nothing"),
    Case(lambda m, x: x.view(5), (A,), "view", "5", "6|2, 3", id="view"),
    Case(lambda m, x: x.view(-1, -1), (A,), "-1", id="view two unknown"),
    Case(lambda m, x: x.view(-1, 4), (A,), "4", "6|2, 3", id="view unknown"),
    Case(lambda m, x: x.t().view(6), (A,), "view", id="view of a transposed tensor"),
    Case(lambda m, x: x.reshape(4, 2), (A,), "reshape|shape", "4, 2", id="reshape"),
    Case(lambda m, x: x.expand(2, 4), (A,), "expand", "4", "3", id="expand"),
    Case(lambda m, x: x.expand(3), (A,), "expand", id="expand to fewer"),
    Case(lambda m, x: x.permute(0, 0), (A,), "permute", id="permute repeated"),
    Case(lambda m, x: x.permute(0), (A,), "permute", id="permute too few"),
    Case(lambda m, x: x.unflatten(1, (2, 2)), (A,), "unflatten", "3", id="unflatten"),
    Case(lambda m, x: x.split([1, 1], 1), (A,), "split", "3", id="split sizes"),
    Case(lambda m, x: x.split(-1), (A,), "split", "-1", id="split negative"),
    Case(lambda m, x: x.chunk(0), (A,), "chunk", id="chunk"),
    Case(lambda m, x: x.narrow(1, 2, 2), (A,), "narrow|start", "3", id="narrow"),
    Case(lambda m, x: x.unfold(0, 3, 1), (A,), "unfold|size", "3", "2", id="unfold size"),
    Case(lambda m, x: x.unfold(0, 1, 0), (A,), "unfold|step", "0", id="unfold step"),
    Case(lambda m, x: x.as_strided((4, 4), (4, 1)), (A,), "storage", id="as_strided outside"),
    Case(lambda m, x: x.as_strided((2,), (-1,)), (A,), "stride", "-1", id="as_strided negative"),
    Case(lambda m, x: x.t(), (f(2, 2, 2),), "t\\(\\)|t:", "3", id="t of three dimensions"),
    Case(lambda m, x: x.repeat(2), (A,), "repeat", id="repeat"),
    Case(lambda m, x: x.roll((1, 2), 0), (A,), "roll|shifts", id="roll"),
    Case(lambda m, x: x.roll(1, 0), (f(),), "roll|imension", "0", id="roll of 0-d along a dimension"),
    Case(lambda m, x: x.norm("nuc"), (V,), "norm", "dim", id="nuclear norm of a vector"),
    Case(lambda m, x: x.flip(0, 0), (A,), "flip|dim", "0", id="flip"),
    Case(lambda m, x: x.diagonal(0, 0, 0), (A,), "diagonal", id="diagonal"),
    Case(lambda m, x: x.diagonal(), (V,), "[Dd]im", id="diagonal of a vector"),
    Case(lambda m, x: x.amax(0), (f(0, 3),), "amax", id="amax of nothing"),
    Case(lambda m, x: x.max(), (f(0),), "max", id="max of nothing"),
    Case(lambda m, x: x.argmax(0), (f(0, 3),), "argmax", id="argmax of nothing"),
    Case(lambda m, x: x.topk(4), (A,), "topk|range|k", id="topk"),
    Case(lambda m, x: x.item(), (A,), "6|2, 3|scalar", id="item"),
    Case(lambda m, x: bool(x), (A,), "[Bb]ool", id="bool"),
    Case(lambda m, x: float(x), (A,), "6|2, 3|scalar|element", id="float"),
    Case(lambda m, x: len(x), (f(),), "0-d|0 dim", id="len of 0-d"),
    Case(lambda m, x: list(x), (f(),), "0-d|0 dim", id="iteration over 0-d"),
    Case(lambda m, x, y: x.copy_(y), (A, B), "copy_|expand|broadcast|size|shape", id="copy_"),
    Case(
        lambda m, x, y: m.nn.functional.layer_norm(x, (2,)),
        (A, V),
        "layer_norm|normalized_shape",
        "2",
        id="layer_norm",
    ),
    Case(lambda m, x, y: m.nn.functional.cross_entropy(x, y), (A, i(4)), "2|size", "4", id="cross_entropy"),
    Case(lambda m, x, y: m.nn.functional.nll_loss(x, y), (A, i(4)), "2|size", "4", id="nll_loss"),
    Case(
        lambda m, x, y, w: m.nn.functional.nll_loss(x, y, w.double()),
        (A, i(2), V),
        "[Ff]loat|float32",
        "[Dd]ouble|float64",
        id="nll_loss weight",
    ),
    Case(lambda m, x, y: m.nn.functional.binary_cross_entropy_with_logits(x, y), (A, B), "size|shape", id="bce"),
]

DIMS = [
    *(
        Case(lambda m, x, n=n: getattr(m, n)(x, 2), (A,), n, "2", id=f"{n} dim")
        for n in (
            "sum",
            "mean",
            "amax",
            "argmax",
            "cumsum",
            "cumprod",
            "softmax",
            "log_softmax",
            "logsumexp",
            "any",
            "sort",
            "unbind",
            "squeeze",
            "std",
        )
    ),
    Case(lambda m, x: x.sum((0, 0)), (A,), "dim", "0", id="sum dim twice"),
    Case(lambda m, x: x.transpose(0, 2), (A,), "transpose", "2", id="transpose dim"),
    Case(lambda m, x: x.unsqueeze(4), (A,), "unsqueeze", "4", id="unsqueeze dim"),
    Case(lambda m, x: x.select(0, 2), (A,), "select", "2", id="select index"),
    Case(lambda m, x: x.select(-3, 0), (A,), "select", "-3", id="select dim"),
    Case(lambda m, x: m.cat([x, x], 2), (A,), "cat", "2", id="cat dim"),
    Case(lambda m, x: m.stack([x, x], 3), (A,), "stack", "3", id="stack dim"),
    Case(lambda m, x: x.flatten(1, 0), (A,), "flatten", id="flatten order"),
    Case(lambda m, x: x.movedim(0, 5), (A,), "movedim", "5", id="movedim dim"),
    Case(lambda m, x: x.movedim((0, 1), (0,)), (A,), "movedim", id="movedim lengths"),
    Case(lambda m, x: x[2], (A,), "2", id="index out of range"),
    Case(lambda m, x: x[-3], (A,), "-3", id="negative index out of range"),
    Case(lambda m, x: x[0, 0, 0], (A,), "too many indices", id="too many indices"),
    Case(lambda m, x: x[::-1], (A,), "step", id="negative step"),
    Case(lambda m, x: x[1.5], (A,), id="float index"),
    Case(lambda m, x: x["a"], (A,), id="string index"),
    Case(lambda m, x, y: x[y], (A, i(5)), "out of range|out of bounds", id="index array out of range"),
    Case(lambda m, x, y: x[y > 0], (A, B), "mask", "4", id="mask of another shape"),
    Case(lambda m, x, y: x[y], (A, V), "index", id="float tensor as index"),
    Case(lambda m, x, y, z: x[y, z], (A, i(2), i(3)), "2", "3", id="index arrays that do not broadcast"),
    Case(lambda m, x, y: x.__setitem__(0, y), (A, f(4)), "4", "3", id="setitem shape"),
    Case(lambda m, x, y: x.__setitem__([0, 1], y), (A, f(4)), "4", id="setitem by array, shape"),
    Case(lambda m, x, y: x.__setitem__(x > 1, y), (A, f(2)), id="setitem by mask, count"),
    Case(lambda m, x: x.__setitem__(5, 1.0), (A,), "5", id="setitem out of range"),
    Case(
        lambda m, x, y: x.__setitem__(y, 1.0),
        (A, i(5)),
        "out of range|out of bounds",
        id="setitem by array, out of range",
    ),
    Case(lambda m, x, y: x.index_select(0, y), (A, i(5)), "index", id="index_select out of range"),
    Case(lambda m, x, y: x.index_select(0, y), (A, V), "index_select", id="index_select by float"),
    Case(lambda m, x, y: x.index_select(0, y), (A, i(2, 2)), "index_select", id="index_select by matrix"),
    Case(lambda m, x, y: x.gather(0, y), (A, i(2, 3)), "gather|out of bounds", id="gather out of range"),
    Case(lambda m, x, y: x.gather(1, y), (A, i(3)), "gather|dim", id="gather rank"),
    Case(
        lambda m, x, y: x.scatter_(0, y, 1.0),
        (A, i(2, 3)),
        "scatter|out of bounds",
        id="scatter_ out of range",
    ),
    Case(
        lambda m, x, y: x.scatter_add_(0, y, x),
        (A, i(2, 3)),
        "scatter|overlap|memory|out of bounds",
        id="scatter_add_ out of range",
    ),
    Case(lambda m, x, y: x.index_add_(0, y, x * 1), (A, i(3)), "index_add", id="index_add_ lengths"),
    Case(lambda m, x, y: x.masked_fill_(y > 0, 1.0), (A, B), "masked_fill|size|shape", "4", id="masked_fill_"),
    Case(lambda m, x, y: x.masked_fill(y, 1.0), (A, i(2, 3)), "masked_fill|mask", id="masked_fill by int"),
    Case(lambda m, x, y: x.masked_select(y), (A, i(2, 3)), "masked_select", id="masked_select by int"),
    Case(lambda m, x, y: m.nn.functional.embedding(y, x), (A, i(5)), id="embedding out of range"),
    Case(
        lambda m, x, y: m.nn.functional.cross_entropy(x, y),
        (A, np.array([0, 3])),
        "3|out of bounds",
        id="class out of range",
    ),
]

DTYPES = [
    Case(lambda m, x, y: x.add_(y), (i(2, 3), A), "add", "[Ff]loat", "[Ll]ong|int64", id="float into int"),
    Case(lambda m, x: x.div_(2), (i(2, 3),), "div", "[Ff]loat", "[Ll]ong|int64", id="int div_"),
    Case(lambda m, x: x.exp_(), (i(2, 3),), "exp", "[Ff]loat", "[Ll]ong|int64", id="int exp_"),
    Case(lambda m, x: x.mul_(1.5), (i(2, 3),), "mul", "[Ff]loat", "[Ll]ong|int64", id="int mul_ float"),
    Case(lambda m, x: m.add(x, 1, out=m.empty(2, 3, dtype=m.int64)), (A,), "add", id="out of int"),
    Case(lambda m, x: x & x, (A,), "and", "[Ff]loat", id="float &"),
    Case(lambda m, x: ~x, (A,), "not", "[Ff]loat|integer", id="float ~"),
    Case(lambda m, x: x.mean(), (i(2, 3),), "mean", "[Ll]ong|int64", id="mean of int"),
    Case(lambda m, x: x.var(), (i(2, 3),), "var|std", "[Ll]ong|int64|float", id="var of int"),
    Case(lambda m, x: -(x > 0), (A,), "neg|-", "bool", id="- of bool"),
    Case(lambda m, x: (x > 0) - (x > 1), (A,), "sub|-", "bool", id="bool - bool"),
    Case(lambda m, x: m.softmax(x, 0), (i(2, 3),), "softmax", "[Ll]ong|int64", id="softmax of int"),
    Case(
        lambda m, x, y: x @ y,
        (A, f(3, 2, dtype=np.float64)),
        "[Ff]loat",
        "[Dd]ouble|float64",
        id="matmul of two dtypes",
    ),
    Case(lambda m, x: x.neg(), (A > 0,), "neg", "bool", id="neg of bool"),
    Case(lambda m, x: x.square_(), (A > 0,), "square_", "[Bb]ool", id="square_ of bool"),
    Case(lambda m, x: m.nn.functional.hardtanh(x), (A > 0,), "hardtanh", "[Bb]ool", id="hardtanh of bool"),
    Case(
        lambda m, x: m.nn.functional.hardtanh(x),
        (f(2, dtype=np.uint8),),
        "hardtanh",
        "unsigned",
        id="hardtanh of uint8",
    ),
    Case(lambda m, x: m.nn.functional.rrelu(x, 0.3, 0.1), (A,), "rrelu|bound", id="rrelu's bounds"),
    Case(lambda m, x: x.narrow(0, m.tensor(0.0), 1), (A,), "narrow|start", id="narrow from a float"),
    Case(lambda m, x: x.narrow(0, m.tensor(True), 1), (A,), "narrow|start", id="narrow from a bool"),
    Case(lambda m, x: m.Tensor.__radd__(2, x), (A,), "__radd__", "int", id="__radd__ of a number"),
    Case(lambda m: m.linspace(0, 1, 2.0), (), "steps|linspace", "float", id="linspace in 2.0 steps"),
    Case(lambda m, x: x.sub_(True), (A,), "sub", "bool", id="sub_ of True"),
    Case(lambda m, x: x.float_power_(2), (A,), "float_power_", "float32", "float64", id="float_power_ of float32"),
    Case(
        lambda m, x: m.float_power(x, 2, out=m.empty(2, 3)),
        (A,),
        "float_power",
        "float32",
        id="float_power out of float32",
    ),
    Case(lambda m, x: x**-1, (i(2, 3),), "negative", id="int to a negative power"),
    Case(lambda m, x: x // 0, (i(2, 3),), "[Zz]ero", id="int // 0"),
    Case(lambda m, x: x % 0, (i(2, 3),), "[Zz]ero", id="int % 0"),
    Case(lambda m, x, y: x.index_add_(0, y, x * 1), (A, f(2)), "index_add", id="index_add_ by float"),
    Case(
        lambda m, x, y: x.index_put_((m.tensor([0]),), y),
        (A, f(3, dtype=np.float64)),
        "index_put",
        id="index_put_ dtypes",
    ),
    Case(
        lambda m, x, y: x.scatter_(0, m.tensor([[0]]), y),
        (A, f(1, 1, dtype=np.float64)),
        "scatter",
        id="scatter_ dtypes",
    ),
    Case(lambda m, x: m.nn.functional.cross_entropy(x, m.zeros(2)), (A,), id="cross_entropy with float classes"),
    Case(lambda m, x: x + "a", (A,), "str", id="+ str"),
    Case(lambda m, x: m.add(x, None), (A,), "add", "None", id="add None"),
    Case(lambda m, x: m.exp("a"), (A,), "exp", "str", id="exp of str"),
    Case(lambda m, x: m.cat([x, 1]), (A,), "cat", "int", id="cat of int"),
    Case(lambda m, x: x.clamp(), (A,), "clamp", "min|max", id="clamp without bounds"),
    Case(lambda m, x: x.sum("a"), (A,), "sum", "str|a", id="sum of str"),
    Case(lambda m, x: x.view("a"), (A,), "view", id="view of str"),
    Case(lambda m, x: x.to("nowhere"), (A,), "nowhere", id="to an unknown device"),
]

CREATION = [
    Case(lambda m: m.tensor([[1, 2], [3]]), (), "2|sequence", id="ragged list"),
    Case(lambda m: m.tensor(["a"]), (), "str", id="list of strings"),
    Case(lambda m: m.tensor([None]), (), "None", id="list of None"),
    Case(lambda m: m.zeros(-1), (), "-1|negative", id="negative size"),
    Case(lambda m: m.zeros(2, 1.5), (), "float", id="float size"),
    Case(lambda m: m.empty(2**40, 2**40), (), "overflow|[Ss]torage|too large|invalid", id="size that overflows"),
    Case(lambda m: m.arange(0, 5, -1), (), "step|bound", id="arange the wrong way"),
    Case(lambda m: m.arange(0, 5, 0), (), "step|zero", id="arange step 0"),
    Case(lambda m: m.linspace(0, 1, -1), (), "step", id="linspace"),
    Case(lambda m: m.eye(-1), (), "-1|negative", id="eye"),
    Case(lambda m: m.randint(5, 5, (2,)), (), "5", id="randint of nothing"),
    Case(lambda m: m.randperm(-1), (), "-1|negative", id="randperm"),
    Case(lambda m: m.normal(0.0, -1.0, (2,)), (), "-1|std", id="normal with negative deviation"),
    Case(
        lambda m, x: m.bernoulli(x),
        (np.array([1.5], np.float32),),
        "bernoulli|p|1",
        id="bernoulli probability",
    ),
    Case(lambda m, x: m.multinomial(x, 5), (V,), "sample|multinomial", id="multinomial too many"),
    Case(
        lambda m, x: m.multinomial(x, 1),
        (np.array([-1.0, 2.0], np.float32),),
        "prob|multinomial",
        id="multinomial negative",
    ),
    Case(
        lambda m, x: m.multinomial(x, 1),
        (np.zeros(3, np.float32),),
        "prob|multinomial|sum",
        id="multinomial of zeros",
    ),
    Case(lambda m, x: m.nn.functional.dropout(x, 1.5), (A,), "dropout", "1.5", id="dropout probability"),
    Case(lambda m: m.from_numpy([1, 2]), (), "list", id="from_numpy of a list"),
    Case(lambda m: m.from_numpy(np.array(["a"])), (), "numpy|str|dtype|ndarray", id="from_numpy of strings"),
    Case(lambda m: m.from_numpy(np.zeros(3)[::-1]), (), "stride", id="from_numpy with negative strides"),
    Case(lambda m: m.zeros(2, dtype="float32"), (), "dtype", id="dtype as a string"),
]

CASES = [pytest.param(case, id=case.id) for case in SHAPES + DIMS + DTYPES + CREATION]
EXPECTED = (RuntimeError, ValueError, TypeError, IndexError, ZeroDivisionError)


def failure(m, case):
    tensors = case.tensors(m)
    try:
        case.call(m, *tensors)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("case", CASES)
def test_exception_is_torchs(torch, case):
    wanted, error = failure(torch, case), failure(tinytorch, case)
    assert wanted is not None, "torch accepts this"
    assert error is not None, f"torch raises {type(wanted).__name__}: {wanted}"
    # NotImplementedError is a RuntimeError: either of the two will do for the other.
    assert isinstance(error, type(wanted)) or isinstance(wanted, type(error)), (
        f"{type(error).__name__}: {error}\ntorch: {type(wanted).__name__}: {wanted}"
    )
    assert isinstance(error, EXPECTED)


@pytest.mark.parametrize("case", CASES)
def test_message_names_the_culprit(case):
    error = failure(tinytorch, case)
    assert error is not None
    missing = [word for word in case.words if not re.search(word, str(error))]
    assert not missing, f"{missing} not in: {type(error).__name__}: {error}"


@pytest.mark.parametrize("case", CASES)
def test_nothing_has_changed(case, no_gc):
    """Values, versions and memory are as they were; the error holds nothing once it is gone."""
    failure(tinytorch, case)  # whatever is made once and kept is made here
    tensors = case.tensors(tinytorch)
    before, versions, held = [to_numpy(t).copy() for t in tensors], [t._version for t in tensors], allocated()
    with pytest.raises(EXPECTED):
        case.call(tinytorch, *tensors)
    for tensor, array, version in zip(tensors, before, versions):
        np.testing.assert_array_equal(to_numpy(tensor), array)
        assert tensor._version == version
    assert allocated() == held


@pytest.mark.parametrize("size", [(2**50,), (2**31, 2**20)], ids=str)
def test_out_of_memory_names_the_size(size):
    held = allocated()
    with pytest.raises(RuntimeError, match=r"(?i)memory.*\d") as error:
        tinytorch.empty(size)
    assert str(2**50 * 4 if len(size) == 1 else 2**51 * 4) in str(error.value).replace(",", "")
    assert allocated() == held


def test_an_index_array_is_checked_before_anything_is_written():
    """The bad index is the last: the good ones before it must not have been written."""
    x = tinytorch.zeros(100, 3)
    index = tinytorch.arange(100)
    index[99] = 100
    for write in (
        lambda: x.__setitem__(index, 1.0),
        lambda: x.index_put_((index,), tinytorch.ones(3)),
        lambda: x.index_add_(0, index, tinytorch.ones(100, 3)),
        lambda: x.index_fill_(0, index, 1.0),
        lambda: x.scatter_(0, index.view(100, 1).expand(100, 3), 1.0),
        lambda: x.scatter_add_(0, index.view(100, 1).expand(100, 3), tinytorch.ones(100, 3)),
    ):
        with pytest.raises((IndexError, RuntimeError)):
            write()
        assert x.sum().item() == 0 and x._version == 0


def of_two(m):
    """The names of the functions of two tensors, for some of which either may be a number."""
    return [op.name for op in m.OPS.values() if op.function is not None and op.params == ("a", "b")]


@pytest.mark.parametrize(
    "name",
    [*of_two(tinytorch.ops.declare.op), "rsub", "clamp_min", "clamp_max", "float_power", "dist", "heaviside"],
)
def test_numbers_for_tensors(torch, name):
    """A number is taken for a tensor where PyTorch takes one, of the function, the method and in place."""

    def outcomes(m):
        x = m.tensor([3, 4]) if name.startswith("bitwise") else m.tensor([3.0, 4.0])
        calls = [
            *[lambda a=a, b=b: getattr(m, name)(a, b) for a, b in ((x, 2), (x, True), (2, x), (2.5, x), (2, 3))],
            *[lambda n=n: getattr(x, n)(2) for n in (name, name + "_") if hasattr(torch.Tensor, n)],
        ]
        for call in calls:
            try:
                yield None if call() is not None else ""
            except Exception as error:
                yield type(error)

    assert list(outcomes(tinytorch)) == list(outcomes(torch))
