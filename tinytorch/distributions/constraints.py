"""Sets that parameters and samples lie in. Follows ``torch.distributions.constraints``."""

from __future__ import annotations

from .. import bool as bool_dtype
from .. import cat as _cat
from .. import finfo, full, isclose, linalg
from .. import stack as _stack

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval",
    "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative",
    "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite",
    "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


def _expect(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


class Constraint:
    """A set of tensors: ``check`` says which are in it, for each group of ``event_dim`` last dimensions. Follows
    ``torch.distributions.constraints.Constraint``."""

    is_discrete = False
    event_dim = 0

    def check(self, value):
        """Bools, one for each event of ``value``."""
        raise NotImplementedError

    def __repr__(self):
        return type(self).__name__[1:] + "()"


# Sets that are known only with the other parameters.


class _Dependent(Constraint):
    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def _static(self, name: str):
        value = getattr(self, "_" + name)
        if value is NotImplemented:
            raise NotImplementedError(f"{name} of this constraint depends on an instance")
        return value

    @property
    def is_discrete(self):
        return self._static("is_discrete")

    @property
    def event_dim(self):
        return self._static("event_dim")

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        """``constraints.dependent(is_discrete=True, event_dim=1)``: the same with what is known of all instances."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, x):
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint) -> bool:
    """Is it a set that depends on an instance? Follows ``torch.distributions.constraints.is_dependent``."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property of an instance; of the class, a dependent constraint."""

    def __init__(self, fn=None, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn):
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


# Sets made of others.


def _all_of(checks, dims: int):
    return checks.reshape(checks.shape[: checks.dim() - dims] + (-1,)).all(-1)


class _IndependentConstraint(Constraint):
    """Events of ``reinterpreted_batch_ndims`` more dimensions, each of whose elements is in the set."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        _expect(isinstance(base_constraint, Constraint), f"wanted a Constraint, got {base_constraint!r}")
        _expect(
            isinstance(reinterpreted_batch_ndims, int) and reinterpreted_batch_ndims >= 0,
            f"wanted a number of dimensions, got {reinterpreted_batch_ndims!r}",
        )
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims)

    def check(self, value):
        checks = self.base_constraint.check(value)
        if checks.dim() < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return _all_of(checks, self.reinterpreted_batch_ndims)

    def __repr__(self):
        return f"{type(self).__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """What every component of a mixture takes. Follows
    ``torch.distributions.constraints.MixtureSameFamilyConstraint``."""

    def __init__(self, base_constraint):
        _expect(isinstance(base_constraint, Constraint), f"wanted a Constraint, got {base_constraint!r}")
        self.base_constraint = base_constraint

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim)

    def check(self, value):
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        batch = value.dim() - self.event_dim
        checks = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return _all_of(checks, checks.dim() - batch)

    def __repr__(self):
        return f"{type(self).__name__}({self.base_constraint!r})"


class _Cat(Constraint):
    """Of slices of ``lengths`` along ``dim``, each in a set of its own."""

    def __init__(self, cseq, dim=0, lengths=None):
        self.cseq = list(cseq)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        self.dim = dim
        _expect(all(isinstance(c, Constraint) for c in self.cseq), "cat: wanted Constraints")
        _expect(
            len(self.lengths) == len(self.cseq), f"cat: {len(self.lengths)} lengths of {len(self.cseq)} constraints"
        )

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))
    event_dim = property(lambda self: max(c.event_dim for c in self.cseq))

    def check(self, value):
        _expect(-value.dim() <= self.dim < value.dim(), f"cat: no dimension {self.dim} in {tuple(value.shape)}")
        starts = [sum(self.lengths[:k]) for k in range(len(self.lengths))]
        parts = (value.narrow(self.dim, *at) for at in zip(starts, self.lengths))
        return _cat([c.check(part) for c, part in zip(self.cseq, parts)], self.dim)


class _Stack(Constraint):
    """Of what is at each place along ``dim``, each in a set of its own."""

    def __init__(self, cseq, dim=0):
        self.cseq, self.dim = list(cseq), dim
        _expect(all(isinstance(c, Constraint) for c in self.cseq), "stack: wanted Constraints")

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))

    @property
    def event_dim(self):
        most = max(c.event_dim for c in self.cseq)
        return most + 1 if self.dim + most < 0 else most

    def check(self, value):
        _expect(-value.dim() <= self.dim < value.dim(), f"stack: no dimension {self.dim} in {tuple(value.shape)}")
        return _stack([c.check(v) for c, v in zip(self.cseq, value.unbind(self.dim))], self.dim)


# Numbers.


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value):
        return (value == 0) | (value == 1)


class _Real(Constraint):
    """All but NaN."""

    def check(self, value):
        return value == value


class _Bounded(Constraint):
    def __repr__(self):
        bounds = ", ".join(f"{name}={bound}" for name, bound in vars(self).items())
        return f"{type(self).__name__[1:]}({bounds})"


class _Above(_Bounded):
    def __init__(self, lower_bound):
        self.lower_bound = lower_bound


class _Below(_Bounded):
    def __init__(self, upper_bound):
        self.upper_bound = upper_bound


class _Between(_Bounded):
    def __init__(self, lower_bound, upper_bound):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class _GreaterThan(_Above):
    def check(self, value):
        return self.lower_bound < value


class _GreaterThanEq(_Above):
    def check(self, value):
        return self.lower_bound <= value


class _LessThan(_Below):
    def check(self, value):
        return value < self.upper_bound


class _Interval(_Between):
    def check(self, value):
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    def check(self, value):
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _IntegerInterval(_Interval):
    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & super().check(value)


class _IntegerGreaterThan(_GreaterThanEq):
    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & super().check(value)


class _IntegerLessThan(_Below):
    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value <= self.upper_bound)


# Vectors.


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value):
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value):
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(_Below):
    """Counts whose sum is at most the bound."""

    is_discrete = True
    event_dim = 1

    def check(self, x):
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)

    __repr__ = Constraint.__repr__


# Matrices.


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value):
        return (value.tril() == value).all(-1).all(-1)


class _LowerCholesky(_LowerTriangular):
    """With a positive diagonal."""

    def check(self, value):
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """With rows of length 1: factors of matrices of correlations."""

    def check(self, value):
        tolerance = finfo(value.dtype).eps * value.shape[-1] * 10
        return super().check(value) & ((linalg.norm(value.detach(), dim=-1) - 1).abs() <= tolerance).all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value):
        square = value.shape[-2] == value.shape[-1]
        return full(value.shape[:-2], square, dtype=bool_dtype, device=value.device)


class _Symmetric(_Square):
    def check(self, value):
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value):
        symmetric = super().check(value)
        return linalg.eigvalsh(value).ge(0).all(-1) if symmetric.all() else symmetric


class _PositiveDefinite(_Symmetric):
    def check(self, value):
        symmetric = super().check(value)
        return linalg.cholesky_ex(value).info.eq(0) if symmetric.all() else symmetric


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
cat = _Cat
stack = _Stack
boolean = _Boolean()
real = _Real()
real_vector = independent(real, 1)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
interval = _Interval
half_open_interval = _HalfOpenInterval
integer_interval = _IntegerInterval
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
unit_interval = _Interval(0.0, 1.0)
one_hot = _OneHot()
simplex = _Simplex()
multinomial = _Multinomial
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
