"""Files that one library writes and the other reads: each object comes back alike."""

import io
import random
import zipfile
from collections import Counter, OrderedDict

import pytest
import tinytorch as tt

torch = pytest.importorskip("torch")
DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
    "complex128",
]  # fmt: skip


def views(m):
    x = m.arange(24, dtype=m.float32).reshape(4, 6)
    return [x, x.t(), x[1:, ::2], x[2, 3], x[:, :0], x.expand(2, 4, 6), x.as_strided((2, 2), (1, 1), 3)]


def dtypes(m):
    return [m.tensor([[1, 0, 3], [4, 5, 6]], dtype=getattr(m, name)) for name in DTYPES]


def plain(m):
    return {
        "ints": [1, -1, 255, 65536, 1 << 31, 1 << 100], "text": "\N{SNOWMAN}", "none": None, "bytes": b"\0\xff",
        "bytearray": bytearray(b"ab"), "set": {1, 2}, "complex": 2j, "tuple": (1, (2, [3.5])),
        "counter": Counter("aab"),
        "ordered": OrderedDict(a=1), 7: True, (1, 2): 0.1,
    }  # fmt: skip


def facts(m):
    return [m.Size([2, 3]), m.device("cpu"), m.device("cuda:1"), m.strided, *[getattr(m, name) for name in DTYPES]]


def kinds(m):
    p = m.nn.Parameter(m.ones(2), requires_grad=False)
    p.note = {"a": [m.zeros(1)]}
    t = m.arange(3.0)
    t.foo = "foo"
    b = m.nn.Buffer(m.ones(2), persistent=False)
    return [m.nn.Parameter(m.ones(3)), p, t, m.ones(2, requires_grad=True), b, m.nn.Parameter(t)]


def sparse(m):
    s = m.tensor([[0.0, 1, 0], [2, 0, 3]])
    twice = m.sparse_coo_tensor(m.tensor([[1, 0, 1], [2, 0, 2]]), m.tensor([1.0, 2.0, 3.0]), (2, 3))
    return [s.to_sparse(), s.to_sparse_csr(), twice, m.sparse_coo_tensor((2, 3)), s.double().to_sparse()]


def storages(m):
    x = m.arange(4.0)
    return [x, m.ones(2).byte(), m.UntypedStorage([1, 2, 3]), m.ones(2).half()]


def network(m):
    return m.nn.Sequential(m.nn.Linear(3, 4), m.nn.BatchNorm1d(4), m.nn.ReLU(), m.nn.Dropout(0.5), m.nn.Linear(4, 1))


def trained(m, name, **options):
    net = network(m)
    with m.no_grad():
        for k, p in enumerate(net.parameters()):
            p.copy_(m.arange(p.numel(), dtype=m.float32).reshape(p.shape) / 10 - k / 3)
    net.eval()
    opt = getattr(m.optim, name)(net.parameters(), **options)
    schedule = m.optim.lr_scheduler.CosineAnnealingLR(opt, 10)
    for k in range(3):
        opt.zero_grad()
        net(m.ones(2, 3) * (k + 1)).pow(2).sum().backward()
        opt.step()
        schedule.step()
    scaler = m.amp.GradScaler("cpu", init_scale=8.0)
    return {"net": net.state_dict(), "opt": opt.state_dict(), "sched": schedule.state_dict(), "s": scaler.state_dict()}


OPTIMIZERS = {
    "SGD": {"lr": 0.1, "momentum": 0.9},
    "Adam": {"amsgrad": True},
    "AdamW": {},
    "RMSprop": {"centered": True, "momentum": 0.5},
}
OBJECTS = {
    **{f.__name__: f for f in (views, dtypes, plain, facts, kinds, sparse, storages)},
    **{name: lambda m, n=name, o=options: trained(m, n, **o) for name, options in OPTIMIZERS.items()},
}


def told(obj):
    """What an object is, in words that are the same for both libraries."""
    name = type(obj).__name__
    if hasattr(obj, "requires_grad"):
        if "sparse" in str(obj.layout):
            coo = obj.layout in (tt.sparse_coo, torch.sparse_coo)
            parts = (obj.is_coalesced(), told(obj._indices()), told(obj._values())) if coo else told(obj.crow_indices())
            return str(obj.layout).split(".")[1], told(obj.to_dense()), parts
        name = "Buffer" if getattr(obj, "_is_buffer", False) else name
        attributes = {k: told(v) for k, v in vars(obj).items() if k not in ("_is_buffer", "persistent")}
        values = obj.detach().tolist()
        place = (str(obj.dtype).split(".")[1], tuple(obj.shape), obj.stride(), obj.storage_offset(), obj.requires_grad)
        return name, place, getattr(obj, "persistent", None), values, attributes
    if name.endswith("Storage"):
        return bytes(obj.untyped().tolist())
    if name in ("dtype", "layout", "device", "Size"):
        return str(obj).removeprefix("torch.").removeprefix("tinytorch.")
    if isinstance(obj, dict):
        return (
            name.replace("StateDict", "OrderedDict"),
            [(k, told(v)) for k, v in obj.items()],
            getattr(obj, "_metadata", None),
        )
    if isinstance(obj, (list, tuple)):
        return name, [told(v) for v in obj]
    return name, obj


def nest(m, rng, made, depth=4):
    """Containers, plain values, tensors, and views of those that were made before."""
    few = range(rng.randrange(4) if depth else 0)

    def key():
        return rng.choice((rng.randrange(9), rng.random(), f"k{rng.randrange(99)}", (1, f"{rng.randrange(9)}"), None))

    kind = rng.randrange(16 if depth else 9)
    if kind < 3:
        shape = [rng.randrange(4) for _ in range(rng.randrange(4))]
        made.append(m.arange(m.Size(shape).numel()).reshape(shape).to(getattr(m, rng.choice(DTYPES))))
        return made[-1]
    if kind == 3 and made:
        t = rng.choice(made)
        return rng.choice(
            (lambda: t, lambda: t.detach().t() if t.dim() == 2 else t[...], lambda: t[:1] if t.dim() else t)
        )()
    if kind == 4:
        return m.nn.Parameter(m.ones(rng.randrange(4)), requires_grad=rng.random() < 0.5)
    if kind < 9:
        number, text = rng.randrange(1 << rng.choice((3, 15, 40, 90))), "\N{SNOWMAN}" * rng.randrange(3)
        return rng.choice(
            (number, rng.random(), text, b"\0\xff", None, True, m.Size([2]), m.float16, 1j, m.device("cpu"))
        )
    if kind < 12:
        return [nest(m, rng, made, depth - 1) for _ in few]
    if kind < 14:
        return tuple([nest(m, rng, made, depth - 1) for _ in few])
    return rng.choice((dict, OrderedDict))((key(), nest(m, rng, made, depth - 1)) for _ in few)


def written(m, obj, **options):
    f = io.BytesIO()
    m.save(obj, f, **options)
    f.seek(0)
    return f


WAYS = pytest.mark.parametrize(
    "writer,reader", [(tt, torch), (torch, tt), (tt, tt)], ids=["to torch", "from torch", "tinytorch"]
)
ONLY = pytest.mark.parametrize("weights_only", [True, False])


@pytest.mark.filterwarnings("ignore::UserWarning")  # PyTorch's, of prototypes
@WAYS
@ONLY
@pytest.mark.parametrize("name", OBJECTS)
def test_objects(name, writer, reader, weights_only, tmp_path):
    obj = OBJECTS[name](writer)
    expected = told(obj)
    assert told(reader.load(written(writer, obj), weights_only=weights_only)) == expected
    writer.save(obj, tmp_path / "file.pt")
    assert told(reader.load(tmp_path / "file.pt", weights_only=weights_only, mmap=True)) == expected


@WAYS
@pytest.mark.parametrize("seed", range(15))
def test_random_objects(seed, writer, reader):
    obj = [nest(writer, random.Random(1000 * seed + k), []) for k in range(60)]
    for weights_only in (True, False):
        assert told(reader.load(written(writer, obj), weights_only=weights_only)) == told(obj)


@pytest.mark.filterwarnings("ignore::UserWarning")
@ONLY
@pytest.mark.parametrize("name", OBJECTS)
def test_the_format_before_1_6(name, weights_only):
    obj = OBJECTS[name](torch)
    f = written(torch, obj, _use_new_zipfile_serialization=False)
    assert told(tt.load(f, weights_only=weights_only)) == told(obj)
    whole = f.getvalue()
    for n in range(4, len(whole), max(len(whole) // 50, 1)):
        with pytest.raises((RuntimeError, EOFError, tt.serialization.pickle.UnpicklingError)):
            tt.load(io.BytesIO(whole[:n]))


@pytest.mark.parametrize("m", [tt, torch], ids=["tinytorch", "torch"])
def test_memory_is_shared_again(m):
    x = tt.arange(6.0)
    y = tt.arange(4.0)
    a, b, c, d, bits, bit = m.load(
        written(tt, [x, x[2:4], x.view(3, 2).t(), y, y.view(tt.int32), y[1:].view(tt.int16)])
    )
    a[2] = 50.0
    assert b[0] == 50.0 and c[0, 1] == 50.0
    d.zero_()
    assert bits.tolist() == [0] * 4 and bit.tolist() == [0] * 6


def test_conjugated_and_negated():
    """PyTorch's tensors that are conjugated, or negated, when they are read."""
    z = torch.tensor([1 + 2j, 3 - 4j])
    for lazy in ([z, z.conj(), z.conj()[1:], z], [z.conj().imag, z.imag]):
        assert lazy[1].is_conj() or lazy[0].is_neg()
        for weights_only in (True, False):
            got = tt.load(written(torch, lazy), weights_only=weights_only)
            assert [t.tolist() for t in got] == [t.tolist() for t in lazy]


def weights(net):
    return {name: (str(t.dtype).split(".")[1], t.tolist()) for name, t in net.state_dict().items()}


@pytest.mark.filterwarnings("ignore::UserWarning")
@WAYS
def test_modules(writer, reader):
    m = writer
    nets = [
        network(m),
        m.nn.ModuleDict({"a": m.nn.Conv2d(1, 2, 3), "b": m.nn.ModuleList([m.nn.Embedding(3, 2), m.nn.LayerNorm(2)])}),
        m.nn.MultiheadAttention(4, 2),
        m.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True),
    ]
    for net in nets:
        got = reader.load(written(m, net), weights_only=False)
        assert type(got).__module__.partition(".")[0] == reader.__name__ and weights(got) == weights(net)
        names = [[type(part).__name__ for part in n.modules()] for n in (got, net)]
        assert str(names[0]).replace("NonDynamicallyQuantizableL", "L") == str(names[1]).replace(
            "NonDynamicallyQuantizableL", "L"
        )
    net = nets[0].eval()
    got = reader.load(written(m, net), weights_only=False)
    assert got(reader.ones(2, 3)).flatten().tolist() == pytest.approx(net(m.ones(2, 3)).flatten().tolist(), 1e-6)
    opt = m.optim.SGD(net.parameters(), lr=0.5)
    again = reader.load(written(m, [net, opt]), weights_only=False)
    assert (
        again[1].param_groups[0]["params"][0] is next(again[0].parameters()) and again[1].param_groups[0]["lr"] == 0.5
    )


def test_generator_states():
    for m in (tt, torch):
        state = tt.get_rng_state()
        assert m.load(written(tt, {"rng": state}))["rng"].tolist() == state.tolist()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_protocols(protocol):
    obj = {"w": tt.arange(3.0), "k": [tt.float16, tt.Size([1])]}
    assert told(torch.load(written(tt, obj, pickle_protocol=protocol), weights_only=False)) == told(obj)


def test_what_zip_programs_see(tmp_path):
    tt.save({"x": tt.arange(4)}, tmp_path / "file")
    with zipfile.ZipFile(tmp_path / "file") as z:
        assert z.testzip() is None and z.read("archive/version") == b"3\n" and z.read("archive/byteorder") == b"little"


@pytest.mark.parametrize("m", [tt, torch], ids=["tinytorch", "torch"])
def test_settings(m):
    s = tt.serialization
    x = tt.arange(100.0)
    try:
        s.set_crc32_options(False)
        assert s.get_crc32_options() is False
        assert m.load(written(tt, x)).tolist() == x.tolist()
    finally:
        s.set_crc32_options(True)
    with s.skip_data():
        empty = written(tt, x)
    assert m.load(empty).tolist() == [0.0] * 100 and len(empty.getvalue()) == len(written(tt, x).getvalue())
    with m.serialization.skip_data():
        assert m.load(written(tt, x)).shape == x.shape


@pytest.mark.parametrize(
    "where", ["cpu", b"cpu", {"cuda:0": "cpu"}, lambda s, loc: s, lambda s, loc: s.cpu(), torch.device]
)
def test_map_locations(where):
    where = tt.device("cpu") if where is torch.device else where
    t = torch.arange(4.0)
    for options in ({}, {"_use_new_zipfile_serialization": False}):
        whole = written(torch, t, **options).getvalue()
        assert tt.load(io.BytesIO(whole), map_location=where).tolist() == t.tolist()
        elsewhere = whole.replace(b"X\3\0\0\0cpu", b"X\3\0\0\0xpu")
        with pytest.raises(RuntimeError, match="restore data location.*xpu"):
            tt.load(io.BytesIO(elsewhere))
    assert tt.serialization.location_tag(tt.ones(1).untyped_storage()) == "cpu"


def test_a_kind_of_device_of_ones_own():
    s = tt.serialization
    seen = []

    def put(storage, location):
        if location.startswith("npu"):
            seen.append(location)
            return storage
        return None

    before = list(tt.locations._registry)
    try:
        s.register_package(5, lambda storage: "npu:3" if storage.nbytes() == 16 else None, put)
        f = written(tt, [tt.ones(4), tt.ones(3)])
        assert [t.tolist() for t in tt.load(f)] == [[1.0] * 4, [1.0] * 3] and seen == ["npu:3"]
    finally:
        tt.locations._registry[:] = before
