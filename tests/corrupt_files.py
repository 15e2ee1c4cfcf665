"""Loads corrupted and hostile files, and sees that nothing but the result changes: a program for a process of its own.

    python tests/corrupt_files.py COUNT [SEED]

Each file is one that save() wrote, with bytes changed, cut out, doubled or inserted, in the archive or in the pickle
inside it; or a pickle made of operators and names at random; or one in a format of PyTorch's, or of safetensors.
Loading it may raise what load's docstring says.
Afterwards every attribute of every module and class must be the object that it was.
"""

import contextlib
import copy
import io
import pickle
import random
import resource
import struct
import sys
import warnings
import zipfile

import tinytorch as tt
from peak import peak
from tinytorch import nn, optim
from tinytorch.archive import Reader, Writer

try:
    from safetensors import SafetensorError
    from tinytorch.utils import safetensors
except ImportError:
    safetensors, SafetensorError = None, RuntimeError

FINE = (  # what load says it may raise
    pickle.UnpicklingError, RuntimeError, EOFError, IndexError, NotImplementedError, SafetensorError,
)  # fmt: skip
NAMES = [
    "collections Counter", "collections OrderedDict", "collections defaultdict", "builtins set", "builtins frozenset",
    "builtins dict", "builtins list", "builtins bytearray", "builtins complex", "builtins slice", "builtins getattr",
    "builtins eval", "os system", "_codecs encode", "copyreg _reconstructor", "tinytorch.dtypes _by_name",
    "tinytorch.dtypes dtype", "tinytorch.dtypes Size", "tinytorch.dtypes float32", "tinytorch.devices device",
    "tinytorch.tensor Tensor", "tinytorch.nn.parameter Parameter", "tinytorch.nn.parameter Buffer",
    "tinytorch.nn.parameter _rebuild", "tinytorch.nn.parameter _rebuild_buffer", "tinytorch.nn.state StateDict",
    "tinytorch.pickling rebuild", "tinytorch.pickling Storage", "tinytorch.pickling load_storage",
    "tinytorch.nn Module", "tinytorch lib", "torch FloatStorage", "torch.storage UntypedStorage", "torch float32",
    "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_tensor_v3", "torch._utils _rebuild_parameter",
    "torch._utils _rebuild_parameter_with_state", "torch._tensor _rebuild_from_type_v2", "torch Tensor", "torch Size",
    "torch._utils _rebuild_tensor", "torch._utils _rebuild_sparse_tensor", "torch.serialization _get_layout",
    "torch device", "torch.nn.parameter Parameter", "torch LongStorage", "torch ComplexFloatStorage", "torch bool",
]  # fmt: skip
TEXTS = ["float32", "int64", "_h", "code", "cpu", "cuda:0", "storage", "__class__", "__dict__", "_metadata", "latin1",
         "most_common", "__del__", "_node", "_grad", "x", "", "torch.sparse_coo", "torch.sparse_csr", "_is_buffer",
         "conj", "neg"]  # fmt: skip


def saved(obj, **options) -> bytes:
    f = io.BytesIO()
    tt.save(obj, f, **options)
    return f.getvalue()


def packed(content: bytes, storages: list) -> bytes:
    """An archive of this pickle."""
    f = io.BytesIO()
    archive = Writer(f)
    archive.add("data.pkl", content)
    for number, data in enumerate(storages):
        archive.add(f"data/{number}", data)
    archive.close()
    return f.getvalue()


class Pipe(io.RawIOBase):
    """A file that cannot seek: a zip file written to it tells the sizes of members behind them, as PyTorch's do."""

    def __init__(self):
        self.content = bytearray()

    def writable(self):
        return True

    def write(self, data):
        self.content += bytes(data)
        return len(data)


def packed_as_pytorch(content: bytes, storages: list, **more: bytes) -> bytes:
    """An archive as PyTorch writes it."""
    f = Pipe()
    with zipfile.ZipFile(f, "w") as archive:
        archive.writestr("archive/data.pkl", content)
        for name, data in more.items():
            archive.writestr(f"archive/{name}", data)
        for number, data in enumerate(storages):
            archive.writestr(f"archive/data/{number}", data)
    return bytes(f.content)


def pickled(obj) -> bytes:
    return pickle.dumps(obj, 2)


def packed_as_legacy(content: bytes, storages: list) -> bytes:
    """A file as PyTorch wrote it before 1.6: float32 storages of these numbers."""
    head = pickled(0x1950A86A20F9469CFC6C) + pickled(1001) + pickled({"little_endian": True})
    data = b"".join(struct.pack("<q", len(s) // 4) + s for s in storages)
    return head + content + pickled([str(k) for k in range(len(storages))]) + data


PYTORCH = (  # a tensor of four floats, with an attribute
    b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\nctorch\nTensor\n"
    b"((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\x000X\3\0\0\0cpuK\4tQK\0(K\4t(K\1t\x89ccollections\nOrderedDict\n)Rt"
    b"}X\1\0\0\0aK\1stR"
)


LEGACY = PYTORCH.replace(b"cpuK\4tQ", b"cpuK\4NtQ")


def parts(file: bytes) -> tuple:
    """The pickle of an archive, and its storages."""
    archive = Reader(io.BytesIO(file))
    return archive.read("data.pkl"), [archive.read(n) for n in archive.members if n.startswith("data/")]


def originals() -> list:
    """Files that save() wrote, of everything that it can."""
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    opt = optim.Adam(net.parameters())
    net(tt.ones(2, 3)).sum().backward()
    opt.step()
    t = tt.arange(6, dtype=tt.float32)
    t.note = {"a": 1}
    objects = [
        t,
        [t, t[2:4], t.view(tt.int32)],
        {"net": net.state_dict(), "opt": opt.state_dict(), "epoch": 3},
        {"p": nn.Parameter(tt.ones(2)), "b": nn.Buffer(tt.zeros(1)), 1.5: (True, None, "text", b"bytes", 1 << 80)},
        [
            tt.eye(2).to_sparse(),
            tt.eye(3).to_sparse_csr(),
            t.untyped_storage(),
            tt.strided,
            tt.ones(2, dtype=tt.complex64),
        ],
        [{1, 2}, frozenset({3}), bytearray(b"abc"), 2j, tt.float16, tt.Size([2, 3]), tt.device("cpu"), slice(1, 2)],
    ]
    return [saved(o, pickle_protocol=p) for o in objects for p in (2, 4, 5)]


def mangled(rng: random.Random, data: bytes) -> bytes:
    """With a few changes."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        if not data:
            break
        at = rng.randrange(len(data))
        kind = rng.randrange(7)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del data[at : at + rng.choice((1, 4, 40))]
        elif kind == 3:
            data[at:at] = rng.randbytes(rng.choice((1, 4, 40)))
        elif kind == 4:
            data[at:at] = data[at : at + rng.choice((1, 8, 80))]
        elif kind == 5:
            data[at : at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\0", b"\0\0\0\x80"))
        else:
            del data[at:]
    return bytes(data)


def made_up(rng: random.Random) -> bytes:
    """A pickle of operators at random: each can be read after those before it, but perhaps the last."""
    out = b"\x80\x04"

    def text(value=None):
        value = rng.choice(TEXTS) if value is None else value
        return b"X" + struct.pack("<I", len(value)) + value.encode()

    def name():
        return b"c" + rng.choice(NAMES).replace(" ", "\n").encode() + b"\n"

    def tensor():
        sizes = b"".join(b"J" + struct.pack("<i", rng.choice((0, 1, 2, 4, -1, 1 << 30))) for _ in range(3))
        return (
            b"ctinytorch.pickling\nrebuild\n(ctinytorch.tensor\nTensor\n(" + text("storage") + b"K\0" + text("cpu")
            + b"tQctinytorch.dtypes\n_by_name\n" + text(rng.choice(("float32", "int8"))) + b"\x85R("
            + sizes[:5] + b"t(" + sizes[5:10] + b"t" + sizes[10:] + rng.choice((b"\x88", b"\x89")) + b"tR"
        )  # fmt: skip

    pieces = [
        text, name, tensor, lambda: b"}", lambda: b"]", lambda: b")", lambda: b"(", lambda: b"t", lambda: b"\x85",
        lambda: b"\x86", lambda: b"\x87", lambda: b"R", lambda: b"\x81", lambda: b"b", lambda: b"s", lambda: b"u",
        lambda: b"a", lambda: b"e", lambda: b"N", lambda: b"\x94", lambda: b"h" + bytes([rng.randrange(8)]),
        lambda: b"K" + bytes([rng.randrange(256)]), lambda: b"Q", lambda: b"0", lambda: b"2", lambda: b"\x8f",
        lambda: b"\x90", lambda: b"\x91", lambda: b"d", lambda: b"l", lambda: b"1", lambda: b"\x93", lambda: b"\x92",
        lambda: name() + b"}" + text() + b"K\x05s\x86b", lambda: name() + b"N}" + text() + b"K\x05s\x86b",
        lambda: tensor() + b"N}" + text("_h") + b"h\0s\x86b", lambda: name() + text() + b"\x85R",
        lambda: b"ctorch._utils\n_rebuild_sparse_tensor\n(ctorch.serialization\n_get_layout\n" + text() + b"\x85R("
        + tensor() + tensor() + b"(K\4t" + rng.choice((b"\x88", b"\x89", b"")) + b"ttR",
        lambda: PYTORCH.replace(b"OrderedDict\n)Rt", b"OrderedDict\n)R}" + text() + b"\x88st"),
        lambda: PYTORCH, lambda: PYTORCH + b"}" + text() + b"K\5sb",
        lambda: b"r" + rng.randbytes(4), lambda: b"\x8e" + rng.randbytes(8), lambda: b"\x96" + rng.randbytes(8),
        lambda: name() + b"J" + rng.randbytes(4) + b"\x85R", lambda: b"\x85" * rng.choice((10, 10_000)),
    ]  # fmt: skip
    for _ in range(rng.randrange(1, 30)):
        longer = out + rng.choice(pieces)()
        try:
            tt.load(io.BytesIO(packed(longer + b"N.", [bytes(16)])))
            out = longer
        except FINE:
            if rng.randrange(20) == 0:
                return longer + b"."
    return out + b"."


def state() -> dict:
    """Every attribute of every module and class, and of the dtypes. The objects are kept, so that none takes another's
    address."""
    found = {}
    for module in list(sys.modules.values()):
        if module is None or module.__name__ == "__main__":
            continue
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if name == "__warningregistry__":  # a warning was given
                continue
            found[module.__name__, name] = value
            if isinstance(value, type):
                for key, member in list(vars(value).items()):
                    found[value, key] = member
            elif isinstance(value, tt.dtype):
                for key in tt.dtype.__slots__:
                    found[repr(value), key] = getattr(value, key)
    return found


def use(obj, depth: int = 0) -> None:
    """Looks at what was loaded: its tensors' elements, too."""
    if isinstance(obj, tt.Tensor):
        if obj.numel() < 1000:
            repr(obj)
            obj.to_dense() if "sparse" in str(obj.layout) else obj.detach().clone().fill_(1)
    elif depth < 20 and isinstance(obj, (list, tuple, set, frozenset)):
        for part in list(obj)[:50]:
            use(part, depth + 1)
    elif depth < 20 and isinstance(obj, dict):
        for part in list(obj.values())[:50]:
            use(part, depth + 1)


def main(count: int, seed: int) -> None:
    warnings.simplefilter("ignore")
    rng = random.Random(seed)
    files = originals()
    inner = [parts(f) for f in files]
    legacy = packed_as_legacy(b"\x80\2" + LEGACY + b".", [bytes(16)])
    assert tt.load(io.BytesIO(legacy)).a == 1
    named = safetensors and safetensors.save({"a": tt.ones(2, 3), "b": tt.ones(3, dtype=tt.int8), "c": tt.zeros(0)})
    theirs = packed_as_pytorch(b"\x80\2" + PYTORCH + b".", [bytes(16)], byteorder=b"little")
    assert tt.load(io.BytesIO(theirs)).a == 1
    for f in files:
        use(tt.load(io.BytesIO(f)))  # what is imported or cached at first use is there
    for fail in (b"no archive at all", files[0][:100], packed(b"(.", [])):
        with contextlib.suppress(FINE):
            tt.load(io.BytesIO(fail))
    resource.setrlimit(resource.RLIMIT_DATA, ((peak() << 20) + (1 << 30),) * 2)
    before = state()
    loaded = 0
    for k in range(count):
        kind = rng.randrange(9)
        read = tt.load
        if kind == 6 and named:
            file, read = mangled(rng, named), lambda f: safetensors.load(f.getvalue())
        elif kind == 6 or kind == 7:
            file = mangled(rng, legacy)
        elif kind == 8:
            file = packed_as_legacy(mangled(rng, b"\x80\2" + LEGACY + b"."), [bytes(16)])
        elif kind == 4:
            file = mangled(rng, theirs)
        elif kind == 5:
            file = packed_as_pytorch(mangled(rng, b"\x80\2" + PYTORCH + b"."), [bytes(16)])
        elif kind == 0:
            file = mangled(rng, rng.choice(files))
        elif kind == 1:
            file = packed(made_up(rng), [bytes(16)])
        else:
            content, storages = copy.copy(rng.choice(inner))
            file = packed(mangled(rng, content), storages if kind == 2 else [mangled(rng, s) for s in storages])
        try:
            use(read(io.BytesIO(file)))
            loaded += 1
        except FINE:
            pass
        except BaseException:
            print(f"file {k} of seed {seed}: {file!r}", file=sys.stderr)
            raise
    after = state()
    changed = [key for key in {**before, **after} if before.get(key, state) is not after.get(key, state)]
    assert not changed, changed
    print(f"{count} files, {loaded} of them loaded")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
