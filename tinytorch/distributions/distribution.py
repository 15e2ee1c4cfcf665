"""The base of all distributions. Follows ``torch.distributions.distribution``."""

from __future__ import annotations

import operator
import warnings

from .. import Size, Tensor, autograd, no_grad
from . import constraints
from .utils import broadcast_all, lazy_property

__all__ = ["Distribution", "ExponentialFamily"]


def attribute(name: str) -> property:
    """A property that is another attribute."""
    return property(operator.attrgetter(name))


class Distribution:
    """A probability distribution: ``batch_shape`` of them, of events of ``event_shape`` each. Follows
    ``torch.distributions.Distribution``.

    Args:
        batch_shape: the shape of independent, differently distributed events
        event_shape: the shape of one event
        validate_args: are parameters and values checked, with a ValueError? None: the default
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    _held: tuple[str, ...] = ()  # attributes beyond arg_constraints that expand() expands,
    _kept: tuple[str, ...] = ()  # and those that it leaves as they are

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check arguments when not told: they do, unless Python runs with ``-O``."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: wanted True or False, got {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape=Size(), event_shape=Size(), validate_args=None):  # noqa: B008
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()
        super().__init__()

    def _set(self, **parameters) -> Size:
        """Sets parameters that broadcast together; their shape."""
        for name, value in zip(parameters, broadcast_all(*parameters.values())):
            setattr(self, name, value)
        return value.shape

    def _validate_parameters(self) -> None:
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize "
                "the distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        for name, constraint in arg_constraints.items():
            lazy = name not in self.__dict__ and isinstance(getattr(type(self), name, None), lazy_property)
            if lazy or constraints.is_dependent(constraint):
                continue
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape, _instance=None):
        """The same distributions, their parameters expanded to ``batch_shape``. NotImplementedError for a subclass that
        has a constructor of its own and does not override this.

        Args:
            batch_shape: the wanted shape
        """
        family = next(c for c in type(self).__mro__ if c.__module__.startswith(__package__))
        if family in (Distribution, ExponentialFamily):
            raise NotImplementedError(f"{type(self).__name__}.expand")
        new = self._get_checked_instance(family, _instance)
        batch_shape, known = Size(batch_shape), len(self._batch_shape)
        for name in (*self.arg_constraints, *self._held):
            if name in self.__dict__:
                value = self.__dict__[name]
                shape = value.shape if isinstance(value, Tensor) else value.batch_shape
                new.__dict__[name] = value.expand(batch_shape + shape[known:])
        for name in self._kept:
            new.__dict__[name] = self.__dict__[name]
        return self._as_expanded(new, batch_shape)

    def _as_expanded(self, new, batch_shape):
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _get_checked_instance(self, cls, _instance=None):
        """A new instance for expand() to fill in, or the one that a subclass gives."""
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also "
                "define a custom .expand() method."
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    @property
    def batch_shape(self) -> Size:
        """The shape of independent events."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one event."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict:
        """The constraint of each parameter that is a tensor, by its name."""
        raise NotImplementedError(f"{type(self).__name__}.arg_constraints")

    @property
    def support(self):
        """The constraint of samples."""
        raise NotImplementedError(f"{type(self).__name__}.support")

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError(f"{type(self).__name__}.mean")

    @property
    def mode(self) -> Tensor:
        """The value of the greatest density or probability."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError(f"{type(self).__name__}.variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape=Size()) -> Tensor:  # noqa: B008
        """Samples (*sample_shape, *batch_shape, *event_shape) without history."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=Size()) -> Tensor:  # noqa: B008
        """Samples (*sample_shape, *batch_shape, *event_shape) through which gradients flow to the parameters.
        NotImplementedError unless ``has_rsample``."""
        raise NotImplementedError(f"{type(self).__name__}.rsample")

    def sample_n(self, n: int) -> Tensor:
        """``sample((n,))``; deprecated."""
        warnings.warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning, stacklevel=2)
        return self.sample(Size((n,)))

    def log_prob(self, value) -> Tensor:
        """The logarithm of the density, or of the probability, at ``value``. ValueError for one outside of the
        support, or of a shape that does not broadcast, where arguments are checked."""
        raise NotImplementedError(f"{type(self).__name__}.log_prob")

    def cdf(self, value) -> Tensor:
        """The probability of at most ``value``."""
        raise NotImplementedError(f"{type(self).__name__}.cdf")

    def icdf(self, value) -> Tensor:
        """The inverse of cdf."""
        raise NotImplementedError(f"{type(self).__name__}.icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, (values, *batch_shape, *event_shape); with 1 in place of the batch's
        sizes unless ``expand``."""
        raise NotImplementedError(f"{type(self).__name__}.enumerate_support")

    def entropy(self) -> Tensor:
        """The entropy of each distribution of the batch, in nats."""
        raise NotImplementedError(f"{type(self).__name__}.entropy")

    def perplexity(self) -> Tensor:
        """exp of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape=Size()) -> Size:  # noqa: B008
        """The shape of samples."""
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _full(self, value: float, like: Tensor) -> Tensor:
        """A moment that is the same for all parameters."""
        return like.new_full(self._extended_shape(), value)

    def _check(self, *values) -> None:
        """Validates values unless that is turned off."""
        if self._validate_args:
            for value in values:
                self._validate_sample(value)

    def _validate_sample(self, value) -> None:
        if not isinstance(value, Tensor):
            raise ValueError(f"The value argument to log_prob must be a Tensor, got {type(value).__name__}")
        shape, expected = value.shape, self._batch_shape + self._event_shape
        if shape[len(shape) - len(self._event_shape) :] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {tuple(shape)} vs {tuple(self._event_shape)}."
            )
        for i, j in zip(reversed(shape), reversed(expected)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {tuple(shape)} vs {tuple(expected)}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
            return
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        given = {name: self.__dict__[name] for name in self.arg_constraints if name in self.__dict__}
        shown = (f"{k}: {v if v.numel() == 1 else v.size()}" for k, v in given.items())
        return f"{type(self).__name__}({', '.join(shown)})"


class ExponentialFamily(Distribution):
    """Of densities exp(<t(x), parameters> - log_normalizer(parameters) + carrier(x)): entropy and divergences follow
    from the log normaliser, by automatic differentiation. Follows ``torch.distributions.ExponentialFamily``."""

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError(f"{type(self).__name__}._natural_params")

    def _log_normalizer(self, *natural_params) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}._log_normalizer")

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError(f"{type(self).__name__}._mean_carrier_measure")

    def _derived_normalizer(self) -> tuple[list[Tensor], Tensor, tuple[Tensor, ...]]:
        """The natural parameters as leaves, the log normaliser, and its gradients: the means of the statistics."""
        parameters = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*parameters)
        return parameters, normalizer, autograd.grad(normalizer.sum(), parameters, create_graph=True)

    def entropy(self):
        """By the Bregman divergence of the log normaliser."""
        parameters, result, gradients = self._derived_normalizer()
        result = result - self._mean_carrier_measure
        for p, g in zip(parameters, gradients):
            result = result - (p * g).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
