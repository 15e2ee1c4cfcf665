"""save and load."""

import copy
import io
import os
import pickle
import zipfile
from collections import OrderedDict

import numpy as np
import pytest

import tinytorch as tt
from tinytorch import nn, optim
from tinytorch.serialization import load, save


def again(obj, **options):
    f = io.BytesIO()
    save(obj, f)
    f.seek(0)
    return load(f, **options)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int8", "uint8", "bool"])
def test_tensors(dtype, tmp_path):
    t = tt.tensor([[1, 0, 3], [4, 5, 6]], dtype=getattr(tt, dtype))
    for x in (t, t.t(), t[1:, ::2], t[0, 1], tt.zeros(0, 3, dtype=t.dtype)):
        save({"x": x}, tmp_path / "file")
        y = load(tmp_path / "file")["x"]
        assert y.dtype is x.dtype and y.shape == x.shape and y.stride() == x.stride() and y.tolist() == x.tolist()


def test_structure_and_sharing():
    t = tt.arange(6, dtype=tt.float32)
    p = nn.Parameter(tt.ones(2))
    obj = {
        "a": [t, t[2:4]],
        "b": (p, 3, "text", None, 2.5, True),
        "c": OrderedDict(x=t),
        "d": {1, 2},
        "e": tt.float16,
        "f": tt.Size([2, 3]),
        "g": tt.device("cpu"),
        "h": t.clone().requires_grad_(),
    }
    got = again(obj)
    assert got["c"]["x"] is got["a"][0] and got["b"][1:] == obj["b"][1:] and got["d"] == {1, 2}
    got["a"][0][2] = 50.0
    assert got["a"][1].tolist() == [50.0, 3.0]
    assert type(got["b"][0]) is nn.Parameter and got["b"][0].requires_grad and got["h"].requires_grad
    assert got["e"] is tt.float16 and got["f"] == tt.Size([2, 3]) and got["g"] == tt.device("cpu")


def pickled(obj):
    return pickle.loads(pickle.dumps(obj))


WAYS = pytest.mark.parametrize("way", [again, pickled, copy.deepcopy])


def all_bytes_survive(way, device):
    """Ten bytes of which eight are two floats."""
    x = tt.arange(10, dtype=tt.uint8).to(device)[:8].view(tt.float32)
    (y,) = way([x])
    assert y.device == x.device and y.dtype is tt.float32 and y.shape == (2,) and y.data_ptr() != x.data_ptr()
    assert tt.as_strided(y.view(tt.uint8), (10,), (1,), 0).tolist() == list(range(10))


def dtypes_share_a_storage(way, device):
    x = tt.tensor([1.0, 2.0, 3.0]).to(device)
    y, bits, half = way([x, x.view(tt.int32), x[1:].view(tt.float16)])
    assert (bits.dtype, half.dtype, half.storage_offset()) == (tt.int32, tt.float16, 2)
    y.zero_()
    assert bits.tolist() == [0] * 3 and half.tolist() == [0.0] * 4 and x.tolist() == [1.0, 2.0, 3.0]


def values_put_off_survive(way, device):
    with tt.fuse():
        x = tt.ones(3, device=device) * 2
        (y,) = way([x])
    assert y.tolist() == x.tolist() == [2.0] * 3


@WAYS
@pytest.mark.parametrize("check", [all_bytes_survive, dtypes_share_a_storage, values_put_off_survive])
def test_whole_storages(check, way):
    check(way, "cpu")


def test_checkpoint():
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    net[0].tied = net[0].weight
    opt = optim.Adam(net.parameters())
    net(tt.ones(2, 3)).sum().backward()
    opt.step()
    state = again({"net": net.state_dict(), "opt": opt.state_dict(), "epoch": 3})
    other = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    other[0].tied = other[0].weight
    other.load_state_dict(state["net"])
    fresh = optim.Adam(other.parameters())
    fresh.load_state_dict(state["opt"])
    for a, b in zip(net.parameters(), other.parameters()):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
        assert fresh.state[b]["step"].item() == 1.0
    assert state["net"]["0.weight"].data_ptr() == state["net"]["0.tied"].data_ptr()
    whole = again(net, weights_only=False)
    assert whole(tt.ones(1, 3)).tolist() == net(tt.ones(1, 3)).tolist()


class Evil:
    def __reduce__(self):
        return os.system, ("true",)


def test_untrusted_files(tmp_path):
    for bad in (Evil(), nn.ReLU(), {"a": [Evil()]}):
        with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
            again(bad)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(RuntimeError, match="is not a file that save"):
        load(tmp_path / "text")
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w") as z:
        z.writestr("data.pkl", b"")
    with pytest.raises(EOFError):
        load(f)
    save({"x": tt.arange(4)}, tmp_path / "cut")
    with zipfile.ZipFile(tmp_path / "cut") as z:
        content = z.read("data.pkl")
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w") as z:
        z.writestr("data.pkl", content)
        z.writestr("data/0", b"123")
    with pytest.raises(RuntimeError, match="out of bounds"):
        load(f)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")
