"""Schedules and averages against PyTorch's: closed forms, resuming, states, warnings."""

import copy
import gc
import io
import pickle
import types
import warnings
import weakref

import numpy as np
import pytest

import tinytorch as tt
from tinytorch import nn, optim

torch = pytest.importorskip("torch")


class Scale:
    """A callable object: its attributes are part of a schedule's state."""

    def __init__(self, factor=0.9):
        self.factor = factor

    def __call__(self, epoch):
        return self.factor**epoch


SCHEDULES = {
    "LambdaLR": [{"lr_lambda": Scale()}, {"lr_lambda": [Scale(), lambda e: 0.95**e]}],
    "MultiplicativeLR": [{"lr_lambda": lambda e: 0.95}],
    "StepLR": [{"step_size": 3, "gamma": 0.5}],
    "MultiStepLR": [{"milestones": [2, 5, 5, 9], "gamma": 0.3}],
    "ConstantLR": [{"factor": 0.25, "total_iters": 4}],
    "LinearLR": [{"start_factor": 0.1, "total_iters": 7}, {"start_factor": 0.5, "end_factor": 0.2}],
    "ExponentialLR": [{"gamma": 0.8}],
    "PolynomialLR": [{"total_iters": 9, "power": 2.0}],
    "CosineAnnealingLR": [{"T_max": 6, "eta_min": 0.01}],
    "CosineAnnealingWarmRestarts": [{"T_0": 3, "T_mult": 2}, {"T_0": 4, "eta_min": 0.01}],
    "OneCycleLR": [
        {"max_lr": 0.5, "total_steps": 30},
        {"max_lr": [0.5, 1.0], "epochs": 5, "steps_per_epoch": 6, "three_phase": True, "anneal_strategy": "linear"},
    ],
    "CyclicLR": [
        {"base_lr": 0.1, "max_lr": 0.6, "step_size_up": 4},
        {"base_lr": [0.1, 0.2], "max_lr": [0.6, 0.9], "step_size_up": 3, "step_size_down": 5, "mode": "triangular2"},
        {"base_lr": 0.1, "max_lr": 0.6, "step_size_up": 4, "mode": "exp_range", "gamma": 0.9, "base_momentum": 0.7},
        {"base_lr": 0.1, "max_lr": 0.6, "step_size_up": 4, "cycle_momentum": False, "scale_fn": Scale(0.5)},
        {"base_lr": 0.1, "max_lr": 0.6, "step_size_up": 4, "scale_fn": Scale(0.9), "scale_mode": "iterations"},
    ],
    "SWALR": [{"swa_lr": 0.01, "anneal_epochs": 5}, {"swa_lr": [0.01, 0.4], "anneal_strategy": "linear"},
              {"swa_lr": 0.01, "anneal_epochs": 0}],
}  # fmt: skip
CASES = [(name, options) for name, several in SCHEDULES.items() for options in several]
BY_EPOCH = ("StepLR", "MultiStepLR", "ConstantLR", "LinearLR", "ExponentialLR", "PolynomialLR", "CosineAnnealingLR")


def home(lib, name):
    return getattr(lib.optim.swa_utils if name == "SWALR" else lib.optim.lr_scheduler, name)


def optimizers(kind="SGD", tensor=False):
    made = []
    for lib in (tt, torch):
        params = [lib.nn.Parameter(lib.tensor([1.0])) for _ in range(2)]
        rates = [lib.tensor(v) if tensor else v for v in (0.1, 0.3)]
        options = {"momentum": 0.9} if kind == "SGD" else {}
        groups = [{"params": [p], "lr": r} for p, r in zip(params, rates)]
        made.append(getattr(lib.optim, kind)(groups, lr=0.1, **options))
    return made


def rates(opt):
    return [float(g["lr"]) for g in opt.param_groups] + [
        float(g["betas"][0] if "betas" in g else g["momentum"]) for g in opt.param_groups
    ]


def agree(a, b, rtol=1e-12):
    np.testing.assert_allclose(rates(a), rates(b), rtol=rtol, atol=1e-15)


@pytest.mark.parametrize("kind, tensor", [("SGD", False), ("Adam", False), ("SGD", True)])
@pytest.mark.parametrize("name, options", CASES)
def test_rates(name, options, kind, tensor):
    a, b = optimizers(kind, tensor)
    held = [g["lr"] for g in a.param_groups]
    s, t = home(tt, name)(a, **options), home(torch, name)(b, **options)
    for _ in range(25):
        agree(a, b, 1e-5 if tensor else 1e-12)
        assert s.last_epoch == t.last_epoch and s.get_last_lr() == [g["lr"] for g in a.param_groups]
        a.step(), b.step()
        s.step(), t.step()
    agree(a, b, 1e-5 if tensor else 1e-12)
    if tensor:
        assert all(g["lr"] is h for g, h in zip(a.param_groups, held)) and s.get_last_lr()[0] is not held[0]
        assert not any(isinstance(x, tt.Tensor) and x is h for x in s.base_lrs for h in held)


@pytest.mark.parametrize("name, options", [(n, o) for n, o in CASES if n in BY_EPOCH])
def test_closed_forms(name, options):
    a, b = optimizers()
    s, t = home(tt, name)(a, **options), home(torch, name)(b, **options)
    for epoch in (0, 3, 3, 7, 1, 12):
        a.step(), b.step()
        with pytest.warns(UserWarning, match="epoch parameter"):
            s.step(epoch)
        with pytest.warns(UserWarning):
            t.step(epoch)
        agree(a, b)
        assert s.last_epoch == t.last_epoch == epoch


def test_warm_restarts_at_a_fraction():
    a, b = optimizers()
    made = [home(m, "CosineAnnealingWarmRestarts")(o, 4, T_mult=2) for m, o in ((tt, a), (torch, b))]
    for epoch in (0, 0.25, 3.75, 4, 4.5, 11.9, 12, 40.5, None, None, 2, None):
        for s in made:
            s.step(epoch)
        agree(a, b)
        assert (made[0].T_cur, made[0].T_i, made[0].last_epoch) == (made[1].T_cur, made[1].T_i, made[1].last_epoch)
    with pytest.raises(ValueError, match="non-negative"):
        made[0].step(-1)


@pytest.mark.parametrize("last_epoch", [0, 4, 9])
@pytest.mark.parametrize("name, options", [c for c in CASES if c[0] not in ("SWALR",)])
def test_resumed(name, options, last_epoch):
    a, b = optimizers()
    first = [home(m, name)(o, **options) for m, o in ((tt, a), (torch, b))]
    for _ in range(last_epoch):
        for o, s in zip((a, b), first):
            o.step(), s.step()
    made = [home(m, name)(o, **options, last_epoch=last_epoch) for m, o in ((tt, a), (torch, b))]
    for _ in range(6):
        agree(a, b)
        assert made[0].last_epoch == made[1].last_epoch
        for o, s in zip((a, b), made):
            o.step(), s.step()
    fresh, _ = optimizers()
    with pytest.raises(KeyError, match=r"param 'initial_lr' is not specified in param_groups\[0\] when resuming"):
        home(tt, name)(fresh, **options, last_epoch=3)


@pytest.mark.parametrize("name, options", CASES)
def test_states(name, options):
    a, _ = optimizers()
    s = home(tt, name)(a, **copy.deepcopy(options))
    for _ in range(5):
        a.step(), s.step()
    f = io.BytesIO()
    tt.save({"s": s.state_dict(), "o": a.state_dict()}, f)
    f.seek(0)
    saved = tt.load(f)
    pickle.dumps(s.state_dict())
    fresh, _ = optimizers()
    again = home(tt, name)(fresh, **copy.deepcopy(options))
    for fn in (getattr(again, "_scale_fn_custom", None), *getattr(again, "lr_lambdas", ())):
        if isinstance(fn, Scale):
            fn.factor = 0.1  # the state has the right one
    keys = set(saved["s"])
    again.load_state_dict(saved["s"])
    fresh.load_state_dict(saved["o"])
    assert set(saved["s"]) == keys and "optimizer" not in keys
    for _ in range(5):
        assert rates(fresh) == rates(a) and again.last_epoch == s.last_epoch
        for o, sch in ((a, s), (fresh, again)):
            o.step(), sch.step()


def composites(lib):
    lr = lib.optim.lr_scheduler
    return {
        "sequence": lambda o: lr.SequentialLR(
            o, [lr.LinearLR(o, 0.1, total_iters=4), lr.ExponentialLR(o, 0.9), lr.CosineAnnealingLR(o, 5)], [4, 8]
        ),
        "restarts": lambda o: lr.SequentialLR(
            o, [lr.ConstantLR(o, 0.1, 3), lr.CosineAnnealingWarmRestarts(o, 2), lr.CyclicLR(o, 0.1, 0.4, 2)], [3, 7]
        ),
        "nested": lambda o: lr.SequentialLR(
            o, [lr.SequentialLR(o, [lr.ConstantLR(o, 0.5, 2), lr.StepLR(o, 2)], [3]), lr.ExponentialLR(o, 0.5)], [6]
        ),
        "chain": lambda o: lr.ChainedScheduler([lr.ConstantLR(o, 0.1, 2), lr.StepLR(o, 2), lr.ExponentialLR(o, 0.9)]),
        "chain of an optimizer": lambda o: lr.ChainedScheduler(
            [lr.LinearLR(o), lr.MultiStepLR(o, [2, 3])], optimizer=o
        ),
    }


@pytest.mark.parametrize("name", composites(tt))
def test_composites(name):
    a, b = optimizers()
    made = [composites(m)[name](o) for m, o in ((tt, a), (torch, b))]
    for _ in range(14):
        agree(a, b)
        assert made[0].get_last_lr() == [g["lr"] for g in a.param_groups]
        for o, s in zip((a, b), made):
            o.step(), s.step()
    fresh, _ = optimizers()
    again = composites(tt)[name](fresh)
    again.load_state_dict(pickle.loads(pickle.dumps(made[0].state_dict())))
    fresh.load_state_dict(a.state_dict())
    for _ in range(3):
        for o, s in ((a, made[0]), (fresh, again)):
            o.step(), s.step()
        assert rates(fresh) == rates(a)


REFUSED = [  # a call on the schedules and an optimizer
    "lr.StepLR(3, 2)",
    "lr.LambdaLR(o, [lambda e: 1])",
    "lr.MultiplicativeLR(o, [3, 4])",
    "lr.ConstantLR(o, factor=2)",
    "lr.LinearLR(o, start_factor=0)",
    "lr.LinearLR(o, end_factor=2)",
    "lr.CosineAnnealingWarmRestarts(o, 0)",
    "lr.CosineAnnealingWarmRestarts(o, 2, 0)",
    "lr.CosineAnnealingWarmRestarts(o, 2, eta_min='1')",
    "lr.CyclicLR(o, 0.1, 0.2, mode='square')",
    "lr.CyclicLR(o, [0.1], 0.2)",
    "lr.CyclicLR(plain, 0.1, 0.2)",
    "lr.OneCycleLR(o, 0.1)",
    "lr.OneCycleLR(o, 0.1, total_steps=0)",
    "lr.OneCycleLR(o, 0.1, epochs=2, steps_per_epoch=0)",
    "lr.OneCycleLR(o, 0.1, 4, pct_start=2.0)",
    "lr.OneCycleLR(o, 0.1, 4, anneal_strategy='steep')",
    "lr.OneCycleLR(plain, 0.1, 4)",
    "[s.step() for s in [lr.OneCycleLR(o, 0.1, 2)] for _ in range(3)]",
    "lr.ReduceLROnPlateau(o, factor=1.0)",
    "lr.ReduceLROnPlateau(o, mode='low')",
    "lr.ReduceLROnPlateau(o, threshold_mode='low')",
    "lr.ReduceLROnPlateau(o, min_lr=[1])",
    "lr.SequentialLR(o, [], [])",
    "lr.SequentialLR(o, [lr.StepLR(o, 1)], [1])",
    "lr.SequentialLR(o, [lr.StepLR(o, 1), lr.ReduceLROnPlateau(o)], [1])",
    "lr.SequentialLR(o, [lr.StepLR(o, 1), lr.StepLR(plain, 1)], [1])",
    "lr.SequentialLR(o, [3], [])",
    "lr.ChainedScheduler([])",
    "lr.ChainedScheduler([lr.StepLR(o, 1), lr.StepLR(plain, 1)])",
    "lr.LRScheduler(o)",
    "swa.SWALR(o, 0.1, anneal_strategy='steep')",
    "swa.SWALR(o, 0.1, anneal_epochs=-1)",
    "swa.SWALR(o, [0.1])",
    "swa.get_ema_avg_fn(2)",
    "swa.get_ema_multi_avg_fn(-1)",
    "swa.AveragedModel(net, avg_fn=max, multi_avg_fn=max)",
]


@pytest.mark.parametrize("call", REFUSED)
def test_refused(call):
    kinds = []
    for m, o in zip((tt, torch), optimizers()):
        plain = m.optim.Adagrad([m.nn.Parameter(m.ones(1))])
        names = {"lr": m.optim.lr_scheduler, "swa": m.optim.swa_utils, "o": o, "plain": plain, "net": m.nn.Linear(1, 1)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(Exception) as e:  # noqa: PT011 (which one, is compared)
                eval(call, names)
        kinds.append(e.type)
    assert kinds[0] is kinds[1], kinds


def said(action):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [str(w.message) for w in caught]


def test_warnings():
    a, _ = optimizers()
    s = optim.lr_scheduler.StepLR(a, 2)
    assert len(said(s.get_lr)) == 1 and "get_last_lr()" in said(s.get_lr)[0]
    (order,) = said(s.step)
    assert "Detected call of `lr_scheduler.step()` before `optimizer.step()`" in order
    assert "how-to-adjust-learning-rate" in order and said(s.step) == []
    b, _ = optimizers()
    s, step = optim.lr_scheduler.StepLR(b, 2), b.step
    b.step = types.MethodType(lambda self: step(), b)
    b.step()
    (order,) = said(s.step)
    assert "`optimizer.step()` has been overridden after" in order
    c, _ = optimizers()
    c.step = types.MethodType(lambda self: None, c)  # before: nothing is known of it
    s = optim.lr_scheduler.StepLR(c, 2)
    assert said(s.step) == []
    (deprecated,) = said(lambda: s.step(3))
    assert deprecated == optim.lr_scheduler.EPOCH_DEPRECATION_WARNING
    plateau = optim.lr_scheduler.ReduceLROnPlateau(c)
    assert said(lambda: plateau.step(1.0)) == [] and said(lambda: plateau.step(1.0, 3)) == [deprecated]


def test_plateau_follows_new_groups():
    a, b = optimizers()
    made = [m.optim.lr_scheduler.ReduceLROnPlateau(o, patience=0) for m, o in ((tt, a), (torch, b))]
    strict = [m.optim.lr_scheduler.ReduceLROnPlateau(o, patience=0, min_lr=[0, 0]) for m, o in ((tt, a), (torch, b))]
    for m, o in ((tt, a), (torch, b)):
        o.add_param_group({"params": [m.nn.Parameter(m.ones(1))]})
    for s in made:
        s.step(1.0), s.step(2.0)
    agree(a, b)
    for s in strict:
        s.step(1.0)
        with pytest.raises(RuntimeError, match="number of param groups"):
            s.step(2.0)
    again = optim.lr_scheduler.ReduceLROnPlateau(a, mode="max")
    again.load_state_dict(made[0].state_dict())
    assert (again.mode, again.best, again.in_cooldown) == ("min", 1.0, False)


def test_own_schedule():
    class Halves(optim.lr_scheduler.LRScheduler):
        def get_lr(self):
            return [group["lr"] / 2 for group in self.optimizer.param_groups]

        def _get_closed_form_lr(self):
            return [base / 2 ** (self.last_epoch + 1) for base in self.base_lrs]

    a, _ = optimizers()
    s = Halves(a)
    a.step(), s.step()
    assert [g["lr"] for g in a.param_groups] == [0.1 / 4, 0.3 / 4]
    with pytest.warns(UserWarning, match="epoch"):
        s.step(0)
    assert s.get_last_lr() == [0.05, 0.15]
    assert isinstance(s, optim.lr_scheduler.LRScheduler)


@pytest.mark.parametrize("name, options", CASES)
def test_schedules_are_freed_by_reference_counting(name, options, no_gc):
    a, _ = optimizers()
    s = weakref.ref(home(tt, name)(a, **options))
    o = weakref.ref(a)
    assert s() is None
    del a
    assert o() is None


# Averages.


class Net(nn.Module):
    """With a normalizing layer's running statistics."""

    def __init__(self, m):
        super().__init__()
        self.lin = nn.Linear(3, 2)
        self.register_buffer("running_mean", tt.zeros(2))
        self.register_buffer("count", tt.tensor(0))
        self.momentum = 0.1

    def reset_running_stats(self):
        self.running_mean.zero_()
        self.count.zero_()

    def forward(self, x):
        y = self.lin(x)
        if self.training:
            self.count.add_(1)
            share = 1 / self.count.item() if self.momentum is None else self.momentum
            self.running_mean.lerp_(y.detach().mean(0), share)
        return y - self.running_mean


AVERAGES = ["", "multi_avg_fn=swa.get_ema_multi_avg_fn(0.9)", "avg_fn=swa.get_ema_avg_fn(0.9)",
            "multi_avg_fn=swa.get_swa_multi_avg_fn()", "avg_fn=swa.get_swa_avg_fn()", "use_buffers=True",
            "avg_fn=swa.get_ema_avg_fn(0.5), use_buffers=True"]  # fmt: skip


@pytest.mark.parametrize("options", AVERAGES)
def test_averaged_model(options):
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((2, 3)).astype("float32") for _ in range(5)]
    found = []
    for m in (tt, torch):
        net = m.nn.Linear(3, 2, bias=False)
        net.register_buffer("b", m.zeros(2, 3))
        net.register_buffer("n", m.tensor(0))
        averaged = eval(f"swa.AveragedModel(net, {options})", {"swa": m.optim.swa_utils, "net": net})
        for k, w in enumerate(weights):
            with m.no_grad():
                net.weight.copy_(m.tensor(w))
                net.b.copy_(m.tensor(w))
                net.n.fill_(10 * k)
            averaged.update_parameters(net)
        assert averaged.n_averaged == 5 and averaged.module is not net and averaged.module.weight.requires_grad
        state = averaged.state_dict()
        again = m.optim.swa_utils.AveragedModel(m.nn.Linear(3, 2, bias=False))
        again.module.register_buffer("b", m.zeros(2, 3)), again.module.register_buffer("n", m.tensor(0))
        again.load_state_dict(state)
        x = m.ones(1, 3)
        assert m.equal(again(x), averaged(x)) and list(state) == ["n_averaged", "module.weight", "module.b", "module.n"]
        found.append([np.asarray(v.tolist(), float) for v in state.values()])
    for mine, theirs in zip(*found):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_update_bn():
    net = nn.Sequential(Net(tt), nn.Linear(2, 1)).eval()
    batches = [tt.randn(4, 3) for _ in range(3)]
    net[0].running_mean.fill_(7.0)
    optim.swa_utils.update_bn([(b, None) for b in batches], net)
    wanted = sum(net[0].lin(b).mean(0) for b in batches) / 3
    np.testing.assert_allclose(net[0].running_mean.tolist(), wanted.tolist(), rtol=1e-5, atol=1e-6)
    assert net[0].momentum == 0.1 and not net.training and net[0].count == 3
    optim.swa_utils.update_bn(batches, nn.Linear(3, 1))  # nothing to do
    gc.collect()
