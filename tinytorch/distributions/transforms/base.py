"""Transforms: their base, and those made of others."""

from __future__ import annotations

import math

from ... import Size
from ... import cat as _cat
from ... import stack as _stack
from .. import constraints
from ..constraints import _expect
from ..utils import _sum_rightmost, lazy_property

__all__ = [
    "CatTransform", "ComposeTransform", "IndependentTransform", "ReshapeTransform", "StackTransform", "Transform",
    "identity_transform",
]  # fmt: skip


class Transform:
    """An invertible function. A subclass has ``_call``, ``_inverse`` and ``log_abs_det_jacobian``, ``domain`` and
    ``codomain``. Follows ``torch.distributions.transforms.Transform``.

    Args:
        cache_size: 1: the last pair of value and image is kept, so that its inverse is neither computed nor rounded; 0
    Attributes:
        bijective: is there exactly one inverse?
        sign: of the derivative: 1 where the function increases, -1 where it decreases
    """

    bijective = False
    domain: constraints.Constraint
    codomain: constraints.Constraint

    def __init__(self, cache_size: int = 0):
        if cache_size not in (0, 1):
            raise ValueError(f"cache_size must be 0 or 1, got {cache_size!r}")
        self._cache_size = cache_size
        self._inv = None
        self._cached_x_y = None, None
        super().__init__()

    def __getstate__(self):
        return {**self.__dict__, "_inv": None, "_cached_x_y": (None, None)}

    @property
    def event_dim(self) -> int:
        """The dimensions of one event. ValueError where those of the image are others."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """The inverse, whose inverse is this."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self):
        raise NotImplementedError(f"{type(self).__name__}.sign")

    def _arguments(self) -> tuple:
        """What the constructor is called with, but for ``cache_size``: with_cache() makes another."""
        if type(self).__init__ is Transform.__init__:
            return ()
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same transform with a cache of that size."""
        if self._cache_size == cache_size:
            return self
        return type(self)(*self._arguments(), cache_size=cache_size)

    def __eq__(self, other):
        return self is other

    def __call__(self, x):
        """The image of ``x``."""
        if self._cache_size == 0:
            return self._call(x)
        known, image = self._cached_x_y
        if x is not known:
            image = self._call(x)
            self._cached_x_y = x, image
        return image

    def _inv_call(self, y):
        if self._cache_size == 0:
            return self._inverse(y)
        origin, known = self._cached_x_y
        if y is not known:
            origin = self._inverse(y)
            self._cached_x_y = origin, y
        return origin

    def _call(self, x):
        raise NotImplementedError(f"{type(self).__name__}._call")

    def _inverse(self, y):
        raise NotImplementedError(f"{type(self).__name__}._inverse")

    def log_abs_det_jacobian(self, x, y):
        """log |dy / dx|, of each event."""
        raise NotImplementedError(f"{type(self).__name__}.log_abs_det_jacobian")

    def forward_shape(self, shape):
        """The shape of the image of a tensor of that shape."""
        return shape

    def inverse_shape(self, shape):
        """The shape of what has an image of that shape."""
        return shape

    def __repr__(self):
        return type(self).__name__ + "()"


class _Plain(Transform):
    """Without parameters: all instances are equal."""

    def __eq__(self, other):
        return type(other) is type(self)


# Made of others.


class _InverseTransform(Transform):
    def __init__(self, transform):
        super().__init__(transform._cache_size)
        self._inv = transform

    def __getstate__(self):
        return self.__dict__

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._inv._inv = self

    inv = property(lambda self: self._inv)
    domain = constraints.dependent_property(lambda self: self._inv.codomain, is_discrete=False)
    codomain = constraints.dependent_property(lambda self: self._inv.domain, is_discrete=False)
    bijective = property(lambda self: self._inv.bijective)
    sign = property(lambda self: self._inv.sign)

    def with_cache(self, cache_size=1):
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other):
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __call__(self, x):
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x, y):
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self._inv.forward_shape(shape)

    def __repr__(self):
        return f"{type(self).__name__}({self._inv!r})"


class ComposeTransform(Transform):
    """One transform after the other; these have the caches. Follows
    ``torch.distributions.transforms.ComposeTransform``."""

    def __init__(self, parts, cache_size=0):
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else parts
        super().__init__(cache_size)

    def _arguments(self):
        return (self.parts,)

    def __eq__(self, other):
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    @staticmethod
    def _widened(end, event_dim: int, steps):
        """The set ``end`` with as many dimensions as the widest of the parts wants, seen from there."""
        for here, there in steps:
            event_dim = max(event_dim + here.event_dim - there.event_dim, here.event_dim)
        return constraints.independent(end, event_dim - end.event_dim) if event_dim > end.event_dim else end

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        if not self.parts:
            return constraints.real
        steps = [(p.domain, p.codomain) for p in reversed(self.parts)]
        return self._widened(self.parts[0].domain, self.parts[-1].codomain.event_dim, steps)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        if not self.parts:
            return constraints.real
        steps = [(p.codomain, p.domain) for p in self.parts]
        return self._widened(self.parts[-1].codomain, self.parts[0].domain.event_dim, steps)

    @lazy_property
    def bijective(self):
        return all(p.bijective for p in self.parts)

    @lazy_property
    def sign(self):
        return math.prod(p.sign for p in self.parts)

    @property
    def inv(self):
        if self._inv is None:
            self._inv = ComposeTransform([p.inv for p in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x, y):
        if not self.parts:
            return x.new_zeros(x.shape)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        total, event_dim = 0, self.domain.event_dim
        for part, before, after in zip(self.parts, values, (*values[1:], y)):
            slope = part.log_abs_det_jacobian(before, after)
            total = total + _sum_rightmost(slope, event_dim - part.domain.event_dim)
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return total

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self):
        return f"{type(self).__name__}(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """``base_transform`` with ``reinterpreted_batch_ndims`` more dimensions in an event: the logarithms of the
    Jacobians are summed. Follows ``torch.distributions.transforms.IndependentTransform``."""

    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=0):
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def _arguments(self):
        return self.base_transform, self.reinterpreted_batch_ndims

    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    def _call(self, x):
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y):
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)

    def __repr__(self):
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class _Parts(Transform):
    """A transform for each of several parts along ``dim``."""

    def _take(self, name: str, tseq, dim: int, cache_size: int) -> None:
        tseq = list(tseq)
        _expect(all(isinstance(t, Transform) for t in tseq), f"{name}: wanted Transforms")
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else tseq
        self.dim = dim
        super().__init__(cache_size)

    bijective = property(lambda self: all(t.bijective for t in self.transforms))

    def _split(self, value, size: int):
        name = type(self).__name__
        _expect(-value.dim() <= self.dim < value.dim(), f"{name}: no dimension {self.dim} in {tuple(value.shape)}")
        _expect(value.shape[self.dim] == size, f"{name}: wanted size {size} at dimension {self.dim}, got {value.shape}")
        return self._parts_of(value)

    def _call(self, x):
        return self._joined([t(part) for t, part in zip(self.transforms, self._split(x, self._size))], self.dim)

    def _inverse(self, y):
        return self._joined([t.inv(part) for t, part in zip(self.transforms, self._split(y, self._size))], self.dim)

    def _slopes(self, x, y):
        parts = zip(self.transforms, self._split(x, self._size), self._split(y, self._size))
        return [t.log_abs_det_jacobian(a, b) for t, a, b in parts]


class CatTransform(_Parts):
    """The k-th of ``tseq`` for a slice of ``lengths[k]`` along ``dim``. Follows
    ``torch.distributions.transforms.CatTransform``."""

    _joined = staticmethod(_cat)
    _size = property(lambda self: self.length)

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        self._take("CatTransform", tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        _expect(
            len(self.lengths) == len(self.transforms),
            f"CatTransform: {len(self.lengths)} lengths of {len(self.transforms)} transforms",
        )

    def _arguments(self):
        return self.transforms, self.dim, self.lengths

    @lazy_property
    def event_dim(self):
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self):
        """The size along ``dim``."""
        return sum(self.lengths)

    def _parts_of(self, value):
        return value.split(self.lengths, self.dim)

    @constraints.dependent_property
    def domain(self):
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self):
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)

    def log_abs_det_jacobian(self, x, y):
        slopes = [
            _sum_rightmost(slope, self.event_dim - t.event_dim) for t, slope in zip(self.transforms, self._slopes(x, y))
        ]
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return _cat(slopes, dim=dim) if dim < 0 else sum(slopes)  # summed where the parts are of one event


class StackTransform(_Parts):
    """The k-th of ``tseq`` for what is at place k along ``dim``. Follows
    ``torch.distributions.transforms.StackTransform``."""

    _joined = staticmethod(_stack)
    _size = property(lambda self: len(self.transforms))

    def __init__(self, tseq, dim=0, cache_size=0):
        self._take("StackTransform", tseq, dim, cache_size)

    def _arguments(self):
        return self.transforms, self.dim

    def _parts_of(self, value):
        return value.unbind(self.dim)

    @constraints.dependent_property
    def domain(self):
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        return constraints.stack([t.codomain for t in self.transforms], self.dim)

    def log_abs_det_jacobian(self, x, y):
        return _stack(self._slopes(x, y), dim=self.dim)


class ReshapeTransform(Transform):
    """Events of ``in_shape`` as events of ``out_shape``, of as many elements. Follows
    ``torch.distributions.transforms.ReshapeTransform``."""

    bijective = True

    def __init__(self, in_shape, out_shape, cache_size=0):
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size)

    def _arguments(self):
        return self.in_shape, self.out_shape

    @constraints.dependent_property
    def domain(self):
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self):
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x):
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y):
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    @staticmethod
    def _replaced(shape, event, by):
        if len(shape) < len(event):
            raise ValueError("Too few dimensions on input")
        cut = len(shape) - len(event)
        if tuple(shape[cut:]) != event:
            raise ValueError(f"Shape mismatch: expected {tuple(event)} but got {tuple(shape[cut:])}")
        return shape[:cut] + by

    def forward_shape(self, shape):
        return self._replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return self._replaced(shape, self.out_shape, self.in_shape)
