"""Optimisers whose steps are operations of tensors, and the formulas that stand for a rule: differentiated steps, and
complex parameters. Against PyTorch's."""

import numpy as np
import pytest
import tinytorch as tt

torch = pytest.importorskip("torch")

RULES = [
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True}),
    ("SGD", {"lr": 0.1}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1}),
    ("AdamW", {"maximize": True}),
    ("RMSprop", {"centered": True, "momentum": 0.5}),
    ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.2}),
    ("Adadelta", {"weight_decay": 0.1}),
    ("Adamax", {"maximize": True, "weight_decay": 0.1}),
    ("NAdam", {"decoupled_weight_decay": True, "weight_decay": 0.1}),
    ("RAdam", {"betas": (0.3, 0.9)}),
    ("ASGD", {"t0": 2, "weight_decay": 0.1}),
    ("Rprop", {"lr": 0.1}),
]


def numbers(t):
    return t.detach().cpu().resolve_conj().numpy() if isinstance(t, torch.Tensor) else t.detach().numpy()


def run(lib, work):
    """The same program with either library."""
    return [numbers(t) for t in work(lib)]


def agree(work, tolerance=1e-12):
    for mine, theirs in zip(run(tt, work), run(torch, work)):
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name, options", RULES)
def test_gradcheck(name, options):
    """Two steps as a function of a parameter and its gradients."""

    def after(x, *grads):
        p = x.clone()
        optimizer = getattr(tt.optim, name)([p], differentiable=True, **options)
        for g in grads:
            p.grad = g
            optimizer.step()
        return p

    rng = np.random.default_rng(5)
    assert tt.autograd.gradcheck(after, [tt.tensor(rng.standard_normal(5), requires_grad=True) for _ in range(3)])


@pytest.mark.parametrize("name, options", RULES[1:])  # PyTorch leaves the first momentum out of SGD's derivative
def test_a_differentiated_step(name, options):
    """Gradients of a step's result by the old parameters and by their gradients."""
    rng = np.random.default_rng(0)
    value, grad, weight = (rng.standard_normal((3, 4)) for _ in range(3))

    def work(lib):
        x, g = (lib.tensor(a, requires_grad=True) for a in (value, grad))
        p = x.clone()
        optimizer = getattr(lib.optim, name)([p], differentiable=True, **options)
        p.grad = g.clone()
        optimizer.step()
        (p * lib.tensor(weight)).sum().backward()
        return p, x.grad, g.grad

    agree(work, 1e-6)  # PyTorch's corrections are float32


def test_meta_learning_a_rate():
    """The derivative of a loss after a step by the gradient's scale, against finite differences."""

    def loss_after(lib, scale):
        w = lib.tensor([[0.5, -1.0], [2.0, 0.3]], dtype=lib.float64, requires_grad=True)
        x = lib.tensor([[1.0, 2.0], [0.5, -1.0]], dtype=lib.float64)
        p = w.clone()
        (g,) = lib.autograd.grad(((x @ w).tanh() ** 2).sum(), w, create_graph=True)
        p.grad = g * scale
        lib.optim.Adam([p], lr=0.1, eps=0.1, differentiable=True).step()
        return ((x @ p).tanh() ** 2).sum()

    scale = tt.tensor(0.7, dtype=tt.float64, requires_grad=True)
    loss_after(tt, scale).backward()
    above, below = (loss_after(tt, tt.tensor(0.7 + e, dtype=tt.float64)).item() for e in (1e-6, -1e-6))
    assert scale.grad.item() == pytest.approx((above - below) / 2e-6, rel=1e-6)


@pytest.mark.parametrize("name, options", RULES)
def test_complex_parameters_beside_real_ones(name, options):
    rng = np.random.default_rng(1)
    values = [rng.standard_normal((2, 3)) + 1j * rng.standard_normal((2, 3)), rng.standard_normal(4)]
    grads = [[rng.standard_normal((2, 3)) + 1j * rng.standard_normal((2, 3)), rng.standard_normal(4)] for _ in range(4)]

    def work(lib):
        params = [lib.tensor(v, requires_grad=True) for v in values]
        optimizer = getattr(lib.optim, name)(params, **options)
        for step in grads:
            for p, g in zip(params, step):
                p.grad = lib.tensor(g)
            optimizer.step()
        return params

    agree(work)


@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1, "maximize": True}, {"eps": (1e-6, 0.1), "d": 1.5}])
def test_adafactor(options):
    rng = np.random.default_rng(2)
    shapes = [(7, 5), (5,), (), (3, 1, 4)]
    values = [np.asarray(rng.standard_normal(s)) for s in shapes]
    grads = [[np.asarray(rng.standard_normal(s)) for s in shapes] for _ in range(20)]

    def work(lib):
        params = [lib.tensor(v, requires_grad=True) for v in values]
        optimizer = lib.optim.Adafactor(params, **options)
        for step in grads:
            for p, g in zip(params, step):
                p.grad = lib.tensor(g)
            optimizer.step()
        states = [t for p in params for t in optimizer.state[p].values()]
        return [*params, *states]

    agree(work)


@pytest.mark.parametrize("options", [{}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"}])
def test_muon(options):
    rng = np.random.default_rng(3)
    values = [rng.standard_normal(s).astype("float32") for s in ((6, 4), (4, 9))]
    grads = [[rng.standard_normal(v.shape).astype("float32") for v in values] for _ in range(5)]

    def work(lib):
        params = [lib.tensor(v, requires_grad=True) for v in values]
        optimizer = lib.optim.Muon(params, lr=0.1, **options)
        for step in grads:
            for p, g in zip(params, step):
                p.grad = lib.tensor(g)
            optimizer.step()
        return params

    agree(work, 5e-3)  # bfloat16 inside
    with pytest.raises(ValueError, match="2D"):
        tt.optim.Muon([tt.ones(3, requires_grad=True)])


@pytest.mark.parametrize(
    "options",
    [
        {"lr": 0.1},
        {"line_search_fn": "strong_wolfe"},
        {"line_search_fn": "strong_wolfe", "history_size": 3, "max_iter": 7},
    ],
)
def test_lbfgs(options):
    """Rosenbrock's valley, and a parameter without gradient."""

    def work(lib):
        p = lib.tensor([-1.2, 1.0, 0.5], dtype=lib.float64, requires_grad=True)
        unused = lib.ones(2, dtype=lib.float64, requires_grad=True)
        optimizer = lib.optim.LBFGS([p, unused], **options)
        losses = []

        def closure():
            optimizer.zero_grad()
            loss = (100 * (p[1:] - p[:-1] ** 2) ** 2 + (1 - p[:-1]) ** 2).sum()
            loss.backward()
            losses.append(loss.item())
            return loss

        for _ in range(4):
            optimizer.step(closure)
        return p, lib.tensor(losses[-20:], dtype=lib.float64)

    agree(work, 1e-6)


def test_lbfgs_finds_the_minimum():
    p = tt.tensor([-1.2, 1.0], dtype=tt.float64, requires_grad=True)
    optimizer = tt.optim.LBFGS([p], line_search_fn="strong_wolfe", max_iter=100)

    def closure():
        optimizer.zero_grad()
        loss = 100 * (p[1] - p[0] ** 2) ** 2 + (1 - p[0]) ** 2
        loss.backward()
        return loss

    optimizer.step(closure)
    np.testing.assert_allclose(p.tolist(), [1, 1], atol=1e-4)
    with pytest.raises(ValueError, match="parameter groups"):
        tt.optim.LBFGS([{"params": [p]}, {"params": [tt.ones(1, requires_grad=True)]}])
    with pytest.raises(RuntimeError, match="strong_wolfe"):
        tt.optim.LBFGS([p], line_search_fn="armijo").step(closure)


def test_sparse_adam():
    rng = np.random.default_rng(4)
    value, weight = rng.standard_normal((10, 3)), rng.standard_normal((3,))

    def work(lib):
        p = lib.tensor(value, requires_grad=True)
        optimizer = lib.optim.SparseAdam([p], lr=0.1)
        for step in range(5):
            optimizer.zero_grad()
            rows = lib.nn.functional.embedding(lib.tensor([step, 3, 3, 7]), p, sparse=True)
            (rows * lib.tensor(weight)).sum().backward()
            optimizer.step()
        return p, optimizer.state[p]["exp_avg"], optimizer.state[p]["exp_avg_sq"]

    agree(work)
    p = tt.ones(3, requires_grad=True)
    p.grad = tt.ones(3)
    with pytest.raises(RuntimeError, match="dense gradients"):
        tt.optim.SparseAdam([p]).step()
