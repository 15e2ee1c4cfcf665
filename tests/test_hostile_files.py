"""Files that nobody vouches for: corrupted ones, and those made to do harm."""

import enum
import io
import pathlib
import pickle
import struct
import subprocess
import sys
import zipfile

import pytest
import tinytorch as tt
from corrupt_files import packed
from tinytorch import load, nn, save

HERE = pathlib.Path(__file__).parent
TENSOR = (
    b"ctinytorch.pickling\nrebuild\n(ctinytorch.tensor\nTensor\n(X\7\0\0\0storageK\0X\3\0\0\0cputQ"
    b"ctinytorch.dtypes\n_by_name\nX\7\0\0\0float32\x85R(K\4t(K\1tK\0\x89tR"
)
FLOAT32 = b"ctinytorch.dtypes\n_by_name\nX\7\0\0\0float32\x85R"
NAMED = [
    b"ccollections\nCounter\n",
    b"ccollections\nOrderedDict\n",
    b"ctinytorch.nn.parameter\nParameter\n",
    b"ctinytorch.tensor\nTensor\n",
    FLOAT32,
]
STATES = [
    b"}X\4\0\0\0codeK\5s",
    b"N}X\4\0\0\0codeK\5s\x86",
    b"}X\7\0\0\0__del__cbuiltins\nset\ns",
    b"N}X\2\0\0\0_hK\5s\x86",
]


def mark(obj):
    return b"(" + obj + b"t"


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()


HOSTILE = {
    **{f"state {i} of name {k}": n + state + b"b" for i, state in enumerate(STATES) for k, n in enumerate(NAMED)},
    "descriptor": TENSOR + b"N}X\2\0\0\0_h]}as\x86b",
    "class": TENSOR + b"}X\x09\0\0\0__class__cbuiltins\nset\nsb",
    "items of a name": b"ccollections\nCounter\nK\1K\2s",
    "elements of a name": b"cbuiltins\nlist\nK\1a",
    "a call of a value": b"K\1)R",
    "a call of a text": b"X\1\0\0\0a)R",
    "eval": b"cbuiltins\neval\nX\1\0\0\x001\x85R",
    "getattr": b"cbuiltins\ngetattr\ncbuiltins\nset\nX\3\0\0\0pop\x86R",
    "dotted": b"\x8c\x08builtins\x8c\x07set.pop\x93",
    "dict of pairs": b"cbuiltins\ndict\n)R",
    "keys": b"]K\1K\2s",
    "no stack": b"ttt",
    "no mark": b"e",
    "bytes": b"\x8e" + struct.pack("<Q", 3 << 30) + b"abc",
    "bytearray": b"\x96" + struct.pack("<Q", 3 << 30) + b"abc",
    "bytearray of a number": b"cbuiltins\nbytearray\nJ" + struct.pack("<i", 2_000_000_000) + b"\x85R",
    "text": b"\x8d" + struct.pack("<Q", 3 << 30) + b"abc",
    "long": b"\x8b" + struct.pack("<I", 1 << 31) + b"abc",
    "negative": b"T" + struct.pack("<i", -1),
    "copies": mark(text("a" * 100_000) + b"\x94c_codecs\nencode\n\x94" + b"h\1h\0X\6\0\0\0latin1\x86R" * 9000),
    "sets": b"](" + b"".join(b"J" + struct.pack("<i", i) for i in range(9000)) + b"e\x94cbuiltins\nset\n\x940("
    + b"h\1h\0\x85R" * 9000 + b"t",
    "a deep key": b"}" + b")" + b"\x85" * 1_000_000 + b"K\1s",
    "a deep element": b"\x8f(" + b")" + b"\x85" * 1_000_000 + b"\x90",
    "a shared key": b"})" + b"\x942h\0\x86" + b"".join(b"\x942h%c\x86" % k for k in range(1, 60)) + b"K\1s",
    "a chain of defaultdicts": b"ccollections\ndefaultdict\n\x940cbuiltins\nlist\n\x85\x940h\0h\1R"
    + b"q\0020h\0h\1RK\1h\2s" * 200_000,
    "a slice of a slice": b"cbuiltins\nslice\n)NN\x87R",
    "strides": TENSOR.replace(b"(K\1t", b"(K\1K\1t"),
    "dimensions": TENSOR.replace(b"(K\4t(K\1t", mark(b"K\1" * 200) + mark(b"K\1" * 200)),
    "sizes": TENSOR.replace(b"(K\4t", b"(\x8a\x08" + b"\xff" * 7 + b"\x7ft"),
    "offset": TENSOR.replace(b"K\0\x89", b"\x8a\x08" + b"\xff" * 7 + b"\x7f\x89"),
    "negative size": TENSOR.replace(b"(K\4t", b"(J\xff\xff\xff\xfft"),
    "storage": TENSOR.replace(b"storageK\0", b"storageK\7"),
    "reference": TENSOR.replace(b"storageK\0", b"storageXK\0"),
    "a tensor of a class": TENSOR.replace(b"ctinytorch.tensor\nTensor", b"ccollections\nCounter"),
    "a parameter of a list": b"ctinytorch.nn.parameter\n_rebuild\n(ctinytorch.nn.parameter\nParameter\n]\x88tR",
    "a buffer of a parameter": b"ctinytorch.nn.parameter\n_rebuild_buffer\n(ctinytorch.nn.parameter\nParameter\n"
    + TENSOR + b"\x88tR",
    "dtype": b"ctinytorch.dtypes\n_by_name\nX\4\0\0\0cplx\x85R",
    "version 0.1": b"ctinytorch.serialization\n_tensor\n(K\0X\7\0\0\0float32(K\2t(K\1K\1tK\1\x89tR",
    "version 0.1, a number": b"ctinytorch.serialization\n_tensor\n(NX\7\0\0\0float32(K\2t(K\1tK\1\x89tR",
    "memo": b"NhK",
}  # fmt: skip


def read(content):
    return tt.load(io.BytesIO(packed(b"\x80\4" + content + b".", [bytes(16)])))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pickles(name):
    with pytest.raises((pickle.UnpicklingError, RuntimeError)):
        read(HOSTILE[name])
    assert tt.zeros(2).dtype is tt.float32 and nn.Parameter(tt.zeros(1)).requires_grad


class Allowed(tt.Tensor):
    __slots__ = ("mine",)


def test_slots_of_what_the_program_allows():
    of = f"c{__name__}\nAllowed\n".encode()
    made = TENSOR.replace(b"ctinytorch.tensor\nTensor\n", of)
    with tt.serialization.safe_globals([Allowed]):
        assert read(made + b"N}X\4\0\0\0mineK\5s\x86b").mine == 5
        for name in (b"_h", b"_node", b"_grad", b"__class__", b"data"):
            with pytest.raises(pickle.UnpicklingError):
                read(made + b"N}X" + struct.pack("<I", len(name)) + name + b"K\5s\x86b")


class Colour(enum.Enum):
    RED = 1


def test_members_of_an_enumeration_stay_as_they_are():
    """They are everybody's, also where the program has allowed their class."""
    made = f"c{__name__}\nColour\nK\1\x85R".encode("latin1")
    with tt.serialization.safe_globals([Colour]):
        assert read(made) is Colour.RED
        for name in ("_value_", "more"):
            with pytest.raises(pickle.UnpicklingError, match="Can only change what the file itself has made"):
                read(made + b"}" + text(name) + b"K\5sb")
    assert vars(Colour.RED).keys() == vars(enum.Enum("Colour", "RED").RED).keys() and Colour.RED.value == 1


def test_the_pieces_are_good():
    """What the hostile pickles are made of can be read where it makes sense."""
    assert read(TENSOR).tolist() == [0.0] * 4 and read(FLOAT32) is tt.float32
    assert read(TENSOR + b"}X\3\0\0\0foocbuiltins\nset\nsb").foo is set
    assert read(b"}" + b")" + b"\x85" * 900 + b"K\1s") and read(b")" + b"\x85" * 1_000_000)
    assert read(b"Nr" + (200_000_000).to_bytes(4, "little")) is None


MEMORY = """
import pickle, sys
sys.path.insert(0, sys.argv[1])
from peak import peak
from test_hostile_files import HOSTILE, read
start = peak()
for content in [*HOSTILE.values(), b"Nr" + (200_000_000).to_bytes(4, "little")]:
    try:
        read(content)
    except (pickle.UnpicklingError, RuntimeError):
        pass
print(peak() - start)
"""


def test_no_file_takes_memory_that_it_does_not_hold():
    done = subprocess.run([sys.executable, "-c", MEMORY, HERE], capture_output=True, text=True)
    assert int(done.stdout) < 300, done.stderr  # MB; the largest pickle of them has 1


def corrupted(count, seed):
    done = subprocess.run(
        [sys.executable, HERE / "corrupt_files.py", str(count), str(seed)], capture_output=True, text=True
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-3000:])
    assert done.stdout.startswith(f"{count} files")


def test_corrupted_files():
    corrupted(1500, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 7))
def test_many_corrupted_files(seed):
    corrupted(10_000, seed)


def test_corrupted_archives(tmp_path):
    save([tt.arange(1000), "text"], tmp_path / "file")
    whole = (tmp_path / "file").read_bytes()
    for n in range(1, len(whole), 97):
        with pytest.raises(RuntimeError):
            load(io.BytesIO(whole[:n]))
    at = whole.index(bytes(range(8))[:1] + bytes(7) + b"\1")  # the numbers 0, 1
    with pytest.raises(RuntimeError, match="checksum"):
        load(io.BytesIO(whole[:at] + b"\7" + whole[at + 1 :]))
    last = whole.index(b"PK\1\2")  # the directory, whose first entry is taken out
    entry = 46 + sum(struct.unpack_from("<3H", whole, last + 28))
    with pytest.raises(RuntimeError, match="does not list its members"):
        load(io.BytesIO(whole[:last] + whole[last + entry :]))
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("data.pkl", bytes(1_000_000))
    f.seek(0)
    with pytest.raises(RuntimeError, match="compressed"):
        load(f)
