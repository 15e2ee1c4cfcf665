"""Device memory shared with other libraries: the CUDA array interface and DLPack; CuPy and PyTorch where they are."""

import gc

import numpy as np
import pytest
import tinytorch as tt
from tinytorch import cuda

pytestmark = pytest.mark.usefixtures("gpu")


class Foreign:
    """Another library's array."""

    def __init__(self, t, **changes):
        self.t = t
        self.__cuda_array_interface__ = {**t.__cuda_array_interface__, **changes}


def device(values, **options):
    return tt.tensor(values, device="cuda:0", **options)


def test_what_the_interface_tells():
    a = tt.zeros(3, 4, device="cuda:0")
    told = a.__cuda_array_interface__
    assert told == {
        "version": 3,
        "shape": (3, 4),
        "typestr": "<f4",
        "strides": None,
        "data": (a.data_ptr(), False),
        "stream": 1,
    }
    b = a.t()[1:]
    assert b.__cuda_array_interface__["strides"] == (4, 16)
    assert b.__cuda_array_interface__["data"] == (a.data_ptr() + 4, False)
    s = cuda.Stream()
    with s:
        assert a.__cuda_array_interface__["stream"] == s.cuda_stream
    assert tt.empty(0, 3, device="cuda:0").__cuda_array_interface__["data"] == (0, False)
    assert not hasattr(tt.ones(2), "__cuda_array_interface__")
    with pytest.raises(RuntimeError, match="requires grad"):
        device([1.0], requires_grad=True).__cuda_array_interface__  # noqa: B018
    with pytest.raises(TypeError, match="bfloat16"):
        device([1.0], dtype=tt.bfloat16).__cuda_array_interface__  # noqa: B018


@pytest.mark.parametrize("dtype", [tt.bool, tt.uint8, tt.int16, tt.int64, tt.float16, tt.float32, tt.float64])
def test_memory_is_shared(dtype):
    a = device([[0, 1, 2], [1, 0, 1]]).to(dtype)
    for view in (a, a.t(), a[1:, ::2], a[0, 0]):
        b = tt.as_tensor(Foreign(view))
        assert (b.data_ptr(), b.dtype, b.shape, b.device) == (view.data_ptr(), dtype, view.shape, view.device)
        assert b.tolist() == view.tolist()
    b = tt.as_tensor(Foreign(a))
    a.copy_(a + a)
    assert b.tolist() == a.tolist()


def test_the_owner_lives_as_long_as_the_tensor():
    gc.collect()
    owner = Foreign(device([1.0, 2.0]))
    before = cuda.memory_allocated(0)
    b = tt.as_tensor(owner)
    view = b[1:]
    del owner, b
    gc.collect()
    assert cuda.memory_allocated(0) == before and view.tolist() == [2.0]
    del view
    gc.collect()
    assert cuda.memory_allocated(0) < before


def test_copies_and_conversions():
    a = device([1.0, 2.0])
    for b in (tt.tensor(Foreign(a)), tt.asarray(Foreign(a), copy=True), tt.as_tensor(Foreign(a), dtype=tt.float64)):
        assert b.data_ptr() != a.data_ptr() and b.device == a.device and b.tolist() == [1.0, 2.0]
    assert tt.asarray(Foreign(a)).data_ptr() == tt.asarray(Foreign(a), copy=False).data_ptr() == a.data_ptr()
    assert tt.as_tensor(Foreign(a), device="cpu").device == tt.device("cpu")
    with pytest.raises(ValueError, match="can't alias"):
        tt.asarray(Foreign(a), dtype=tt.float64, copy=False)


def test_read_only_memory():
    b = tt.as_tensor(Foreign(a := device([1.0]), data=(a.data_ptr(), True)))
    with pytest.raises(RuntimeError, match="read-only"):
        b.add_(1)


def test_what_is_refused():
    a = device([1.0, 2.0])
    with pytest.raises(ValueError, match=r"strides \(-4,\) are negative"):
        tt.as_tensor(Foreign(a, strides=(-4,)))
    with pytest.raises(NotImplementedError, match="mask"):
        tt.as_tensor(Foreign(a, mask=a))
    with pytest.raises(RuntimeError, match="looking for"):
        tt.as_tensor(Foreign(a, data=(np.ones(2, np.float32).ctypes.data, False)))


def test_streams_wait_for_each_other(emulated):
    a, s = device([1.0]), cuda.Stream()
    emulated.order.clear()
    tt.as_tensor(Foreign(a, stream=None))
    tt.as_tensor(Foreign(a, stream=1))
    assert emulated.order == []  # nothing to wait for, and our own stream
    with s:
        tt.as_tensor(Foreign(a, stream=77))
        assert emulated.order.pop() == (s.cuda_stream, 77)
        a.__dlpack__(stream=-1)
        a.__dlpack__(stream=s.cuda_stream)
        assert emulated.order == []
        a.__dlpack__()
        a.__dlpack__(stream=99)
        assert emulated.order == [(1, s.cuda_stream), (99, s.cuda_stream)]


def test_dlpack():
    a = device([[1, 2, 3], [4, 5, 6]])
    assert a.__dlpack_device__() == (2, 0)
    for versioned in (None, (1, 0)):
        for view in (a, a.t(), a[:, 1:], a[1, 1]):
            b = tt.from_dlpack(view.__dlpack__(max_version=versioned))
            assert b.data_ptr() == view.data_ptr() and b.device == a.device and b.tolist() == view.tolist()
    b = tt.from_dlpack(a)
    assert b.data_ptr() == a.data_ptr() and b.dtype == tt.int64
    assert tt.from_dlpack(a, copy=True).data_ptr() != a.data_ptr()
    assert tt.from_dlpack(a, device="cpu").tolist() == a.tolist()
    assert tt.from_dlpack(device([1.5], dtype=tt.bfloat16)).dtype == tt.bfloat16


def test_dlpack_refuses():
    a = device([1.0])
    with pytest.raises(BufferError, match="0 is ambiguous"):
        a.__dlpack__(stream=0)
    with pytest.raises(TypeError, match="stream must be int or None, not Stream"):
        a.__dlpack__(stream=cuda.current_stream())
    with pytest.raises(BufferError, match=r"the tensor is on cuda:0, wanted DLPack device \(1, 0\)"):
        a.__dlpack__(dl_device=(1, 0))


# Other libraries, on a GPU.


def test_cupy(gpu):
    cupy = pytest.importorskip("cupy")
    if cuda.get_device_name(0) == "Emulator":
        pytest.skip("the device is emulated")
    a = device([[1.0, 2.0], [3.0, 4.0]])
    c = cupy.asarray(a)
    assert c.data.ptr == a.data_ptr() and cupy.from_dlpack(a).data.ptr == a.data_ptr()
    c += 1
    assert a.tolist() == [[2.0, 3.0], [4.0, 5.0]]
    b = tt.as_tensor(c.T)
    assert b.data_ptr() == a.data_ptr() and b.tolist() == [[2.0, 4.0], [3.0, 5.0]]
    assert tt.from_dlpack(c).tolist() == a.tolist()
    with cupy.cuda.Stream(non_blocking=True), cuda.Stream():
        x = cupy.arange(1 << 20, dtype=cupy.float32) * 2
        assert float((tt.as_tensor(x) + 1)[-1]) == 2 * ((1 << 20) - 1) + 1


def test_torch_on_the_gpu(gpu):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available() or cuda.get_device_name(0) == "Emulator":
        pytest.skip("the device is emulated, or PyTorch has no CUDA")
    a = device([[1.0, 2.0], [3.0, 4.0]])
    theirs = torch.from_dlpack(a)
    assert theirs.data_ptr() == a.data_ptr() and torch.as_tensor(a).data_ptr() == a.data_ptr()
    theirs += 1
    assert a.tolist() == [[2.0, 3.0], [4.0, 5.0]]
    b = tt.from_dlpack(theirs.t())
    assert b.data_ptr() == a.data_ptr() and b.tolist() == [[2.0, 4.0], [3.0, 5.0]]
    assert tt.as_tensor(theirs).data_ptr() == a.data_ptr()
    with torch.cuda.stream(torch.cuda.Stream()), cuda.Stream():
        x = torch.arange(1 << 20, dtype=torch.float32, device="cuda") * 2
        assert float((tt.from_dlpack(x) + 1)[-1]) == 2 * ((1 << 20) - 1) + 1
