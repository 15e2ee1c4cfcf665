"""A few operators for each family of kernels, for tests that look at what is launched. Nothing need be computed but by
those that are CHECKED: a value that the others look at may be 0."""

import tinytorch as tt
from tinytorch.nn import functional as F
from tinytorch.nn.utils import clip_grad_norm_

#: These look at values, and raise errors if they are wrong.
CHECKED = {"multinomial", "counting", "sparse"}
HOT = 4  # runs after which fused mode has had its kernels compiled


def empty(*shape, dtype=None):
    return tt.empty(*shape, dtype=dtype, device="cuda")


def elementwise():
    x, half = empty(1000), empty(40, 30, dtype=tt.float16)
    _ = x * 2, x + x, x.exp(), tt.where(x > 0, x, -x), F.gelu(half.t()), half + empty(30), x.double().pow(0.5)
    _ = empty(7, dtype=tt.int64) // 3, empty(7, dtype=tt.bool) | empty(7, dtype=tt.bool)
    z = empty(1000, dtype=tt.complex64)
    _ = z * z, z.abs(), z.to(tt.complex128) * 2j, z.tanh()


def copy():
    _ = empty(50, 60)[:, ::2].contiguous(), empty(99).bfloat16(), empty(99, dtype=tt.int64).to(tt.bool)
    empty(5, 6).fill_(1.0)


def transpose():
    half = empty(70, 3, 80).half()
    _ = empty(50, 60).t().contiguous(), half.permute(2, 0, 1).contiguous(), empty(70, 80).t().to(tt.bool)


def reduce():
    x = empty(70, 3000)
    _ = x.sum(), x.sum(0), x.amax(1), x.max(0), x.var(1), x.double().prod(), x.half().mean(1), (x > 0).any(1)
    _ = x.argmin(), x.logsumexp(0), x.norm(), x.half().amax(0), (x > 0).all(0)
    long = empty(9_000_000, dtype=tt.float16)  # several blocks to a warp
    _ = long.sum(), long.argmax(), long.bool().all(), long.view(1000, 9000)[:, :8192].var(), long.float().max(0)
    z = empty(2_000_000, dtype=tt.complex64)
    _ = z.prod(), z.view(1000, 2000).sum(0), z.to(tt.complex128).mean(), z.sum()


def softmax():
    x = empty(30, 100)
    _ = x.softmax(1), x.half().log_softmax(1), empty(20, 5000).softmax(1)
    F.softmax(x.requires_grad_(), 1).backward(empty(30, 100))


def softmax_columns():
    _ = empty(30, 100).softmax(0), empty(5, 60, 70, dtype=tt.bfloat16).log_softmax(1)


def index():
    x, at = empty(50, 60), tt.zeros(7, dtype=tt.int64, device="cuda")
    _ = x[at], x[:, at], x.gather(0, at[:, None]), x.index_select(1, at)
    x[at] = 1.0


def segments():
    x, at = empty(50, 60), tt.zeros(7, dtype=tt.int64, device="cuda")
    x.index_add_(0, at, empty(7, 60))
    F.embedding(at, x.detach().half().requires_grad_()).sum().backward()


def radix():
    segments()
    empty(100_000).sort()


def join():
    _ = tt.cat([empty(5, 6), empty(7, 6)]), tt.stack([empty(9, dtype=tt.bool)] * 3, 1)


def rearrange():
    _ = empty(50, 60).flip(1), empty(99, dtype=tt.float16).roll(3)


def triangle():
    _ = empty(50, 60).tril(), empty(9, 9, dtype=tt.bool).triu(1)


def matmul_int():
    _ = empty(50, 60, dtype=tt.int64) @ empty(60, 7, dtype=tt.int64)


def conv():
    for dtype in (tt.float32, tt.float64, tt.bfloat16, tt.int64):
        _ = tt.conv2d(empty(2, 4, 8, 8, dtype=dtype), empty(6, 2, 3, 3, dtype=dtype), groups=2)
    x, w = empty(2, 4, 8).requires_grad_(), empty(6, 4, 3).requires_grad_()
    tt.conv1d(x, w).sum().backward()


def recurrent():
    for kind in ("RNN", "LSTM", "GRU"):
        layer = getattr(tt.nn, kind)(3, 4, dtype=tt.float32, device="cuda")
        layer(empty(5, 2, 3))[0].sum().backward()
    tt.nn.RNN(3, 4, nonlinearity="relu", dtype=tt.float64, device="cuda")(empty(5, 2, 3, dtype=tt.float64))


def _optimise(*kinds, **options):
    for kind in kinds:
        parameters = [empty(33).requires_grad_(), empty(4, 4).requires_grad_()]
        for p in parameters:
            p.grad = empty(*p.shape)
        kind(parameters, **options).step()


def optim():
    _optimise(tt.optim.SGD, tt.optim.Adam, tt.optim.AdamW, tt.optim.RMSprop, tt.optim.Adagrad, lr=0.1)


def optim_count():
    _optimise(tt.optim.Adam, tt.optim.RMSprop, lr=0.1, capturable=True)


def random():
    x = empty(1000)
    _ = tt.rand(99, device="cuda"), tt.randn(9, 9, device="cuda", dtype=tt.float16), x.bernoulli(), x.bernoulli(0.5)
    x.exponential_()
    _ = tt.randint(9, (99,), device="cuda")


def dropout():
    for dtype in (tt.float32, tt.bfloat16, tt.float64):
        F.dropout(empty(1000, dtype=dtype), 0.5)
    F.dropout(empty(1000)[1:], 0.5)


def range():
    _ = tt.arange(99, device="cuda"), tt.linspace(0, 1, 99, device="cuda"), tt.eye(9, device="cuda")


def multinomial():
    weights = tt.ones(5, 10, device="cuda")
    _ = weights.multinomial(3), weights.multinomial(30, replacement=True)


def variates():
    x = empty(1000)
    _ = tt._standard_gamma(x), tt._sample_dirichlet(x.view(10, 100)), tt.poisson(x), tt.binomial(x, x)


def permutation():
    tt.randperm(1000, device="cuda")


def norm():
    x, half = empty(30, 100).requires_grad_(), empty(30, 5000, dtype=tt.bfloat16)
    F.layer_norm(x, (100,), empty(100).requires_grad_(), empty(100)).backward(empty(30, 100))
    F.layer_norm(half, (5000,))
    F.layer_norm(empty(1, 5_000_000), (5_000_000,))


norm_weight = norm


def statistics():
    x = empty(70, 3000)
    _ = x.var(1), x.half().std(1), x.logsumexp(1), empty(40, 100).double().var(1), empty(20_000).std()


def class_loss():
    x, target = empty(30, 100).requires_grad_(), tt.zeros(30, dtype=tt.int64, device="cuda")
    F.cross_entropy(x, target).backward()
    F.nll_loss(empty(30, 100).half(), target)
    F.cross_entropy(empty(1, 5_000_000), target[:1])


class_total = class_loss


def rowsort():
    _ = empty(50, 60).sort(1), empty(9, 900).sort(1), empty(9, 4000, dtype=tt.int64).argsort(1, descending=True)


def sorted():
    _ = empty(5000, 3).sort(0), empty(100_000).mode(), empty(50_000, 3, dtype=tt.float16).sort(0)


def select():
    _ = empty(9, 900).topk(3), empty(9, 5000).kthvalue(7), empty(9000).topk(5), empty(9, 4000).median(1)


def scan():
    x = empty(50, 3000)
    many = empty(600, 1500, dtype=tt.float16)
    _ = many.cumsum(1), many.float().cumsum(1), x.half().cummax(1)
    _ = x.cumsum(1), x.cumsum(0), x.double().cumprod(1), x.half().logcumsumexp(1), x.cummax(1)
    z = empty(50, 3000, dtype=tt.complex64)
    _ = z.cumsum(1), z.cumprod(0), z.cumprod(1)


def compact():
    _ = empty(50, 60).nonzero()


def groups():
    empty(1000, dtype=tt.int64).unique(return_inverse=True, return_counts=True)


def search():
    _ = tt.searchsorted(empty(99), empty(7)), tt.isin(empty(99), empty(50))


def distinct():
    _ = empty(9000).unique(), empty(5000, dtype=tt.float64).unique_consecutive()


def counting():
    _ = tt.zeros(99, dtype=tt.int64, device="cuda").bincount(minlength=5), empty(99).histc(9, 0, 1)


def norms():
    for dtype in (tt.float32, tt.bfloat16):
        grads = [empty(30, 100).to(dtype), empty(7).to(dtype)]
        params = [g.clone().requires_grad_() for g in grads]
        for p, g in zip(params, grads):
            p.grad = g
        clip_grad_norm_(params, 1.0)


scale = norms


def mul_backward():
    for dtype in (tt.float32, tt.bfloat16):
        a, b = empty(1000).to(dtype).requires_grad_(), empty(1000).to(dtype).requires_grad_()
        (a * b).backward(empty(1000).to(dtype))


def pool():
    for dtype in (tt.float32, tt.bfloat16, tt.float64):
        x = empty(2, 3, 9, 12, dtype=dtype).requires_grad_()
        for image in (x, x.contiguous(memory_format=tt.channels_last)):
            F.max_pool2d(image, 3, 2, 1).sum().backward()
            F.avg_pool2d(image, (4, 2)).sum().backward()
    F.max_pool1d(empty(2, 3, 9), 2)
    _ = F.max_pool2d(empty(2, 3, 9, 9).to(tt.uint8), 2), F.avg_pool2d(empty(2, 3, 9, 9).long(), 2)
    F.adaptive_avg_pool3d(empty(2, 3, 9, 9, 5).requires_grad_(), (3, 2, 2)).sum().backward()
    F.adaptive_max_pool1d(empty(2, 3, 9).requires_grad_(), 4).sum().backward()
    F.fractional_max_pool2d(empty(2, 3, 9, 9).requires_grad_(), 2, 4).sum().backward()


def resample():
    for dtype in (tt.float32, tt.bfloat16, tt.float64):
        x = empty(2, 3, 9, 12, dtype=dtype).requires_grad_()
        for image in (x, x.contiguous(memory_format=tt.channels_last)):
            F.interpolate(image, scale_factor=2, mode="bilinear").sum().backward()
        F.interpolate(x, (5, 20), mode="bicubic", antialias=True).sum().backward()
    F.interpolate(empty(2, 3, 9).requires_grad_(), 3).sum().backward()
    F.interpolate(empty(2, 3, 9, 5, 4).requires_grad_(), (3, 7, 5), mode="trilinear").sum().backward()


resample_taps = resample


def unfold():
    for dtype in (tt.float32, tt.bfloat16, tt.complex64):
        F.unfold(empty(2, 3, 9, 12, dtype=dtype).requires_grad_(), 3, padding=1).backward(
            empty(2, 27, 108, dtype=dtype)
        )
    F.fold(empty(2, 4, 20, dtype=tt.bool), (5, 6), 2)


def batch_norm():
    for dtype in (tt.float32, tt.bfloat16, tt.float64):
        x, running = empty(4, 6, 20, 30, dtype=dtype), [empty(6), empty(6)]
        for image in (x, x.contiguous(memory_format=tt.channels_last)):
            out = F.batch_norm(image.requires_grad_(), *running, empty(6).requires_grad_(), empty(6), True)
            out.backward(out.detach())
    F.batch_norm(x.requires_grad_(), empty(6), empty(6)).sum().backward()


batch_running = batch_sums = batch_norm


def grid_sample():
    for dtype in (tt.float32, tt.bfloat16):
        x, grid = empty(2, 3, 9, 12, dtype=dtype).requires_grad_(), empty(2, 4, 5, 2, dtype=dtype).requires_grad_()
        F.grid_sample(x, grid, align_corners=True).sum().backward()
        F.grid_sample(x, grid, "bicubic", "reflection").sum().backward()
    F.grid_sample(empty(2, 3, 9, 5, 4), empty(2, 4, 5, 6, 3), "nearest", "border")


def sparse():
    places = tt.zeros(2, 5, dtype=tt.int64, device="cuda")
    for dtype in (tt.float32, tt.float64):
        values, dense = empty(5, dtype=dtype).requires_grad_(), empty(4, 6, dtype=dtype).requires_grad_()
        (tt.sparse_coo_tensor(places, values, (3, 4)) @ dense).sum().backward()


def fused():
    x, y = empty(300, 400), empty(400)
    for _ in [None] * HOT:
        with tt.fuse():
            _ = (x * y + 1).exp().tanh() - x
        with tt.fuse():
            e = (x - x.amax(1, keepdim=True)).exp()
            _ = e / e.sum(1, keepdim=True)
        with tt.fuse():
            _ = ((x.half() + 1) * 2).sum(0)
        tt.fuse.wait()


def _large(dtype=tt.float32):
    return empty(150, 150, dtype=dtype)


def stack():
    for dtype in (tt.float32, tt.complex128):
        a = _large(dtype)
        _ = tt.linalg.cholesky(a), tt.linalg.inv_ex(a), tt.linalg.eig(a), tt.linalg.lu(a), tt.linalg.svd(a)
        _ = tt.linalg.lu_solve(*tt.linalg.lu_factor_ex(a)[:2], a), tt.linalg.lu_factor_ex(a, pivot=False)


def ldl():
    for dtype in (tt.float32, tt.complex128):
        a = empty(5, 5, dtype=dtype)
        _ = tt.linalg.ldl_solve(*tt.linalg.ldl_factor(a), a)
        tt.linalg.ldl_solve(*tt.linalg.ldl_factor(a, hermitian=True), a, hermitian=True)


def small():
    for dtype in (tt.float32, tt.complex128):
        a = empty(2, 40, 40, dtype=dtype)
        _ = tt.linalg.cholesky(a), tt.linalg.inv(a), tt.linalg.solve(a, a), tt.linalg.qr(a), tt.linalg.qr(a, "r")
        _ = tt.cholesky_inverse(a), tt.geqrf(a), tt.linalg.solve_triangular(a, a, upper=True)


def tiny():
    for dtype in (tt.float32, tt.float64, tt.complex64):
        for n in (5, 12, 32):
            a = empty(2, n, n, dtype=dtype)
            _ = tt.linalg.cholesky(a), tt.linalg.inv(a), tt.linalg.solve(a, a)
            tt.linalg.lu_solve(*tt.linalg.lu_factor(a), a)


def jacobi():
    for dtype in (tt.float32, tt.complex128):
        a = empty(2, 5, 5, dtype=dtype)
        _ = tt.linalg.svd(a), tt.linalg.svdvals(a), tt.linalg.eigh(a), tt.linalg.eigvalsh(a)


def _attention(dtype=tt.float32, width=16, out_width=24, rows=40, keys=70, **how):
    sizes = (2, 4, rows, width), (2, 2, keys, width), (2, 2, keys, out_width)
    q, k, v = (empty(*size, dtype=dtype).requires_grad_() for size in sizes)
    out = F.scaled_dot_product_attention(q, k, v, enable_gqa=True, **how)
    out.backward(empty(*out.shape, dtype=dtype))


def attention():
    for dtype in tt.float32, tt.float64, tt.bfloat16:
        for width in 64, 96, 256:
            _attention(dtype, width, width)
    _attention(dropout_p=0.5, is_causal=True)
    _attention(width=15, attn_mask=empty(40, 70))
    _attention(attn_mask=empty(40, 70, dtype=tt.bool))


attention_query = attention_key = attention


def attention_wgmma():
    for dtype in tt.float16, tt.bfloat16:
        for width in 64, 128:
            _attention(dtype, width, width)
