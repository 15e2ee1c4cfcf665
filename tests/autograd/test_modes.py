"""no_grad, enable_grad, inference_mode and set_grad_enabled: contexts, decorators, one for each thread."""

import threading

import pytest

import tinytorch


def leaf(*values):
    return tinytorch.tensor(list(values), dtype=tinytorch.float64, requires_grad=True)


MODES = [("no_grad", False), ("enable_grad", True)]


@pytest.mark.parametrize("name, recording", MODES)
@pytest.mark.parametrize("called", [False, True])
def test_mode_as_context_and_decorator(name, recording, called):
    x, mode = leaf(1.0), getattr(tinytorch, name)
    with tinytorch.set_grad_enabled(not recording):
        with mode():
            assert tinytorch.is_grad_enabled() == recording
            assert (x * 2).requires_grad == recording
        assert tinytorch.is_grad_enabled() != recording

        def double(t):
            """Twice t."""
            return t * 2

        wrapped = mode()(double) if called else mode(double)
        assert wrapped(x).requires_grad == recording
        assert wrapped.__name__ == "double" and wrapped.__doc__ == "Twice t."


@pytest.mark.parametrize("context", ["no_grad", "enable_grad", "anomaly", "autocast", "no threads"])
@pytest.mark.parametrize("batched", [False, True])
def test_create_graph_within_a_mode(torch, context, batched):
    """Derivatives are recorded whatever mode they are asked for in. (PyTorch's batches are not for anomaly mode.)"""
    batched = batched and context != "anomaly"
    results = []
    for m in (tinytorch, torch):
        x = m.tensor([1.0, 2.0], requires_grad=True)
        y = x * x * x
        with {
            "no_grad": m.no_grad,
            "enable_grad": m.enable_grad,
            "anomaly": lambda m=m: m.autograd.set_detect_anomaly(True),
            "autocast": lambda m=m: m.autocast("cpu"),
            "no threads": lambda m=m: m.autograd.set_multithreading_enabled(False),
        }[context]():
            options = {"is_grads_batched": True} if batched else {}
            (g,) = m.autograd.grad(y, x, m.eye(2) if batched else m.ones(2), create_graph=True, **options)
        (second,) = m.autograd.grad(g.sum(), x)
        results.append((g.requires_grad, g.tolist(), second.tolist()))
    assert results[0] == results[1] and results[0][0]


def test_mode_survives_an_exception():
    with pytest.raises(KeyError), tinytorch.no_grad():
        raise KeyError
    assert tinytorch.is_grad_enabled()


def test_modes_nest_and_one_object_can_be_reused():
    mode = tinytorch.no_grad()
    for _ in range(2):
        with mode:
            assert not tinytorch.is_grad_enabled()
    with tinytorch.no_grad():
        with tinytorch.enable_grad():
            assert (leaf(1.0) * 2).requires_grad
        assert not (leaf(1.0) * 2).requires_grad


def test_no_grad_around_a_generator():
    """The mode holds while the generator runs, and not while its consumer does."""

    @tinytorch.no_grad()
    def steps():
        for _ in range(2):
            yield tinytorch.is_grad_enabled()

    for inside in steps():
        assert not inside and tinytorch.is_grad_enabled()


def test_set_grad_enabled_as_a_function_and_a_context():
    tinytorch.set_grad_enabled(False)
    try:
        assert not tinytorch.is_grad_enabled()
    finally:
        tinytorch.set_grad_enabled(True)
    with tinytorch.set_grad_enabled(False):
        assert not tinytorch.is_grad_enabled()
    assert tinytorch.is_grad_enabled()

    @tinytorch.set_grad_enabled(False)
    def recorded(x):
        return (x * 2).requires_grad

    assert not recorded(leaf(1.0)) and tinytorch.is_grad_enabled()


def test_leaf_made_in_no_grad_requires_grad():
    with tinytorch.no_grad():
        x = leaf(1.0)
        assert x.requires_grad
    assert (x * 2).requires_grad


def test_inference_mode():
    x = leaf(1.0)
    with tinytorch.inference_mode():
        y = x * 2
        assert tinytorch.is_inference_mode_enabled() and y.is_inference() and not y.requires_grad
        y.add_(1)
    assert not tinytorch.is_inference_mode_enabled() and not x.is_inference()
    with pytest.raises(RuntimeError, match="[Ii]nference"):
        y * x  # would be saved for backward
    with pytest.raises(RuntimeError, match="[Ii]nference"):
        y.add_(1)
    with tinytorch.inference_mode(False):
        assert (x * 2).requires_grad

    @tinytorch.inference_mode()
    def f(t):
        return t * 2

    assert f(x).is_inference()


def test_modes_are_thread_local():
    seen, inside, go = [], threading.Event(), threading.Event()

    def other():
        seen.append(tinytorch.is_grad_enabled())
        with tinytorch.no_grad():
            inside.set()
            go.wait(10)
            seen.append(tinytorch.is_grad_enabled())

    with tinytorch.no_grad():
        thread = threading.Thread(target=other)
        thread.start()
        inside.wait(10)
        with tinytorch.enable_grad():
            go.set()
            thread.join()
    assert seen == [True, False]


def test_set_grad_enabled_sets_at_once():
    try:
        tinytorch.set_grad_enabled(False)
        assert not tinytorch.is_grad_enabled()
        tinytorch.set_grad_enabled(mode=True)
        assert tinytorch.is_grad_enabled()
        switch = tinytorch.set_grad_enabled(False)
        for _ in range(2):  # the first entering finds the mode set
            with switch:
                assert not tinytorch.is_grad_enabled()
            assert tinytorch.is_grad_enabled()
        with pytest.raises(TypeError):
            tinytorch.set_grad_enabled()
        with pytest.raises(RuntimeError, match="not entered"):
            switch.__exit__()
        assert tinytorch.is_grad_enabled()

        def kept():
            kept = tinytorch.set_grad_enabled(False)
            raise ValueError(kept)

        try:
            kept()
        except ValueError:
            assert not tinytorch.is_grad_enabled()
        assert not tinytorch.is_grad_enabled(), "a mode that was set stays set"
    finally:
        tinytorch.set_grad_enabled(True)
