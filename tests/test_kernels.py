"""The C side by itself: instruction sets, threads, caches, refusals. Run once more under the sanitizers in CI."""

import pathlib
import struct
import sys
import threading
import time

import numpy as np
import pytest
import tinytorch as tt
from tinytorch.backends import _cpu
from tinytorch.backends.cpu import lib
from tinytorch.fuse.flags import ISAS as flags_of
from tinytorch.ops.declare import Elementwise

DISPATCH = pathlib.Path(__file__).resolve().parents[1] / "kernels" / "cpu" / "dispatch.c"
ISAS = ["baseline", "avx2", "avx512"]
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    np.inf,
    -np.inf,
    np.nan,
    1e-45,
    -1e-40,
    3.4e38,
    -3.4e38,
    88.8,
    -103.0,
    1e5,
    2.0**30,
]


@pytest.fixture
def keep_isa():
    before = lib.tt_isa_name()
    yield
    lib.tt_set_isa(before)


def available():
    before = lib.tt_isa_name()
    names = [n for n in ISAS if lib.tt_set_isa(n.encode()) == 0]
    lib.tt_set_isa(before)
    return names


def operands(dtype, count):
    rng = np.random.default_rng(0)
    for k in range(count):
        if np.issubdtype(dtype, np.complexfloating):
            parts = [np.concatenate([rng.permutation(np.repeat(SPECIAL, 8)), rng.standard_normal(3000)]) for _ in "xy"]
            with np.errstate(over="ignore"):
                values = np.stack(parts, -1).astype(dtype(0).real.dtype).view(dtype).ravel()
        elif np.issubdtype(dtype, np.floating):
            with np.errstate(over="ignore"):
                values = np.concatenate([rng.permutation(SPECIAL), rng.standard_normal(3000) * 10.0 ** (k + 1)])
        elif dtype is np.bool_:
            values = rng.integers(0, 2, 3016)
        else:
            values = rng.integers(1, 100, 3016)
        yield tt.from_numpy(np.ascontiguousarray(values.astype(dtype)))


def test_halves_are_converted_alike_on_every_instruction_set(keep_isa):
    """Every float16, and floats of every exponent about the places where rounding changes, NaNs' payloads too."""
    halves = tt.from_numpy(np.arange(1 << 16, dtype=np.uint16).view(np.float16))
    low = np.array([0, 1, 0x0FFF, 0x1000, 0x1001, 0x1FFF, 0x2000, 0x3000, 0x7FE000, 0x7FF000, 0x7FFFFF], np.uint32)
    bits = (np.arange(512, dtype=np.uint32)[:, None] << 23 | low).ravel()
    floats = tt.from_numpy(bits.view(np.float32))
    results = []
    for isa in available():
        assert lib.tt_set_isa(isa.encode()) == 0
        wide, narrow = halves.float().view(tt.int32), [floats[k:].half().view(tt.int16) for k in (0, 5)]
        results.append(b"".join(x.numpy().tobytes() for x in (wide, *narrow)))
    assert all(r == results[0] for r in results)
    assert np.array_equal(halves.float().numpy(), np.arange(1 << 16, dtype=np.uint16).view(np.float16), equal_nan=True)


@pytest.mark.skipif(not DISPATCH.is_file(), reason="the C sources are not here")
def test_the_cpu_is_asked_for_all_that_the_compiler_may_use():
    dispatch = DISPATCH.read_text()
    names = {flag[2:] for flags in flags_of.values() for flag in flags if "=" not in flag}
    assert {n for n in names if f'"{n}"' not in dispatch and f"bit_{n.upper()}" not in dispatch} == set()


@pytest.mark.parametrize("name", sorted(Elementwise.TABLE))
def test_same_bits_on_every_instruction_set(name, keep_isa):
    info = Elementwise.TABLE[name]
    for dtype in (
        np.float32,
        np.float64,
        np.float16,
        np.int8,
        np.uint8,
        np.int16,
        np.int32,
        np.int64,
        np.bool_,
        np.complex64,
        np.complex128,
    ):
        args = list(operands(dtype, len(info.params)))
        if name in ("where", "masked_scale"):
            args[0] = args[0] != 0
        results = []
        for isa in available():
            assert lib.tt_set_isa(isa.encode()) == 0
            try:
                got, last = (info.slow(tuple(a)).numpy() for a in (args, [a[-13:] for a in args]))
                if got.dtype.kind == "c":
                    got, last = (x.view(x.real.dtype) for x in (got, last))
                if got.dtype.kind == "f":  # a NaN's sign and payload are not promised
                    got[np.isnan(got)] = last[np.isnan(last)] = np.nan
                assert got[-len(last) :].tobytes() == last.tobytes(), f"{name} of {np.dtype(dtype).name}"
                results.append(got.tobytes())
            except (RuntimeError, TypeError) as exc:
                assert "not implemented" in str(exc) or "not supported" in str(exc)
                results.append(None)
        assert all(r == results[0] for r in results), f"{name} of {np.dtype(dtype).name} differs"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "m,k,n", [(2, 385, 17), (3, 64, 64), (7, 40, 529), (8, 769, 49), (13, 384, 1100), (100, 300, 130), (530, 33, 16)]
)
def test_products_in_strips(keep_isa, m, k, n, dtype):
    """Every way in which the operands may lie, tiles that are not full, several slices, and what is added; within the
    bound of sums in any order: Higham 2002, "Accuracy and Stability of Numerical Algorithms", 3.5."""
    rng = np.random.default_rng(m * n)
    a, b, c = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n), (m, n)))
    bound = np.abs(a).astype(np.float64) @ np.abs(b) * (k + 3) * np.finfo(dtype).eps / 2
    exact = a.astype(np.longdouble) @ b.astype(np.longdouble)
    for isa in available():
        assert lib.tt_set_isa(isa.encode()) == 0
        for left in (tt.tensor(a), tt.tensor(a.T.copy()).t(), tt.tensor(np.pad(a, 3))[3:-3, 3:-3]):
            for right in (tt.tensor(b), tt.tensor(b.T.copy()).t(), tt.tensor(np.pad(b, 1))[1:-1, 1:-1]):
                assert (np.abs((left @ right).numpy() - exact) <= bound).all()
                for alpha, beta in ((1, 1), (-1.5, 0.5), (2, 0)):
                    for added in (c, c[0]):
                        got = tt.addmm(tt.tensor(added), left, right, alpha=alpha, beta=beta).numpy()
                        room = 2 * bound * abs(alpha) + 4 * np.finfo(dtype).eps * (np.abs(exact) * 2 + np.abs(added))
                        assert (np.abs(got - (alpha * exact + beta * added)) <= room).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_that_share_a_product(keep_isa, dtype):
    """More threads than there are cores: each finds that others have done a part of its tile."""
    rng = np.random.default_rng(3)
    before = tt.get_num_threads()
    try:
        for m, k, n in ((700, 800, 600), (100, 1500, 700)):
            a, b = (
                tt.tensor(rng.standard_normal((m, k)).astype(dtype)),
                tt.tensor(rng.standard_normal((k, n)).astype(dtype)),
            )
            row, full = tt.tensor(rng.standard_normal(n).astype(dtype)), tt.ones(m, n, dtype=a.dtype)
            lefts, rights = (a, a.t().contiguous().t()), (b, b.t().contiguous().t())
            for isa in available():
                assert lib.tt_set_isa(isa.encode()) == 0
                results = []
                for threads in (1, 5, 16, 16):
                    tt.set_num_threads(threads)
                    found = [
                        added
                        for x in lefts
                        for y in rights
                        for added in (x @ y, tt.addmm(row, x, y), tt.addmm(full, x, y, beta=0.5))
                    ]
                    results.append([r.numpy().tobytes() for r in found])
                assert all(r == results[0] for r in results)
    finally:
        tt.set_num_threads(before)


def test_an_unknown_instruction_set_is_refused():
    assert lib.tt_set_isa(b"mmx") == -1


def norm_gradients(x):
    """Of a layer_norm's weight and bias."""
    weight, bias = (tt.ones(x.shape[1], dtype=x.dtype, requires_grad=True) for _ in range(2))
    return tt.autograd.grad(tt.nn.functional.layer_norm(x, x.shape[1:], weight, bias), (weight, bias), x + 1)


def test_results_do_not_depend_on_the_number_of_threads():
    x = tt.from_numpy(np.random.default_rng(1).standard_normal((517, 1031)).astype(np.float32))
    columns = [x[:, :200].contiguous(), x.reshape(1031, 517)[:, :258].contiguous(), x.half(), x.double()]
    before, results = tt.get_num_threads(), []
    try:
        for n in (1, 2, 7, 16):
            tt.set_num_threads(n)
            y = (x.t() * 1.5).exp() + x[:1].t()
            results.append(
                (
                    y.numpy().tobytes(),
                    y.sum().item(),
                    y.sum(0).numpy().tobytes(),
                    y.sum(1).numpy().tobytes(),
                    (x @ x.t()).numpy().tobytes(),
                    (x.t() @ x).numpy().tobytes(),
                    (x.double() @ x.double().t()).numpy().tobytes(),
                    *(made.numpy().tobytes() for a in columns for made in (a.sum(0), a.amax(0), *norm_gradients(a))),
                )
            )
    finally:
        tt.set_num_threads(before)
    assert all(r == results[0] for r in results)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_sum_begins_with_what_leaves_every_element_as_it_is(dtype):
    for shape in ((1,), (3,), (40, 50), (5000,), (3, 70_000)):
        x = tt.full(shape, -0.0, dtype=getattr(tt, dtype))
        for total in (x.sum(), x.sum(0), x.sum(-1), x.nansum(), x.t().sum(0) if len(shape) == 2 else x.mean()):
            assert np.signbit(total.double().numpy()).all(), shape


def test_blocks_return_to_the_caches_from_any_thread():
    before = tt.cpu.memory_allocated()
    kept = []

    def work():
        kept.extend(tt.ones(n) for n in (1, 100, 5000, 300_000))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert tt.cpu.memory_allocated() > before
    kept.clear()
    assert tt.cpu.memory_allocated() == before
    tt.cpu.empty_cache()
    stats = tt.cpu.memory_stats()
    assert stats["reserved_bytes.all.current"] >= stats["allocated_bytes.all.current"]
    assert stats["allocated_bytes.all.peak"] >= before


def test_scratch_memory_of_threads_that_ended_is_given_back():
    """A thread keeps the last block that a product has worked in."""
    a, b = tt.ones(100, 100), tt.ones(600, 600)

    def work():
        for x in (a, b, a, b):
            x @ x

    def reserved():
        tt.cpu.empty_cache()
        return tt.cpu.memory_stats()["reserved_bytes.all.current"]

    before = tt.get_num_threads()
    tt.set_num_threads(1)
    work()
    held = reserved()
    for _ in range(4):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    end = time.monotonic() + 10  # the last one may still be ending
    while reserved() != held and time.monotonic() < end:
        time.sleep(0.01)
    tt.set_num_threads(before)
    assert reserved() == held


def test_out_of_memory_names_the_size():
    with pytest.raises(tt.OutOfMemoryError, match=str(4 * 2**45)):
        tt.empty(2**45)
    with pytest.raises(RuntimeError, match="overflow"):
        tt.empty(2**40, 2**40)


def test_peak_follows_reset():
    tt.cpu.reset_peak_memory_stats()
    base = tt.cpu.max_memory_allocated()
    big = tt.ones(1_000_000)
    del big
    assert tt.cpu.max_memory_allocated() >= base + 4_000_000


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_half_converts_there_and_back(dtype):
    bits = np.arange(65536, dtype=np.uint16).view(np.int16)
    half = tt.from_numpy(bits).view(getattr(tt, dtype))
    back = half.to(tt.float32).to(getattr(tt, dtype))
    same = half.view(tt.int16) == back.view(tt.int16)
    assert bool((same | half.isnan()).all())
    if dtype == "float16":
        want = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
        np.testing.assert_array_equal(half.to(tt.float32).numpy(), want)


def test_rounding_to_half_matches_numpy():
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.standard_normal(200_000) * 10.0 ** rng.integers(-9, 6, 200_000), SPECIAL]).astype(
        np.float32
    )
    with np.errstate(over="ignore"):
        want = x.astype(np.float16)
    np.testing.assert_array_equal(tt.from_numpy(x).to(tt.float16).numpy(), want)


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.int32, np.float32, np.float64], ids=str)
@pytest.mark.parametrize(
    "shape,order",
    [
        ((64, 64), (1, 0)),
        ((8, 8), (1, 0)),
        ((7, 200), (1, 0)),
        ((131, 65), (1, 0)),
        ((3, 70, 9), (0, 2, 1)),
        ((5, 64, 3, 130), (2, 3, 0, 1)),
        ((2, 67, 5, 4, 66), (4, 2, 0, 3, 1)),
        ((300, 400), (1, 0)),
    ],
    ids=str,
)
def test_transposed_copies(dtype, shape, order):
    """Tile by tile where the operands are dense along different dimensions, from and to any layout."""
    a = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    x = tt.from_numpy(a)
    wanted = np.ascontiguousarray(a.transpose(order))
    assert np.array_equal(x.permute(order).contiguous().numpy(), wanted)
    out = tt.full(shape, 7, dtype=x.dtype).permute(order)  # written along its own dimensions
    out.copy_(tt.from_numpy(wanted))
    assert np.array_equal(out.numpy(), wanted)
    wide = tt.full((*wanted.shape[:-1], wanted.shape[-1] + 5), 7, dtype=x.dtype)  # into a part: nothing else is touched
    wide[..., 2:-3] = x.permute(order)
    assert np.array_equal(wide[..., 2:-3].numpy(), wanted)
    assert (wide[..., :2] == 7).all() and (wide[..., -3:] == 7).all()


@pytest.mark.parametrize("k", [300, 1666, 3000])
def test_topk_keeps_the_order_of_equal_elements(k):
    x = np.random.default_rng(0).integers(0, 40, 5000)
    expected = np.argsort(-x, kind="stable")[:k]
    for values in (x, x.astype("float32")):
        np.testing.assert_array_equal(tt.tensor(values).topk(k).indices.numpy(), expected)


def test_isin_among_nans():
    nan = float("nan")
    found = tt.isin(tt.tensor([1.0, 2.0, nan, 0.0]), tt.tensor([nan, 2.0, 1.0, nan]))
    assert found.tolist() == [True, True, False, False]


@pytest.mark.skipif(sys.platform != "linux" or sys.maxsize < 2**32, reason="reads a 64-bit ELF file")
def test_what_belongs_to_a_thread_is_little():
    """glibc has about 512 bytes for all libraries that are loaded late and want theirs at hand: see build.py."""
    with open(_cpu.__file__, "rb") as file:
        header = file.read(64)
        offset, (size, number) = struct.unpack_from("=Q", header, 32)[0], struct.unpack_from("=HH", header, 54)
        file.seek(offset)
        segments = [struct.unpack("=IIQQQQQQ", file.read(size)[:56]) for _ in range(number)]
    (thread,) = [memory for kind, _, _, _, _, _, memory, _ in segments if kind == 7]  # PT_TLS
    assert 0 < thread <= 432


@pytest.mark.parametrize("dtype", [tt.float16, tt.bfloat16, tt.float32, tt.float64])
@pytest.mark.parametrize(
    "exponent, same",
    [
        (2, lambda x: x * x),
        (2.0, lambda x: x * x),
        (0.5, lambda x: x.sqrt()),
        (-1, lambda x: x.reciprocal()),
        (-0.5, lambda x: x.rsqrt()),
        (1, lambda x: x),
        (True, lambda x: x),
        (3, lambda x: (x.float() * x.float() * x.float()).to(x.dtype) if x.dtype is not tt.float64 else x * x * x),
    ],
)
def test_powers_that_other_operators_compute(dtype, exponent, same):
    """Of all values, everywhere the same: as a method, in place, into a tensor, in fused mode; with pow's gradient."""
    x = tt.tensor([-0.0, 0.0, float("inf"), -float("inf"), float("nan"), 2.0, -3.0, 1.7, 1e-3, 1e3] * 9, dtype=dtype)
    expected = same(x)
    written, into = x.clone(), tt.empty_like(x)
    written.pow_(exponent)
    tt.pow(x, exponent, out=into)
    with tt.fuse():
        fused = x**exponent
    for found in (x**exponent, x[::2] ** exponent, written, into, fused):
        want = expected if found.shape == x.shape else same(x[::2])
        assert found.dtype is dtype and tt.equal(found.nan_to_num(7.0), want.nan_to_num(7.0))
        assert tt.equal(found.signbit() & (found == 0), want.signbit() & (want == 0))
    y = x[5:6].float().requires_grad_()
    result = y**exponent
    assert result.grad_fn.name() == "PowBackward0"
    (g,) = tt.autograd.grad(result, y, create_graph=True)
    assert abs(g.item() - exponent * 2.0 ** (exponent - 1)) < 1e-6
    (h,) = tt.autograd.grad(g, y) if exponent not in (1, True) else (y.new_zeros(1),)
    assert abs(h.item() - exponent * (exponent - 1) * 2.0 ** (exponent - 2)) < 1e-6


def test_integers_have_their_own_powers():
    x = tt.tensor([-3, 0, 5])
    assert (x**2).tolist() == [9, 0, 25] and (x**2.0).dtype is tt.float32
    with pytest.raises(RuntimeError, match="negative integer powers"):
        x**-1
