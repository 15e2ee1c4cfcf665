"""Optimisers and schedules against PyTorch's, and on their own."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import tinytorch as tt
from tinytorch import optim

torch = pytest.importorskip("torch")

SHAPES = [(7, 5), (5,), (), (33, 70), (3, 1, 4), (0, 3)]


def pair(dtype, seed=0):
    """The same parameters for both."""
    rng = np.random.default_rng(seed)
    values = [np.asarray(rng.standard_normal(s)) for s in SHAPES]
    mine = [tt.tensor(v, dtype=getattr(tt, dtype), requires_grad=True) for v in values]
    theirs = [torch.tensor(v, dtype=getattr(torch, dtype)).requires_grad_() for v in values]
    return mine, theirs


def array(t):
    return np.asarray(t.detach().tolist(), dtype=float).reshape(tuple(t.shape))


def give_grads(mine, theirs, rng, skip=None):
    for k, (a, b) in enumerate(zip(mine, theirs)):
        if k == skip:
            a.grad, b.grad = None, None
            continue
        g = np.asarray(rng.standard_normal(tuple(b.shape))).astype("float32")
        b.grad = torch.tensor(g).to(b.dtype)
        a.grad = tt.tensor(b.grad.double().numpy(), dtype=a.dtype)


OPTIMIZERS = [
    ("SGD", o)
    for o in (
        {},
        {"weight_decay": 0.1},
        {"momentum": 0.9},
        {"momentum": 0.9, "dampening": 0.5, "weight_decay": 0.01},
        {"momentum": 0.8, "nesterov": True},
        {"momentum": 0.8, "nesterov": True, "weight_decay": 0.05, "maximize": True},
        {"maximize": True},
    )
]
for name in ("Adam", "AdamW"):
    OPTIMIZERS += [
        (name, o)
        for o in (
            {},
            {"weight_decay": 0.1},
            {"weight_decay": 0.0, "amsgrad": True},
            {"weight_decay": 0.1, "amsgrad": True},
            {"maximize": True, "betas": (0.3, 0.7), "eps": 1e-3},
        )
    ]
OPTIMIZERS += [("Adam", {"weight_decay": 0.1, "decoupled_weight_decay": True})]
OPTIMIZERS += [
    ("RMSprop", o)
    for o in (
        {},
        {"weight_decay": 0.1},
        {"momentum": 0.9},
        {"centered": True},
        {"alpha": 0.4, "centered": True},
        {"centered": True, "momentum": 0.5, "weight_decay": 0.1, "maximize": True},
    )
]
OPTIMIZERS += [
    ("Adagrad", o)
    for o in ({}, {"lr_decay": 0.1, "weight_decay": 0.01}, {"initial_accumulator_value": 0.5, "maximize": True})
]
OPTIMIZERS += [
    (name, o)
    for name in ("Adadelta", "Adamax", "NAdam", "RAdam", "ASGD")
    for o in ({}, {"weight_decay": 0.1}, {"weight_decay": 0.1, "maximize": True})
]
OPTIMIZERS += [(name, {"weight_decay": 0.1, "decoupled_weight_decay": True}) for name in ("NAdam", "RAdam")]
OPTIMIZERS += [(name, {"betas": (0.3, 0.7), "eps": 1e-3}) for name in ("Adamax", "NAdam", "RAdam")]
OPTIMIZERS += [
    ("Adadelta", {"rho": 0.5, "eps": 1e-3}),
    ("NAdam", {"momentum_decay": 0.1}),
    ("ASGD", {"lambd": 0.1, "alpha": 0.5, "t0": 20}),
    ("Rprop", {}),
    ("Rprop", {"etas": (0.3, 1.5), "step_sizes": (1e-3, 0.1), "maximize": True}),
]


@pytest.mark.parametrize("dtype, tolerance", [("float32", 2e-6), ("float64", 1e-13)])
@pytest.mark.parametrize("name, options", OPTIMIZERS)
def test_hundred_steps(name, options, dtype, tolerance):
    mine, theirs = pair(dtype)
    a = getattr(optim, name)(mine, lr=0.01, **options)
    b = getattr(torch.optim, name)(theirs, lr=0.01, foreach=False, **options)
    rng = np.random.default_rng(1)
    for step in range(100):
        give_grads(mine, theirs, rng, skip=step % 7)  # a different parameter without gradient each time
        a.step()
        b.step()
    for x, y in zip(mine, theirs):
        np.testing.assert_allclose(array(x), array(y), rtol=tolerance, atol=tolerance)
    saved = b.state_dict()
    for k, state in a.state_dict()["state"].items():
        assert set(state) == set(saved["state"][k])
        for key, value in state.items():
            np.testing.assert_allclose(array(value), array(saved["state"][k][key]), rtol=tolerance * 10, atol=tolerance)
    assert {k: v for k, v in a.state_dict()["param_groups"][0].items() if k in options} == options


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", sorted({name for name, _ in OPTIMIZERS} - {"Adadelta"}))  # whose steps grow from 0
def test_half_types(name, dtype):
    mine, _ = pair(dtype)
    exact = [tt.tensor(array(p), dtype=tt.float32, requires_grad=True) for p in mine]
    a, b = (getattr(optim, name)(p, lr=0.01) for p in (mine, exact))
    rng = np.random.default_rng(1)
    for _ in range(3):
        for x, y in zip(mine, exact):
            x.grad = tt.tensor(rng.standard_normal(tuple(x.shape)), dtype=x.dtype)
            y.grad = tt.tensor(array(x.grad), dtype=tt.float32)
        a.step()
        b.step()
    for x, y in zip(mine, exact):
        assert x.dtype is getattr(tt, dtype)
        np.testing.assert_allclose(array(x), array(y), rtol=0.03, atol=0.03)


def test_layouts():
    """Parameters, gradients and states that lie differently in memory."""
    rng = np.random.default_rng(0)
    value = rng.standard_normal((6, 8))
    grad = rng.standard_normal((6, 8))

    def run(make, make_grad):
        p = make(tt.from_numpy(value.copy())).requires_grad_()
        opt = optim.Adam([p], lr=0.1, amsgrad=True)
        for _ in range(5):
            p.grad = make_grad(tt.from_numpy(grad.copy()))
            opt.step()
        return array(p)

    def transposed(t):
        return t.t().contiguous().t()

    def gaps(t):
        return tt.stack([t, t], 2).select(2, 0).detach()

    expected = run(lambda t: t, lambda t: t)
    for make in (lambda t: t, transposed, gaps):
        for make_grad in (lambda t: t, transposed, gaps):
            np.testing.assert_array_equal(run(make, make_grad), expected)
    wide = tt.from_numpy(grad[:, :1].copy()).expand(6, 8)
    np.testing.assert_array_equal(run(lambda t: t, lambda t: wide), run(transposed, lambda t: wide.contiguous()))


def test_threads_and_isa_do_not_change_bits():
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(s).astype("float32") for s in ((300, 401), (17,), (100003,))]
    results = []
    from tinytorch.backends.cpu import ffi, lib

    start = ffi.string(lib.tt_isa_name())
    threads = tt.get_num_threads()
    try:
        for isa in (b"baseline", b"avx2", b"avx512"):
            if lib.tt_set_isa(isa) < 0:
                continue
            for n in (1, 2, 5):
                tt.set_num_threads(n)
                params = [tt.from_numpy(v.copy()).requires_grad_() for v in values]
                opt = optim.AdamW(params, lr=0.1)
                for _ in range(3):
                    for p, v in zip(params, values):
                        p.grad = tt.from_numpy(v[::-1].copy())
                    opt.step()
                results.append(b"".join(p.detach().numpy().tobytes() for p in params))
    finally:
        lib.tt_set_isa(start)
        tt.set_num_threads(threads)
    assert len(set(results)) == 1


def test_versions_and_history():
    p = tt.tensor([1.0, 2.0], requires_grad=True)
    opt = optim.Adam([p])
    out = (p * p).sum()
    out.backward(retain_graph=True)
    before = p._version
    opt.step()
    assert p._version == before + 1 and p.is_leaf and p.requires_grad
    with pytest.raises(RuntimeError, match="Adam.step"):
        out.backward()
    opt.zero_grad()
    assert p.grad is None
    opt.step()  # nothing to do
    assert p._version == before + 1


def test_zero_grad_to_zeros():
    p = tt.tensor([1.0, 2.0], requires_grad=True)
    opt = optim.SGD([p], lr=0.1)
    (p * p).sum().backward()
    opt.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0, 0.0]


def test_closure_and_hooks():
    p = tt.tensor([1.0, 2.0], requires_grad=True)
    opt = optim.SGD([p], lr=0.1)
    seen = []
    first = opt.register_step_pre_hook(lambda o, args, kwargs: seen.append("before"))
    opt.register_step_post_hook(lambda o, args, kwargs: seen.append("after"))

    def closure():
        opt.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with tt.no_grad():
        loss = opt.step(closure)
    assert loss.item() == 5.0
    np.testing.assert_allclose(array(p), [0.8, 1.6])
    first.remove()
    opt.step()
    assert seen == ["before", "after", "after"]


def test_own_optimizer():
    class Plain(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @tt.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.sub_(p.grad * group["lr"])

    p = tt.tensor([1.0, 2.0], requires_grad=True)
    opt = Plain([p], 0.5)
    seen = []
    opt.register_step_post_hook(lambda *a: seen.append(1))
    (p * p).sum().backward()
    opt.step()
    assert p.tolist() == [0.0, 0.0] and seen == [1]


def test_groups():
    a, b = (tt.tensor([1.0], requires_grad=True) for _ in range(2))
    opt = optim.SGD([{"params": [a]}, {"params": b, "lr": 1.0}], lr=0.1)
    a.grad = b.grad = tt.tensor([1.0])
    opt.step()
    np.testing.assert_allclose([a.item(), b.item()], [0.9, 0.0], atol=1e-7)
    c = tt.tensor([1.0], requires_grad=True)
    opt.add_param_group({"params": [c], "momentum": 0.5})
    assert len(opt.param_groups) == 3 and opt.param_groups[2]["lr"] == 0.1
    assert "Parameter Group 1" in repr(opt) and "momentum: 0.5" in repr(opt)
    named = optim.Adam([("w", a), ("b", b)])
    assert named.param_groups[0]["param_names"] == ["w", "b"]


def test_bad_input():
    p = tt.tensor([1.0], requires_grad=True)
    for make, kind in [
        (lambda: optim.SGD([], lr=0.1), ValueError),
        (lambda: optim.SGD(p, lr=0.1), TypeError),
        (lambda: optim.SGD([1.0], lr=0.1), TypeError),
        (lambda: optim.SGD([p * 2], lr=0.1), ValueError),
        (lambda: optim.SGD([p], lr=-1.0), ValueError),
        (lambda: optim.SGD([p], momentum=-1.0), ValueError),
        (lambda: optim.SGD([p], nesterov=True), ValueError),
        (lambda: optim.Adam([p], betas=(1.0, 0.9)), ValueError),
        (lambda: optim.Adam([p], eps=-1.0), ValueError),
        (lambda: optim.AdamW([p], weight_decay=-1.0), ValueError),
        (lambda: optim.RMSprop([p], alpha=-1.0), ValueError),
        (lambda: optim.Adagrad([p], lr_decay=-1.0), ValueError),
        (lambda: optim.SGD([{"params": [p]}, {"params": [p]}], lr=0.1), ValueError),
        (lambda: optim.SGD([{"params": {p}}], lr=0.1), TypeError),
    ]:
        with pytest.raises(kind):
            make()
    with pytest.warns(UserWarning, match="duplicate"):
        opt = optim.SGD([p, p], lr=0.25)
    p.grad = tt.tensor([1.0])
    opt.step()
    assert p.item() == 0.5  # twice, as in PyTorch


def test_errors_leave_everything_as_it_was():
    a, b = tt.tensor([1.0, 2.0], requires_grad=True), tt.tensor([3.0], requires_grad=True)
    opt = optim.Adam([a, b])
    a.grad, b.grad = tt.tensor([1.0, 1.0]), tt.tensor([1.0])
    opt.step()
    state = copy.deepcopy(opt.state_dict())
    values, versions = (a.tolist(), b.tolist()), (a._version, b._version)
    opt.state[b]["exp_avg"] = tt.zeros(2)
    with pytest.raises(RuntimeError, match=r"Adam: state 1 has shape \(2,\), but its parameter has \(1,\)"):
        opt.step()
    opt.state[b]["exp_avg"] = tt.zeros(1, dtype=tt.float64)
    with pytest.raises(RuntimeError, match="dtype float64"):
        opt.step()
    assert (a.tolist(), b.tolist()) == values and (a._version, b._version) == versions
    assert opt.state[a]["step"].item() == state["state"][0]["step"].item() == 1.0


def test_replaced_data_is_seen():
    p = tt.tensor([1.0, 2.0], requires_grad=True)
    opt = optim.SGD([p], lr=1.0, momentum=0.9)
    for _ in range(3):
        p.grad = tt.tensor([1.0, 1.0])
        opt.step()
        p.data = tt.tensor([5.0, 5.0])
    p.grad = tt.tensor([0.0, 0.0])
    opt.step()
    np.testing.assert_allclose(array(p), 5 - 0.9 * 2.71, rtol=1e-6)


@pytest.mark.parametrize(
    "name, options",
    [
        ("SGD", {"momentum": 0.9}),
        ("Adam", {"amsgrad": True}),
        ("AdamW", {}),
        ("RMSprop", {"centered": True, "momentum": 0.5}),
        ("Adagrad", {}),
    ],
)
def test_state_dict_round_trip(name, options):
    mine, theirs = pair("float32")
    a = getattr(optim, name)(mine, lr=0.01, **options)
    rng = np.random.default_rng(1)
    for _ in range(3):
        give_grads(mine, theirs, rng)
        a.step()
    others = [p.detach().clone().requires_grad_() for p in mine]
    b = getattr(optim, name)(others, lr=0.5)
    b.load_state_dict(copy.deepcopy(a.state_dict()))
    assert b.param_groups[0]["lr"] == 0.01
    for _ in range(3):
        give_grads(mine, theirs, rng)
        for p, q in zip(mine, others):
            q.grad = p.grad.clone()
        a.step()
        b.step()
    for p, q in zip(mine, others):
        np.testing.assert_array_equal(array(p), array(q))
    with pytest.raises(ValueError, match="different number"):
        optim.SGD([{"params": mine[:1]}, {"params": mine[1:]}], lr=0.1).load_state_dict(a.state_dict())
    with pytest.raises(ValueError, match="doesn't match the size"):
        getattr(optim, name)(mine[:2], lr=0.1).load_state_dict(a.state_dict())


def test_pickle():
    p = tt.tensor([1.0, 2.0], requires_grad=True)
    opt = optim.Adam([p])
    p.grad = tt.tensor([1.0, 1.0])
    opt.step()
    again = pickle.loads(pickle.dumps(opt))
    q = again.param_groups[0]["params"][0]
    assert q.tolist() == p.tolist() and again.state[q]["step"].item() == 1.0


SCHEDULES = [
    ("LambdaLR", {"lr_lambda": lambda e: 0.9**e}),
    ("MultiplicativeLR", {"lr_lambda": lambda e: 0.95}),
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5, 5, 9], "gamma": 0.3}),
    ("ConstantLR", {"factor": 0.25, "total_iters": 4}),
    ("LinearLR", {"start_factor": 0.1, "total_iters": 7}),
    ("ExponentialLR", {"gamma": 0.8}),
    ("PolynomialLR", {"total_iters": 9, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 6, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 25}),
    (
        "OneCycleLR",
        {"max_lr": [0.5, 1.0], "epochs": 5, "steps_per_epoch": 5, "three_phase": True, "anneal_strategy": "linear"},
    ),
]


def schedule_pair(kind="SGD"):
    made = []
    for lib in (tt, torch):
        params = [lib.tensor([1.0], requires_grad=True) for _ in range(2)]
        options = {"momentum": 0.9} if kind == "SGD" else {}
        made.append(
            getattr(lib.optim if lib is torch else optim, kind)(
                [{"params": params[:1]}, {"params": params[1:], "lr": 0.3}], lr=0.1, **options
            )
        )
    return made


def rates(opt):
    return (
        [g["lr"] for g in opt.param_groups]
        + [g.get("momentum", 0) for g in opt.param_groups]
        + [g.get("betas", (0,))[0] for g in opt.param_groups]
    )


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name, options", SCHEDULES)
def test_schedules(name, options, kind):
    a, b = schedule_pair(kind)
    s, t = getattr(optim.lr_scheduler, name)(a, **options), getattr(torch.optim.lr_scheduler, name)(b, **options)
    for _ in range(24):
        np.testing.assert_allclose(rates(a), rates(b), rtol=1e-12, atol=1e-15)
        assert s.get_last_lr() == [g["lr"] for g in a.param_groups] and s.last_epoch == t.last_epoch
        a.step(), b.step()
        s.step(), t.step()
    fresh_a, _ = schedule_pair(kind)
    again = getattr(optim.lr_scheduler, name)(fresh_a, **options)
    again.load_state_dict(s.state_dict())
    assert again.last_epoch == s.last_epoch and again.get_last_lr() == s.get_last_lr()


def test_schedules_in_sequence_and_together():
    a, b = schedule_pair()
    made = []
    for lr, opt in ((optim.lr_scheduler, a), (torch.optim.lr_scheduler, b)):
        parts = [lr.LinearLR(opt, 0.1, total_iters=4), lr.ExponentialLR(opt, 0.9), lr.CosineAnnealingLR(opt, 5)]
        made.append(lr.SequentialLR(opt, parts, [4, 8]))
    for _ in range(15):
        np.testing.assert_allclose(rates(a), rates(b), rtol=1e-12, atol=1e-15)
        a.step(), b.step()
        made[0].step(), made[1].step()
    a, b = schedule_pair()
    made = [
        lr.ChainedScheduler([lr.ConstantLR(opt, 0.1, total_iters=2), lr.StepLR(opt, 2)])
        for lr, opt in ((optim.lr_scheduler, a), (torch.optim.lr_scheduler, b))
    ]
    for _ in range(8):
        np.testing.assert_allclose(rates(a), rates(b), rtol=1e-12)
        a.step(), b.step()
        made[0].step(), made[1].step()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "max", "threshold_mode": "abs", "threshold": 0.1},
        {"cooldown": 2, "min_lr": 0.01},
        {"mode": "max"},
        {"threshold_mode": "abs"},
    ],
)
def test_plateau(options):
    a, b = schedule_pair()
    s, t = (
        lr.ReduceLROnPlateau(opt, patience=1, factor=0.5, **options)
        for lr, opt in ((optim.lr_scheduler, a), (torch.optim.lr_scheduler, b))
    )
    rng = np.random.default_rng(0)
    for metric in np.concatenate([np.linspace(3, 1, 10), 1 + 0.05 * rng.standard_normal(30)]):
        s.step(metric), t.step(metric)
        assert rates(a) == rates(b)


def test_schedule_before_optimizer_warns():
    a, _ = schedule_pair()
    s = optim.lr_scheduler.StepLR(a, 2)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        s.step()
    a.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        s.step()
    with pytest.raises(TypeError, match="is not an Optimizer"):
        optim.lr_scheduler.StepLR(3, 2)


def test_tensor_learning_rate():
    p = tt.tensor([1.0], requires_grad=True)
    lr = tt.tensor(0.5)
    opt = optim.SGD([p], lr=lr)
    s = optim.lr_scheduler.ExponentialLR(opt, 0.5)
    p.grad = tt.tensor([1.0])
    opt.step()
    s.step()
    assert p.item() == 0.5 and lr.item() == 0.25
