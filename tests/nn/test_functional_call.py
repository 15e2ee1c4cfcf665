"""Modules as functions of their parameters, and parameters as one vector."""

import importlib

import pytest

import tinytorch as tt

torch = pytest.importorskip("torch")
BOTH = pytest.mark.parametrize("m", [tt, torch], ids=["tinytorch", "torch"])


# Modules as functions.


def call(m):
    return importlib.import_module(f"{m.__name__}.func").functional_call


@BOTH
def test_functional_call(m):
    net = m.nn.Sequential(m.nn.Linear(2, 1))
    weight, bias = net[0].weight, net[0].bias
    w = m.tensor([[2.0, 3.0]], requires_grad=True)
    out = call(m)(net, {"0.weight": w, "0.bias": m.zeros(1)}, m.ones(1, 2))
    assert out.tolist() == [[5.0]] and net[0].weight is weight and net[0].bias is bias
    out.sum().backward()
    assert w.grad.tolist() == [[1.0, 1.0]] and weight.grad is None
    several = call(m)(net, ({"0.weight": w}, {"0.bias": m.ones(1)}), (m.ones(1, 2),))
    assert several.tolist() == [[6.0]]
    with pytest.raises(RuntimeError, match="Missing key.*'0.bias'"):
        call(m)(net, {"0.weight": w}, m.ones(1, 2), strict=True)
    with pytest.raises(RuntimeError, match="Unexpected key.*'more'"):
        call(m)(net, {"0.weight": w, "0.bias": bias, "more": w}, m.ones(1, 2), strict=True)
    with pytest.raises(TypeError, match="is not an instance of"):
        call(m)(net, {"0.weight": 3}, m.ones(1, 2))
    with pytest.raises(Exception):  # noqa: B017, PT011 (of the shape)
        call(m)(net, {"0.weight": m.ones(3, 3)}, m.ones(1, 2))
    assert net[0].weight is weight and net[0].bias is bias


@BOTH
def test_functional_call_of_buffers_and_tied_weights(m):
    class Counts(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", m.zeros(1))
            self.a = m.nn.Parameter(m.ones(1))
            self.b = self.a

        def forward(self, x, *, factor=1.0):
            self.n = self.n + 1
            return (self.a + self.b) * x * factor

    net = Counts()
    given = {"n": m.ones(1) * 5}
    assert call(m)(net, given, m.ones(1), {"factor": 3.0}).item() == 6.0
    assert given["n"].item() == 6.0 and net.n.item() == 0.0
    assert call(m)(net, {"a": m.ones(1) * 4}, m.ones(1)).item() == 8.0
    assert call(m)(net, {"a": m.ones(1) * 4}, m.ones(1), tie_weights=False).item() == 5.0
    with pytest.raises(ValueError, match="multiple values for keys"):
        call(m)(net, {"a": m.ones(1), "b": m.zeros(1)}, m.ones(1))
    assert net.a is net.b and net.a.item() == 1.0


@BOTH
def test_parameters_show_the_vector(m):
    parameters = [m.nn.Parameter(m.zeros(2, 2)), m.nn.Parameter(m.zeros(3))]
    vector = m.arange(7.0)
    m.nn.utils.vector_to_parameters(vector, parameters)
    vector += 1
    assert [p.tolist() for p in parameters] == [[[1.0, 2.0], [3.0, 4.0]], [5.0, 6.0, 7.0]]


def test_vectors_of_one_device():
    a, b = tt.ones(2, 2), tt.zeros(3)
    assert tt.nn.utils.parameters_to_vector([a, b]).tolist() == [1.0] * 4 + [0.0] * 3
    with pytest.raises(TypeError, match="expected Tensor"):
        tt.nn.utils.vector_to_parameters([1.0], [a])
