"""Transforms from the real numbers to constrained sets. Follows ``torch.distributions.constraint_registry``."""

from __future__ import annotations

from . import constraints
from .transforms import (
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SigmoidTransform,
    SoftmaxTransform,
    StackTransform,
    StickBreakingTransform,
    identity_transform,
)

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Gives a transform for a constraint: ``registry(constraint)``. NotImplementedError where there is none. Follows
    ``torch.distributions.constraint_registry.ConstraintRegistry``."""

    def __init__(self):
        self._registry = {}
        super().__init__()

    def register(self, constraint, factory=None):
        """Enters ``factory``, a function of the constraint that gives a transform, for a subclass of Constraint, or for
        that of an instance. A decorator without ``factory``. TypeError for what is no Constraint."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint):
        try:
            factory = self._registry[type(constraint)]
        except KeyError:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints") from None
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _above(c):
    """From the bound on; above 0 without adding it."""
    if isinstance(c.lower_bound, (int, float)) and c.lower_bound == 0:
        return ExpTransform()
    return ComposeTransform([ExpTransform(), AffineTransform(c.lower_bound, 1)])


def _below(c):
    return ComposeTransform([ExpTransform(), AffineTransform(c.upper_bound, -1)])


def _between(c):
    bounds = c.lower_bound, c.upper_bound
    if all(isinstance(b, (int, float)) for b in bounds) and bounds == (0, 1):
        return SigmoidTransform()
    return ComposeTransform([SigmoidTransform(), AffineTransform(c.lower_bound, c.upper_bound - c.lower_bound)])


def _combined(registry, constraint):
    """A constraint that is made of others."""
    if isinstance(constraint, constraints.independent):
        return IndependentTransform(registry(constraint.base_constraint), constraint.reinterpreted_batch_ndims)
    parts = [registry(c) for c in constraint.cseq]
    if isinstance(constraint, constraints.cat):
        return CatTransform(parts, constraint.dim, constraint.lengths)
    return StackTransform(parts, constraint.dim)


_BOTH = {
    constraints.real: lambda c: identity_transform,
    constraints.greater_than: _above,
    constraints.greater_than_eq: _above,
    constraints.less_than: _below,
    constraints.interval: _between,
    constraints.half_open_interval: _between,
    constraints.corr_cholesky: lambda c: CorrCholeskyTransform(),
}
_BIJECTIONS = {constraints.simplex: lambda c: StickBreakingTransform()}
_TRANSFORMS = {  # with more than one inverse, or faster
    constraints.simplex: lambda c: SoftmaxTransform(),
    constraints.lower_cholesky: lambda c: LowerCholeskyTransform(),
    constraints.positive_definite: lambda c: PositiveDefiniteTransform(),
    constraints.positive_semidefinite: lambda c: PositiveDefiniteTransform(),
}
for _registry, _more in ((biject_to, _BIJECTIONS), (transform_to, _TRANSFORMS)):
    for _constraint, _factory in {**_BOTH, **_more}.items():
        _registry.register(_constraint, _factory)
    for _constraint in (constraints.independent, constraints.cat, constraints.stack):
        _registry.register(_constraint, lambda c, registry=_registry: _combined(registry, c))
