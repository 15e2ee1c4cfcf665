"""Optimisers on devices: the bits of the CPU's results, few launches, nobody waits."""

import numpy as np
import pytest
import tinytorch as tt
from tinytorch import optim

SHAPES = [(33, 7), (), (1,), (1024,), (2049,), (4099,), (3, 5, 2), (0,)]
RULES = {
    "sgd": lambda p: optim.SGD(p, lr=0.1, weight_decay=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    "nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, maximize=True),
    "adam": lambda p: optim.Adam(p, amsgrad=True, weight_decay=0.1),
    "adamw": lambda p: optim.AdamW(p),
    "rmsprop": lambda p: optim.RMSprop(p, centered=True, momentum=0.9),
    "rmsprop_momentum": lambda p: optim.RMSprop(p, momentum=0.9),
    "adagrad": lambda p: optim.Adagrad(p, lr_decay=0.1),
    "adadelta": lambda p: optim.Adadelta(p, weight_decay=0.1),
    "adamax": lambda p: optim.Adamax(p, weight_decay=0.1),
    "asgd": lambda p: optim.ASGD(p, lambd=0.1, t0=1),
    "nadam": lambda p: optim.NAdam(p, weight_decay=0.1, decoupled_weight_decay=True),
    "radam": lambda p: optim.RAdam(p, betas=(0.3, 0.9)),
    "rprop": lambda p: optim.Rprop(p),
}


def bits(t):
    return t.detach().cpu().contiguous().reshape(-1).view(tt.uint8).numpy()


def parameters(arrays, dtype, device):
    """Leaves; the first of them lies transposed in memory."""
    made = [tt.tensor(a).to(dtype).to(device) for a in arrays]
    if made[0].ndim == 2:
        made[0] = made[0].t().contiguous().t()
    return [p.requires_grad_() for p in made]


def train(make, arrays, grads, dtype, device):
    params = parameters(arrays, dtype, device)
    optimizer = make(params)
    for step in grads:
        for p, g in zip(params, step):
            p.grad = tt.tensor(g).to(dtype).to(device)
        optimizer.step()
    return params, optimizer


def both(make, dtype, shapes=SHAPES, steps=3):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s) for s in shapes]
    grads = [[rng.standard_normal(s) for s in shapes] for _ in range(steps)]
    return [train(make, arrays, grads, dtype, device) for device in ("cpu", "cuda")]


@pytest.mark.parametrize(
    "rule, dtype",
    [*((rule, "float32") for rule in RULES), ("adamw", "float64"), ("adam", "float16"), ("momentum", "bfloat16")],
)
def test_bits(gpu, rule, dtype):
    here, there = both(RULES[rule], getattr(tt, dtype))
    for p, q in zip(here[0], there[0]):
        np.testing.assert_array_equal(bits(p), bits(q))
        for name, value in here[1].state[p].items():
            if value is not None:
                np.testing.assert_array_equal(bits(value), bits(there[1].state[q][name]))


def test_many_parameters_go_into_few_launches(emulated):
    params = parameters([np.ones(5)] * 150 + [np.ones(3000)] * 10, tt.float32, "cuda")
    optimizer = optim.Adam(params)
    for p in params:
        p.grad = tt.ones_like(p)
    optimizer.step()
    emulated.launches.clear()
    optimizer.step()
    assert emulated.launches == ["adam_f32"] * 2


def test_misaligned_parameters(gpu):
    """Views of one buffer, from its second element on."""
    results = []
    for device in ("cpu", "cuda"):
        flat = tt.arange(5001, dtype=tt.float32).to(device)
        p = flat[1:].requires_grad_()
        p.grad = tt.full_like(p, 0.5)
        optim.SGD([p], lr=0.1).step()
        results.append(bits(flat))
    np.testing.assert_array_equal(*results)


def test_a_step_does_not_wait(emulated, monkeypatch):
    params = parameters([np.ones((3, 4)), np.ones(4)], tt.float32, "cuda")
    optimizer = optim.Adam(params)
    waits = []
    monkeypatch.setattr(emulated, "to_host", lambda *args: waits.append(args))
    monkeypatch.setattr(emulated, "wait_for_stream", waits.append)
    for _ in range(2):
        for p in params:
            p.grad = tt.ones_like(p)
        tt.nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()
    assert not waits


def test_parameters_on_several_devices(gpu):
    a, b = tt.ones(3, device="cuda").requires_grad_(), tt.ones(3).requires_grad_()
    optimizer = optim.SGD([a, b], lr=0.5)
    a.grad, b.grad = tt.ones(3, device="cuda"), tt.full((3,), 2.0)
    optimizer.step()
    assert a.tolist() == [0.5] * 3 and b.tolist() == [0.0] * 3


def test_a_gradient_of_another_device(gpu):
    p = tt.ones(3, device="cuda").requires_grad_()
    optimizer = optim.SGD([p], lr=0.5)
    p._grad = tt.ones(3)
    with pytest.raises(RuntimeError, match="SGD: gradient 0 is on cpu, but its parameter is on cuda:0"):
        optimizer.step()
    assert p.tolist() == [1.0] * 3


def test_steps_are_counted_on_the_cpu_and_states_follow_their_parameters(gpu):
    p = tt.ones(3).requires_grad_()
    p.grad = tt.ones(3)
    saved = optim.Adam([p])
    saved.step()
    q = tt.ones(3, device="cuda").requires_grad_()
    q.grad = tt.ones(3, device="cuda")
    loaded = optim.Adam([q])
    loaded.load_state_dict(saved.state_dict())
    assert loaded.state[q]["step"].device.type == "cpu" and loaded.state[q]["exp_avg"].device.type == "cuda"
    p.data.fill_(1)
    saved.step()
    loaded.step()
    assert p.tolist() == q.tolist()


@pytest.mark.parametrize(
    "rule",
    [optim.AdamW, optim.RMSprop, optim.Adamax, optim.RAdam, optim.NAdam, optim.ASGD, optim.Adadelta, optim.Rprop],
)
def test_steps_counted_on_the_device(gpu, rule):
    rng = np.random.default_rng(0)
    shapes = [(2049,), (0,), (3, 4)] + [(5,)] * 120
    arrays = [rng.standard_normal(s) for s in shapes]
    grads = [[rng.standard_normal(s) for s in shapes] for _ in range(3)]
    here, there = [
        train(lambda p, on=on: rule(p, capturable=on), arrays, grads, tt.float32, "cuda") for on in (False, True)
    ]
    for p, q in zip(here[0], there[0]):
        np.testing.assert_allclose(p.detach().cpu(), q.detach().cpu(), rtol=1e-6, atol=1e-7)
        assert there[1].state[q]["step"].device.type == "cuda" and there[1].state[q]["step"].item() == 3
    again = rule(there[0])
    again.load_state_dict(there[1].state_dict())
    assert again.state[there[0][0]]["step"].device.type == "cuda"  # the loaded groups are capturable


def scaled_program(rule, device, steps):
    """Parameters after steps by a GradScaler, some of which have infinite gradients."""
    rng = np.random.default_rng(0)
    params = parameters([rng.standard_normal(s) for s in SHAPES], tt.float32, device)
    optimizer, scaler = RULES[rule](params), tt.amp.GradScaler(device, init_scale=4.0, growth_interval=2)
    for step in range(steps):
        optimizer.zero_grad()
        factor = float("inf") if step in (0, 3) else 0.5
        scaler.scale(sum((p * p * factor).sum() for p in params if p.numel())).backward()
        scaler.step(optimizer)
        scaler.update()
    return params, scaler, optimizer


@pytest.mark.parametrize("rule", RULES)
def test_grad_scaler(gpu, rule):
    """A device leaves out what the CPU leaves out."""
    here, there = [scaled_program(rule, device, 5) for device in ("cpu", "cuda")]
    assert here[1].get_scale() == there[1].get_scale()
    for p, q in zip(here[0], there[0]):
        np.testing.assert_allclose(p.detach(), q.detach().cpu(), rtol=1e-6, atol=1e-7)
        if "step" in here[2].state[p] and p.grad is not None:
            assert here[2].state[p]["step"].item() == there[2].state[q]["step"].item() == 3


@pytest.mark.parametrize("steps", [0, 2])
@pytest.mark.parametrize("rule", RULES)
def test_grad_scaler_does_not_wait(emulated, monkeypatch, rule, steps):
    params, scaler, optimizer = scaled_program(rule, "cuda", steps)
    waits = []
    monkeypatch.setattr(emulated, "to_host", lambda *args: waits.append(args))
    monkeypatch.setattr(emulated, "wait_for_stream", waits.append)
    for _ in range(2):
        optimizer.zero_grad()
        scaler.scale(params[0].sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert not waits
