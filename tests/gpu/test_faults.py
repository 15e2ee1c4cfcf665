"""Divisions of integers by zero that only a kernel can see: raised where the CPU next waits for the device."""

import pytest
import tinytorch as tt
from tinytorch import cuda

pytestmark = pytest.mark.usefixtures("gpu")

ZERO = r"^{}: ZeroDivisionError: integer division by zero \(found by a CUDA kernel"


def integers(*values, dtype=tt.int32):
    return tt.tensor(values, dtype=dtype, device="cuda")


@pytest.mark.parametrize(
    "name, divide",
    [
        ("floor_divide", lambda a, b: a // b),
        ("remainder", lambda a, b: a % b),
        ("fmod", tt.fmod),
        ("trunc_divide", lambda a, b: tt.div(a, b, rounding_mode="trunc")),
        ("floor_divide", lambda a, b: 7 // b),
        ("remainder", lambda a, b: a.remainder_(b)),
        ("floor_divide", lambda a, b: a // b[1]),
    ],
)
def test_division_by_zero(name, divide):
    a, b = integers(5, -5, 6), integers(2, 0, 3)
    divide(a, b)
    with pytest.raises(RuntimeError, match=ZERO.format(name)):
        cuda.synchronize()
    cuda.synchronize()  # once only
    assert (a + 1).numel() == 3


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int64"])
def test_wherever_it_is(dtype):
    dtype = getattr(tt, dtype)
    for size, at in ((1, 0), (600, 599), (5000, 17)):
        b = tt.ones(size, dtype=dtype)
        b[at] = 0
        b = b.cuda()
        tt.ones(size, dtype=dtype, device="cuda") // b
        with pytest.raises(RuntimeError, match=ZERO.format("floor_divide")):
            b.cpu()
    strided = tt.ones(6, 4, dtype=dtype).cuda().t()
    strided[2, 3] = 0
    integers(1, 2, 3, 4, 5, 6, dtype=dtype) % strided
    with pytest.raises(RuntimeError, match=ZERO.format("remainder")):
        strided[0, 0].item()


def test_what_is_no_division_by_zero():
    a, b = integers(5, -5, 6), integers(2, 0, 3)
    assert (a / b).tolist()[1] == float("-inf") and (a.float() // b).tolist()[1] == float("-inf")
    assert (b // a).tolist() == [0, 0, 0] and (a * b).tolist() == [10, 0, 18]
    with pytest.raises(RuntimeError, match="^floor_divide: ZeroDivisionError: integer division by zero$"):
        a // 0
    cuda.synchronize()


@pytest.mark.parametrize("shapes", [((0,), ()), ((0,), (1,)), ((0, 3), (3,)), ((2, 0), (2, 1)), ((3,), (0, 3))])
def test_without_elements_nothing_is_divided(shapes):
    """As in PyTorch, on the CPU too."""
    shape = tt.broadcast_shapes(*shapes)
    for device in ("cpu", "cuda"):
        a, b = (tt.zeros(s, dtype=tt.int64, device=device) for s in shapes)
        out = tt.empty(shape, dtype=tt.int64, device=device)
        quotients = [
            a // b,
            a % b,
            tt.fmod(a, b),
            tt.div(a, b, rounding_mode="trunc"),
            tt.floor_divide(a, b, out=out),
            out // 0,
        ]
        assert all(q.shape == shape and q.dtype == tt.int64 for q in quotients)
        assert a.clone().expand(shape).clone().floor_divide_(b).shape == shape
    cuda.synchronize()
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        tt.ones(1, dtype=tt.int64) // 0


def test_in_fused_mode():
    a, b = integers(5, -5, 6), integers(2, 0, 3)
    with tt.fuse():
        c = (a + 1) // (b * 2) + 1
        with pytest.raises(RuntimeError, match=ZERO.format("floor_divide")):
            c.sum().item()

    @tt.fuse
    def f(x, y):
        return (x + 1) % y * 2

    for divisor, fails in ((b + 1, False), (b + 1, False), (b, True), (b, True), (b + 2, False)):
        out = f(a, divisor)
        if fails:
            with pytest.raises(RuntimeError, match=ZERO.format("remainder")):
                out.cpu()
        else:
            assert out.tolist() == ((a + 1) % divisor * 2).tolist()
