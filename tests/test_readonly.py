"""Memory that must not be written: whoever shares it, no operator writes it, and the first who does warns."""

import functools
import mmap
import warnings

import numpy as np
import pytest
from fuse.helpers import python
from optable import OPS
from entries import describe, run
from optable import make

import tinytorch

VALUES = np.arange(1.0, 7.0, dtype=np.float32)


def read_only(values=VALUES):
    array = np.array(values)
    array.flags.writeable = False
    return array


def quietly(share, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return share(*args, **kwargs)


def mapped():
    """Pages that the processor guards: a write would end the process."""
    return mmap.mmap(-1, 4096, prot=mmap.PROT_READ)


SOURCES = {
    "from_numpy": lambda a: tinytorch.from_numpy(a),
    "as_tensor": lambda a: tinytorch.as_tensor(a),
    "asarray": lambda a: tinytorch.asarray(a),
    "asarray of a buffer": lambda a: tinytorch.asarray(memoryview(a)),
    "frombuffer": lambda a: tinytorch.frombuffer(a, dtype=tinytorch.float32),
    "frombuffer of bytes": lambda a: tinytorch.frombuffer(a.tobytes(), dtype=tinytorch.float32),
    "from_dlpack": lambda a: tinytorch.from_dlpack(a),
    "broadcast": lambda a: tinytorch.from_numpy(np.broadcast_to(a, (2, 6))),
    "guarded pages": lambda a: tinytorch.frombuffer(mapped(), dtype=tinytorch.float32, count=6),
}


@pytest.mark.parametrize("source", SOURCES)
def test_sources(source):
    array = read_only()
    x = quietly(SOURCES[source], array)
    before = x.tolist()
    for view in (x, x[1:], x.detach(), x.view(-1, 2) if x.is_contiguous() else x, x.data):
        for write in (lambda v: v.add_(1), lambda v: v.zero_(), lambda v: v.__setitem__(0, 5.0)):
            with pytest.raises(RuntimeError, match="read-only"):
                write(view)
        assert not view.numpy().flags.writeable
    assert x.tolist() == before and (array == VALUES).all()
    assert x.clone().add_(1).tolist() == (np.array(before) + 1).tolist()
    with tinytorch.fuse(), pytest.raises(RuntimeError, match="read-only"):
        x.add_(1)


def test_a_copy_may_be_written():
    array = read_only()
    for copy in (
        tinytorch.tensor(array),
        tinytorch.asarray(array, copy=True),
        tinytorch.as_tensor(quietly(tinytorch.from_numpy, array), dtype=tinytorch.float64),
        tinytorch.as_tensor(bytearray(b"123")),
        tinytorch.frombuffer(bytearray(b"12345678"), dtype=tinytorch.float32),
    ):
        copy.zero_()
    assert (array == VALUES).all()


def frozen(tensors, k):
    """The same tensors, of which number k lies in read-only memory."""
    array = tensors[k].detach().numpy().copy()
    array.flags.writeable = False
    return array, [quietly(tinytorch.from_numpy, array) if i == k else t for i, t in enumerate(tensors)]


def refuses(write, array, message):
    before = array.copy()
    with pytest.raises((RuntimeError, NotImplementedError)):
        write()
        pytest.fail(message)
    np.testing.assert_array_equal(array, before, message)


@pytest.mark.parametrize("op", [op for op in OPS if op.inplace and not op.view], ids=str)
def test_in_place(op):
    dtype = "float32" if "float32" in op.dtypes else op.dtypes[0]
    for sample, arrays in op.samples_for(dtype):
        tensors = make(tinytorch, sample, arrays, dtype)[1]
        if not sample.specs or sample.args[0] is not sample.specs[0] or not tensors[0].numel():
            continue
        array, tensors = frozen(tensors, 0)
        (x, *args), kwargs = sample.fill(tensors)
        write = functools.partial(getattr(x, f"{op.name}_"), *args, **kwargs)
        refuses(write, array, describe(op, sample, dtype))


@pytest.mark.parametrize("op", [op for op in OPS if op.out], ids=str)
def test_out(op):
    dtype = "float32" if "float32" in op.dtypes else op.dtypes[0]
    for sample, arrays in op.samples_for(dtype):
        tensors = make(tinytorch, sample, arrays, dtype)[1]
        expected = run(op, tinytorch, sample, tensors)
        if expected.numel():
            array, (out,) = frozen([expected], 0)
            write = functools.partial(run, op, tinytorch, sample, tensors, out=out)
            refuses(write, array, describe(op, sample, dtype))


def optimized(optimizer, **options):
    def step(x):
        x.requires_grad_()
        x.grad = tinytorch.ones(6)
        optimizer([x], **options).step()

    return step


INDEX = tinytorch.tensor([0, 1])
WRITERS = {
    "normal_": lambda x: x.normal_(),
    "uniform_": lambda x: x.uniform_(),
    "random_": lambda x: x.random_(),
    "bernoulli_": lambda x: x.bernoulli_(),
    "exponential_": lambda x: x.exponential_(),
    "copy_": lambda x: x.copy_(tinytorch.ones(6)),
    "setitem": lambda x: x.__setitem__(x > 2, 1.0),
    "setitem of an index": lambda x: x.__setitem__(INDEX, 1.0),
    "index_put_": lambda x: x.index_put_((INDEX,), tinytorch.ones(2)),
    "index_add_": lambda x: x.index_add_(0, INDEX, tinytorch.ones(2)),
    "index_copy_": lambda x: x.index_copy_(0, INDEX, tinytorch.ones(2)),
    "index_fill_": lambda x: x.index_fill_(0, INDEX, 1.0),
    "scatter_": lambda x: x.scatter_(0, INDEX, tinytorch.zeros(2)),
    "masked_fill_": lambda x: x.masked_fill_(x > 2, 1.0),
    "masked_scatter_": lambda x: x.masked_scatter_(x > 2, tinytorch.ones(6)),
    "put_": lambda x: x.put_(INDEX, tinytorch.zeros(2)),
    "relu_": lambda x: tinytorch.nn.functional.relu(x.neg_(), inplace=True),
    "init": lambda x: tinytorch.nn.init.uniform_(x),
    "clip_grad_norm_": lambda x: clipped(x),
    "SGD": optimized(tinytorch.optim.SGD, lr=0.1, momentum=0.9),
    "Adam": optimized(tinytorch.optim.Adam),
    "AdamW": optimized(tinytorch.optim.AdamW),
    "RMSprop": optimized(tinytorch.optim.RMSprop),
    "Adagrad": optimized(tinytorch.optim.Adagrad),
}


def clipped(x):
    p = tinytorch.zeros(6, requires_grad=True)
    p.grad = x
    tinytorch.nn.utils.clip_grad_norm_([p], 0.1)


@pytest.mark.parametrize("writer", WRITERS)
def test_writers(writer):
    array = read_only()
    refuses(lambda: WRITERS[writer](quietly(tinytorch.from_numpy, array)), array, writer)


def test_the_warning_comes_once():
    told = python("""
        import warnings, numpy as np, tinytorch
        array = np.zeros(3); array.flags.writeable = False
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tinytorch.from_numpy(np.zeros(3)), tinytorch.tensor(array)
            print(len(caught))
            tinytorch.as_tensor(array), tinytorch.frombuffer(b"1234", dtype=tinytorch.float32)
            print(len(caught), caught[0].category.__name__, caught[0].message)
    """)
    assert told.startswith("0\n1 UserWarning The given NumPy array or buffer is not writable")
