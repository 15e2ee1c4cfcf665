"""save and load."""

import copy
import gzip
import io
import mmap
import os
import pickle
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter, OrderedDict, defaultdict

import numpy as np
import pytest

import tinytorch as tt
from corrupt_files import Pipe, packed
from tinytorch import nn, optim, serialization
from tinytorch.serialization import load, save


def again(obj, protocol=4, **options):
    f = io.BytesIO()
    save(obj, f, pickle_protocol=protocol)
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


def archive(**members):
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w") as z:
        for name, content in members.items():
            z.writestr(name, content)
    f.seek(0)
    return f


def test_untrusted_files(tmp_path):
    for bad in (Evil(), nn.ReLU(), {"a": [Evil()]}):
        with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
            again(bad)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(RuntimeError, match="is not a file that save"):
        load(tmp_path / "text")
    with pytest.raises(EOFError):
        load(archive(**{"data.pkl": b""}))
    with pytest.raises(EOFError):
        load(io.BytesIO())
    save({"x": tt.arange(4)}, tmp_path / "cut")
    with zipfile.ZipFile(tmp_path / "cut") as z:
        content = z.read("archive/data.pkl")
    with pytest.raises(RuntimeError, match="out of bounds"):
        load(archive(**{"data.pkl": content, "data/0": b"123"}))
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


def test_files_are_zip_files(tmp_path):
    save({"x": tt.arange(4), "y": tt.ones(3)}, tmp_path / "file")
    with zipfile.ZipFile(tmp_path / "file") as z:
        names = ["data.pkl", "byteorder", "data/0", "data/1", "version"]
        assert z.testzip() is None and z.namelist() == [f"archive/{name}" for name in names]
        assert z.read("archive/data/1") == np.ones(3, np.float32).tobytes()
        assert {i.compress_type for i in z.infolist()} == {zipfile.ZIP_STORED}
    before = (tmp_path / "file").read_bytes()
    save({"x": tt.arange(4), "y": tt.ones(3)}, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == before


def test_several_archives_in_a_file(tmp_path):
    """load reads the archive at which the file stands, and leaves the file behind it."""
    path = tmp_path / "file"
    for make, *args in ((io.BytesIO,), (open, path, "w+b"), (open, path, "w+b", 0)):
        with make(*args) as f:
            pickle.dump(41, f)
            save(tt.ones(1), f)
            pickle.dump(42, f)
            save([tt.zeros(2), "second"], f)
            f.write(b"tail")
            f.seek(0)
            assert pickle.load(f) == 41 and load(f).tolist() == [1.0]
            assert pickle.load(f) == 42 and load(f)[0].tolist() == [0.0, 0.0] and f.read() == b"tail"


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("where", [b"", b"X\3\0\0\0cpu"])
def test_files_of_version_0_1(where, weights_only):
    tensor = b"ctinytorch.serialization\n_tensor\n(K\0X\7\0\0\0float32(K\2t(K\1tK\1\x89" + where + b"tR"
    parameter = b"ctinytorch.nn.parameter\n_rebuild\n(ctinytorch.nn.parameter\nParameter\n" + tensor + b"\x88tR"
    members = {"data.pkl": b"\x80\4" + tensor + parameter + b"\x86.", "data/0": np.arange(3, dtype="<f4").tobytes()}
    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w") as z:  # what was saved to a pipe
        for name, content in members.items():
            z.writestr(name, content)
    for f in (archive(**members), io.BytesIO(pipe.content)):
        t, p = load(f, weights_only=weights_only)
        assert t.tolist() == p.tolist() == [1.0, 2.0] and type(p) is nn.Parameter and t.data_ptr() == p.data_ptr()


class Filelike:
    """A file with the methods that are asked for."""

    def __init__(self, *methods):
        self.f = io.BytesIO()
        for name in methods:
            setattr(self, name, getattr(self.f, name))


class Sparing(io.BytesIO):
    """Takes a part of what it is given, as a pipe does."""

    def write(self, data):
        return super().write(data[:100])


def test_filelike_objects(tmp_path):
    x = tt.arange(1000)
    for methods in (("write", "read", "seek", "tell"), ("write", "read", "readinto", "seek", "tell")):
        f = Filelike(*methods)
        save(x, f)
        f.seek(0)
        assert load(f).tolist() == x.tolist()
    f = Sparing()
    save(x, f)
    f.seek(0)
    assert load(f).tolist() == x.tolist()
    save(x, tmp_path / "file")
    with open(tmp_path / "file", "rb") as plain, gzip.open(tmp_path / "zipped", "wb") as f:
        f.write(plain.read())
    with gzip.open(tmp_path / "zipped") as f:
        assert load(f).tolist() == x.tolist()
    with pytest.raises(AttributeError, match="file-like object with a 'write' attribute"):
        save(x, 3)
    with pytest.raises(AttributeError, match="from a file that is seekable"):
        load(Filelike("read"))
    with pytest.raises(RuntimeError, match="Parent directory .* does not exist"):
        save(x, tmp_path / "missing" / "file")


FULL_DISK = """
import resource, signal, sys
import tinytorch as tt
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    tt.save(tt.ones(1_000_000), sys.argv[1])
except OSError as e:
    print("OSError")
"""


def interrupt(self):
    raise KeyboardInterrupt


@pytest.mark.parametrize("named", [False, True])
def test_a_failed_save_leaves_the_old_file(named, tmp_path, monkeypatch):
    """Also where the system has no files without a name."""
    if named:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    path = tmp_path / "file"
    save(tt.ones(2), path)
    path.chmod(0o640)
    done = subprocess.run([sys.executable, "-c", FULL_DISK, path], capture_output=True, text=True)
    assert done.stdout == "OSError\n", done.stderr
    with pytest.raises((pickle.PicklingError, AttributeError)):
        save([tt.zeros(3), lambda: None], path)
    assert load(path).tolist() == [1.0, 1.0] and os.listdir(tmp_path) == ["file"]
    save(tt.zeros(1), path)
    assert load(path).tolist() == [0.0] and path.stat().st_mode & 0o777 == 0o640
    (tmp_path / "link").symlink_to(path)
    save(tt.zeros(3), tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and load(path).tolist() == [0.0] * 3
    with tempfile.NamedTemporaryFile() as f:
        save(tt.ones(3), f.name)
        assert load(f).tolist() == [1.0] * 3
    with pytest.raises(KeyboardInterrupt), monkeypatch.context() as patch:
        patch.setattr(serialization.Writer, "close", interrupt)
        save(tt.ones(3), path)
    assert load(path).tolist() == [0.0] * 3
    save(tt.ones(3), "/dev/null")
    assert not os.path.isfile("/dev/null")
    with pytest.raises(OSError, match="No space left"):
        save(tt.ones(3), "/dev/full")
    assert os.path.exists("/dev/full") and sorted(os.listdir(tmp_path)) == ["file", "link"]


class Sub(tt.Tensor):
    pass


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("weights_only", [True, False])
def test_plain_values_in_every_protocol(protocol, weights_only):
    obj = [
        1, -1, 255, 65536, -(1 << 31), 1 << 31, 1 << 100, -(1 << 2100), 0.1, float("inf"), True, None, "",
        "\N{SNOWMAN}", "x" * 300, b"", b"bytes", b"\xff" * 300, bytearray(b""), bytearray(b"abc"), 1 + 2j, (),
        (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [], [[]], {}, {"a": {1: (2,)}}, set(), {1, (2, "3")}, frozenset({1}),
        slice(1, None, 2), OrderedDict(a=1), Counter("aab"), tt.Size([2, 3]), tt.float16, tt.device("cuda:1"),
        dict(enumerate(range(1100))),
    ]  # fmt: skip
    got = again(obj, weights_only=weights_only, protocol=protocol)
    assert got == obj and [type(a) for a in got] == [type(a) for a in obj]
    factory = again(defaultdict(list, a=[1]), weights_only=weights_only, protocol=protocol)
    assert factory == {"a": [1]} and factory["b"] == []
    ring = []
    ring.append(ring)
    got = again(ring, weights_only=weights_only, protocol=protocol)
    assert got[0] is got


@pytest.mark.parametrize("weights_only", [True, False])
def test_attributes_of_tensors(weights_only):
    for t in (tt.zeros(2, 3), nn.Parameter(tt.ones(2)), nn.Buffer(tt.ones(2), persistent=False)):
        t.foo, t.pi, t.me = "foo", 3.14, t
        got = again(t, weights_only=weights_only)
        assert type(got) is type(t) and (got.foo, got.pi) == ("foo", 3.14) and got.me is got
        assert getattr(got, "persistent", None) == getattr(t, "persistent", None)


def test_refused_protocols():
    for protocol in (0, 1):
        with pytest.raises(ValueError, match="pickle_protocol must be 2 or more"):
            again(1, protocol=protocol)


def test_pickle_modules():
    class Throws(pickle.Unpickler):
        def load(self):
            raise RuntimeError("asked")

    class Module:
        Pickler, Unpickler = pickle._Pickler, pickle._Unpickler

    class Throwing:
        Unpickler = Throws

    f = io.BytesIO()
    save([tt.ones(2)], f, pickle_module=Module)
    for module in (Module, pickle):
        f.seek(0)
        assert load(f, pickle_module=module)[0].tolist() == [1.0, 1.0]
    f.seek(0)
    with pytest.raises(RuntimeError, match="asked"):
        load(f, pickle_module=Throwing)

    class References(pickle.Unpickler):
        def persistent_load(self, reference):
            raise RuntimeError("mine")

    class Own:
        Unpickler = References

    f.seek(0)
    with pytest.raises(RuntimeError, match="mine"):
        load(f, pickle_module=Own)
    f.seek(0)
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        load(f, pickle_module=pickle, weights_only=True)
    f.seek(0)
    with pytest.warns(UserWarning, match="pickle_load_args"):
        load(f, encoding="ascii")


class WithSlots(tt.Tensor):
    __slots__ = ("elem", "other")


class WithState(tt.Tensor):
    def __getstate__(self):
        return ("foo", self.__dict__)

    def __setstate__(self, state):
        self.marker, attributes = state
        self.__dict__.update(attributes)


@pytest.mark.parametrize("weights_only", [True, False])
def test_kinds_of_tensors(weights_only):
    """With what they keep beside their elements."""
    a = WithSlots([1.0, 2.0])
    a.elem, a.label = tt.ones(2), "a"
    b = WithState([3.0])
    b.note = "b"
    with serialization.safe_globals([WithSlots, WithState]):
        for way in (lambda x: again(x, weights_only=weights_only), pickled, copy.copy):
            c, d = [way(x) for x in (a, b)]
            assert type(c) is WithSlots and (c.elem.tolist(), c.label, hasattr(c, "other")) == ([1.0, 1.0], "a", False)
            assert type(d) is WithState and (d.marker, d.note, d.tolist()) == ("foo", "b", [3.0])
    c = copy.deepcopy(a)
    assert type(c) is WithSlots and c.elem.tolist() == [1.0, 1.0] and c.elem is not a.elem


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y


class Slotted:
    __slots__ = ("x",)


class Custom(dict):
    def __setstate__(self, state):
        self.state = state

    def __reduce__(self):
        return Custom, (), 7, None, iter(self.items())


def make_point(x):
    return Point(x, -x)


class ByFunction:
    def __reduce__(self):
        return make_point, (4,)


def test_what_the_program_allows():
    point, slotted = Point(1, tt.ones(2)), Slotted()
    slotted.x = 5
    sub = Sub([1.0, 2.0])
    objects = [point, slotted, Custom(a=1), ByFunction(), sub, Point]
    allowed = [Point, Slotted, Custom, make_point, Sub]
    f = io.BytesIO()
    save(objects, f)
    names = {f"{__name__}.{g.__qualname__}" for g in allowed}

    def unsafe():
        f.seek(0)
        return set(serialization.get_unsafe_globals_in_checkpoint(f))

    assert unsafe() == names and serialization.get_safe_globals() == []
    with serialization.safe_globals(allowed):
        assert serialization.get_safe_globals() == allowed and unsafe() == set()
        f.seek(0)
        a, b, c, d, e, g = load(f)
    assert (a.x, a.y.tolist(), b.x, dict(c), c.state, d.y, type(e), g) == (
        (1, [1.0, 1.0], 5, {"a": 1}, 7, -4, Sub, Point)
    )  # fmt: skip
    f.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Unsupported global: GLOBAL .*Point was not an allowed global"):
        load(f)
    try:
        serialization.add_safe_globals([Point])
        assert unsafe() == names - {f"{__name__}.Point"}
        serialization.add_safe_globals([(Slotted, "elsewhere.Thing"), os.system])
        with pytest.raises(pickle.UnpicklingError, match="blocked"):
            again(Evil())
    finally:
        serialization.clear_safe_globals()
    assert serialization.get_safe_globals() == []
    named = b"\x80\4\x8c\2osq\0\x8c\6system\x93h\0\x8c\5popen\x93\x86."  # the module's name comes from the memo
    assert serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(packed(named, []))) == ["os.system", "os.popen"]
    with pytest.raises(ValueError, match="Expected input to be a checkpoint"):
        serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(b"hello"))
    with serialization.safe_globals([Point]):  # what it raises is not hidden
        f = io.BytesIO()
        save(ByFunction(), f)
        content = f.getvalue()
        with serialization.safe_globals([(Point, f"{__name__}.make_point")]), pytest.raises(TypeError, match="'y'"):
            load(io.BytesIO(content))


def test_layers_are_allowed_by_the_names_that_files_have():
    """A module as a whole: its file holds PyTorch's names."""
    layers = nn.Sequential(nn.Linear(2, 1), nn.Dropout())
    f = io.BytesIO()
    save(layers, f)
    f.seek(0)
    names = {"torch.nn.Sequential", "torch.nn.Linear", "torch.nn.Dropout"}
    assert set(serialization.get_unsafe_globals_in_checkpoint(f)) == names
    with serialization.safe_globals([nn.Sequential, nn.Linear, nn.Dropout]):
        f.seek(0)
        assert serialization.get_unsafe_globals_in_checkpoint(f) == []
        f.seek(0)
        assert load(f)[0].weight.tolist() == layers[0].weight.tolist()
        with pytest.raises(pickle.UnpicklingError, match="torch.nn.ReLU"):
            again = io.BytesIO()
            save(nn.ReLU(), again)
            again.seek(0)
            load(again)


def test_layers_are_allowed_by_pytorchs_inner_names(torch):
    f = io.BytesIO()
    torch.save(torch.nn.Linear(2, 1), f)
    f.seek(0)
    with serialization.safe_globals([nn.Linear]):
        assert serialization.get_unsafe_globals_in_checkpoint(f) == []


def test_mapped_files(tmp_path):
    path = tmp_path / "file"
    save({"a": tt.arange(100, dtype=tt.float32), "b": tt.ones(3, dtype=tt.int8), "c": tt.zeros(0)}, path)
    got = load(path, mmap=True)
    assert got["a"].tolist() == list(range(100)) and got["b"].tolist() == [1, 1, 1] and got["c"].numel() == 0
    assert got["a"].data_ptr() % 64 == 0
    got["a"][0] = 50.0
    assert got["a"][0] == 50.0 and load(path)["a"][0] == 0.0
    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        load(str(path), mmap=True)["a"][0] = 60.0
    assert load(path, mmap=True)["a"][0] == 60.0 and serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    with pytest.raises(ValueError, match="must be a file path"), open(path, "rb") as f:
        load(f, mmap=True)
    with pytest.raises(ValueError, match="expected mmap.MAP_PRIVATE or"):
        serialization.set_default_mmap_options(99)


@pytest.mark.parametrize("where", ["cpu", tt.device("cpu"), {"cpu": "cpu"}, {}, lambda s, loc: s, lambda s, loc: None])
def test_map_locations(where):
    seen = again([tt.ones(2), tt.ones(2, dtype=tt.int64)], map_location=where)
    assert [t.tolist() for t in seen] == [[1.0, 1.0], [1, 1]]
