"""Ten steps of every optimizer with every option: eagerly and in fused mode, on the CPU and on a device, and taken up
from the other library's state after five, beside PyTorch's on the CPU."""

import contextlib
import copy

import numpy as np
import pytest

import tinytorch as tt

torch = pytest.importorskip("torch")

SHAPES = [(7, 5), (5, 1), (9, 20)]  # Muon takes matrices alone

# What selects an implementation: PyTorch, on the CPU, is not asked for it.
WAYS = [
    {"foreach": True},
    {"foreach": False},
    {"fused": True},
    {"fused": False},
    {"capturable": True},
    {"differentiable": True},
]
RATE = [{"lr": 0.05}, {"tensor lr": 0.05}, {"weight_decay": 0.1}]
DECOUPLED = {"decoupled_weight_decay": True, "weight_decay": 0.1}
MAXIMIZE = [{"maximize": True}, {"maximize": True, "weight_decay": 0.1}]
OPTIONS = {
    "SGD": [
        *RATE,
        *MAXIMIZE,
        {"momentum": 0.9},
        {"momentum": 0.9, "dampening": 0.5, "maximize": True},
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    ],
    "Adam": [*RATE, *MAXIMIZE, {"amsgrad": True}, {"betas": (0.3, 0.7), "eps": 1e-3}, DECOUPLED],
    "AdamW": [*RATE, *MAXIMIZE, {"amsgrad": True, "maximize": True}, {"betas": (0.3, 0.7), "eps": 1e-3}],
    "RMSprop": [*RATE, *MAXIMIZE, {"momentum": 0.9}, {"centered": True}, {"centered": True, "momentum": 0.5}],
    "Adagrad": [*RATE, *MAXIMIZE, {"lr_decay": 0.1}, {"initial_accumulator_value": 0.5, "eps": 1e-3}],
    "Adadelta": [*RATE, *MAXIMIZE, {"rho": 0.5, "eps": 1e-3}],
    "Adamax": [*RATE, *MAXIMIZE, {"betas": (0.3, 0.7), "eps": 1e-3}],
    "NAdam": [*RATE, *MAXIMIZE, {"momentum_decay": 0.1}, DECOUPLED],
    "RAdam": [
        *RATE,
        *MAXIMIZE,
        {"betas": (0.3, 0.7), "eps": 1e-3},
        {"decoupled_weight_decay": True, "weight_decay": 0.1},
    ],
    "ASGD": [*RATE, *MAXIMIZE, {"lambd": 0.1, "alpha": 0.5, "t0": 4}],
    "Rprop": [{"lr": 0.05}, {"tensor lr": 0.05}, {"maximize": True}, {"etas": (0.3, 1.5), "step_sizes": (1e-3, 0.1)}],
    "Adafactor": [*RATE, *MAXIMIZE, {"beta2_decay": -0.5, "d": 2.0, "eps": (1e-6, 1e-2)}],
    "Muon": [{"lr": 0.05}, {"weight_decay": 0.5}, {"momentum": 0.5, "nesterov": False}, {"ns_steps": 3}]
    + [{"adjust_lr_fn": "match_rms_adamw"}, {"ns_coefficients": (2.0, -1.5, 0.5), "eps": 1e-3}],
    "LBFGS": [{"lr": 0.5, "max_iter": 3}, {"line_search_fn": "strong_wolfe", "max_iter": 4}, {"history_size": 2}],
}


def takes(name, option):
    """Does the optimizer have it?"""
    return next(iter(option)) in getattr(tt.optim, name).__init__.__code__.co_varnames


CASES = [(name, option) for name, options in OPTIONS.items() for option in ({}, *options)]
CASES += [(name, way) for name in OPTIONS for way in WAYS if takes(name, way)]
CASES += [
    (name, options[-1] | {"differentiable": True})
    for name, options in OPTIONS.items()
    if takes(name, {"differentiable": True})
]


def named(value):
    return value if isinstance(value, str) else ", ".join(f"{k}={v}" for k, v in value.items()) or "default"


def options_of(m, option, dtype, device):
    """The keywords for one library; PyTorch's without what selects an implementation."""
    option = dict(option)
    if "tensor lr" in option:
        option["lr"] = m.tensor(option.pop("tensor lr"), dtype=dtype, device=device)
    if m is torch:
        for name in ("fused", "capturable", "differentiable"):
            option.pop(name, None)
        option["foreach"] = False
    return option


class Run:
    """Parameters and their optimizer; the gradients are those of a fixed function."""

    def __init__(self, m, name, option, device, dtype=None):
        rng = np.random.default_rng(0)
        self.m = m
        dtype = getattr(m, dtype or ("float64" if name == "LBFGS" else "float32"))  # whose directions are differences
        self.params = [m.tensor(rng.standard_normal(s), dtype=dtype, device=device).requires_grad_() for s in SHAPES]
        self.factors = [m.tensor(rng.standard_normal(s), dtype=dtype, device=device) for s in SHAPES]
        option = options_of(m, option, dtype, device)
        if m is torch and name in ("LBFGS", "Muon"):
            option.pop("foreach", None)
        self.optimizer = getattr(m.optim, name)(self.params, **option)

    def loss(self):
        self.optimizer.zero_grad()
        pairs = list(zip(self.params, self.factors, strict=True))
        if type(self.optimizer).__name__ == "LBFGS":  # has a minimum to find
            loss = sum(((p - f).square() + 0.1 * (p - f) ** 4).sum() for p, f in pairs)
        else:
            loss = sum(((p * 0.7 + f).sin() * p * 0.1).sum() for p, f in pairs)
        loss.backward()
        return loss

    def steps(self, count, mode=contextlib.nullcontext):
        for _ in range(count):
            with mode():
                if type(self.optimizer).__name__ == "LBFGS":
                    self.optimizer.step(self.loss)
                elif self.optimizer.param_groups[0].get("differentiable") and self.m is tt:
                    self.loss()
                    self.differentiated_step()
                else:
                    self.loss()
                    self.optimizer.step()

    def differentiated_step(self):
        """A step of leaves that are copies, as meta-learning takes it."""
        leaves = self.optimizer.param_groups[0]["params"]
        copies = [p.clone() for p in leaves]
        for c, p in zip(copies, leaves, strict=True):
            c.grad = p.grad
            if p in self.optimizer.state:
                self.optimizer.state[c] = self.optimizer.state.pop(p)
        self.optimizer.param_groups[0]["params"] = copies
        self.optimizer.step()
        assert all(c.grad_fn is not None for c in copies)
        self.optimizer.param_groups[0]["params"] = leaves
        for c, p in zip(copies, leaves, strict=True):
            state = self.optimizer.state.pop(c)
            self.optimizer.state[p] = {k: v.detach() if hasattr(v, "detach") else v for k, v in state.items()}
            p.data.copy_(c.detach())

    def values(self):
        return [p.detach().cpu().double().numpy() for p in self.params]


# Muon's matrices are products of bfloat16 numbers, whose order of summation a library chooses.
TOLERANCE = {"Muon": 2e-3}


def agree(ours, theirs, name, tolerance=None):
    tolerance = tolerance or TOLERANCE.get(name, 5e-6)
    for a, b in zip(ours.values(), theirs.values(), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mode", ["eager", "fused"])
@pytest.mark.parametrize("name, option", CASES, ids=named)
def test_ten_steps(name, option, mode, device):
    ours, theirs = Run(tt, name, option, device), Run(torch, name, option, "cpu")
    # On the CPU interpreted: what compiled kernels compute is tests/fuse's business.
    with tt.config(fuse_hot=-1) if device == "cpu" else contextlib.nullcontext():
        ours.steps(10, tt.fuse if mode == "fused" else contextlib.nullcontext)
    theirs.steps(10)
    agree(ours, theirs, name)


@pytest.mark.parametrize("name", [name for name in OPTIONS if name not in ("Muon", "LBFGS")])
def test_ten_steps_in_double_precision(name, device):
    for option in ({}, *OPTIONS[name]):
        runs = [Run(m, name, option, d, "float64") for m, d in ((tt, device), (torch, "cpu"))]
        for run in runs:
            run.steps(10)
        agree(*runs, name, 1e-12)


def between(value, m):
    """A state dict of the other library."""
    if isinstance(value, dict):
        return {k: between(v, m) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(between(v, m) for v in value)
    return m.tensor(value.cpu().numpy()) if hasattr(value, "numpy") else value


@pytest.mark.parametrize("name, option", [(n, o) for n, o in CASES if o not in WAYS], ids=named)
def test_states_change_libraries(name, option, device):
    """Five steps, then five more of the other library from the state of the first."""
    ours, theirs = Run(tt, name, option, device), Run(torch, name, option, "cpu")
    ours.steps(5)
    theirs.steps(5)
    saved = [copy.deepcopy(run.optimizer.state_dict()) for run in (ours, theirs)]
    keys = [[sorted(s) for s in state["state"].values()] for state in saved]
    assert name == "LBFGS" or keys[0] == keys[1]
    swapped = [Run(tt, name, option, device), Run(torch, name, option, "cpu")]
    for run, values, state in zip(swapped, (theirs.values(), ours.values()), saved[::-1], strict=True):
        for p, v in zip(run.params, values, strict=True):
            p.data.copy_(run.m.tensor(v))
        run.optimizer.load_state_dict(between(state, run.m))
        run.steps(5)
    ours.steps(5)
    theirs.steps(5)
    agree(swapped[0], theirs, name)
    agree(ours, swapped[1], name)


# ---- Sparse gradients.

SPARSE = [
    *(("SparseAdam", o) for o in ({}, {"maximize": True}, {"betas": (0.3, 0.7), "eps": 1e-3})),
    *(("Adagrad", o) for o in ({}, {"maximize": True}, {"lr_decay": 0.1, "initial_accumulator_value": 0.2})),
    *(("SGD", o) for o in ({}, {"maximize": True}, {"momentum": 0.9})),
    *(("SGD", o) for o in ({"momentum": 0.9, "dampening": 0.5}, {"momentum": 0.9, "nesterov": True})),
]


def dense(value):
    return value.to_dense() if getattr(value, "is_sparse", False) else value


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name, options", SPARSE, ids=named)
def test_sparse_gradients(name, options):
    results = []
    for m in (tt, torch):
        layer = m.nn.Embedding(6, 3, sparse=True)
        beside = m.zeros(2, requires_grad=True)  # a gradient that is dense, in the same group
        with m.no_grad():
            layer.weight.copy_(m.arange(18.0).view(6, 3) / 7)
        params = [layer.weight] if name == "SparseAdam" else [layer.weight, beside]
        optimizer = getattr(m.optim, name)(params, lr=0.1, **options)
        for i in range(5):
            optimizer.zero_grad()
            ((layer(m.tensor([1, 4, 4, i])).sin() * (i + 1)).sum() + (beside - i).square().sum()).backward()
            assert layer.weight.grad.is_sparse
            optimizer.step()
        state = optimizer.state_dict()["state"]
        results.append([layer.weight, beside, *(dense(v) for k in sorted(state) for _, v in sorted(state[k].items()))])
    for a, b in zip(*results, strict=True):
        if hasattr(b, "detach"):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=5e-5, atol=1e-5)
        else:
            assert a == b


REFUSED = ("Adam", "AdamW", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "RMSprop", "Rprop", "Adafactor", "Muon")


@pytest.mark.parametrize("m", [tt, torch], ids=["tinytorch", "torch"])
def test_sparse_gradients_are_refused(m):
    cases = [(name, {}) for name in REFUSED] + [("SGD", {"weight_decay": 0.1}), ("Adagrad", {"weight_decay": 0.1})]
    for name, options in cases:
        layer = m.nn.Embedding(6, 3, sparse=True)
        before = layer.weight.detach().clone()
        layer(m.tensor([1, 4])).sum().backward()
        with pytest.raises(RuntimeError, match="sparse"):
            getattr(m.optim, name)(layer.parameters(), **options).step()
        assert bool((layer.weight == before).all())


BAD_OPTIONS = [
    "lr=m.tensor(0.1), foreach=True", "lr=m.tensor(0.1), foreach=True, capturable=True", "lr=m.tensor(0.1)",
    "lr=m.tensor([0.1, 0.2])", "lr=m.tensor([0.1])", "betas=(m.tensor(0.9), m.tensor(0.99)), foreach=True",
    "betas=(m.tensor(0.9), 0.99)", "betas=(m.tensor(0.9), m.tensor(0.99))", "fused=True, foreach=True",
    "fused=True, differentiable=True", "betas=(1.0, 0.9)", "eps=-1.0", "weight_decay=-1", "lr=-1.0", "betas=(0.9,)",
    "betas=None", "momentum=-1", "nesterov=True", "alpha=-1.0", "lr_decay=-1", "initial_accumulator_value=-1",
    "unknown=1",
]  # fmt: skip


@pytest.mark.parametrize("options", BAD_OPTIONS)
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adamax", "NAdam", "RAdam"])
def test_options_are_refused_as_pytorch_refuses_them(name, options):
    kinds = []
    for m in (tt, torch):
        try:
            eval(f"m.optim.{name}([m.nn.Parameter(m.ones(2))], {options})", {"m": m})
            kinds.append(None)
        except Exception as e:
            kinds.append(type(e))
    assert kinds[0] is kinds[1]
