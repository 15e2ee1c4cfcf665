"""Hooks of optimisers, and states that other libraries keep in them, against PyTorch's."""

import importlib
from collections import defaultdict

import pytest

import tinytorch as tt
from tinytorch import nn, optim

torch = pytest.importorskip("torch")
BOTH = pytest.mark.parametrize("m", [tt, torch], ids=["tinytorch", "torch"])


def made(m, **options):
    p = m.nn.Parameter(m.ones(2))
    p.grad = m.ones(2)
    return p, m.optim.SGD([p], lr=0.5, momentum=0.5, **options)


@BOTH
def test_step_hooks(m):
    _, opt = made(m)
    said = []

    def note(text):
        return lambda o, args, kwargs: said.append((text, o is opt, args[0] is opt, len(args), kwargs))

    modules = importlib.import_module(m.__name__ + ".optim.optimizer")
    handles = [
        opt.register_step_pre_hook(note("pre")),
        opt.register_step_post_hook(note("post")),
        modules.register_optimizer_step_pre_hook(note("all pre")),
        modules.register_optimizer_step_post_hook(note("all post")),
    ]
    opt.step()
    assert [s[0] for s in said] == ["all pre", "pre", "post", "all post"]
    assert all(s[1:] == (True, True, 1, {}) for s in said)
    said.clear()
    opt.step(lambda: m.ones(()))
    assert [s[3] for s in said] == [2] * 4
    for handle in handles:
        handle.remove()
    said.clear()
    opt.step()
    assert said == []


@BOTH
def test_a_hook_changes_the_arguments(m):
    p, opt = made(m)

    def closure():
        p.grad = m.ones(2) * 2
        return m.tensor(7.0)

    with opt.register_step_pre_hook(lambda o, args, kwargs: ((o, closure), kwargs)):
        assert opt.step() == 7.0 and p.tolist() == [0.0, 0.0]
    opt.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="None or a tuple of"):
        opt.step()


@BOTH
def test_state_dict_hooks(m):
    p, opt = made(m)
    opt.step()
    said = []
    opt.register_state_dict_pre_hook(lambda o: said.append("second"))
    opt.register_state_dict_pre_hook(lambda o: said.append("first"), prepend=True)
    opt.register_state_dict_post_hook(lambda o, d: d.update(more=1))
    opt.register_state_dict_post_hook(lambda o, d: {**d, "replaced": "more" in d})
    state = opt.state_dict()
    assert said == ["first", "second"] and state["more"] == 1 and state["replaced"] is True
    fresh = m.optim.SGD([p], lr=9.0)
    fresh.register_load_state_dict_pre_hook(lambda o, d: d.pop("more") and None)
    fresh.register_load_state_dict_pre_hook(lambda o, d: {**d, "param_groups": [{**d["param_groups"][0], "lr": 3.0}]})
    fresh.register_load_state_dict_post_hook(lambda o: said.append(o.param_groups[0]["lr"]))
    fresh.load_state_dict(state)
    assert said[-1] == 3.0 and "more" in state and fresh.state[p]["momentum_buffer"].tolist() == [1.0, 1.0]


@BOTH
def test_state_that_is_not_of_a_parameter(m):
    p, opt = made(m)
    opt.step()
    opt.state["k"] = m.tensor([0])
    opt.state["text"] = "kept"
    opt.state[p]["nested"] = {"a": [m.ones(2), 3]}
    other = m.optim.SGD([p], lr=0.1)
    other.load_state_dict(opt.state_dict())
    assert other.state["k"].tolist() == [0] and other.state["text"] == "kept"
    assert other.state[p]["nested"]["a"][0].tolist() == [1.0, 1.0] and other.state[p]["nested"]["a"][1] == 3


def test_a_wrapper_that_does_not_call_init():
    """PyTorch can step such a one."""

    class Wrapper(optim.Optimizer):
        def __init__(self, base):
            self.base, self.param_groups, self.defaults, self.state = base, base.param_groups, {}, defaultdict(dict)

        def step(self, closure=None):
            return self.base.step(closure)

    p, opt = made(tt)
    wrapper = Wrapper(opt)
    wrapper.step()
    assert p.tolist() == [0.5, 0.5]
    wrapper.zero_grad()
    assert p.grad is None and wrapper.state_dict()["param_groups"][0]["lr"] == 0.5
    schedule = optim.lr_scheduler.StepLR(wrapper, 1)
    wrapper.step()
    schedule.step()
    assert opt.param_groups[0]["lr"] == 0.05
    said = []
    wrapper.register_step_pre_hook(lambda *args: said.append(1))
    wrapper.step()
    assert said == [1]


def test_hooks_are_of_one_optimizer():
    said = []
    first, second = (optim.SGD([nn.Parameter(tt.ones(1))]) for _ in range(2))
    first.register_step_pre_hook(lambda *args: said.append(1))
    second.step()
    assert said == []
    first.step()
    assert said == [1]
