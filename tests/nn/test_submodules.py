"""Modules in modules: each test runs on both libraries."""

import pytest

import tinytorch as tt

torch = pytest.importorskip("torch")
BOTH = pytest.mark.parametrize("m", [tt, torch], ids=["tinytorch", "torch"])


@BOTH
def test_set_submodule(m):
    nn = m.nn
    net = nn.Sequential(nn.Sequential(nn.Linear(1, 1)), nn.Tanh())
    relu = nn.ReLU()
    net.set_submodule("0.0", relu)
    net.set_submodule("1", relu, strict=True)
    net.set_submodule("0.new", nn.Tanh())
    assert net[0][0] is relu and net[1] is relu and isinstance(net[0].new, nn.Tanh)
    for args, kind in (
        (("", relu), ValueError),
        (("0.0", 3), ValueError),
        (("0.missing", relu, True), AttributeError),
        (("missing.0", relu), AttributeError),
        (("training", relu), AttributeError),
    ):
        with pytest.raises(kind):
            net.set_submodule(*args)


@BOTH
def test_modules_that_are_there_twice(m):
    shared = m.nn.Tanh()
    net = m.nn.Sequential(shared, m.nn.Sequential(shared))
    assert len(list(net.modules())) == 3 and len(list(net.modules(remove_duplicate=False))) == 4


@BOTH
def test_to_empty(m):
    net = m.nn.Sequential(m.nn.Linear(2, 3))
    net.register_buffer("b", m.zeros(2))
    weight = net[0].weight
    before = weight.data_ptr()
    assert net.to_empty(device="cpu") is net and net[0].weight.shape == (3, 2) and net.b.shape == (2,)
    assert net[0].weight is weight and weight.requires_grad and weight.data_ptr() != before


@BOTH
def test_to_a_memory_format(m):
    net = m.nn.Sequential(m.nn.Conv2d(4, 5, 3), m.nn.Conv1d(4, 5, 3), m.nn.BatchNorm2d(3))
    weight, values = net[0].weight, net[0].weight.detach().clone()
    assert net.to(memory_format=m.channels_last) is net and net[0].weight is weight
    assert weight.stride() == (36, 1, 12, 4) and net[1].weight.stride() == (12, 3, 1)
    assert bool((weight == values).all()) and weight.requires_grad
    net.to(m.float64, memory_format=m.contiguous_format)
    assert weight.stride() == (36, 9, 3, 1) and weight.dtype == m.float64


@BOTH
def test_a_class_that_answers_for_attributes_is_asked_for_weights(m):
    """As Pyro's modules are, which note who is asked for."""
    nn, asked = m.nn, []

    class Noting(nn.Module):
        def __getattr__(self, name):
            asked.append(name)
            return super().__getattr__(name)

    for layer, size in ((nn.Linear(2, 2), (1, 2)), (nn.Conv1d(2, 2, 1), (1, 2, 3)), (nn.LayerNorm(2), (1, 2))):
        layer.__class__ = type("Both", (Noting, type(layer)), {})
        asked.clear()
        layer(m.ones(size))
        assert [name for name in asked if name in ("weight", "bias")] == ["weight", "bias"]
