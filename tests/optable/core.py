"""The vocabulary of the operator table: T (a tensor to be made), S (a sample call) and Op (an operator)."""

import zlib
from dataclasses import dataclass, field, replace

import numpy as np
from compare import COMPLEX, DTYPES, FLOATS, HALVES, INTS, TOLERANCE


@dataclass(frozen=True)
class Layout:
    """How a tensor of a given shape lies in a base tensor: the base's shape, and the view of it."""

    base: object
    view: object


LAYOUTS = {
    "plain": Layout(lambda s: s, lambda t, s: t),
    "transposed": Layout(lambda s: s[::-1], lambda t, s: t.permute(tuple(reversed(range(len(s)))))),
    "strided": Layout(lambda s: (*s[:-1], 2 * s[-1]), lambda t, s: t[..., ::2]),
    "offset": Layout(lambda s: (s[0] + 1, *s[1:]), lambda t, s: t[1:]),
    "expanded": Layout(lambda s: (1, *s[1:]), lambda t, s: t.expand(*s)),
}


@dataclass(frozen=True, repr=False)
class Spec:
    """A tensor to be made. Of dtype None it takes the dtype under test, and then it may be differentiated."""

    shape: tuple
    layout: str = "plain"
    dtype: str | None = None
    low: float | None = None
    high: float | None = None
    values: tuple | None = None  # explicit values instead of random ones
    distinct: bool = False  # no two elements are equal, and none are close
    grad: bool = True

    def array(self, dtype, rng, domain, int_domain):
        """The base's values as a NumPy array; float32 stands in for bfloat16."""
        dtype = self.dtype or dtype
        shape = LAYOUTS[self.layout].base(self.shape)
        np_dtype = np.dtype("float32" if dtype == "bfloat16" else dtype)
        if self.values is not None:
            return np.array(self.values, np_dtype).reshape(shape)
        if dtype in COMPLEX:
            parts = [self.array("float64", rng, domain, int_domain) for _ in range(2)]
            return np.asarray(parts[0] + 1j * parts[1], np_dtype)
        low, high = domain if dtype in FLOATS else int_domain
        low = low if self.low is None else self.low
        high = high if self.high is None else self.high
        if self.distinct:
            ranks = rng.permutation(int(np.prod(shape))).reshape(shape)
            return np.asarray(ranks * 0.37 - 1 if dtype in FLOATS else ranks, np_dtype)
        if dtype in FLOATS:
            return rng.uniform(low, high, shape).astype(np_dtype)
        if dtype == "bool":
            return rng.integers(0, 2, shape).astype(np_dtype)
        return rng.integers(max(low, 0) if dtype == "uint8" else low, high, shape).astype(np_dtype)

    def base(self, m, array, dtype, device):
        """The base tensor in library m."""
        if array.size == 0:  # NumPy's empty arrays have strides of 0, which no tensor library makes by itself
            return m.zeros(array.shape, dtype=getattr(m, self.dtype or dtype), device=device)
        return m.from_numpy(array.copy()).to(device=device, dtype=getattr(m, self.dtype or dtype))

    def view(self, base):
        return LAYOUTS[self.layout].view(base, self.shape)

    def __repr__(self):
        layout = "" if self.layout == "plain" else f" {self.layout}"
        return f"<{self.dtype or ''}{list(self.shape)}{layout}>"

    def differentiable(self, dtype):
        return self.dtype is None and self.grad and dtype in (*FLOATS, *COMPLEX)


def T(*shape, **how):
    """A tensor to be made: T(3, 4), T(3, 4, layout="transposed"), T(5, dtype="int64", low=0, high=3)."""
    return Spec(shape, **how)


def _map(function, value):
    """Apply function to every Spec inside tuples, lists and dicts, in order."""
    if isinstance(value, Spec):
        return function(value)
    if isinstance(value, (tuple, list)):
        return type(value)(_map(function, item) for item in value)
    if isinstance(value, dict):
        return {key: _map(function, item) for key, item in value.items()}
    return value


@dataclass(frozen=True, repr=False)
class Sample:
    """One call: positional and keyword arguments, with a Spec wherever a tensor belongs."""

    args: tuple
    kwargs: dict = field(default_factory=dict)
    smooth: bool = True  # False: at a kink or a pole, where finite differences mean nothing
    only: tuple = DTYPES  # the dtypes to which the sample applies

    @property
    def specs(self):
        found = []
        _map(found.append, (self.args, self.kwargs))
        return found

    def applies(self, dtype):
        """Is the sample one of that dtype? Of a complex one where it is one of float64, but for infinities and NaN."""
        if dtype not in COMPLEX:
            return dtype in self.only
        values = [v for spec in self.specs for v in spec.values or ()]
        return "float64" in self.only and all(np.isfinite(v) for v in values)

    def fill(self, tensors):
        """The arguments with the Specs replaced by tensors, in the order of `specs`."""
        tensors = iter(tensors)
        return _map(lambda _: next(tensors), (self.args, self.kwargs))

    def __repr__(self):
        parts = [repr(arg) for arg in self.args] + [f"{key}={value!r}" for key, value in self.kwargs.items()]
        return f"({', '.join(parts)})"


def S(*args, **kwargs):
    """A sample call; see Sample."""
    return Sample(args, kwargs)


def rough(sample):
    """The sample sits on a kink: its gradient is compared with torch's, not with finite differences."""
    return replace(sample, smooth=False)


def only(dtypes, *samples):
    """The samples apply to these dtypes alone."""
    return tuple(replace(sample, only=tuple(dtypes)) for sample in samples)


@dataclass(frozen=True)
class Op:
    """One operator of the table.

    call(m, *args, **kwargs) runs it through the public names of library m: tinytorch, or torch as the oracle.
    """

    name: str
    samples: tuple
    call: object = None  # default: the function m.name
    method: bool = False  # the method Tensor.name does the same
    inplace: bool = False  # Tensor.name_ exists
    out: bool = False  # the function takes out=
    dtypes: tuple = DTYPES  # any other dtype raises
    grad: bool = True  # differentiable in every floating-point tensor argument that does not say otherwise
    twice: bool = True  # gradgradcheck makes sense
    view: bool = False  # strides, offset and aliasing are part of the result
    domain: tuple = (-2.5, 2.5)  # where random floating-point arguments lie
    int_domain: tuple = (-5, 6)
    rtol: float = 0  # how far the oracle itself is off, where that is more than rounding
    half_ulps: int = 1  # the error a half type may show: more than 1 if intermediate values are rounded too
    composite: bool = False  # what happens to dtypes that are not listed follows from the parts, and is not asked
    cpu: bool = False  # other devices have no kernel: NotImplementedError there
    since: tuple = (0, 0)  # the oldest PyTorch that does all of this, where an older one is known not to
    ref: object = None  # a NumPy function of float64 arrays, the oracle where torch is missing

    def __call__(self, m, *args, **kwargs):
        return self.call(m, *args, **kwargs) if self.call else getattr(m, self.name)(*args, **kwargs)

    def tolerance(self, dtype):
        if self.rtol and dtype == "float64":
            return {"rtol": self.rtol}
        if self.half_ulps == 1 or dtype not in HALVES:
            return {}
        rtol = self.half_ulps * TOLERANCE[dtype]["rtol"]
        return {"rtol": rtol, "atol": rtol / 2}  # what rounding intermediate values of about 1 amounts to

    def samples_for(self, dtype):
        """(sample, base arrays) for every sample that applies to dtype; the same values at every call."""
        for index, sample in enumerate(self.samples):
            if sample.applies(dtype):
                rng = np.random.default_rng(zlib.crc32(f"{self.name} {index} {dtype}".encode()))
                arrays = [s.array(dtype, rng, self.domain, self.int_domain) for s in sample.specs]
                yield sample, arrays

    def __repr__(self):
        return self.name


def make(m, sample, arrays, dtype, device="cpu", requires_grad=False):
    """The base tensors of a sample in library m, and the views of them that are its arguments."""
    bases = [spec.base(m, a, dtype, device) for spec, a in zip(sample.specs, arrays)]
    if requires_grad:
        for spec, base in zip(sample.specs, bases):
            base.requires_grad_(spec.differentiable(dtype))
    return bases, [spec.view(base) for spec, base in zip(sample.specs, bases)]


NUMBERS = (*FLOATS, *INTS)
INTEGRAL = (*INTS, "bool")

# The layouts of one tensor argument: every op that takes a tensor of any shape sees all of these.
ONE = (
    T(2, 3),
    T(),
    T(0),
    T(2, 0, 3),
    T(2, 3, layout="transposed"),
    T(3, 2, layout="strided"),
    T(2, 3, layout="offset"),
    T(2, 3, layout="expanded"),
    T(2, 1, 3, 2, layout="transposed"),
)
# And of two that broadcast against each other.
TWO = (
    (T(2, 3), T(2, 3)),
    (T(2, 3), T(3)),
    (T(2, 1), T(1, 3)),
    (T(), T(2, 3)),
    (T(2, 3), T()),
    (T(), T()),
    (T(0), T(0)),
    (T(0, 3), T(1, 3)),
    (T(2, 3, layout="transposed"), T(2, 3)),
    (T(2, 3, layout="strided"), T(2, 3, layout="offset")),
    (T(3), T(2, 3, layout="expanded")),
    (T(2, 1, 3), T(4, 1, layout="transposed")),
)
