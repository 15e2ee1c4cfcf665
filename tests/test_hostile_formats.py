"""Files of PyTorch's formats that are made to do harm: each is an error, no code is run, and no memory is taken that
the file does not hold. test_hostile_files.py has pickles, test_safetensors.py files of that format."""

import io
import os
import pathlib
import pickle
import struct
import subprocess
import sys
import zipfile

import pytest
import tinytorch as tt
from corrupt_files import LEGACY, PYTORCH, Pipe, packed_as_legacy, packed_as_pytorch, pickled
from tinytorch import nn

HERE = pathlib.Path(__file__).parent
SPARSE = (
    b"ctorch._utils\n_rebuild_sparse_tensor\n(ctorch.serialization\n_get_layout\nX\x10\0\0\0torch.sparse_coo\x85R("
    b"ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nLongStorage\nX\1\0\0\x000X\3\0\0\0cpuK\2tQK\0(K\1K\2t"
    b"(K\2K\1t\x89NtRctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\x001X\3\0\0\0cpu"
    b"K\2tQK\0(K\2t(K\1t\x89NtR(K\5t\x88ttR"
)
PLACES = struct.pack("<2q", 1, 3)


def protocol_2(content):
    return b"\x80\2" + content + b"."


def sparse(places=PLACES, *changes):
    content = SPARSE
    for a, b in changes:
        assert a in content
        content = content.replace(a, b)
    return packed_as_pytorch(protocol_2(content), [places, bytes(8)])


class System:
    """What a program is run by."""

    def __reduce__(self):
        return os.system, (f"touch {HERE / 'a program was run'}",)


class Evaluated:
    def __reduce__(self):
        return eval, ("1",)


def zipped(method, *members):
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w", method) as z:
        for name, content in members:
            z.writestr(name, content)
    return f.getvalue()


def patched(whole, at, form, *values):
    out = bytearray(whole)
    struct.pack_into(form, out, at % len(out), *values)
    return bytes(out)


WHOLE = packed_as_pytorch(protocol_2(PYTORCH), [bytes(16)])
DIRECTORY = WHOLE.index(b"PK\1\2")  # of data.pkl
SECOND = WHOLE.index(b"PK\1\2", DIRECTORY + 1)  # of data/0
END = WHOLE.index(b"PK\5\6")
OLD = packed_as_legacy(protocol_2(LEGACY), [bytes(16)])


def changed(a, b):
    assert a in PYTORCH
    return packed_as_pytorch(protocol_2(PYTORCH.replace(a, b)), [bytes(16)])


def legacy(a, b):
    assert a in LEGACY
    return packed_as_legacy(protocol_2(LEGACY.replace(a, b)), [bytes(16)])


def doubled():
    f = Pipe()
    with zipfile.ZipFile(f, "w") as z:
        z.writestr("archive/data.pkl", protocol_2(PYTORCH))
        for _ in range(2):
            z.writestr("archive/data/0", bytes(16))
    return bytes(f.content)


DEEP = b"]" * 100_000 + b"a" * 99_999
HUGE = b"\x8a\x08" + b"\xff" * 7 + b"\x0f"
CONJ = PYTORCH.replace(b"collections\nOrderedDict\n)Rt", b"collections\nOrderedDict\n)R}X\4\0\0\0conj\x88st")
FILES = {
    "os.system": packed_as_pytorch(pickled([System()]), []),
    "eval": packed_as_pytorch(pickled([Evaluated()]), []),
    "os.system in the old format": packed_as_legacy(pickled(System()), []),
    "os.system as its number": pickled(System()) + OLD,
    "os.system among its storages": OLD[: OLD.index(protocol_2(LEGACY)) + len(protocol_2(LEGACY))] + pickled(System()),
    "os.system alone": pickled(System()),
    "a module": packed_as_legacy(protocol_2(b"(X\6\0\0\0modulecos\nsystem\nX\1\0\0\0aX\1\0\0\0btQ"), []),
    "a bomb": zipped(zipfile.ZIP_DEFLATED, ("archive/data.pkl", bytes(300_000_000))),
    "a storage that is a bomb": zipped(
        zipfile.ZIP_DEFLATED, ("archive/data.pkl", protocol_2(PYTORCH)), ("archive/data/0", bytes(300_000_000))
    ),
    "a member of a huge size": patched(WHOLE, SECOND + 20, "<2I", 0xFFFFFFF0, 0xFFFFFFF0),
    "a member that is compressed": patched(WHOLE, SECOND + 10, "<H", 8),
    "a member that is encrypted": patched(WHOLE, SECOND + 8, "<H", 9),
    "a member outside": patched(WHOLE, SECOND + 42, "<I", len(WHOLE) + 100),
    "members that overlap": patched(WHOLE, SECOND + 20, "<2I", len(WHOLE), len(WHOLE)),
    "a member that is there twice": doubled(),
    "a directory of a huge size": patched(WHOLE, END + 12, "<I", 0xFFFFFF00),
    "a directory outside": patched(WHOLE, END + 16, "<I", 0xFFFFFF00),
    "an unknown order of bytes": packed_as_pytorch(protocol_2(PYTORCH), [bytes(16)], byteorder=b"middle"),
    "a program": packed_as_pytorch(protocol_2(PYTORCH), [bytes(16)], **{"constants.pkl": pickled(())}),
    "a storage too short": packed_as_pytorch(protocol_2(PYTORCH), [bytes(12)]),
    "no storage": packed_as_pytorch(protocol_2(PYTORCH), []),
    "a negative stride": changed(b"(K\1t\x89", b"(J\xff\xff\xff\xfft\x89"),
    "a negative offset": changed(b"QK\0(", b"QJ\xff\xff\xff\xff("),
    "a huge offset": changed(b"QK\0(", b"Q" + HUGE + b"("),
    "a huge stride": changed(b"(K\1t\x89", b"(" + HUGE + b"t\x89"),
    "a huge tensor": changed(b"(K\4t", b"(" + HUGE + b"t"),
    "a huge tensor of stride 0, negated": packed_as_pytorch(
        protocol_2(CONJ.replace(b"conj", b"neg").replace(b"X\4\0\0\0neg", b"X\3\0\0\0neg")
                   .replace(b"(K\4t(K\1t", b"(J\xff\xff\xff\x3ft(K\0t")), [bytes(16)],
    ),
    "copies": packed_as_pytorch(
        protocol_2(b"(" + CONJ.replace(b"(K\4t(K\1t", b"(M\xff\xfft(K\0t") * 5000 + b"t"), [bytes(16)]
    ),
    "a class that is none": changed(b"ctorch\nTensor", b"ctorch\nfloat32"),
    "attributes of a class": changed(b"X\1\0\0\0a", b"X\7\0\0\0__del__"),
    "a tensor for a function": packed_as_pytorch(protocol_2(PYTORCH + b")R"), [bytes(16)]),
    "places beyond the end": sparse(struct.pack("<2q", 1, 5)),
    "places before the beginning": sparse(struct.pack("<2q", -1, 3)),
    "places that are not in order": sparse(struct.pack("<2q", 3, 1)),
    "places that are there twice": sparse(struct.pack("<2q", 3, 3)),
    "places that are no integers": sparse(PLACES, (b"LongStorage", b"DoubleStorage")),
    "places without dimension": sparse(PLACES, (b"(K\1K\2t(K\2K\1t", b"(K\2t(K\1t")),
    "a sparse tensor of another size": sparse(PLACES, (b"(K\5t\x88", b"(K\5K\5t\x88")),
    "a sparse tensor of a negative size": sparse(PLACES, (b"(K\5t\x88", b"(J\xff\xff\xff\xfft\x88")),
    "a sparse tensor of a huge size": sparse(PLACES, (b"(K\5t\x88", b"(" + HUGE + HUGE + HUGE + b"t\x88")),
    "a sparse tensor of a list": sparse(PLACES, (b"(K\5t\x88", b"]\x88")),
    "rows that fall": sparse(
        struct.pack("<2q", 3, 1), (b"sparse_coo", b"sparse_csr"), (b"(K\1K\2t(K\2K\1t", b"(K\2t(K\1t"),
        (b"(K\5t\x88", b"h\0(K\1K\5t"), (b"ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloat",
                                       b"q\0ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloat"),
    ),
    "an unknown layout": sparse(PLACES, (b"torch.sparse_coo", b"torch.sparse_foo")),
    "old: a huge storage": legacy(b"K\4NtQ", HUGE + b"NtQ"),
    "old: a negative storage": legacy(b"K\4NtQ", b"J\xff\xff\xff\xffNtQ"),
    "old: a storage that claims less": legacy(b"K\4NtQ", b"K\3NtQ"),
    "old: a view of a storage": legacy(b"NtQ", b"(X\1\0\0\x001K\0K\4ttQ"),
    "old: a storage of no name": legacy(b"X\1\0\0\x000X", b"NX"),
    "old: many huge storages": packed_as_legacy(
        protocol_2(b"(" + b"".join(
            LEGACY.replace(b"X\1\0\0\x000", b"X\3\0\0\0%03d" % k).replace(b"K\4N", b"J\0\0\0\1N") for k in range(20)
        ) + b"t"), [],
    ),
    "old: no storages": OLD[: OLD.index(protocol_2(LEGACY)) + len(protocol_2(LEGACY))] + pickled([]),
    "old: keys that are no list": OLD[: OLD.index(protocol_2(LEGACY)) + len(protocol_2(LEGACY))] + pickled({"0": 1}),
    "old: another size": OLD.replace(struct.pack("<q", 4) + bytes(16), struct.pack("<q", 5) + bytes(16)),
    "old: cut off": OLD[:-1],
    "old: another number": OLD.replace(pickled(0x1950A86A20F9469CFC6C), pickled(1)),
    "old: another protocol": OLD.replace(pickled(1001), pickled(1002)),
    "a tar file": (b"\x80" + bytes(256) + b"ustar").ljust(1024, b"\0"),
    "zeros": bytes(1000),
    "a text": b"hello " * 100,
}  # fmt: skip
READS = {
    "a deep nest": packed_as_pytorch(protocol_2(DEEP), []),
    "a cycle": packed_as_pytorch(protocol_2(b"]q\0h\0a"), []),
}


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_hostile_files(name, mapped, tmp_path):
    path = tmp_path / "file.pt"
    path.write_bytes(FILES[name])
    with pytest.raises((pickle.UnpicklingError, RuntimeError, EOFError)):
        tt.load(path, mmap=mapped)
    assert not (HERE / "a program was run").exists()
    assert nn.Parameter(tt.zeros(1)).requires_grad and tt.zeros(2).dtype is tt.float32


@pytest.mark.parametrize("name", READS)
def test_what_is_strange_and_harmless(name):
    assert type(tt.load(io.BytesIO(READS[name]))) is list


def test_the_pieces_are_good():
    """What the hostile files are made of can be read."""
    assert tt.load(io.BytesIO(WHOLE)).a == tt.load(io.BytesIO(OLD)).a == 1
    s = tt.load(io.BytesIO(sparse()))
    assert s.is_coalesced() and s._indices().tolist() == [[1, 3]] and s.shape == (5,)


MEMORY = """
import io, pickle, sys
sys.path.insert(0, sys.argv[1])
from peak import peak
import test_hostile_formats as tests
import tinytorch as tt
files = [*tests.FILES.values(), *tests.READS.values()]
start = peak()
for content in files:
    try:
        tt.load(io.BytesIO(content))
    except (pickle.UnpicklingError, RuntimeError, EOFError):
        pass
print(peak() - start)
"""


def test_no_file_takes_memory_that_it_does_not_hold():
    done = subprocess.run([sys.executable, "-c", MEMORY, HERE], capture_output=True, text=True)
    assert int(done.stdout) < 150, done.stderr  # MB
