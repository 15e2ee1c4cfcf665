"""Arguments for hostile calls, as source that tinytorch and PyTorch both evaluate."""

import math
from fractions import Fraction

import numpy as np

from fuse.catalog import words

DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64")
SHAPES = ("()", "(0,)", "(1,)", "(3,)", "(2, 3)", "(3, 2)", "(2, 0)", "(3, 3)", "(2, 3, 4)", "(1, 2, 1, 3)", "(4, 5)")
HOWS = ("plain",) * 6 + (
    "grad",
    "grad",
    "nonleaf",
    "transposed",
    "strided",
    "expanded",
    "inference",
    "nan",
    "offset",
    "coo",
    "csr",
)

#: Names that the sources use beside ``torch`` and ``T``.
HOSTILE = {}


def hostile(cls):
    HOSTILE[cls.__name__] = cls
    return cls


@hostile
class Fault(Exception):
    """Raised by the objects below: whoever lets it through has not hidden it."""


def _fault(*_, **__):
    raise Fault("from a method of the argument")


@hostile
class Faulty:
    """Every special method raises."""

    __index__ = __int__ = __float__ = __len__ = __iter__ = __getitem__ = __bool__ = __array__ = __add__ = __radd__ = (
        _fault
    )
    __mul__ = __rmul__ = __eq__ = __hash__ = __call__ = __contains__ = _fault


@hostile
class Liar:
    """Says that it is long, an index of any size, a sequence without elements."""

    def __len__(self):
        return 2**62

    def __index__(self):
        return 2**70

    def __float__(self):
        return math.nan

    def __iter__(self):
        return iter(())

    def __getitem__(self, at):
        raise IndexError(at)


@hostile
class Index:
    """An index that is no int."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


@hostile
class Short(list):
    """A list that says it is longer than it is."""

    def __len__(self):
        return 5


@hostile
class Cycle(list):
    """A list that holds itself."""

    def __init__(self):
        self.append(self)


@hostile
class Anything:
    """Has every attribute, of no use."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None


HOSTILE |= {"np": np, "inf": math.inf, "nan": math.nan, "Fraction": Fraction}

NUMBERS = words("""
    0 1 -1 2 3 -2 99 -99 2**31 -2**31 2**40 2**62 2**63 -2**63 2**64 10**30 True False 0.0 -0.0 0.5 -1.5 1e300
    1e-300 nan inf -inf 1j 3+4j np.int64(1) np.float32(0.5) np.int8(-1) np.bool_(True) Fraction(1,2) Index(1)
    Index(-9) Index(2**80)
""")
OTHERS = words("""
    None "" "sum" "mean" "reflect" "\\0" "ij,jk" b"x" [] [0] [0,0] (0,1) (1,2,3) (-1,) (2**40,2**40) (2**62,4)
    [None] ["a"] [[1,2],[3]] {} {0:1} set() range(3) slice(0,1) slice(None,None,-1) slice(None,None,0) Ellipsis
    object() object type int print Faulty() Liar() Short([1,2]) Anything() Index(0) [Index(0)] (Index(2),) [True]
    [1.5] [inf] (nan,) lambda:0 iter((0,1)) np.zeros(3) np.array("a") np.array([None])
    np.zeros((2,3),np.float32)[:,::-1] memoryview(b"abc") torch torch.float32 torch.int64 torch.bool
    torch.device("cpu") torch.device("cuda:7") "cpu" "cuda:99" "nonsense" torch.strided torch.Size([2,3])
    torch.contiguous_format torch.channels_last torch.Generator() torch.Tensor torch.nn.Linear(3,2) torch.float16
    torch.complex64
""")
SIZES = words("""
    () (0,) (2,3) (-1,) [3] 3 0 -1 (2,-1) (2**31,) (2**40,) (2**62,2) (2**63,) (10**30,) (1.5,) None (2,None)
    (Index(2),) torch.Size([3])
""")
DIMS = words("""
    0 1 -1 2 -3 99 -99 2**63 (0,) (0,1) (0,0) (0,-1) () [] None True 1.5 Index(0) "x" [0,None] torch.tensor(0)
""")


def tensor(m, device="cpu"):
    """T of a library: T(dtype, shape, how) makes a tensor of small numbers."""

    def make(dtype, shape, how="plain"):
        if how == "inference":
            with m.inference_mode():
                return make(dtype, shape)
        shape = tuple(shape)
        base = shape
        if shape:
            base = {
                "transposed": shape[::-1],
                "strided": (*shape[:-1], 2 * shape[-1]),
                "expanded": (1, *shape[1:]),
                "offset": (shape[0] + 1, *shape[1:]),
            }.get(how, shape)
        n = m.arange(math.prod(base), device=device)
        t = (n % 2 if how == "index" else n % 5 - 1).to(getattr(m, dtype)).reshape(base)
        if shape and how == "transposed":
            t = t.permute(tuple(range(len(shape)))[::-1])
        elif shape and how == "strided":
            t = t[..., ::2]
        elif shape and how == "expanded" and shape[0] != 0:
            t = t.expand(shape)
        elif shape and how == "offset":
            t = t[1:]
        elif how == "nan" and t.is_floating_point():
            t = t / 0
        elif shape and how == "coo":
            t = t.to_sparse()
        elif len(shape) == 2 and how == "csr":
            t = t.to_sparse_csr()
        elif how in ("grad", "nonleaf") and t.is_floating_point():
            t = t.requires_grad_()
            t = t * 1 if how == "nonleaf" else t
        return t

    return make


def scope(m, device="cpu"):
    """The names for sources, of a library."""
    return {"torch": m, "T": tensor(m, device), **HOSTILE}


class Chooser:
    """Draws sources of arguments."""

    def __init__(self, random):
        self.random, self.one = random, random.choice

    def chance(self, of):
        return self.random.random() < of

    def tensor(self, dtype=None, shape=None):
        dtype = dtype or (self.one(DTYPES) if self.chance(0.5) else "float32")
        return f"T({dtype!r}, {shape or self.one(SHAPES)}, {self.one(HOWS)!r})"

    def anything(self):
        kind = self.random.random()
        if kind < 0.3:
            return self.tensor()
        if kind < 0.4:
            return self.one((f"[{self.tensor()}]", f"[{self.tensor()}, {self.tensor()}]", f"({self.tensor()}, None)"))
        return self.one(NUMBERS if kind < 0.65 else OTHERS)

    def named(self, name):
        """Something for a parameter of a name: most often what belongs there."""
        if name == "stream":  # any other number is an address, which nobody can check
            return self.one(("None", "0", "1", "2", "-1", "True", "1.5", '"x"', self.tensor()))
        if self.chance(0.25):
            return self.anything()
        if name in ("dim", "dims", "axis", "dim0", "dim1", "dim2", "source", "destination", "start_dim", "end_dim"):
            return self.one(DIMS)
        if name in ("size", "sizes", "shape", "normalized_shape", "repeats", "kernel_size", "sections", "stride"):
            return self.one(SIZES)
        if name in ("dtype", "device", "layout", "memory_format"):
            return self.one((f"torch.{self.one(DTYPES)}", '"cpu"', "None", '"meta"', "torch.strided", "torch.float32"))
        if name in ("reduction", "mode", "reduce", "approximate", "rounding_mode"):
            return self.one(('"mean"', '"sum"', '"none"', '"tanh"', '"floor"', "None", '"prod"', '"x"', "0"))
        if name in ("index", "indices", "target", "mask", "condition"):
            return self.tensor(self.one(("int64", "int64", "bool", "int32", "float32", "uint8")))
        if name in ("tensors", "params", "parameters", "operands", "inputs", "outputs"):
            return self.one((f"[{self.tensor()}]", f"[{self.tensor()}, {self.tensor()}]", self.tensor(), "[]"))
        if name in ("input", "other", "self", "weight", "bias", "values", "src", "mat2", "vec", "tensor", "out"):
            return self.tensor()
        return self.one((*NUMBERS[:14], *NUMBERS[:14], "True", "None", "0.5", self.tensor()))
