"""Recurrent layers: packed sequences, second derivatives, threads, errors."""

import contextlib
import copy
import pickle

import numpy as np
import pytest
from compare import assert_same

import tinytorch as tt
from tinytorch import nn
from tinytorch.autograd import grad, gradcheck, gradgradcheck
from tinytorch.backends.cpu import lib
from tinytorch.nn.utils import rnn

LAYERS = {
    "RNN": lambda m, **how: m.nn.RNN(3, 4, 2, nonlinearity="relu", **how),
    "LSTM": lambda m, **how: m.nn.LSTM(3, 4, 2, **how),
    "LSTM, projected": lambda m, **how: m.nn.LSTM(3, 4, 2, proj_size=2, **how),
    "GRU": lambda m, **how: m.nn.GRU(3, 4, 2, **how),
}


def floats(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape)


def flat(result):
    if isinstance(result, (tuple, list)):
        return [t for part in result if part is not None for t in flat(part)]
    return [result]


@pytest.mark.parametrize("lengths", [[5, 3, 2], [2, 5, 1], [4, 4, 4]], ids=str)
@pytest.mark.parametrize("both", [False, True], ids=["", "bidirectional"])
@pytest.mark.parametrize("name", LAYERS)
def test_packed_sequences(torch, name, both, lengths):
    results = []
    for m in (tt, torch):
        layer = LAYERS[name](m, bidirectional=both).double()
        with m.no_grad():
            for k, p in enumerate(layer.parameters()):
                p.copy_(m.from_numpy(floats(*p.shape, seed=k)))
        x = m.from_numpy(floats(5, 3, 3)).requires_grad_()
        packed = m.nn.utils.rnn.pack_padded_sequence(x, m.tensor(lengths), enforce_sorted=False)
        out, last = layer(packed)
        padded, found = m.nn.utils.rnn.pad_packed_sequence(out, padding_value=9.0, total_length=6)
        assert found.tolist() == lengths
        values = flat((padded, last))
        weights = [m.from_numpy(floats(*t.shape, seed=7)) for t in values]
        loss = sum((t * w).sum() for t, w in zip(values, weights, strict=True))
        results.append([*flat(tuple(out)), *values, *m.autograd.grad(loss, [x, *layer.parameters()])])
    for a, e in zip(*results, strict=True):
        assert_same(a, e, name, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_more_sequences_than_a_task_has_rows(torch, name):
    """Of several lengths, so that each step has other rows in common with the one before; and hidden numbers of
    several tasks."""
    lengths = [1 + k % 3 for k in range(300)]
    found = []
    for m in (torch, tt):
        net = getattr(m.nn, name)(3, 130, bidirectional=True).double()
        for p in net.parameters():
            p.data = m.from_numpy(floats(*p.shape, seed=p.numel()) / 16)
        x = m.from_numpy(floats(3, 300, 3)).requires_grad_()
        packed = m.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
        out = m.nn.utils.rnn.pad_packed_sequence(net(packed)[0])[0]
        (out * out).sum().backward()
        found.append([t.detach().numpy() for t in (out, x.grad, *(p.grad for p in net.parameters()))])
    for a, b in zip(found[1], found[0]):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("mode", [contextlib.nullcontext, tt.fuse], ids=["eager", "fused"])
@pytest.mark.parametrize("name", LAYERS)
def test_second_derivatives(name, mode):
    """Through the input, the first states and all parameters, of sequences of several lengths."""
    tt.manual_seed(0)
    size = {"proj_size": 1} if "projected" in name else {}
    layer = getattr(nn, name.partition(",")[0])(2, 2, bidirectional=True, **size).double()
    names = [n for n, _ in layer.named_parameters()]
    first = [tt.randn(2, 2, layer.proj_size or 2, dtype=tt.float64), tt.randn(2, 2, 2, dtype=tt.float64)]
    states = first if name.startswith("LSTM") else first[:1]
    values = [tt.randn(3, 2, dtype=tt.float64), *states, *(p.detach() * 0.5 for p in layer.parameters())]

    def call(x, *rest):
        hx = tuple(rest[: len(states)]) if len(states) > 1 else rest[0]
        parameters = dict(zip(names, rest[len(states) :], strict=True))
        packed = rnn.PackedSequence(x, tt.tensor([2, 1]))
        out, last = tt.func.functional_call(layer, parameters, (packed, hx))
        return flat((out.data, last))

    with mode():
        inputs = [v.clone().requires_grad_() for v in values]
        assert gradcheck(call, inputs, fast_mode=True)
        assert gradgradcheck(call, inputs, fast_mode=True)


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_derivatives_of_no_sequence(name):
    layer = getattr(nn, name)(3, 4)
    out, _ = layer(tt.zeros(5, 0, 3))
    out.sum().backward()
    assert out.shape == (5, 0, 4) and all(not p.grad.any() for p in layer.parameters())


@pytest.mark.parametrize("dtype", [tt.float32, tt.bfloat16], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_bits_do_not_depend_on_threads(name, dtype):
    before, found = tt.get_num_threads(), []
    tt.manual_seed(0)
    layer, x = getattr(nn, name)(20, 300).to(dtype), tt.randn(4, 200, 20).to(dtype).requires_grad_()
    try:
        for threads in (1, 2, 5):
            tt.set_num_threads(threads)
            out, last = layer(x)
            found.append([out, *flat(last), *grad(out.sum(), [x, *layer.parameters()])])
    finally:
        tt.set_num_threads(before)
    for other in found[1:]:
        assert all(tt.equal(a, b) for a, b in zip(found[0], other, strict=True))


@pytest.fixture(params=["best", "avx2"])
def isa(request):
    """The instruction sets of this machine, of which the best one may have tiles for bfloat16."""
    before = lib.tt_isa_name()
    if request.param != "best" and lib.tt_set_isa(request.param.encode()):
        pytest.skip(f"no {request.param}")
    yield
    lib.tt_set_isa(before)


@pytest.mark.parametrize("dtype", [tt.float16, tt.bfloat16], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("name", LAYERS)
def test_halves(name, dtype, isa):
    """Near float32's results and first and second derivatives; of a hidden size, a batch and a depth of products that
    take several tasks and blocks, and of several lengths."""
    tt.manual_seed(0)
    layer = getattr(nn, name.partition(",")[0])(9, 138, bidirectional=True, **({"proj_size": 5} if "," in name else {}))
    x = tt.randn(3, 150, 9).to(dtype)
    lengths, found = [1 + k % 3 for k in range(150)], []
    for kind in (dtype, tt.float32):
        net = copy.deepcopy(layer.to(dtype)).to(kind)
        inputs = [x.to(kind).requires_grad_(), *net.parameters()]
        packed = rnn.pack_padded_sequence(inputs[0], lengths, enforce_sorted=False)
        out, last = net(packed)
        values = [out.data, *flat(last)]
        assert all(v.dtype == kind for v in values)
        first = grad(0.01 * sum((v.float() ** 2).sum() for v in values), inputs, create_graph=True)
        second = grad(0.1 * sum((g.float() ** 2).sum() for g in first), inputs)
        assert all(g.dtype == kind for g in (*first, *second))
        found.append([t.detach().float() for t in (*values, *first, *second)])
    for half, wide in zip(*found, strict=True):
        assert float((half - wide).norm() / wide.norm()) < (0.01 if dtype is tt.bfloat16 else 0.002)


def test_dropout_between_layers():
    layer, x = nn.GRU(3, 4, 2, dropout=1.0), tt.randn(5, 2, 3)
    plain = nn.GRU(4, 4)
    plain.load_state_dict(
        {f"{n}_l0": getattr(layer, f"{n}_l1") for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
    )
    assert tt.allclose(layer(x)[0], plain(tt.zeros(5, 2, 4))[0])
    assert not tt.allclose(layer.eval()(x)[0], plain(tt.zeros(5, 2, 4))[0])
    with pytest.warns(UserWarning, match="num_layers greater than 1"):
        nn.GRU(3, 4, dropout=0.5)


def test_padding_and_packing(torch):
    results = []
    for m in (tt, torch):
        u = m.nn.utils.rnn
        rows = [m.arange(float(n)) + 1 for n in (2, 4, 3)]
        packed = u.pack_sequence(rows, enforce_sorted=False)
        results.append(
            flat(
                [
                    u.pad_sequence(rows),
                    u.pad_sequence(rows, True, -1.0, "left"),
                    tuple(packed),
                    u.unpack_sequence(packed),
                    u.unpad_sequence(u.pad_sequence(rows), m.tensor([2, 4, 3])),
                    u.invert_permutation(m.tensor([2, 0, 1])),
                    tuple(packed.double()),
                    tuple(u.pack_padded_sequence(m.ones(2, 4, 3), [3, 2], batch_first=True)),
                ]
            )
        )
    for a, e in zip(*results, strict=True):
        assert_same(a, e)
    packed = rnn.pack_sequence([tt.ones(2), tt.ones(1)])
    assert packed.to(tt.float32) is packed and not packed.is_cuda and not packed.is_pinned()
    assert isinstance(pickle.loads(pickle.dumps(packed)), rnn.PackedSequence)


def test_errors(torch):
    """The exceptions of PyTorch, and the first words of what they say."""

    def calls(m):
        u, x = m.nn.utils.rnn, m.zeros(4, 3, 2)
        lstm, cell = m.nn.LSTM(4, 5, 2), m.nn.GRUCell(3, 4)
        return [
            lambda: lstm(m.zeros(3, 2, 3)),
            lambda: lstm(m.zeros(3)),
            lambda: lstm(m.zeros(3, 2, 4), (m.zeros(2, 5), m.zeros(2, 5))),
            lambda: lstm(m.zeros(3, 4), (m.zeros(2, 2, 5), m.zeros(2, 2, 5))),
            lambda: lstm(m.zeros(3, 2, 4), (m.zeros(2, 3, 5), m.zeros(2, 3, 5))),
            lambda: lstm(m.zeros(3, 2, 4), (m.zeros(2, 2, 5), m.zeros(2, 3, 5))),
            lambda: m.nn.GRU(4, 5)(m.zeros(3, 2, 4), m.zeros(2, 5)),
            lambda: m.nn.RNN(4, 5, nonlinearity="x"),
            lambda: m.nn.GRU(4, 5, proj_size=2),
            lambda: m.nn.LSTM(4, 5, proj_size=5),
            lambda: m.nn.LSTM(4, 5, dropout=2),
            lambda: m.nn.LSTM(4, 0),
            lambda: m.nn.LSTM(4.0, 2),
            lambda: m.nn.LSTM(4, 2, bias=1),
            lambda: cell(m.zeros(2, 5)),
            lambda: cell(m.zeros(2, 2, 3)),
            lambda: cell(m.zeros(2, 3), m.zeros(3, 4)),
            lambda: cell(m.zeros(2, 3), m.zeros(2, 5)),
            lambda: u.pack_padded_sequence(x, [2, 3, 4]),
            lambda: u.pack_padded_sequence(x, [4, 3, 0]),
            lambda: u.pack_padded_sequence(x, [4, 3]),
            lambda: u.pad_packed_sequence(u.pack_padded_sequence(x, [3, 3, 2]), total_length=2),
            lambda: u.pad_sequence([]),
            lambda: u.pad_sequence(3),
            lambda: u.pad_sequence([x], padding_side="x"),
        ]

    for ours, theirs in zip(calls(tt), calls(torch), strict=True):
        with pytest.raises((RuntimeError, ValueError, TypeError)) as wanted:
            theirs()
        with pytest.raises(wanted.type) as found:
            ours()
        assert str(found.value)[:30] == str(wanted.value)[:30]
