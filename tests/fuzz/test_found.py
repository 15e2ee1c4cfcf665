"""What the fuzzers found, in kind: each ended the process, hung, or raised what tells of a fault inside."""

import inspect
import itertools
import math
import signal
import warnings

import numpy as np
import pytest

import tinytorch as tt
from fuzz.arguments import HOSTILE
from fuzz.found_calls import ANSWERS, RAISES
from tinytorch.nn import functional as F
from tinytorch.ops.declare.op import NAMESPACES
from tinytorch.ops.declare.refusals import IN_CPP


@pytest.mark.parametrize("cls", [tt.dtype, tt.layout, tt.memory_format])
def test_what_is_there_once_cannot_be_made(cls):
    for arguments in ((), ("float32",), (99, True, 1)):
        with pytest.raises(TypeError, match="cannot create"):
            cls(*arguments)


def test_polygamma_of_huge_orders():
    assert tt.polygamma(171, tt.ones(1)).item() == math.inf
    assert tt.polygamma(2**40, tt.ones(1)).item() == -math.inf


def test_triangles_are_counted_without_looking(torch):
    for rows, cols, offset in itertools.product(range(5), range(5), range(-7, 8)):
        for name in ("tril_indices", "triu_indices"):
            assert getattr(tt, name)(rows, cols, offset).tolist() == getattr(torch, name)(rows, cols, offset).tolist()
    assert tt.triu_indices(2**40, 1).tolist() == [[0], [0]]
    assert tt.tril_indices(2**40, 1, 1 - 2**40).tolist() == [[2**40 - 1], [0]]
    with pytest.raises(tt.OutOfMemoryError):
        tt.tril_indices(2**40, 99)


def test_an_index_of_nothing():
    x = tt.ones(4, 3)
    assert tt.index_put(x, (), tt.ones(3), accumulate=True).tolist() == [[2.0] * 3] * 4
    with pytest.raises(RuntimeError):
        tt.index_put(x, (), tt.ones(6, 3), accumulate=True)


def test_more_parts_than_memory():
    with pytest.raises(MemoryError):
        tt.ones(4, 5).tensor_split(2**62)


def test_a_sum_of_sizes_does_not_wrap_around():
    """64 times 2**58 is 2**64: PyTorch's answer is empty."""
    with pytest.raises(RuntimeError, match="overflows"):
        tt.cat([tt.ones(1).expand(2**58)] * 64)


X = tt.ones(2, 3)
NO_TENSORS = {
    "a function": lambda: tt.argwhere(3),
    "a view": lambda: tt.permute("x", (0,)),
    "a primitive": lambda: tt.cumsum([1], 0),
    "a reduction": lambda: tt.amax(None),
    "a reduction along a dimension": lambda: tt.sum("text", 0),
    "a composite": lambda: tt.polygamma(1, "text"),
    "an elementwise operator": lambda: tt.sqrt(3),
    "in place": lambda: tt.add_(3, X),
    "zero_": lambda: tt.zero_((X,)),
    "out": lambda: tt.sqrt(X, out=(X,)),
    "out of a reduction": lambda: tt.sum(X, 0, out=3),
    "one of several": lambda: tt.atleast_1d(X, 3),
    "in a list": lambda: tt.block_diag(X, (3,)),
    "an index": lambda: tt.index_select(X, 0, [0]),
    "a loss": lambda: F.mse_loss(X, 3.0),
    "a layer": lambda: F.linear(X, 3j),
    "an activation": lambda: F.relu(None),
    "a number of many": lambda: X.narrow(X, 0, 1),
    "a bool of many": lambda: tt.var_mean(X, (0, 1), X),
    "keepdim": lambda: X.amax(9, "yes"),
    "dtype": lambda: X.sum(dtype=3),
    "a dimension": lambda: X.logsumexp(5.5),
}


@pytest.mark.parametrize("name", NO_TENSORS)
def test_arguments_of_the_wrong_type(name):
    with pytest.raises(TypeError) as error:
        NO_TENSORS[name]()
    assert "_h" not in str(error.value) and "has no attribute" not in str(error.value)


def test_a_program_s_own_tensors_are_no_numbers():
    """The error for bool(t) and int(t) is the program's own."""
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(X)
    with pytest.raises(ValueError, match="only one element"):
        int(X)


def test_arguments_without_keys_or_tensors():
    """What PyTorch answers with a KeyError or an AttributeError."""
    for name in ("Adam", "AdamW", "Adamax", "NAdam", "RAdam", "SparseAdam"):
        with pytest.raises(TypeError, match="betas"):
            getattr(tt.optim, name)([X], betas={0: 1})
    with pytest.raises(TypeError, match="Tensor"):
        tt.autograd.graph.register_multi_grad_hook((tt.ones(2, requires_grad=True), None), print)


def test_an_error_holds_nothing(no_gc):
    """Looking at the arguments makes no cycle that would keep them."""
    before = tt.cpu.memory_allocated()
    for call in (lambda x: x.roll((1, 2), 0), lambda x: tt.argwhere((x, 3)), lambda x: tt.kron(x, "text")):
        with pytest.raises((TypeError, RuntimeError)):
            call(tt.ones(100))
    assert tt.cpu.memory_allocated() == before


@pytest.mark.parametrize("call", [line.strip() for line in RAISES.strip().split("\n")])
def test_the_class_is_pytorch_s(torch, call):
    raised = []
    for m in (torch, tt):
        names = {"torch": m, "F": m.nn.functional, "T": lambda *size, m=m: m.ones(size), **HOSTILE}
        with warnings.catch_warnings(), pytest.raises(Exception) as error:
            warnings.simplefilter("ignore")
            eval(call, names)
        raised.append(error.type)
    if raised[1] is not tt.OutOfMemoryError:
        assert raised[0].__name__.lstrip("_") in [c.__name__ for c in raised[1].__mro__], error.value


@pytest.mark.parametrize("call", [line.strip() for line in ANSWERS.strip().split("\n")])
def test_the_answer_is_pytorch_s(torch, call):
    found = []
    for m in (torch, tt):

        def A(*size, m=m):
            return (m.arange(math.prod(size)) % 7).reshape(size).float()

        found.append(eval(call, {"torch": m, "F": m.nn.functional, "A": A, **HOSTILE}).tolist())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-6)


def test_steps_without_end_are_interrupted():
    """As many steps as were asked for, as in PyTorch."""

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            tt.svd_lowrank(tt.ones(2, 4), 2, 2**31)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_what_a_memo_is():
    for memo in (tt.ones(2), [], None):
        with pytest.raises(TypeError, match="memo"):
            tt.ones(2).__deepcopy__(memo)


def test_functions_that_pytorch_has_in_cpp(torch):
    """Their parser comes before the ValueErrors of functions in Python."""
    names = [name for name in NAMESPACES["nn.functional"] if hasattr(torch.nn.functional, name)]
    assert {n for n in names if inspect.isbuiltin(getattr(torch.nn.functional, n))} == IN_CPP


def test_more_layers_than_memory():
    for cls, layer in ((tt.nn.TransformerEncoder, "Encoder"), (tt.nn.TransformerDecoder, "Decoder")):
        with pytest.raises(MemoryError):
            cls(getattr(tt.nn, f"Transformer{layer}Layer")(2, 1, 2), 2**62)
