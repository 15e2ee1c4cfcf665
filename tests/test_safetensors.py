"""utils.safetensors: files of the safetensors format, exchanged with PyTorch; what is refused."""

import json
import os
import pickle
import struct
import subprocess
import sys

import numpy as np
import pytest
import tinytorch as tt
from tinytorch import nn

package = pytest.importorskip("safetensors")
st = pytest.importorskip("tinytorch.utils.safetensors")

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"]


def tensors(m):
    made = {name: m.tensor([[1, 0, 3], [4, 5, 6]], dtype=getattr(m, name)) for name in DTYPES}
    return {**made, "empty": m.zeros(0, 3), "scalar": m.tensor(2.5), "odd": m.tensor([1, 2, 3], dtype=m.int8)}


def told(state):
    return {n: (str(t.dtype).split(".")[1], tuple(t.shape), t.tolist()) for n, t in state.items()}


def test_both_ways(tmp_path):
    torch = pytest.importorskip("torch")
    theirs = pytest.importorskip("safetensors.torch")
    path = tmp_path / "file.safetensors"
    expected = told(tensors(tt))
    st.save_file(tensors(tt), path, {"format": "pt"})
    assert told(theirs.load_file(path)) == told(st.load_file(path)) == told(tt.load(path)) == expected
    assert st.save(tensors(tt)) == theirs.save(tensors(torch))
    theirs.save_file(tensors(torch), path)
    for backend in ("mmap", "pread"):
        assert told(st.load_file(path, backend=backend)) == expected
    assert told(st.load(path.read_bytes())) == expected == told(theirs.load(st.save(tensors(tt))))
    assert told(tt.load(path, map_location="cpu")) == expected
    with pytest.raises(RuntimeError, match="map_location must be a device"):
        tt.load(path, map_location={})


def test_unsigned_integers_and_float_8(tmp_path):
    torch = pytest.importorskip("torch")
    theirs = pytest.importorskip("safetensors.torch")
    absent, unsigned = ("float8_e4m3fn", "float8_e5m2"), ("uint16", "uint32", "uint64")
    given = {k: torch.ones(3).to(getattr(torch, k)) for k in absent + unsigned}
    theirs.save_file({**given, "x": torch.ones(5)}, tmp_path / "file")
    with st.safe_open(tmp_path / "file") as f:
        assert f.get_tensor("x").tolist() == [1.0] * 5
        for name in unsigned:
            assert f.get_tensor(name).dtype is getattr(tt, name) and f.get_tensor(name).tolist() == [1, 1, 1]
        for name in absent:
            with pytest.raises(NotImplementedError, match=f"'{name}' is of dtype .*, which tinytorch does not have"):
                f.get_tensor(name)
    st.save_file({k: tt.ones(3, dtype=getattr(tt, k)) for k in unsigned}, tmp_path / "ours")
    assert {k: v.tolist() for k, v in theirs.load_file(tmp_path / "ours").items()} == {k: [1, 1, 1] for k in unsigned}


def test_opened_files(tmp_path):
    x = tt.arange(12, dtype=tt.float32).reshape(3, 4)
    st.save_file({"b": x, "a": tt.ones(3, dtype=tt.int8)}, tmp_path / "file", {"k": "v"})
    with st.safe_open(tmp_path / "file", framework="pt", device="cpu") as f:
        assert f.keys() == ["a", "b"] and f.offset_keys() == ["b", "a"] and f.metadata() == {"k": "v"}
        part = f.get_slice("b")
        assert part.get_shape() == [3, 4] and part.get_dtype() == "F32" and part[1:, ::2].tolist() == [[4, 6], [8, 10]]
        b = f.get_tensor("b")
        with pytest.raises(package.SafetensorError):
            f.get_tensor("c")
    b[0] = 7.0  # in memory
    assert b[0].tolist() == [7.0] * 4 and st.load_file(tmp_path / "file")["b"].tolist() == x.tolist()
    for wrong in ({"framework": "tf"}, {"backend": "tape"}):
        with pytest.raises(ValueError):
            st.safe_open(tmp_path / "file", **wrong)
    with pytest.raises(FileNotFoundError):
        st.load_file(tmp_path / "nothing")


MEMORY = """
import sys
sys.path.insert(0, sys.argv[2])
from peak import peak
import tinytorch as tt
from tinytorch.utils import safetensors
tt.ones(1)
before = peak()
got = safetensors.load_file(sys.argv[1])
print(peak() - before, got["x"][-1].item())
"""


def test_nothing_is_copied(tmp_path):
    st.save_file({"x": tt.arange(50_000_000, dtype=tt.int32)}, tmp_path / "file")  # 200 MB
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, tmp_path / "file", os.path.dirname(__file__)], capture_output=True, text=True
    )
    megabytes, last = map(int, done.stdout.split())
    assert megabytes < 40 and last == 49_999_999, done.stderr


def test_what_is_not_written(tmp_path):
    x = tt.arange(6.0)
    for wrong, error, text in (
        ([x], ValueError, "Expected a dict"),
        ({"x": 3}, ValueError, "expected Tensor"),
        ({"x": tt.eye(2).to_sparse()}, ValueError, "sparse"),
        ({"x": x.reshape(2, 3).t()}, ValueError, "contiguous"),
        ({"x": x, "y": x[2:4]}, RuntimeError, "share memory"),
        ({"x": x.to(tt.complex128)}, ValueError, "complex128"),
    ):
        with pytest.raises(error, match=text):
            st.save_file(wrong, tmp_path / "file")
    assert os.listdir(tmp_path) == []
    st.save_file({"x": x[:2], "y": x[2:]}, tmp_path / "file")  # next to each other


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 3)
        self.b.weight = self.a.weight
        self.register_buffer("n", tt.arange(4).reshape(2, 2).t())


def test_models(tmp_path):
    path, one, other = tmp_path / "file", Tied(), Tied()
    st.save_model(one, path)
    assert st.safe_open(path).keys() == ["a.bias", "a.weight", "b.bias", "n"]
    assert st.safe_open(path).metadata() == {"b.weight": "a.weight"}
    assert st.load_model(other, path) == (set(), [])
    assert told(other.state_dict()) == told(one.state_dict()) and other.b.weight is other.a.weight
    with pytest.raises(ValueError, match="contiguous"):
        st.save_model(one, path, force_contiguous=False)
    with pytest.raises(RuntimeError, match='Missing key.*"bias", "weight"'):
        st.load_model(nn.Linear(3, 3), path)
    missing, unexpected = st.load_model(nn.Linear(3, 3), path, strict=False)
    assert missing == {"bias", "weight"} and sorted(unexpected) == ["a.bias", "a.weight", "b.bias", "n"]


def header(entries, data=b"", size=None):
    text = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text + data


def entry(begin=0, end=16, dtype="F32", shape=(4,)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


HOSTILE = {
    "nothing": b"",
    "no size": b"\x01\x02",
    "a huge header": header({}, size=1 << 62),
    "a header that is cut off": header({"x": entry()}, size=4000),
    "no JSON": header(b"{" * 100),
    "deep JSON": header(b'{"x":' + b"[" * 100_000),
    "no UTF-8": header(b"\xff\xfe{}"),
    "no elements": header({"x": entry()}),
    "more bytes than elements": header({"x": entry()}, bytes(17)),
    "a huge size": header({"x": entry(0, 1 << 60, shape=(1 << 58,))}, bytes(16)),
    "a size beyond 64 bits": header({"x": entry(shape=(1 << 33, 1 << 33))}, bytes(16)),
    "a negative size": header({"x": entry(shape=(-4,))}, bytes(16)),
    "another size": header({"x": entry(shape=(5,))}, bytes(16)),
    "overlap": header({"x": entry(), "y": entry(8, 24)}, bytes(24)),
    "the same place": header({"x": entry(), "y": entry()}, bytes(16)),
    "a gap": header({"x": entry(), "y": entry(20, 36)}, bytes(36)),
    "backwards": header({"x": entry(16, 0)}, bytes(16)),
    "dtype": header({"x": entry(dtype="F33")}, bytes(16)),
    "no shape": header({"x": {"dtype": "F32"}}, bytes(16)),
    "a pickle": pickle.dumps([1, 2, 3]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(name, tmp_path):
    (tmp_path / "file.safetensors").write_bytes(HOSTILE[name])
    for read in (lambda p: st.load(p.read_bytes()), st.load_file, tt.load):
        with pytest.raises((package.SafetensorError, RuntimeError)):
            read(tmp_path / "file.safetensors")


def test_elements_that_are_not_aligned(tmp_path):
    data = np.arange(4, dtype="<f4").tobytes()
    content = header({"a": entry(0, 1, "I8", (1,)), "x": entry(1, 17)}, b"\7" + data)
    (tmp_path / "file").write_bytes(content)
    for got in (st.load(content), st.load_file(tmp_path / "file")):
        assert got["x"].tolist() == [0.0, 1.0, 2.0, 3.0] and got["x"].data_ptr() % 4 == 0


def test_a_full_disk_leaves_the_old_file(tmp_path):
    program = """
import resource, signal, sys
import tinytorch as tt
from tinytorch.utils import safetensors
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    safetensors.save_file({"x": tt.ones(1_000_000)}, sys.argv[1])
except Exception as e:
    print(type(e).__name__)
"""
    path = tmp_path / "file"
    st.save_file({"x": tt.zeros(2)}, path)
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True)
    assert done.stdout == "SafetensorError\n", done.stderr
    assert st.load_file(path)["x"].tolist() == [0.0, 0.0] and os.listdir(tmp_path) == ["file"]
