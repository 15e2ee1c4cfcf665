"""Transforms, constraints and their registries: against PyTorch's."""

import math
import pickle

import numpy as np
import pytest
import tinytorch as tt

from distributions.families import numbers

torch = pytest.importorskip("torch")

LOC, SCALE = [0.5, -1.0, 2.0], [2.0, -0.5, 1.5]


def compose(d, t):
    return d.ComposeTransform([d.AffineTransform(0.5, 2.0), d.TanhTransform(), d.AffineTransform(t(LOC), t(SCALE))])


TRANSFORMS = {
    "exp": lambda d, t: d.ExpTransform(),
    "log": lambda d, t: d.ExpTransform().inv,
    "power": lambda d, t: d.PowerTransform(t([2.0, -1.5, 0.5])),
    "sigmoid": lambda d, t: d.SigmoidTransform(),
    "softplus": lambda d, t: d.SoftplusTransform(),
    "tanh": lambda d, t: d.TanhTransform(),
    "abs": lambda d, t: d.AbsTransform(),
    "affine": lambda d, t: d.AffineTransform(t(LOC), t(SCALE)),
    "affine of numbers": lambda d, t: d.AffineTransform(1.0, -3),
    "affine of vectors": lambda d, t: d.AffineTransform(t(LOC), t(SCALE), event_dim=1),
    "affine of scalars": lambda d, t: d.AffineTransform(0.0, 2.0, event_dim=1),
    "cdf": lambda d, t: d.CumulativeDistributionTransform(d.Normal(t(0.3), t(1.5))),
    "identity": lambda d, t: d.identity_transform,
    "compose": compose,
    "inverse of compose": lambda d, t: d.ComposeTransform([d.SigmoidTransform(), d.AffineTransform(0.0, -2.0)]).inv,
    "independent": lambda d, t: d.IndependentTransform(d.ExpTransform(), 1),
    "reshape": lambda d, t: d.ReshapeTransform((3,), (1, 3)),
    "softmax": lambda d, t: d.SoftmaxTransform(),
    "stick": lambda d, t: d.StickBreakingTransform(),
    "correlations": lambda d, t: d.CorrCholeskyTransform(),
    "triangle": lambda d, t: d.LowerCholeskyTransform(),
    "positive definite": lambda d, t: d.PositiveDefiniteTransform(),
    "cat": lambda d, t: d.CatTransform([d.ExpTransform(), d.SigmoidTransform()], dim=-1, lengths=[2, 1]),
    "cat of ones": lambda d, t: d.CatTransform([d.ExpTransform()] * 3, dim=1),
    "stack": lambda d, t: d.StackTransform([d.ExpTransform(), d.TanhTransform(), d.identity_transform], dim=-1),
    "mixed": lambda d, t: d.ComposeTransform([d.ExpTransform(), d.StickBreakingTransform()]),
}


def outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error)


def agree(mine, theirs):
    if hasattr(theirs, "detach"):
        np.testing.assert_allclose(numbers(mine), numbers(theirs), rtol=1e-9, atol=1e-10)
        assert tuple(mine.shape) == tuple(theirs.shape)
    else:
        assert mine == theirs


def argument(name, m):
    matrix = name in ("triangle", "positive definite")
    values = np.random.default_rng(0).standard_normal((2, 3, 3) if matrix else (2, 3))
    values = abs(values) + 0.1 if name in ("power", "log") else values
    return m.tensor(1 / (2 + abs(values)) * -2 if name == "inverse of compose" else values)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transform(name):
    found = []
    for m in (tt, torch):
        t = TRANSFORMS[name](m.distributions, lambda v: m.tensor(v, dtype=m.float64))  # noqa: B023
        x = argument(name, m).requires_grad_()
        y = t(x)
        slope = outcome(lambda: t.log_abs_det_jacobian(x, y))  # noqa: B023
        gradients = m.autograd.grad(y.sum() + (0 if isinstance(slope, type) else slope.sum()), x)
        back = t.inv(y.detach().clone())
        shapes = [
            outcome(lambda f=f: tuple(f(m.Size(shape))))  # noqa: B023
            for shape in ((2, 3), (2, 3, 3), (), (4,), (5, 1, 3))
            for f in (t.forward_shape, t.inverse_shape)
        ]
        facts = [outcome(lambda n=n: getattr(t, n)) for n in ("bijective", "sign", "event_dim")]  # noqa: B023
        ends = [(outcome(lambda: c.event_dim), outcome(lambda: c.is_discrete)) for c in (t.domain, t.codomain)]  # noqa: B023
        cached = t.with_cache()
        assert cached(x) is cached(x) or name == "identity" or "compose" in name or name == "mixed"
        assert cached.inv(cached(x)) is x and t.inv.inv is t and cached.inv.inv is cached
        assert cached.with_cache() is cached and t == t and t != 3
        found.append([y, slope, *gradients, back, shapes, *facts, ends, repr(t) if "tensor" not in repr(t) else ""])
    for mine, theirs in zip(*found):
        agree(mine, theirs)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_jacobian(name):
    """Beside the determinant of the matrix that autograd gives, and of squares of its part below the diagonal."""
    t = TRANSFORMS[name](tt.distributions, lambda v: tt.tensor(v, dtype=tt.float64))
    if not t.bijective:
        return
    x = argument(name, tt)[:1]
    shape = tuple(x.shape)

    def image(v):
        y = t(v.reshape(shape))
        if name == "correlations":
            return y[tt.ones_like(y).tril(-1).bool()]
        return (y[..., :-1] if y.numel() > v.numel() else y).reshape(-1)

    matrix = tt.stack([tt.autograd.grad(image(v)[k], v)[0] for v in [x.reshape(-1).requires_grad_()] for k in range(3)])
    found = t.log_abs_det_jacobian(x, t(x)).sum()
    assert found.item() == pytest.approx(tt.linalg.slogdet(matrix).logabsdet.item(), rel=1e-6, abs=1e-8)


def test_pickled():
    for name, make in TRANSFORMS.items():
        t, x = make(tt.distributions, tt.tensor), argument(name, tt).float()
        other = pickle.loads(pickle.dumps(t.with_cache()))
        np.testing.assert_array_equal(numbers(other(x)), numbers(t(x)))
        assert other.inv.inv is other


def test_refused():
    for m in (tt, torch):
        d = m.distributions
        for error, call in (
            (ValueError, lambda: d.ExpTransform(cache_size=2)),  # noqa: B023
            (ValueError, lambda: d.ReshapeTransform((2,), (3,))),  # noqa: B023
            (ValueError, lambda: d.IndependentTransform(d.ExpTransform(), 2)(m.ones(3))),  # noqa: B023
            (AssertionError, lambda: d.CatTransform([1])),  # noqa: B023
            (AssertionError, lambda: d.CatTransform([d.ExpTransform()], lengths=[1, 2])),  # noqa: B023
            (AssertionError, lambda: d.CatTransform([d.ExpTransform()])(m.ones(3))),  # noqa: B023
            (AssertionError, lambda: d.StackTransform([d.ExpTransform()])(m.ones(3))),  # noqa: B023
            (NotImplementedError, lambda: d.Transform()(m.ones(3))),  # noqa: B023
            (NotImplementedError, lambda: d.AbsTransform().sign),  # noqa: B023
            (ValueError, lambda: d.TransformedDistribution(d.Normal(0.0, 1.0), [3])),  # noqa: B023
            (ValueError, lambda: d.TransformedDistribution(d.Normal(0.0, 1.0), 3)),  # noqa: B023
            (ValueError, lambda: d.TransformedDistribution(d.Normal(0.0, 1.0), d.StickBreakingTransform())),  # noqa: B023
            (NotImplementedError, lambda: d.biject_to(d.constraints.boolean)),  # noqa: B023
            (TypeError, lambda: d.biject_to.register(3, lambda c: c)),  # noqa: B023
        ):
            with pytest.raises(error):
                call()


CONSTRAINTS = {
    "boolean": lambda c: c.boolean,
    "real": lambda c: c.real,
    "positive": lambda c: c.positive,
    "nonnegative": lambda c: c.nonnegative,
    "nonnegative_integer": lambda c: c.nonnegative_integer,
    "positive_integer": lambda c: c.positive_integer,
    "integer_interval": lambda c: c.integer_interval(-1, 2),
    "greater_than": lambda c: c.greater_than(0.5),
    "greater_than_eq": lambda c: c.greater_than_eq(0.5),
    "less_than": lambda c: c.less_than(0.5),
    "interval": lambda c: c.interval(-1, 0.5),
    "half_open_interval": lambda c: c.half_open_interval(-1, 0.5),
    "unit_interval": lambda c: c.unit_interval,
    "real_vector": lambda c: c.real_vector,
    "independent": lambda c: c.independent(c.positive, 2),
    "simplex": lambda c: c.simplex,
    "one_hot": lambda c: c.one_hot,
    "multinomial": lambda c: c.multinomial(3),
    "lower_triangular": lambda c: c.lower_triangular,
    "lower_cholesky": lambda c: c.lower_cholesky,
    "corr_cholesky": lambda c: c.corr_cholesky,
    "square": lambda c: c.square,
    "symmetric": lambda c: c.symmetric,
    "positive_semidefinite": lambda c: c.positive_semidefinite,
    "positive_definite": lambda c: c.positive_definite,
    "cat": lambda c: c.cat([c.positive, c.real, c.unit_interval], -1),
    "cat of lengths": lambda c: c.cat([c.positive, c.less_than(1)], 1, [1, 2]),
    "stack": lambda c: c.stack([c.positive, c.real, c.unit_interval], -1),
    "mixture": lambda c: c.MixtureSameFamilyConstraint(c.positive),
    "mixture of vectors": lambda c: c.MixtureSameFamilyConstraint(c.simplex),
}
VALUES = [
    np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0], [math.nan, 1.0, -1.0]]),
    np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8]]),
    np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 3.0]]),
    np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    np.array([[-1.0, 2.0, 0.5], [3.0, math.inf, -math.inf], [0.0, 1.0, 1.5]]),
]


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraint(name):
    found = []
    for m in (tt, torch):
        c = CONSTRAINTS[name](m.distributions.constraints)
        checks = [outcome(lambda v=v: c.check(m.tensor(v)).tolist()) for v in VALUES]  # noqa: B023
        found.append([checks, c.event_dim, c.is_discrete, repr(c)])
        for which in ("biject_to", "transform_to"):
            made = outcome(lambda: getattr(m.distributions, which)(c))  # noqa: B023
            if name == "positive_semidefinite" or isinstance(made, type):
                found[-1].append(made if isinstance(made, type) else None)
                continue
            shape = (2, 3, 3) if c.event_dim == 2 and name != "corr_cholesky" else (2, 3)
            x = m.tensor(np.random.default_rng(1).standard_normal(shape))
            y = made(x)
            assert c.check(y).all()
            found[-1] += [y, made.inv(y.clone())]
    for mine, theirs in zip(*found):
        if isinstance(theirs, list):
            assert str(mine) == str(theirs).replace("_LinAlgError", "LinAlgError")
        else:
            agree(mine, theirs)


def test_dependent():
    for m in (tt, torch):
        c = m.distributions.constraints
        assert c.is_dependent(c.dependent) and not c.is_dependent(c.real)
        assert c.dependent(event_dim=1).event_dim == 1 and c.dependent(is_discrete=True).is_discrete
        assert c.is_dependent(m.distributions.Uniform.support) and m.distributions.Uniform.support.event_dim == 0
        with pytest.raises(NotImplementedError):
            _ = c.dependent.event_dim
        with pytest.raises(ValueError):
            c.dependent.check(m.ones(2))
        with pytest.raises(AssertionError):
            c.independent(c.real, -1)
        with pytest.raises(AssertionError):
            c.stack([3])
        with pytest.raises(ValueError):
            c.independent(c.real, 2).check(m.ones(3))


def test_utils():
    for m in (tt, torch):
        u = m.distributions.utils
        a, b, c = u.broadcast_all(m.ones(2, 1, dtype=m.float64), 3, m.zeros(3))
        assert a.shape == b.shape == c.shape == (2, 3) and b.dtype == m.float64 and c.dtype == m.float32
        assert u.broadcast_all(1, 2.5)[0].dtype == m.float32
        with pytest.raises(ValueError):
            u.broadcast_all("a", 1)
        matrix = m.arange(9.0).reshape(3, 3).tril()
        for diag in (0, -1, 1, -2):
            vector = u.tril_matrix_to_vec(matrix + 10, diag)
            assert m.equal(u.vec_to_tril_matrix(vector, diag), (matrix + 10).tril(diag))
        with pytest.raises(ValueError):
            u.tril_matrix_to_vec(matrix, 3)
        with pytest.raises(ValueError):
            u.vec_to_tril_matrix(m.ones(5))
        p = m.tensor([0.0, 0.3, 1.0])
        assert u.probs_to_logits(p, is_binary=True).isfinite().all()
        assert m.allclose(u.logits_to_probs(u.probs_to_logits(p[1:2], True), True), p[1:2])

        class Counted:
            calls = 0

            @u.lazy_property
            def once(self):
                """What it is."""
                self.calls += 1
                return m.ones(2, requires_grad=True) * 2  # noqa: B023

        lazy = Counted()
        with m.no_grad():
            assert lazy.once is lazy.once and lazy.calls == 1 and lazy.once.requires_grad
        assert isinstance(Counted.once, u.lazy_property) and Counted.once.__doc__ == "What it is."
