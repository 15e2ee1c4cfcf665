"""Docstrings: the commonest functions have every section, and their examples run."""

import doctest
import inspect
import re
import statistics

import numpy
import pytest

import tinytorch
from tinytorch.ops.declare import NAMESPACES, OPS
from tinytorch.ops.declare.docs import PARAMETERS
from tinytorch.ops.declare.examples import EXAMPLES
from tinytorch.scalar import OPERATORS

from documented_errors import ERRORS

# What PyTorch programs call most: at least 200.
_COMMON = """
    sinc abs neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square reciprocal sign floor ceil round trunc frac sin
    cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc erfinv lgamma digamma relu sigmoid logit
    frexp positive logical_not bitwise_not isnan isinf isfinite signbit nan_to_num add sub mul div remainder fmod
    floor_divide pow maximum minimum fmax fmin atan2 hypot logaddexp xlogy copysign eq ne lt le gt ge logical_and
    logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift lerp addcmul
    addcdiv where masked_fill clamp isclose allclose equal sum mean nansum nanmean prod max min amax amin aminmax
    argmax argmin any all count_nonzero var std var_mean norm logsumexp cumsum cumprod cummax cummin logcumsumexp
    diff sort argsort topk kthvalue median nanmedian mode unique bincount histc bucketize searchsorted isin reshape
    ravel flatten unflatten permute transpose t movedim squeeze unsqueeze broadcast_to broadcast_shapes
    broadcast_tensors cat stack hstack vstack tile block_diag split chunk tensor_split unbind narrow select diagonal
    flip roll rot90 tril triu diag diag_embed repeat_interleave index_select index_add index_copy index_fill
    index_put take masked_select nonzero argwhere gather take_along_dim scatter scatter_add scatter_reduce meshgrid
    matmul mm bmm mv dot outer inner addmm baddbmm tensordot cross kron trace einsum tensor as_tensor from_numpy
    zeros ones full empty arange linspace eye zeros_like ones_like full_like empty_like rand randn rand_like
    randn_like randint randperm normal bernoulli multinomial softmax log_softmax clone selu dropout
    cosine_similarity pairwise_distance conv1d conv2d layer_norm rms_norm group_norm linalg.solve linalg.inv
    linalg.solve_triangular linalg.svd linalg.eigh linalg.qr linalg.cholesky Tensor.view Tensor.expand Tensor.repeat
    Tensor.unfold Tensor.to Tensor.contiguous Tensor.item Tensor.tolist nn.functional.relu nn.functional.gelu
    nn.functional.silu nn.functional.mish nn.functional.elu nn.functional.leaky_relu nn.functional.relu6
    nn.functional.hardtanh nn.functional.hardswish nn.functional.logsigmoid nn.functional.softplus nn.functional.glu
    nn.functional.softmax nn.functional.log_softmax nn.functional.linear nn.functional.normalize
    nn.functional.embedding nn.functional.one_hot nn.functional.scaled_dot_product_attention
    nn.functional.cross_entropy nn.functional.nll_loss nn.functional.mse_loss nn.functional.l1_loss
    nn.functional.smooth_l1_loss nn.functional.huber_loss nn.functional.binary_cross_entropy
    nn.functional.binary_cross_entropy_with_logits nn.functional.kl_div
"""
COMMON = _COMMON.split()
SECTION = re.compile(r"^(Args|Returns|Raises|Example):$", re.M)
REFUSED = {"NUM": True, "INT": 1.0, "REAL": 1, "INTS": 1.0}  # a value of a dtype outside of the domain


def function(name):
    found = tinytorch
    for part in name.split("."):
        found = getattr(found, part)
    return found


def sections(fn):
    text = inspect.getdoc(fn)
    head, *parts = SECTION.split(text)
    return head, dict(zip(parts[::2], parts[1::2]))


def test_the_list():
    assert len(set(COMMON)) == len(COMMON) >= 200
    assert set(EXAMPLES) == set(COMMON)


@pytest.mark.parametrize("name", COMMON)
def test_sections(name):
    fn = function(name)
    head, parts = sections(fn)
    assert re.search(r"\w.*Follows\s``torch\.", head, re.S)
    assert list(parts) == [title for title in ("Args", "Returns", "Raises", "Example") if title in parts]
    assert {"Args", "Returns", "Example"} <= set(parts)
    told = re.findall(r"^    (\w+): \S", parts["Args"], re.M)
    taken = [p for p in inspect.signature(fn).parameters if p not in ("named", "rest")]
    assert told == [p for p in taken if p in told] and set(taken) - set(told) <= {"out", "axis", "keepdims"}


@pytest.mark.parametrize("name", COMMON)
def test_examples(name):
    fn = function(name)
    test = doctest.DocTestParser().get_doctest(
        inspect.getdoc(fn), {"tinytorch": tinytorch, "numpy": numpy}, name, None, None
    )
    assert test.examples
    report = []
    doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize("name", [n for n in COMMON if not n.startswith(("Tensor.", "linalg.solve_triangular"))])
def test_examples_follow_torch(torch, name):
    """PyTorch shows the same."""
    expression, shown = EXAMPLES[name]
    values = {"torch": torch, "numpy": numpy}
    assert repr(eval(expression.replace("tinytorch", "torch"), values)) == shown.replace("tinytorch", "torch")


OF_A_NUMBER = ("celu", "hardshrink")  # the second operand is no tensor


@pytest.mark.parametrize(
    "name",
    [n for n, op in OPERATORS.items() if op.arity < 3 and n in OPS and OPS[n].function and n not in OF_A_NUMBER],
)
def test_errors_of_elementwise_operators(name):
    """What "Raises:" says is true."""
    scalar, fn = OPERATORS[name], function(name)
    raises = sections(fn)[1]["Raises"]
    with pytest.raises(TypeError):
        fn(*["text"] * scalar.arity)
    if scalar.arity == 2:
        good = [tinytorch.ones(n, dtype=tinytorch.int64 if "INT" in scalar.domain else None) for n in (2, 3)]
        with pytest.raises(RuntimeError, match="broadcast"):
            fn(*good)
    for domain, value in REFUSED.items():
        if domain == scalar.domain and name != "square":
            error = TypeError if "TypeError: an input is neither a tensor nor a number, or" in raises else RuntimeError
            assert error.__name__ in raises
            with pytest.raises(error):
                fn(*[tinytorch.tensor(value)] * scalar.arity)


@pytest.mark.parametrize("name,error,call", ERRORS, ids=[" ".join(row[::2]) for row in ERRORS])
def test_errors(name, error, call):
    assert re.search(rf"^    {error}: \S", sections(function(name))[1]["Raises"], re.M)
    with pytest.raises(Exception) as raised:
        eval(
            call,
            {"M": tinytorch, "T": tinytorch.tensor, "Z": tinytorch.zeros, "F": tinytorch.nn.functional, "numpy": numpy},
        )
    assert error in [c.__name__ for c in type(raised.value).__mro__]  # a NotImplementedError is a RuntimeError


def test_all_errors_are_tested():
    tested = {row[:2] for row in ERRORS}
    for name in COMMON:
        if name not in OPERATORS or OPERATORS[name].arity == 3:
            for error in re.findall(r"^    (\w+): ", sections(function(name))[1].get("Raises", ""), re.M):
                assert (name, error) in tested


def test_every_parameter_of_the_table_is_taken():
    taken = {p for names in NAMESPACES.values() for fn in names.values() for p in inspect.signature(fn).parameters}
    assert set(PARAMETERS) <= taken


def test_docstrings_say_something():
    """Half of the public functions have more than 56 characters, the figure before there were sections, ten times."""
    lengths = [len(fn.__doc__) for names in NAMESPACES.values() for fn in names.values()]
    assert min(lengths) > 4 and statistics.median(lengths) > 300


def test_every_member_of_tensor_has_a_docstring():
    for name, member in vars(tinytorch.Tensor).items():
        if callable(member) or isinstance(member, property):
            assert member.__doc__, name


def test_help():
    text = inspect.getdoc(tinytorch.exp)
    assert text.startswith("e to the power x. Follows ``torch.exp``.\n\nArgs:\n    input: ")
    assert not inspect.getdoc(tinytorch.Tensor.exp).count("out:")
