"""Each argument of the table's calls in turn, replaced by each hostile value: ``tests/fuzz callables --sweep``."""

import itertools

from fuse.catalog import words
from fuzz import arguments, callables
from optable.core import Spec

VALUES = words("""
    -1 2 99 -99 2**31 2**40 1e300 -1e300 nan inf 0.5 True 1j "" "x" b"x" "mean" None [] () {} [0] (0,0) (-1,) [1.5]
    [None] ["a"] (True,) Index(1) Index(-9) Faulty() Liar() Short([1,2]) Anything() np.int64(1) np.float32(0.5)
    np.bool_(True) np.zeros(3) np.zeros((2,3)) np.array("a") [T('float32',(2,3))] [T('float32',(2,3)),None]
    torch.float32 torch.int64 torch.bool torch.device("cpu") torch torch.Tensor int print lambda:0 object()
    slice(None) Ellipsis torch.Size([2,3]) torch.nn.Parameter(T('float32',(2,3))) range(3) iter((0,1)) Cycle()
    T('float32',()) T('int64',()) T('bool',()) T('float32',(0,)) T('float32',(1,)) T('float32',(3,)) T('int64',(3,))
    T('float32',(2,3)) T('float32',(2,3),'coo') T('float32',(3,3),'csr') T('float32',(3,),'coo') T('complex64',(2,3))
    T('int8',(2,3)) T('bool',(2,3)) T('float16',(2,3)) T('float32',(2,3,4)) T('float32',(1,2,1,3)) T('float32',(2,0))
""")
NEAR = (".unsqueeze(0)", ".unsqueeze(-1)", ".numpy()", ".tolist()", ".to_sparse()")


def _kind(value):
    """What tells samples apart: ranks, types."""
    if isinstance(value, Spec):
        return "T", len(value.shape)
    return (type(value).__name__, *map(_kind, value if isinstance(value, (tuple, list)) else ()))


def _values(value, text, dtype):
    """What an argument is replaced by: a tensor by those of other dtypes and ranks, too."""
    yield from VALUES
    if isinstance(value, Spec):
        yield from (f"T({other!r}, {value.shape})" for other in arguments.DTYPES if other != (value.dtype or dtype))
        yield from (f"{text}{near}" for near in NEAR)


def _calls(dtype, per):
    caller, seen, kinds = callables.Caller(callables.random), {}, set()
    for source, entry, sample, own in callables.samples():
        if own != (dtype if dtype in entry.dtypes else next(iter(entry.dtypes))):
            continue
        given = dict(itertools.chain(enumerate(sample.args), sample.kwargs.items()))
        kind = source, tuple((place, _kind(value)) for place, value in given.items())
        seen[source] = seen.get(source, 0) + (kind not in kinds)
        if kind in kinds or seen[source] > per:
            continue
        kinds.add(kind)
        texts = {place: caller.argument(value, own) for place, value in given.items()}
        for at, value in given.items():
            for wrong in _values(value, texts[at], own):
                named = (f"{p}={t}" if isinstance(p, str) else t for p, t in (texts | {at: wrong}).items())
                yield f"{source}({', '.join(named)})"


class Sweep:
    """The calls by number, for run_callables: of at most ``per`` samples of each function, in a dtype if it takes it,
    else in its first."""

    def __init__(self, dtype="float32", per=1):
        self.calls = tuple(dict.fromkeys(_calls(dtype, per)))

    def call(self, number):
        return self.calls[number]

    def is_mutated(self, number):
        return True
