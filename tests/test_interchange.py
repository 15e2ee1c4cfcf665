"""Sharing memory with NumPy and through DLPack; pickling and copying."""

import copy
import ctypes
import io
import pickle
import warnings

import numpy as np
import pytest
from compare import DTYPES, allocated, assert_same, dtype_name, to_numpy

import tinytorch

NUMPY_DTYPES = [d for d in DTYPES if d != "bfloat16"]


# ---- NumPy.


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_numpy_shares_memory(dtype):
    x = tinytorch.zeros(2, 3, dtype=getattr(tinytorch, dtype))
    array = x.t().numpy()
    assert array.dtype == dtype and array.shape == (3, 2)
    array[0, 1] = 1
    assert x[1, 0].item() == 1
    back = tinytorch.from_numpy(array)
    assert back.data_ptr() == x.data_ptr() and back.stride() == (1, 3)
    x.fill_(1)
    assert array.all() and (to_numpy(back) == 1).all()


def test_numpy_keeps_the_memory_alive():
    array = tinytorch.full((1000,), 3.0).numpy()
    others = [tinytorch.zeros(1000) for _ in range(8)]
    assert (array == 3).all() and len(others) == 8
    x = tinytorch.from_numpy(np.full(1000, 4.0))
    junk = [np.zeros(1000) for _ in range(8)]
    assert (x == 4).all().item() and len(junk) == 8


def test_numpy_memory_comes_back(no_gc):
    before = allocated()
    array = tinytorch.zeros(1000).numpy()
    assert allocated() > before
    del array
    assert allocated() == before


def test_numpy_layouts():
    base = np.arange(24.0).reshape(2, 3, 4)
    for array in (
        base,
        base.T,
        base[:, ::2],
        base[..., 1:],
        base[1],
        np.broadcast_to(base[0], (2, 3, 4)).copy(),
        base[:0],
    ):
        x = tinytorch.from_numpy(array)
        assert tuple(x.shape) == array.shape
        np.testing.assert_array_equal(x.numpy(), array)
        np.testing.assert_array_equal((x * 2).numpy(), array * 2)


def test_numpys_empty_arrays():
    """NumPy gives them strides of 0, which must not look like memory that is shared."""
    x = tinytorch.from_numpy(np.empty((2, 0, 3)))
    assert x.add_(1).shape == (2, 0, 3) and (x + 1).shape == (2, 0, 3)
    x.fill_(2)


def test_array_protocol():
    x = tinytorch.arange(3.0)
    assert np.asarray(x).dtype == np.float32 and np.asarray(x, dtype=np.float64).dtype == np.float64
    assert np.add(x.numpy(), 1).tolist() == [1, 2, 3]
    assert np.array(x).tolist() == [0, 1, 2] and np.mean(np.asarray(x)) == 1
    array = np.asarray(x)
    array[0] = 9
    assert x[0].item() == 9, "np.asarray makes no copy"
    with pytest.raises((TypeError, RuntimeError)):
        tinytorch.ones(2, dtype=tinytorch.bfloat16).numpy()
    assert tinytorch.ones(2, requires_grad=True).numpy(force=True).tolist() == [1, 1]


def test_numpy_numbers_are_numbers():
    x = tinytorch.ones(2)
    for value in (np.float32(2), np.int64(2)):
        assert (x * value).tolist() == [2, 2] and dtype_name(x * value) == "float32"
    assert x[np.int64(1)].item() == 1
    assert tinytorch.zeros(np.int64(2), np.int32(3)).shape == (2, 3)


# ---- DLPack.


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_dlpack_with_numpy(dtype):
    x = tinytorch.zeros(2, 3, dtype=getattr(tinytorch, dtype))
    array = np.from_dlpack(x.t())
    assert array.dtype == dtype and array.strides == tuple(s * array.itemsize for s in (1, 3))
    x.fill_(1)
    assert array.all(), "memory is shared"
    source = np.zeros((2, 3), dtype)
    back = tinytorch.from_dlpack(source)
    source[1, 2] = 1
    assert back[1, 2].item() == 1 and dtype_name(back) == dtype


@pytest.mark.parametrize("dtype", DTYPES)
def test_dlpack_with_torch(torch, dtype):
    x = tinytorch.zeros(2, 3, dtype=getattr(tinytorch, dtype))
    theirs = torch.from_dlpack(x[:, 1:])
    assert theirs.stride() == (3, 1) and dtype_name(theirs) == dtype
    theirs.fill_(1)
    assert x.float().tolist() == [[0, 1, 1], [0, 1, 1]]
    y = torch.zeros(4, dtype=getattr(torch, dtype))
    ours = tinytorch.from_dlpack(y[::2])
    ours.fill_(1)
    assert y.float().tolist() == [1, 0, 1, 0] and ours.stride() == (2,)


def test_dlpack_lifetime(no_gc):
    before = allocated()
    array = np.from_dlpack(tinytorch.full((1000,), 2.0))
    assert (array == 2).all() and allocated() > before
    del array
    assert allocated() == before
    capsule = tinytorch.ones(1000).__dlpack__()
    del capsule  # never consumed
    assert allocated() == before


def test_a_capsule_that_ends_with_an_exception_on_its_way():
    before = tinytorch.cpu.memory_stats()["allocated_bytes.all.current"]
    with pytest.raises((RuntimeError, BufferError), match="dtype|type"):
        np.from_dlpack(tinytorch.ones(1000, dtype=tinytorch.bfloat16))  # which NumPy does not know
    assert tinytorch.cpu.memory_stats()["allocated_bytes.all.current"] == before


class DLTensor(ctypes.Structure):
    """As in dlpack.h; the capsules of both versions hold one."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 4),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def pointer_of(capsule, name):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, name)


def test_dlpack_of_other_libraries():
    """Elements that begin behind the pointer, and no strides: in row-major order."""
    for first in (0, 5):
        capsule = tinytorch.arange(30.0).__dlpack__()
        seen = DLTensor.from_address(pointer_of(capsule, b"dltensor"))
        sizes = (ctypes.c_int64 * 3)(2, 3, 4)
        seen.byte_offset, seen.ndim, seen.strides = 4 * first, 3, None
        seen.shape = ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64))
        found = tinytorch.from_dlpack(capsule)
        assert found.tolist() == (tinytorch.arange(24.0) + first).view(2, 3, 4).tolist()
        assert found.stride() == (12, 4, 1) and found.is_contiguous()


@pytest.mark.parametrize("writable", [True, False])
def test_dlpack_tells_what_is_read_only(writable):
    array = np.ones(3)
    array.flags.writeable = writable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = tinytorch.from_numpy(array)
    capsule = x.__dlpack__(max_version=(1, 0))
    flags = ctypes.c_uint64.from_address(pointer_of(capsule, b"dltensor_versioned") + 24)
    assert flags.value == (0 if writable else 1)
    if not writable:
        with pytest.raises(RuntimeError):
            tinytorch.from_dlpack(capsule).add_(1)


def test_dlpack_details():
    x = tinytorch.arange(3.0)
    assert x.__dlpack_device__() == (1, 0)
    capsule = x.__dlpack__()
    assert tinytorch.utils.dlpack.from_dlpack(capsule).tolist() == [0, 1, 2]
    with pytest.raises((RuntimeError, ValueError)):
        tinytorch.utils.dlpack.from_dlpack(capsule)  # a capsule is consumed once
    with pytest.raises((RuntimeError, BufferError)):
        tinytorch.ones(2, requires_grad=True).__dlpack__()
    for empty in (tinytorch.zeros(0, 3), tinytorch.tensor(2.0)):
        assert np.from_dlpack(empty).shape == tuple(empty.shape)


# ---- Pickling and copying.


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_pickle(dtype, protocol):
    for x in (
        tinytorch.arange(6).to(getattr(tinytorch, dtype)).view(2, 3).t(),
        tinytorch.zeros(0, 2, dtype=getattr(tinytorch, dtype)),
        tinytorch.tensor(1, dtype=getattr(tinytorch, dtype)),
    ):
        y = pickle.loads(pickle.dumps(x, protocol))
        assert_same(y, x)
        assert y.stride() == x.stride()


def test_pickle_of_a_leaf_and_of_a_result():
    x = tinytorch.ones(2, requires_grad=True)
    assert pickle.loads(pickle.dumps(x)).requires_grad
    # torch pickles a result as well, as a leaf without its history; what must not happen is a silent graph.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            copied = pickle.loads(pickle.dumps(x * 2))
        except RuntimeError:
            return
    assert copied.grad_fn is None


def test_save_and_load():
    buffer = io.BytesIO()
    tinytorch.save({"w": tinytorch.arange(3.0), "step": 3}, buffer)
    buffer.seek(0)
    loaded = tinytorch.load(buffer)
    assert loaded["w"].tolist() == [0, 1, 2] and loaded["step"] == 3


def test_copy():
    x = tinytorch.arange(3.0).requires_grad_()
    deep = copy.deepcopy(x)
    assert deep.requires_grad and deep.is_leaf and deep.data_ptr() != x.data_ptr() and deep.tolist() == x.tolist()
    assert copy.copy(x).data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="leaf|leaves|created explicitly"):
        copy.deepcopy(x * 2)
    x.sum().backward()
    assert copy.deepcopy(x).grad.tolist() == [1, 1, 1] and copy.deepcopy(x).grad is not x.grad


def test_deepcopy_keeps_sharing():
    x = tinytorch.zeros(4)
    first, again = copy.deepcopy([x, x])
    assert first is again
    whole, part = copy.deepcopy([x, x[1:]])
    whole.fill_(1)
    assert part.tolist() == [1, 1, 1]
