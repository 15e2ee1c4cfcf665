"""What a replay or a kept kernel must not be mistaken for: the same shape in another layout, other random numbers,
another default device, a source that differs in names, the kernel of an older version."""

import linecache
import shutil

import pytest

import tinytorch as torch
from fuse.test_purity import bits
from tinytorch import cache, devices, fuse
from tinytorch.backends.cuda import kernels as cuda_kernels
from tinytorch.fuse import compiler
from tinytorch.fuse.purity import Unproven, guards, prove

F = torch.nn.functional

# ---- Layouts.

LAYOUTS = {
    "contiguous": lambda: torch.randn(6, 6),
    "transposed": lambda: torch.randn(6, 6).t(),
    "every second column": lambda: torch.randn(6, 12)[:, ::2],
    "every second row": lambda: torch.randn(12, 6)[::2],
    "rows of a wider one": lambda: torch.randn(6, 9)[:, 2:8],
    "later rows": lambda: torch.randn(8, 6)[2:],
    "one row": lambda: torch.randn(1, 6).expand(6, 6),
    "one column": lambda: torch.randn(6, 1).expand(6, 6),
    "one number": lambda: torch.randn(1, 1).expand(6, 6),
    "windows": lambda: torch.randn(11).unfold(0, 6, 1),
    "a permuted cube": lambda: torch.randn(6, 3, 6).permute(2, 1, 0)[:, 1],
}
FUNCTIONS = {
    "elementwise": lambda x: (x * 1.5 + 2).tanh() - x,
    "two results": lambda x: (x * 2, x.exp() + 1),
    "sum of rows": lambda x: (x * x).sum(1) + 1,
    "sum of columns": lambda x: (x * x).sum(0) * 2,
    "softmax": lambda x: (x * 2).softmax(1) + x,
    "its own transpose": lambda x: x * x.t() + 1,
    "a view of it": lambda x: x[1:] * 2 - x[:-1],
}


@pytest.mark.parametrize("pure", [True, None], ids=["promised", "seen"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_other_strides_of_the_same_shape(name, pure):
    """Values and strides are eager mode's, whichever layout was learned first and whichever comes between."""
    fn = FUNCTIONS[name]
    for first in ("contiguous", "transposed", "one row"):
        fast = fuse(fn, pure=True) if pure else fuse(fn)
        order = [first] * 5 + list(LAYOUTS) + [first] + [name for name in LAYOUTS for _ in range(4)] + list(LAYOUTS)
        for layout in order:
            x = LAYOUTS[layout]()
            wanted, found = fn(x), fast(x)
            if type(wanted) is not tuple:
                wanted, found = (wanted,), (found,)
            for w, f in zip(wanted, found, strict=True):
                assert bits(f.contiguous()) == bits(w.contiguous()), (first, layout)
                assert f.stride() == w.stride() and f.shape == w.shape, (first, layout)
    assert fast.purity.replays if hasattr(fast, "purity") else fast.replays


@pytest.mark.parametrize("pure", [True, None], ids=["promised", "seen"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_other_shapes_of_the_same_strides(name, pure):
    fn = FUNCTIONS[name]
    fast = fuse(fn, pure=True) if pure else fuse(fn)
    for rows in (6, 6, 6, 6, 6, 4, 6, 4, 4, 4, 4, 6, 9, 2):
        x = torch.randn(9, 6)[:rows] if name != "its own transpose" else torch.randn(9, 9)[:rows, :rows]
        wanted, found = fn(x), fast(x)
        for w, f in zip(*((r if type(r) is tuple else (r,)) for r in (wanted, found)), strict=True):
            assert f.shape == w.shape and bits(f.contiguous()) == bits(w.contiguous()), rows


@pytest.mark.parametrize("pure", [True, None], ids=["promised", "seen"])
def test_versions_of_results(pure):
    """A result that was written in place on its way has that many versions, replayed or not."""

    def fn(x):
        y = x * 2
        y.add_(1).mul_(x)
        return y, x + 1

    fast = fuse(fn, pure=True) if pure else fuse(fn)
    for _ in range(8):
        x = torch.randn(6)
        assert [t._version for t in fast(x)] == [t._version for t in fn(x)] == [2, 0]
    assert fast.purity.replays if hasattr(fast, "purity") else fast.replays


# ---- Random numbers.

RANDOM = {
    "dropout": lambda x: F.dropout(x * 2, 0.5) + 1,
    "dropout, as a module": (lambda module: lambda x: module(x) * 3)(torch.nn.Dropout(0.5)),
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.5, training=True) * 2,
    "rand_like": lambda x: x * torch.rand_like(x),
    "randn": lambda x: x + torch.randn(64),
    "uniform_": lambda x: x * torch.empty_like(x).uniform_(),
    "bernoulli": lambda x: x * torch.bernoulli(x * 0 + 0.5),
    "randint": lambda x: x + torch.randint(0, 1000, (64,)),
    "randperm": lambda x: x + torch.randperm(64),
    "rrelu": lambda x: F.rrelu(x, training=True) + 1,
    "gumbel_softmax": lambda x: F.gumbel_softmax(x, dim=0) * 2,
}


@pytest.mark.parametrize("pure", [True, None], ids=["promised", "seen"])
@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_are_drawn_in_every_call(name, pure):
    fn = RANDOM[name]
    fast = fuse(fn, pure=True) if pure else fuse(fn)
    runs = []
    for run in (fn, fast):  # the same sequence of numbers, and no number twice
        torch.manual_seed(7)
        runs.append([run(torch.full((64,), -1.5)).numpy().tobytes() for _ in range(9)])
        assert len(set(runs[-1])) == 9
        for _ in range(6):  # the same numbers each time, which might be taken for constants
            torch.manual_seed(7)
            runs[-1].append(run(torch.full((64,), -1.5)).numpy().tobytes())
        runs[-1] += [run(torch.full((64,), -1.5)).numpy().tobytes() for _ in range(4)]
        assert len(set(runs[-1][-5:])) == 5
    assert runs[0] == runs[1]


def test_a_generator_of_the_users():
    generator = torch.Generator()

    def fn(x):
        return x * torch.rand(64, generator=generator) + 1

    runs = []
    for run in (fn, fuse(fn), fuse(fn, pure=True)):
        generator.manual_seed(5)
        runs.append([run(torch.ones(64)).numpy().tobytes() for _ in range(7)])
        assert len(set(runs[-1])) == 7
    assert runs[0] == runs[1] == runs[2]


# ---- Defaults.


def test_the_default_device(monkeypatch):
    """A function that creates tensors is no longer replayed once they would be created elsewhere."""

    def fn(x):
        return x * torch.full((6,), 3.0) + torch.zeros(6)

    fast, x = fuse(fn), torch.ones(6)
    for _ in range(8):
        assert fast(x).tolist() == fn(x).tolist()
    assert fast.purity.replays and fast.purity.plan.outside() is not None
    monkeypatch.setattr(devices, "_default", devices.CUDA)
    assert fast.purity.plan.outside() is None
    with pytest.raises(RuntimeError):  # there is none, or x is not there
        fn(x)
    with pytest.raises(RuntimeError):
        fast(x)


# ---- Sources.

# A function as it was compiled, and its source as it reads later: as long, with the same constants.
EDITED = {
    "another function": ("def fn(x, y):\n    return torch.exp(x) - y\n", "torch.exp", "torch.sin"),
    "another method": ("def fn(x, y):\n    return x.exp() - y\n", "x.exp", "x.sin"),
    "another global": ("def fn(x, y):\n    return x * ONE - y\n", "ONE", "TWO"),
    "arguments swapped": ("def fn(x, y):\n    return x * 2 - y\n", "fn(x, y)", "fn(y, x)"),
    "operands swapped": ("def fn(x, y):\n    return x * 2 - y\n", "x * 2 - y", "y * 2 - x"),
    "another attribute": ("def fn(x, y):\n    return x.ndim * x + y\n", "x.ndim", "x.size"),
    "another keyword": ("def fn(x, y):\n    return x.var(dim=0) - x.sum(0)\n", "x.var", "x.std"),
    "a local renamed": ("def fn(x, y):\n    u = x * 2\n    v = y * 3\n    return u - v\n", "u - v", "v - u"),
    "another operator": ("def fn(x, y):\n    return x * 2 - y\n", "2 - y", "2 + y"),
    "another free variable": (
        "def around(a, b):\n    def fn(x, y):\n        return x * a - y * b\n    return fn\nfn = around(2.0, 3.0)\n",
        "x * a - y * b",
        "x * b - y * a",
    ),
    "an argument renamed": ("def fn(x, y):\n    return x * 2 - y\n", "x", "u"),
    "a free variable renamed": (
        "def around(one):\n    def fn(x, y):\n        return x * one - y\n    return fn\nfn = around(2.0)\n",
        "one",
        "two",
    ),
    "another lambda of the line": ("fn = lambda x, y: x.exp() - y\n", "exp", "sin"),
}


@pytest.mark.parametrize("name", EDITED)
def test_a_source_that_differs_in_names_only(tmp_path, name):
    """What the file says by now is not taken for what runs."""
    text, old, new = EDITED[name]
    path = tmp_path / "source.py"

    def load():
        names = {"torch": torch, "ONE": 1.5, "TWO": 2.5}
        exec(compile(path.read_text(), str(path), "exec"), names)
        linecache.cache.pop(str(path), None)
        return names["fn"]

    path.write_text(text)
    fn = load()
    assert guards.source_of(fn) is not None
    fn = load()  # another code object: nothing is kept of the first
    path.write_text(text.replace(old, new))
    linecache.cache.pop(str(path), None)
    with pytest.raises(Unproven, match="no longer what runs"):
        guards.source_of(fn)
    fast = fuse(fn)
    for _ in range(6):
        x, y = torch.randn(6), torch.randn(6)
        assert bits(fast(x, y)) == bits(fn(x, y))
    path.write_text(text)
    linecache.cache.pop(str(path), None)
    assert prove(load(), [guards.DATA, guards.DATA]) is not None


# ---- Kernels on disk.


@pytest.fixture
def copies(tmp_path, monkeypatch):
    """The headers in a folder of this test's, which both devices' keys are made from."""
    assert fuse.wait(200)  # no compilation needs the headers now
    shutil.copytree(compiler.headers(), tmp_path / "scalar")
    shutil.copytree(f"{cuda_kernels.kernels_folder()}/cuda/device", tmp_path / "cuda" / "device")
    monkeypatch.setattr(compiler, "headers", lambda: str(tmp_path / "scalar"))
    monkeypatch.setattr(cuda_kernels, "kernels_folder", lambda: str(tmp_path))
    monkeypatch.setattr(cuda_kernels.nvrtc, "version", lambda: "12.0")
    forget()
    yield tmp_path
    monkeypatch.undo()
    forget()


def forget():
    """As after the start of a process."""
    compiler.headers_digest.cache_clear()
    cuda_kernels.headers_digest.cache_clear()


def keys():
    forget()
    cc = compiler.Compiler(("cc",), "gcc 12")
    return compiler.key_of("source", "avx2", cc), cuda_kernels.key_of("source", "sm_90")


def edited(folder, suffix):
    path = sorted(folder.glob(f"*{suffix}"))[0]
    path.write_text(path.read_text()[:-1] + " ")  # as long as before


def renamed(folder, suffix):
    path = sorted(folder.glob(f"*{suffix}"))[0]
    path.rename(path.with_name(f"x{path.name}"))


def added(folder, suffix):
    (folder / f"new{suffix}").write_text("")


@pytest.mark.parametrize("change", [edited, renamed, added])
def test_a_kernel_of_an_older_version_is_not_found(copies, change):
    """The keys change with any header: of the scalar functions both devices', of CUDA's own its."""
    before = keys()
    assert keys() == before
    change(copies / "scalar", ".h")
    after = keys()
    assert after[0] != before[0] and after[1] != before[1]
    for suffix in (".cuh",):
        change(copies / "cuda" / "device", suffix)
        assert keys()[0] == after[0] and keys()[1] != after[1]


def test_the_digest_is_of_contents():
    assert len(cache.digest_of([compiler.headers()])) == 64
    assert cache.digest_of([compiler.headers()]) != cache.digest_of([])
