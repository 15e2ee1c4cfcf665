"""Files that PyTorch wrote."""

import io
import pickle

import numpy as np
import pytest

import tinytorch as tt
from corrupt_files import PYTORCH, packed_as_pytorch
from tinytorch import nn, optim, serialization

torch = pytest.importorskip("torch")
DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]


def written(obj, **options):
    f = io.BytesIO()
    torch.save(obj, f, **options)
    f.seek(0)
    return f


def array(t):
    return np.asarray(t.detach().tolist(), float).reshape(tuple(t.shape))


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors(dtype, weights_only, tmp_path):
    base = torch.tensor([[1, 0, 3], [4, 5, 6]], dtype=getattr(torch, dtype))
    tensors = [base, base.t(), base[1:, ::2], base[0, 1], torch.zeros(0, 3, dtype=base.dtype)]
    got = tt.load(written(tensors), weights_only=weights_only)
    torch.save(tensors, tmp_path / "file")
    mapped = tt.load(tmp_path / "file", mmap=True, weights_only=weights_only)
    for a, b, c in zip(got, tensors, mapped):
        for t in (a, c):
            assert t.dtype is getattr(tt, dtype) and t.shape == tuple(b.shape) and t.stride() == b.stride()
            assert t.tolist() == b.tolist()
    got[0].fill_(1)
    assert got[2].tolist() == [[1, 1]]  # the same memory


@pytest.mark.parametrize("weights_only", [True, False])
def test_a_checkpoint_goes_on(weights_only):
    """Training goes on where PyTorch's stopped, with the same numbers."""

    def made(m):
        net = m.nn.Sequential(m.nn.Linear(3, 4), m.nn.Linear(4, 1)).double()
        return net, m.optim.Adam(net.parameters(), lr=0.1)

    def train(m, net, opt, steps):
        for k in range(steps):
            opt.zero_grad()
            net(m.ones(2, 3, dtype=m.float64) * (k + 1)).pow(2).sum().backward()
            opt.step()

    net, opt = made(torch)
    train(torch, net, opt, 3)
    saved = written({"net": net.state_dict(), "opt": opt.state_dict(), "epoch": 3})
    state = tt.load(saved, weights_only=weights_only)
    mine, mine_opt = made(tt)
    assert str(mine.load_state_dict(state["net"])) == "<All keys matched successfully>" and state["epoch"] == 3
    assert state["net"]._metadata[""] == {"version": 1}
    mine_opt.load_state_dict(state["opt"])
    train(torch, net, opt, 3), train(tt, mine, mine_opt, 3)
    for a, b in zip(mine.parameters(), net.parameters()):
        np.testing.assert_allclose(array(a), array(b), rtol=1e-10)


@pytest.mark.parametrize("weights_only", [True, False])
def test_attributes_and_plain_values(weights_only):
    t, p = torch.arange(3.0), torch.nn.Parameter(torch.ones(2), requires_grad=False)
    t.foo, p.bar = "foo", {"a": 1}
    leaf = torch.ones(2, requires_grad=True)
    values = [torch.Size([1, 2]), torch.float16, torch.device("cpu"), {"a": (1, None)}, {3}, b"bytes"]
    got = tt.load(written([t, p, leaf, torch.nn.Parameter(t), *values]), weights_only=weights_only)
    assert got[0].foo == "foo" and got[1].bar == {"a": 1}
    assert type(got[1]) is nn.Parameter and not got[1].requires_grad and got[2].requires_grad
    assert type(got[3]) is nn.Parameter and got[3].data_ptr() == got[0].data_ptr()
    assert got[4:] == [tt.Size([1, 2]), tt.float16, tt.device("cpu"), {"a": (1, None)}, {3}, b"bytes"]
    assert type(got[4]) is tt.Size


def test_what_is_not_read():
    with pytest.raises(pickle.UnpicklingError, match="Unsupported global: GLOBAL torch.nn.modules.linear.Linear"):
        tt.load(written(torch.nn.Linear(1, 1)))
    with pytest.raises(pickle.UnpicklingError, match="PyTorch's torch.fx.graph.Graph, and tinytorch has none"):
        tt.load(written(torch.fx.Graph), weights_only=False)
    whole = written([torch.arange(1000)]).getvalue()
    for n in range(4, len(whole), 499):
        with pytest.raises(RuntimeError):
            tt.load(io.BytesIO(whole[:n]))
    assert serialization.get_unsafe_globals_in_checkpoint(written(torch.nn.ReLU())) == [
        "torch.nn.modules.activation.ReLU"
    ]


@pytest.mark.parametrize("told", [True, False])
def test_orders_of_bytes(told):
    content, values = b"\x80\2" + PYTORCH + b".", np.arange(4, dtype=np.float32) + 1
    files = {}
    for order, of in (("little", "<f4"), ("big", ">f4")):
        tells = {"byteorder": order.encode()} if told else {}
        files[order] = packed_as_pytorch(content, [values.astype(of).tobytes()], **tells)
    right = {order: tt.load(io.BytesIO(f)).tolist() == values.tolist() for order, f in files.items()}
    assert right == {"little": True, "big": told} and serialization.get_default_load_endianness() is None
    try:
        for order, choice in (("little", "LITTLE"), ("little", "NATIVE"), ("big", "BIG")):
            serialization.set_default_load_endianness(serialization.LoadEndianness[choice])
            assert tt.load(io.BytesIO(files[order])).tolist() == values.tolist()
        with pytest.raises(TypeError):
            serialization.set_default_load_endianness("big")
    finally:
        serialization.set_default_load_endianness(None)


@pytest.mark.parametrize("where", ["cpu", {"cuda:0": "cpu"}, lambda s, loc: s])
def test_map_locations(where):
    content = PYTORCH.replace(b"X\3\0\0\0cpu", b"X\6\0\0\0cuda:0")
    f = packed_as_pytorch(b"\x80\2" + content + b".", [bytes(16)])
    assert tt.load(io.BytesIO(f), map_location=where).tolist() == [0.0] * 4
    with pytest.raises(RuntimeError, match="map_location"):
        tt.load(io.BytesIO(f))


HOSTILE = [
    (b"K\0(K\4t", b"K\0(K\5t"), (b"K\0(K\4t", b"K\1(K\4t"),
    (b"(K\1t\x89", b"(K\1K\1t\x89"), (b"(K\1t\x89", b"(K\1tK\0"),
    (b"ctorch\nTensor", b"ccollections\nCounter"),
    (b"ctorch._utils\n_rebuild_tensor_v2", b"ccollections\nCounter"), (b"}X\1\0\0\0aK\1s", b"K\1"),
    (b"X\1\0\0\0a", b"X\x09\0\0\0__class__"), (b"X\1\0\0\0a", b"K\1"), (b"X\1\0\0\x000", b"X\1\0\0\x001"),
    (b"X\7\0\0\0storage", b"X\7\0\0\0strange"), (b"ctorch\nFloatStorage", b"ctorch\nTensor"),
]  # fmt: skip


@pytest.mark.parametrize("change", HOSTILE)
def test_hostile_pickles(change):
    assert change[0] in PYTORCH
    with pytest.raises((pickle.UnpicklingError, RuntimeError)):
        tt.load(io.BytesIO(packed_as_pytorch(b"\x80\2" + PYTORCH.replace(*change) + b".", [bytes(16)])))
    assert optim.SGD([nn.Parameter(tt.ones(1))]) and tt.zeros(1).dtype is tt.float32
