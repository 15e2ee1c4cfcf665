"""Tensors of more elements than 32 bits number. Only on a GPU with room for them."""

import gc

import pytest
import tinytorch as tt
from gpu.emulator import Emulator
from tinytorch import cuda

N = (1 << 31) + 4098
ROOM = 48 << 30
ROWS, WIDTH = (1 << 16) + 3, 1 << 15


@pytest.fixture(autouse=True)
def room(gpu):
    """Enough memory, given back afterwards."""
    if isinstance(gpu, Emulator):
        pytest.skip("needs a GPU")
    gc.collect()
    cuda.empty_cache()
    if cuda.mem_get_info()[0] < ROOM:
        pytest.skip(f"needs {ROOM >> 30} GiB of a GPU's memory")
    yield
    gc.collect()
    cuda.empty_cache()


def ones(n=N, dtype=tt.uint8):
    return tt.ones(n, dtype=dtype, device="cuda")


def marked(dtype=tt.uint8):
    """Ones, but for three elements: the first, the last, and the first that needs more than 31 bits."""
    x = ones(dtype=dtype)
    x[0], x[-1], x[1 << 31] = 2, 7, 5
    return x


def marks(x):
    """Those three, and how many elements are equal to the second one."""
    return [x[0].item(), x[-1].item(), x[1 << 31].item(), (x == x[1]).sum().item()]


@pytest.mark.parametrize("dtype", [tt.uint8, tt.float16])
def test_elementwise(dtype):
    x = marked(dtype)
    assert marks(x + 1) == [3, 8, 6, N - 3]
    assert marks(tt.where(x > 1, x, -x if dtype.is_signed else x)) == [2, 7, 5, N - 3]
    x.mul_(2)
    assert marks(x) == [4, 14, 10, N - 3]


def test_strided_elementwise():
    x = marked()
    pairs = x.reshape(2, N // 2).t()  # a walk of steps of N / 2 elements
    y = pairs + pairs.flip(1)
    assert y.shape == (N // 2, 2) and y[0].tolist() == [3, 3] and y[-1].tolist() == [8, 8]
    every = x[::2] * 3
    assert every[0].item() == 6 and every[1 << 30].item() == 15
    assert every.sum(dtype=tt.int64).item() == 3 * (N // 2) + 15
    wide = tt.ones(1, dtype=tt.uint8, device="cuda").expand(N) + x  # one operand has steps of 0
    assert marks(wide) == [3, 8, 6, N - 3]


def test_reductions():
    x = marked()
    assert x.sum().item() == N + 1 + 6 + 4 and (x > 1).sum().item() == 3
    assert x.amax().item() == 7 and x.argmax().item() == N - 1 and x.argmin().item() == 1
    assert x.reshape(2, N // 2).sum(1).tolist() == [N // 2 + 1, N // 2 + 10]
    columns = x.reshape(N // 2, 2).sum(0)
    assert columns.tolist() == [N // 2 + 1 + 4, N // 2 + 6]
    assert x.reshape(2, N // 2).amax(0)[-1].item() == 7
    assert ones(dtype=tt.float16).mean(dtype=tt.float32).item() == 1.0


def test_copies():
    x = marked()
    assert marks(x.clone()) == [2, 7, 5, N - 3] and marks(x.to(tt.float16)) == [2, 7, 5, N - 3]
    turned = x.reshape(2, N // 2).t().contiguous()
    assert turned[-1].tolist() == [1, 7] and turned.sum(dtype=tt.int64).item() == x.sum().item()
    assert x.flip(0)[0].item() == 7 and x.roll(1)[0].item() == 7
    assert x[1 << 31 :].cpu().tolist()[:2] == [5, 1] and x[-3:].tolist() == [1, 1, 7]
    x[1 << 31 :].fill_(9)
    assert (x == 9).sum().item() == N - (1 << 31)


def test_indices():
    x = marked()
    at = tt.tensor([0, N - 1, 1 << 31, 5, -1], device="cuda")
    assert x[at].tolist() == [2, 7, 5, 1, 7] and x.index_select(0, at[:4]).tolist() == [2, 7, 5, 1]
    assert x.gather(0, at[:4]).tolist() == [2, 7, 5, 1] and x.take(at[:4]).tolist() == [2, 7, 5, 1]
    assert (x > 1).nonzero().flatten().tolist() == [0, 1 << 31, N - 1] and x[x > 1].tolist() == [2, 5, 7]
    x[at[1:3]] = tt.tensor([8, 9], dtype=tt.uint8, device="cuda")
    assert marks(x) == [2, 8, 9, N - 3]
    x.index_add_(0, at[:3], tt.tensor([1, 1, 1], dtype=tt.uint8, device="cuda"))
    assert marks(x) == [3, 9, 10, N - 3]
    x.masked_fill_(x > 8, 1)
    assert marks(x) == [3, 1, 1, N - 1]
    rows = x.reshape(N // 2, 2)
    assert rows[tt.tensor([0, N // 2 - 1], device="cuda")].tolist() == [[3, 1], [1, 1]]


def test_joining():
    x = marked()
    both = tt.cat([x, x[:10], x])
    assert both.numel() == 2 * N + 10 and both[N].item() == 2 and both[-1].item() == 7 and both[N + 9].item() == 1
    assert both[N + 10 + (1 << 31)].item() == 5 and both.sum().item() == 2 * x.sum().item() + 11
    side = tt.stack([x, x + 1], 1)
    assert side[1 << 31].tolist() == [5, 6] and side[-1].tolist() == [7, 8]
    parts = x.chunk(2)
    assert parts[1][-1].item() == 7 and parts[1].numel() == N // 2


def test_softmax_and_norm_of_rows():
    x = tt.zeros(ROWS, WIDTH, dtype=tt.float16, device="cuda")
    few = tt.tensor([0, 1 << 15, 1 << 16, ROWS - 1])
    tt.manual_seed(0)
    given = tt.randn(len(few), WIDTH).half()
    x[few.cuda()] = given.cuda()
    for f in (lambda t: t.softmax(1), lambda t: tt.nn.functional.layer_norm(t, (WIDTH,)), lambda t: t.cumsum(1)):
        y = f(x)
        assert tt.equal(y[few.cuda()].cpu(), f(given))
        del y
    assert tt.equal(x.sum(1)[few.cuda()].cpu(), given.sum(1)) and tt.equal(x.amax(1)[few.cuda()].cpu(), given.amax(1))


def test_scan():
    sums = marked().cumsum(0)
    assert sums[-1].item() == N + 11 and sums[1 << 31].item() == (1 << 31) + 1 + 1 + 4 and sums[5].item() == 7


def test_random_numbers():
    tt.manual_seed(0)
    x = tt.empty(N, dtype=tt.float16, device="cuda").uniform_()
    tail, head = x[1 << 31 :].float(), x[: N - (1 << 31)].float()
    assert 0.45 < tail.mean().item() < 0.55 and not tt.equal(tail, head) and x.amax().item() < 1


def test_fused_mode():
    x = marked()
    for _ in range(4):
        with tt.fuse():
            y = (x + 1) * 2
            total = (x * 2).sum()
        tt.fuse.wait()
        assert marks(y) == [6, 16, 12, N - 3] and total.item() == 2 * (N + 11)


def test_optimizer_and_clipping():
    p = tt.zeros(N, dtype=tt.bfloat16, device="cuda").requires_grad_()
    p.grad = tt.ones(N, dtype=tt.bfloat16, device="cuda")
    norm = tt.nn.utils.clip_grad_norm_([p], 1e9)
    assert norm.item() == pytest.approx(N**0.5, rel=1e-2)
    tt.optim.SGD([p], lr=0.5).step()
    assert marks(p.detach()) == [-0.5, -0.5, -0.5, N]
