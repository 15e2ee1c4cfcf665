"""Optimizers restored from the state of others, gradients and tensors that are the same object or memory: as in
PyTorch."""

import copy

import numpy as np
import pytest
from compare import assert_same

import tinytorch as tt
from tinytorch.nn.utils import clip_grad_norm_, clip_grad_value_


def parameters(m):
    rng = np.random.default_rng(0)
    return [m.from_numpy(rng.normal(size=shape)).requires_grad_() for shape in ((3, 4), (5,))]


def step(m, params, optimizer, count):
    for _ in range(count):
        optimizer.zero_grad()
        sum((p.sin() * p).sum() for p in params).backward()
        optimizer.step()


# Whose state is saved, who takes it, and what was done to the state meanwhile.
RESTORED = {
    "AdamW from AdamW": ("AdamW", {}, "AdamW", {}, lambda state: None),
    "AdamW from Adam": ("Adam", {"weight_decay": 0.1}, "AdamW", {}, lambda state: None),
    "Adam from AdamW": ("AdamW", {"weight_decay": 0.1}, "Adam", {}, lambda state: None),
    "AdamW from a state before decoupled_weight_decay": (
        "AdamW",
        {"weight_decay": 0.1},
        "AdamW",
        {},
        lambda state: [group.pop("decoupled_weight_decay") for group in state["param_groups"]],
    ),
    "Adam from a state without newer options": (
        "Adam",
        {"weight_decay": 0.1},
        "Adam",
        {},
        lambda state: [
            group.pop(name)
            for group in state["param_groups"]
            for name in ("maximize", "foreach", "capturable", "differentiable", "fused", "decoupled_weight_decay")
        ],
    ),
    "Adam from steps that are numbers": (
        "Adam",
        {},
        "Adam",
        {},
        lambda state: [s.update(step=int(s["step"])) for s in state["state"].values()],
    ),
    "AdamW, amsgrad": ("AdamW", {"amsgrad": True}, "AdamW", {}, lambda state: None),
    "NAG from SGD": (
        "SGD",
        {"lr": 0.1, "momentum": 0.9},
        "SGD",
        {"lr": 1.0, "nesterov": True, "momentum": 0.5},
        lambda state: None,
    ),
    "SGD without its momentum": (
        "SGD",
        {"lr": 0.1, "momentum": 0.9},
        "SGD",
        {"lr": 1.0},
        lambda state: [s.update(momentum_buffer=None) for s in state["state"].values()],
    ),
    "RMSprop": ("RMSprop", {"centered": True, "momentum": 0.5}, "RMSprop", {}, lambda state: None),
    "Adagrad": ("Adagrad", {"lr_decay": 0.1}, "Adagrad", {}, lambda state: None),
    "Adagrad from steps that are numbers": (
        "Adagrad",
        {"lr_decay": 0.1},
        "Adagrad",
        {},
        lambda state: [s.update(step=int(s["step"])) for s in state["state"].values()],
    ),
}


@pytest.mark.parametrize("name", RESTORED)
def test_restored_from(torch, name):
    source, options, target, more, change = RESTORED[name]
    results = []
    for m in (tt, torch):
        first = parameters(m)
        optimizer = getattr(m.optim, source)(first, **options)
        step(m, first, optimizer, 3)
        state = copy.deepcopy(optimizer.state_dict())
        change(state)
        second = [p.detach().clone().requires_grad_() for p in first]
        restored = getattr(m.optim, target)(second, **more)
        restored.load_state_dict(state)
        step(m, second, restored, 3)
        facts = {k: v for k, v in restored.param_groups[0].items() if k not in ("params", "foreach", "fused")}
        results.append((second, facts))
    (ours, ours_facts), (theirs, theirs_facts) = results
    assert ours_facts == theirs_facts
    for a, e in zip(ours, theirs):
        assert_same(a, e, name, rtol=1e-10, atol=1e-12)


# ---- Gradients that are the same object, or the same memory.


def one_object(m, a, b):
    a.grad = b.grad = m.arange(6, dtype=m.float64).view(2, 3) - 2
    return [a, b]


def parameter_twice(m, a, b):
    a.grad = m.arange(6, dtype=m.float64).view(2, 3) - 2
    b.grad = m.ones(2, 3, dtype=m.float64)
    return [a, b, a]


def neighbours_in_one_buffer(m, a, b):
    buffer = m.arange(12, dtype=m.float64) - 4
    a.grad, b.grad = buffer[:6].view(2, 3), buffer[6:].view(2, 3)
    return [a, b]


def overlapping(m, a, b):
    buffer = m.arange(9, dtype=m.float64) - 4
    a.grad, b.grad = buffer[:6].view(2, 3), buffer[3:].view(2, 3)
    return [a, b]


def transposed_of_each_other(m, a, b):
    buffer = m.arange(9, dtype=m.float64).view(3, 3) - 4
    a.grad, b.grad = buffer[:2], buffer.t()[:2]
    return [a, b]


def apart(m, a, b):
    a.grad = m.arange(6, dtype=m.float64).view(2, 3) - 2
    b.grad = m.arange(6, dtype=m.float64).view(2, 3) * 2
    return [a, b]


SHARED = [one_object, parameter_twice, neighbours_in_one_buffer, overlapping, transposed_of_each_other, apart]


@pytest.mark.parametrize("shared", SHARED)
@pytest.mark.parametrize("clip", [("norm", 1.5), ("norm", 1e6), ("norm of infinity", 0.5), ("value", 1.5)])
def test_clipping_gradients_that_share_memory(torch, shared, clip):
    results = []
    for m in (tt, torch):
        a, b = (m.zeros(2, 3, dtype=m.float64, requires_grad=True) for _ in range(2))
        params = shared(m, a, b)
        norm, value = (
            (clip_grad_norm_, clip_grad_value_)
            if m is tt
            else (
                torch.nn.utils.clip_grad_norm_,
                torch.nn.utils.clip_grad_value_,
            )
        )
        how, limit = clip
        if how == "value":
            value(params, limit)
            total = 0.0
        else:
            total = norm(params, limit, **({"norm_type": float("inf")} if "infinity" in how else {})).item()
        results.append([a.grad.tolist(), b.grad.tolist(), total])
    np.testing.assert_allclose(np.array(results[0][:2]), np.array(results[1][:2]), rtol=1e-9)
    assert results[0][2] == pytest.approx(results[1][2], rel=1e-12)


# ---- Copies of what is there twice.


def a_tensor_twice(m):
    x = m.ones(3)
    return [x, x]


def a_parameter_twice(m):
    p = m.nn.Parameter(m.ones(3))
    return {"one": p, "two": [p]}


def a_tensor_and_its_view(m):
    x = m.arange(6.0)
    return [x, x[2:4], x.view(2, 3).t()]


def a_leaf_and_its_gradient(m):
    x = m.ones(3, requires_grad=True)
    (x * x).sum().backward()
    return [x, x.grad]


def tied_layers(m):
    a = m.nn.Linear(2, 2)
    b = m.nn.Linear(2, 2)
    b.weight = a.weight
    return [a, b, a]


def facts_of(items):
    """Which of the tensors are the same object, and which show the same memory at which distance."""
    tensors = []

    def walk(item):
        if hasattr(item, "parameters"):
            tensors.extend(item.parameters())
        elif isinstance(item, dict):
            [walk(v) for v in item.values()]
        elif isinstance(item, list):
            [walk(v) for v in item]
        else:
            tensors.append(item)

    walk(items)
    return [
        [a is b for a in tensors for b in tensors],
        [a.data_ptr() - b.data_ptr() if shares(a, b) else None for a in tensors for b in tensors],
        [(tuple(a.shape), a.stride(), a.requires_grad, type(a).__name__) for a in tensors],
    ]


def shares(a, b):
    """Whether a write to all of a is seen in b. Undone."""
    before = b.detach().clone()
    kept = a.detach().clone()
    a.detach().add_(1)
    seen = not bool((b.detach() == before).all())
    a.detach().copy_(kept)
    return seen


@pytest.mark.parametrize(
    "make", [a_tensor_twice, a_parameter_twice, a_tensor_and_its_view, a_leaf_and_its_gradient, tied_layers]
)
def test_deepcopy_keeps_what_is_the_same(torch, make):
    seen = []
    for m in (tt, torch):
        m.manual_seed(0)
        original = make(m)
        made = copy.deepcopy(original)
        seen.append(facts_of(made))
        assert facts_of(original) == seen[-1]
    assert seen[0] == seen[1]


def test_a_deepcopy_is_memory_of_its_own():
    for make in (a_tensor_twice, a_tensor_and_its_view):
        original = make(tt)
        made = copy.deepcopy(original)
        made[0].add_(5)
        assert original[0].tolist() == make(tt)[0].tolist()
