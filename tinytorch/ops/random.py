"""Operators: random numbers, from a counter-based generator. See Note [Random streams] in kernels/scalar/philox.h."""

from __future__ import annotations

import operator
from inspect import Parameter

from ..autograd.leaf import make_leaf
from ..backends.cpu import error, lib
from ..devices import get_default_device, number_of, on_device
from ..dtypes import ALL, COMPLEX, FLOATING, INTEGRAL, dtype_code, exact_integers, float64, int64
from ..generator import get_rng_state, initial_seed, manual_seed, pointer, seed, set_rng_state
from ..layouts import preserve_format
from ..tensor import Tensor, attempted, owned
from .create import code_of, finish, into, pinned, size_argument, sizes
from .create_like import empty_as
from .declare import both, function, method, overwrite, primitive, refuse, shown
from .fitting import LARGEST

for _fn in (manual_seed, seed, initial_seed, get_rng_state, set_rng_state):
    function(_fn)
both, function, method = both(pure=False), function(pure=False), method(pure=False)  # a draw changes its generator

_KINDS = {
    name: lib.tt_random_kind(name.encode())
    for name in ("uniform", "normal", "log_normal", "exponential", "cauchy", "geometric", "mask")
}
_UNIFORM, _NORMAL, _MASK = _KINDS["uniform"], _KINDS["normal"], _KINDS["mask"]


def _own(generator, op: str, t: Tensor):
    """The C side of ``generator``, or of the default one of the tensor's device."""
    return pointer(generator, op, t._h.storage.device)


def _check_floating(code: int, op: str, kind: int) -> None:
    if not FLOATING[code] and not (COMPLEX[code] and kind in (_UNIFORM, _NORMAL)):
        raise NotImplementedError(
            f"{op}: random numbers of this kind are not implemented for {ALL[code]!r}: a floating dtype is needed"
        )


def _draw(
    t: Tensor | None, kind: int, op: str, generator, a: float, b: float, requires_grad=False, pin_memory=False
) -> Tensor:
    """The new tensor ``t``, filled."""
    t = finish(t, op)
    if kind != _MASK:
        _check_floating(t._h.dtype, op, kind)
    if lib.tt_random(t._h, kind, _own(generator, op, t), a, b, -1) < 0:
        raise error(op)
    t = pinned(t, op) if pin_memory else t
    return make_leaf(t) if requires_grad else t


def _fresh(op: str, kind: int, a: float, b: float, what: str):
    def create(
        *size,
        generator=None,
        out=None,
        dtype=None,
        layout=None,
        device=None,
        requires_grad=False,
        pin_memory=False,
        names=None,
        **named,
    ):
        if named:
            size = size_argument(op, size, named)
        shape = sizes(size, op)
        if out is not None:
            into(out, shape, op)
            return out.uniform_(generator=generator) if kind == _UNIFORM else out.normal_(generator=generator)
        made = on_device(device, attempted.tt_empty, code_of(dtype, op), len(shape), shape)
        return _draw(made, kind, op, generator, a, b, requires_grad, pin_memory)

    create.__name__ = create.__qualname__ = op
    create.__doc__ = f"""A tensor of shape ``size`` of {what}. Follows ``torch.{op}``.

    Returns:
        A tensor of the default dtype, unless another is given.
    Raises:
        NotImplementedError: the dtype is not floating
        RuntimeError: a size is negative
    """
    return function(create)


rand = _fresh("rand", _UNIFORM, 0.0, 1.0, "numbers uniform on [0, 1)")
randn = _fresh("randn", _NORMAL, 0.0, 1.0, "normal numbers of mean 0 and variance 1")


def _fresh_like(op: str, kind: int, a: float, b: float, what: str):
    def create(
        input,
        *,
        dtype=None,
        layout=None,
        device=None,
        requires_grad=False,
        pin_memory=False,
        memory_format=preserve_format,
        generator=None,
    ):
        made = empty_as(input, dtype, memory_format, device, op)
        return _draw(made, kind, op, generator, a, b, requires_grad, pin_memory)

    create.__name__ = create.__qualname__ = op
    create.__doc__ = f"""A tensor like ``input`` of {what}. Follows ``torch.{op}``.

    Returns:
        A tensor of the shape of ``input``, and of its dtype and device unless others are given.
    Raises:
        NotImplementedError: the dtype is not floating
    """
    return function(create)


rand_like = _fresh_like("rand_like", _UNIFORM, 0.0, 1.0, "numbers uniform on [0, 1)")
randn_like = _fresh_like("randn_like", _NORMAL, 0.0, 1.0, "normal numbers of mean 0 and variance 1")


# Integers.


def _range(op: str, code: int, low: int, high: int) -> int:
    """The number of integers from ``low`` to below ``high``. RuntimeError if there are none or the dtype lacks some."""
    if low >= high:
        raise RuntimeError(f"{op}: random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    least, most = exact_integers(ALL[code] if INTEGRAL[code] else int64)
    if code == lib.TT_F16:
        least, most = -LARGEST[code], LARGEST[code]
    if not least <= low <= most:
        raise RuntimeError(f"{op}: from is out of bounds for {ALL[code].name}: {low}")
    if high - 1 > most:
        raise RuntimeError(f"{op}: to - 1 is out of bounds for {ALL[code].name}: {high - 1}")
    return high - low & (1 << 64) - 1


def _integers(t: Tensor | None, op: str, generator, low: int, count: int, requires_grad, pin_memory) -> Tensor:
    t = finish(t, op)
    if lib.tt_random_integers(t._h, _own(generator, op, t), low, count, -1) < 0:
        raise error(op)
    t = pinned(t, op) if pin_memory else t
    return make_leaf(t) if requires_grad else t


def _bounds(op: str, low, high) -> tuple[int, int]:
    low, high = (0, low) if high is None else (low, high)
    try:
        return operator.index(low), operator.index(high)
    except TypeError:
        raise TypeError(f"{op}(): arguments 'low' and 'high' must be int, got {low!r} and {high!r}") from None


@function
def randint(
    *args,
    low=None,
    high=None,
    size=None,
    generator=None,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
) -> Tensor:
    """``randint(high, size)``, ``randint(low, high, size)``: integers uniform from ``low`` (0) to below ``high``; int64
    unless a dtype is given. RuntimeError for an empty range. Follows ``torch.randint``.

    Args:
        args: ``high, size`` or ``low, high, size`` by position
        low: the least number; 0 unless given
        high: above the largest number
        size: the sizes
    Returns:
        An int64 tensor, unless another dtype is given.
    Raises:
        RuntimeError: there is no number between ``low`` and ``high``
    """
    args = list(args)
    if size is None and args:
        size = args.pop()
    if len(args) > 2 or size is None or isinstance(size, int):
        raise TypeError("randint(): wanted randint(high, size) or randint(low, high, size) with a tuple for size")
    if len(args) == 2:
        low, high = args
    elif args:
        low, high = (0 if low is None else low, args[0]) if high is None else (args[0], high)
    low, high = _bounds("randint", 0 if low is None and high is not None else low, high)
    shape = sizes((size,), "randint")
    if out is not None:
        return into(out, shape, "randint").random_(low, high, generator=generator)
    code = lib.TT_I64 if dtype is None else dtype_code(dtype, "randint")
    count = _range("randint", code, low, high)
    made = on_device(device, attempted.tt_empty, code, len(shape), shape)
    return _integers(made, "randint", generator, low, count, requires_grad, pin_memory)


@function
def randint_like(
    input,
    low=None,
    high=None,
    *,
    generator=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
    memory_format=preserve_format,
) -> Tensor:
    """``randint_like(input, high)``, ``randint_like(input, low, high)``: integers, in the shape and dtype of ``input``.
    Follows ``torch.randint_like``."""
    low, high = _bounds("randint_like", 0 if low is None else low, high)
    made = empty_as(input, dtype, memory_format, device, "randint_like")
    count = _range("randint_like", input._h.dtype if dtype is None else dtype.code, low, high)
    return _integers(made, "randint_like", generator, low, count, requires_grad, pin_memory)


@function
def randperm(
    n, *, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
) -> Tensor:
    """The integers 0 to n - 1 in random order; int64 unless a dtype is given. Follows ``torch.randperm``.

    Args:
        n: how many
    Returns:
        The numbers from 0 to n - 1 as an int64 vector, unless another dtype is given.
    Raises:
        RuntimeError: ``n`` is negative, or the dtype cannot hold it
    """
    code = lib.TT_I64 if dtype is None else dtype_code(dtype, "randperm")
    if n - 1 > exact_integers(ALL[code])[1]:
        raise RuntimeError(f"randperm: value cannot be converted to type {ALL[code].name} without overflow: {n - 1}")
    g = pointer(generator, "randperm", number_of(get_default_device() if device is None else device))
    order = finish(on_device(device, attempted.tt_randperm, code, n, g), "randperm", pin_memory=pin_memory)
    if out is not None:
        return into(out, order.shape, "randperm").copy_(order)
    return order.requires_grad_() if requires_grad else order


# In place.

_writers = {
    name: overwrite(name, title)
    for name, title in (
        ("uniform_", "UniformBackward0"),
        ("normal_", "NormalBackward0"),
        ("log_normal_", "LogNormalBackward0"),
        ("exponential_", "ExponentialBackward0"),
        ("cauchy_", "CauchyBackward0"),
        ("geometric_", "GeometricBackward0"),
        ("bernoulli_", "BernoulliBackward2"),
        ("random_", "RandomBackward0"),
    )
}


def _fill(self, name: str, generator, a: float, b: float) -> Tensor:
    h, kind = self._h, _KINDS[name[:-1]]
    if name != "geometric_":
        _check_floating(h.dtype, name, kind)
    return _writers[name](self, lib.tt_random, kind, pointer(generator, name, h.storage.device), a, b)


@method
def uniform_(self, from_=0.0, to=1.0, *, generator=None, **named):
    """Numbers uniform on [from, to), in place. Follows ``torch.Tensor.uniform_``."""
    try:
        from_ = named.pop("from", from_)
        if named:
            raise TypeError(f"uniform_() got an unexpected keyword argument '{next(iter(named))}'")
        most = LARGEST[self._h.dtype]
        if not (-most <= from_ <= most and -most <= to <= most):
            name, bound = ("to", to) if -most <= from_ <= most else ("from", from_)
            raise RuntimeError(f"uniform_: {name} is out of bounds for {self.dtype.name}: {bound}")
        if not 0 <= to - from_ <= most:
            raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={from_} > to={to}")
        return _fill(self, "uniform_", generator, from_, to)
    except Exception as exc:
        refuse(exc)
        raise


@method
def normal_(self, mean=0.0, std=1.0, *, generator=None):
    """Normal numbers, in place. RuntimeError for a negative ``std``. Follows ``torch.Tensor.normal_``."""
    try:
        if not std >= 0:
            raise RuntimeError(f"normal_ expects std >= 0.0, but found std {std}")
        return _fill(self, "normal_", generator, mean, std)
    except Exception as exc:
        refuse(exc)
        raise


@method
def log_normal_(self, mean=1.0, std=2.0, *, generator=None):
    """exp of normal numbers, in place. RuntimeError unless std > 0. Follows ``torch.Tensor.log_normal_``."""
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    return _fill(self, "log_normal_", generator, mean, std)


@method
def exponential_(self, lambd=1.0, *, generator=None):
    """Exponential numbers of rate ``lambd``, in place. RuntimeError unless lambd > 0. Follows
    ``torch.Tensor.exponential_``."""
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    return _fill(self, "exponential_", generator, lambd, 0.0)


@method
def cauchy_(self, median=0.0, sigma=1.0, *, generator=None):
    """Cauchy numbers, in place. RuntimeError unless sigma > 0. Follows ``torch.Tensor.cauchy_``."""
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    return _fill(self, "cauchy_", generator, median, sigma)


@method
def geometric_(self, p, *, generator=None):
    """The number of trials up to the first success of probability ``p``, in place. RuntimeError unless 0 < p < 1.
    Follows ``torch.Tensor.geometric_``."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    return _fill(self, "geometric_", generator, p, 0.0)


@method
@shown(lambda self, from_=None, to=None, *, generator=None, **named: None)
def random_(self, from_=None, to=Parameter.empty, *, generator=None, **named):
    """``random_()``, ``random_(from, None)``: integers up to the largest that the dtype holds with all below it;
    ``random_(to)``, ``random_(from, to)``: from ``from`` (0) to below ``to``. Follows ``torch.Tensor.random_``."""
    code = self._h.dtype
    most = exact_integers(ALL[code])[1]
    from_ = named.pop("from", from_)
    if named:
        raise TypeError(f"random_() got an unexpected keyword argument '{next(iter(named))}'")
    if to is Parameter.empty:
        from_, to = None, from_
    low, high = _bounds("random_", 0 if from_ is None else from_, most + 1 if to is None else to)
    count = _range("random_", code, low, high)
    return _writers["random_"](self, lib.tt_random_integers, _own(generator, "random_", self), low, count)


def _probability(p, op: str) -> float:
    if not 0 <= p <= 1:
        raise RuntimeError(f"{op} expects p to be in [0, 1], but got p={p}")
    return p


@method
def bernoulli_(self, p=0.5, *, generator=None):
    """1 with probability ``p``, a number or a tensor of probabilities, else 0; in place. Follows
    ``torch.Tensor.bernoulli_``."""
    try:
        g = _own(generator, "bernoulli_", self)
        if not isinstance(p, Tensor):
            return _writers["bernoulli_"](self, lib.tt_random, _MASK, g, _probability(p, "bernoulli_"), 1.0)
        chances = p.detach().expand(self.shape).to(float64).contiguous()
        return _writers["bernoulli_"](self, lib.tt_bernoulli, chances._h, g)
    except Exception as exc:
        refuse(exc)
        raise


# From distributions.


def _zeros(g):
    return g.new_zeros(()).expand(g.shape)


@primitive(input=_zeros, title="BernoulliBackward0")
def _bernoulli(input, g):
    out = owned.tt_empty_like(input._h, input._h.dtype)
    chances = owned.tt_cast(input._h, lib.TT_F64).contiguous()
    if lib.tt_bernoulli(out._h, chances._h, g, -1) < 0:
        raise error("bernoulli")
    return out


@both
def bernoulli(input, p=None, *, generator=None, out=None):
    """1 with the probability that stands in ``input``, else 0, in its dtype; with ``p``, that probability for all.
    RuntimeError outside of [0, 1]; but nobody waits for a device's probabilities to see that, where more than 1 is
    always, and less than 0 or NaN never. Follows ``torch.bernoulli``.

    Args:
        input: probabilities
        p: one probability for all, in place of those of ``input``
    Returns:
        A tensor of the shape and dtype of ``input``.
    Raises:
        RuntimeError: a probability is below 0 or above 1
    """
    g = _own(generator, "bernoulli", input)
    if p is not None:
        made = _draw(
            attempted.tt_empty_like(input._h, input._h.dtype),
            _MASK,
            "bernoulli",
            generator,
            _probability(p, "bernoulli"),
            1.0,
        )
    else:
        if not FLOATING[input._h.dtype]:
            raise NotImplementedError(f"bernoulli: probabilities must be floating, got {input.dtype!r}")
        made = _bernoulli(input, g)
    return made if out is None else into(out, made.shape, "bernoulli").copy_(made)


@primitive(
    mean=lambda g, mean_shape: g.new_zeros(()).expand(mean_shape),
    std=lambda g, std_shape: g.new_zeros(()).expand(std_shape),
    title="NormalBackward0",
)
def _normal(mean, std, g):
    mean, std = (x.detach() if isinstance(x, Tensor) else x for x in (mean, std))
    like = mean + std
    z = owned.tt_empty_like(like._h, like._h.dtype)
    if lib.tt_random(z._h, _NORMAL, g, 0.0, 1.0, -1) < 0:
        raise error("normal")
    return z * std + mean


@function
def normal(
    mean,
    std=1.0,
    size=None,
    *,
    generator=None,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
) -> Tensor:
    """Normal numbers: ``mean`` and ``std`` are numbers with a ``size``, or one or both are tensors. RuntimeError for a
    negative ``std``. Follows ``torch.normal``.

    Args:
        mean: a number, or a tensor
        std: a number, or a tensor
        size: the sizes, where both are numbers
    Returns:
        A tensor of the shape that ``mean`` and ``std`` broadcast to, or of ``size``.
    Raises:
        RuntimeError: ``std`` is negative
    """
    if not isinstance(std, Tensor) and not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        if size is None:
            raise TypeError("normal(): argument 'size' is needed when mean and std are numbers")
        shape = sizes((size,), "normal")
        if out is not None:
            return into(out, shape, "normal").normal_(mean, std, generator=generator)
        made = on_device(device, attempted.tt_empty, code_of(dtype, "normal"), len(shape), shape)
        return _draw(made, _NORMAL, "normal", generator, mean, std, requires_grad, pin_memory)
    for x in (mean, std):
        if isinstance(x, Tensor) and not FLOATING[x._h.dtype]:
            raise NotImplementedError(f"normal: mean and std must be floating, got {x.dtype!r}")
    if isinstance(std, Tensor) and bool(std.detach().lt(0).any()):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    drawn = _normal(mean, std, _own(generator, "normal", mean if isinstance(mean, Tensor) else std))
    return drawn if out is None else into(out, drawn.shape, "normal").copy_(drawn)


@both
def multinomial(input, num_samples, replacement=False, *, generator=None, out=None) -> Tensor:
    """``num_samples`` categories from each row of weights, int64, with or without replacement. RuntimeError for
    negative, infinite or all-zero weights, or too few of them. Follows ``torch.multinomial``.

    Args:
        input: weights (m) or (n, m), none negative
        num_samples: how many to draw
        replacement: whether a number may be drawn again
    Returns:
        An int64 tensor (num_samples) or (n, num_samples).
    Raises:
        RuntimeError: a weight is negative or not finite, all are 0, or there are too few
    """
    if not FLOATING[input._h.dtype]:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {input.dtype!r}")
    weights = input.detach().to(float64).contiguous()
    g = _own(generator, "multinomial", input)
    drawn = finish(attempted.tt_multinomial(weights._h, num_samples, replacement, g), "multinomial")
    return drawn if out is None else into(out, drawn.shape, "multinomial").copy_(drawn)
