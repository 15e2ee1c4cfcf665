"""What may be written between forward and backward: at least what PyTorch allows, since no more is saved; and the
derivatives at the edges of domains."""

import pytest
from rules import agree, programs

import tinytorch

PROGRAMS, program = programs()

UNARY = """abs acos asin atan atanh cos cosh erf erfc erfinv exp exp2 expm1 log log10 log1p log2 logit neg reciprocal
    rsqrt sigmoid sin sinc sinh sqrt square tan tanh relu prod std var norm cumsum max logsumexp"""
ACTIVATIONS = """relu6 leaky_relu elu selu celu gelu silu mish softplus softsign hardtanh hardsigmoid hardswish
    tanhshrink softshrink hardshrink logsigmoid normalize"""
BINARY = "add sub mul div pow atan2 hypot logaddexp maximum minimum fmod remainder copysign xlogy matmul"
LOSSES = "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits"
A, B = [[0.3, 0.6], [0.2, 0.7]], [[1.5, 2.0], [2.5, 1.2]]

OPERATORS = {
    **{
        n: (lambda m, a, n=n: getattr(a, n)(*([-1] if n in ("cumsum", "logsumexp") else [])), [A])
        for n in UNARY.split()
    },
    **{n: (lambda m, a, n=n: getattr(m.nn.functional, n)(a), [A]) for n in ACTIVATIONS.split()},
    **{n: (lambda m, a, b, n=n: getattr(m, n)(a, b), [A, B]) for n in BINARY.split()},
    **{n: (lambda m, a, b, n=n: getattr(m.nn.functional, n)(a, b), [A, A]) for n in LOSSES.split()},
    "power of 2": (lambda m, a: a**2, [A]),
    "2 to the power": (lambda m, a: 2**a, [A]),
    "divided by 3": (lambda m, a: a / 3, [A]),
    "1 divided by": (lambda m, a: 1 / a, [A]),
    "softmax": (lambda m, a: a.softmax(-1), [A]),
    "layer_norm": (lambda m, a: m.nn.functional.layer_norm(a, (2,)), [A]),
    "linear": (lambda m, x, w: m.nn.functional.linear(x, w), [A, B]),
    "addcmul": (lambda m, a, b, c: m.addcmul(a, b, c), [A, A, B]),
    "addcdiv": (lambda m, a, b, c: m.addcdiv(a, b, c), [A, A, B]),
    "lerp": (lambda m, a, b, c: m.lerp(a, b, c), [A, B, A]),
    "where": (lambda m, a, b: m.where(a > 0.4, a, b), [A, B]),
}
# A copy of the operand in PyTorch: log_softmax of the logits, the reciprocal.
REFUSED = {"1 divided by": [True, False]}


def refusals(m, operator, values):
    """Of each operand and of the result: does writing it make backward refuse?"""
    found = []
    for which in range(len(values) + 1):
        operands = [m.tensor(v, dtype=m.float64, requires_grad=True) * 1 for v in values]
        result = operator(m, *operands)
        result = result if isinstance(result, m.Tensor) else result[0]
        with m.no_grad():
            [*operands, result][which].mul_(1)
        try:
            result.sum().backward()
            found.append(False)
        except RuntimeError as exc:
            assert "inplace" in str(exc)
            found.append(True)
    return found


@pytest.mark.parametrize("name", OPERATORS)
def test_no_more_is_saved_than_in_torch(torch, name):
    ours, theirs = (refusals(m, *OPERATORS[name]) for m in (tinytorch, torch))
    if name in REFUSED:
        assert ours == REFUSED[name]
    else:
        assert not [k for k, (o, t) in enumerate(zip(ours, theirs)) if o and not t]


def gradients(torch, fn, *values, order=1):
    leaves = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in values]
    out = fn(*leaves)
    grads = torch.autograd.grad(out.sum(), leaves, create_graph=order > 1)
    return [[f"{x + 0.0:.6g}" for x in t.detach().reshape(-1).tolist()] for t in (out, *grads)]


@program
def cross_entropy_of_certain_probabilities(torch):
    p, t = [0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.5], [0.0, 1.0, 0.0, 1.0, 0.5, 0.5, 0.5]
    f = torch.nn.functional.binary_cross_entropy
    saturated = torch.tensor([40.0, -120.0], requires_grad=True)
    f(torch.sigmoid(saturated), torch.tensor([1.0, 0.0])).backward()
    return gradients(torch, f, p, t), saturated.grad


@program
def angles_at_the_origin(torch):
    a = [0.0, -0.0, 0.0, 1.0, float("inf"), 3.0]
    return gradients(torch, torch.atan2, a, a[::-1]), gradients(torch, torch.atan2, a, a)


@program
def logits_of_0_and_1(torch):
    x = [0.0, 1.0, 0.5, -1.0, 2.0, float("nan"), 0.05]
    return [gradients(torch, lambda t, eps=eps: torch.logit(t, eps), x) for eps in (None, 0.1, 1e-6)]


@program
def logarithms_of_sums_of_infinities(torch):
    inf = float("inf")
    return gradients(torch, torch.logaddexp, [inf, 0.0, -inf, 1.0, 800.0], [0.0, inf, 1.0, -inf, -800.0])


@program
def attention_to_nothing(torch):
    """A row in which all is masked is 0, and so are its gradients."""
    x, out = [[1.0, 2.0], [3.0, 4.0]], []
    off = -float("inf")
    masks = [torch.tensor([[True, True], [False, False]]), torch.tensor([[0.0, off], [off, off]], dtype=torch.float64)]
    for mask in masks:

        def attend(q, k, v, mask=mask):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

        out += [gradients(torch, attend, x, x, x), gradients(torch, attend, x, x, x, order=2)]
    return out


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, torch):
    agree(PROGRAMS[name], torch)
