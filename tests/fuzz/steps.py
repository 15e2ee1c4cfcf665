"""Steps of training that other fuzzers break off: each returns numbers that tell whether it did its work."""

import io

import tinytorch as tt
from tinytorch import nn, optim
from tinytorch.nn import functional as F
from tinytorch.utils.checkpoint import checkpoint


def data(*shape):
    n = 1
    for size in shape:
        n *= size
    return (tt.arange(n).remainder(7).float() - 3).reshape(shape) / 4


def network(seed=0):
    tt.manual_seed(seed)
    return nn.Sequential(nn.Embedding(11, 8), nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 5))


def train(steps=2):
    """A network with an embedding, normalisation, two products; Adam; gradients clipped."""
    net = network()
    optimizer = optim.AdamW(net.parameters(), lr=0.01)
    target = tt.arange(6) % 5
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(tt.arange(6)), target)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    return [loss.item(), *(p.sum().item() for p in net.parameters())]


def fused():
    with tt.fuse():
        return train()


def second():
    """A gradient's gradient, views written with recorded values, a hook."""
    x = data(6, 5).requires_grad_()
    y = x * 2
    y[1:3].mul_(x[1:3].sin())
    (g,) = tt.autograd.grad((y * y).softmax(1)[:, 0].sum(), x, create_graph=True)
    g.register_hook(lambda g: g * 2)
    (g * g).sum().backward()
    return x.grad.flatten().tolist()


def several():
    """Sorting, indexing, joining, sums, products of matrices, decompositions, random numbers."""
    tt.manual_seed(1)
    a, b = data(40, 40), tt.rand(40, 40)
    found = [
        a.sort(0)[0].sum(),
        (a @ b).sum(),
        tt.cat([a, b[a > 0][None, :40].expand(3, 40)]).mean(),
        a.cumsum(1).amax(),
    ]
    found += [b.topk(3)[0].sum(), a.unique().sum(), tt.einsum("ij,kj->ik", a, b).var(), b.median(), b.nonzero().sum()]
    found += [tt.linalg.svdvals(b).sum(), tt.linalg.solve(b + 40 * tt.eye(40), a).sum(), a.to(tt.float16).sum().float()]
    found += [F.conv1d(data(2, 3, 30), data(4, 3, 5)).sum(), b.gather(1, (a > 0).long()).sum(), b.flip(0)[3].sum()]
    return [t.item() for t in found]


def layers():
    """Convolutions, pooling, resampling, blocks of images, attention, recurrence, a transform: forward and back."""
    tt.manual_seed(2)
    x = data(2, 3, 8, 8).requires_grad_()
    y = F.max_pool2d(F.conv2d(x, data(4, 3, 3, 3), padding=1), 2, return_indices=True)[0]
    y = F.interpolate(F.avg_pool2d(y, 2), size=(6, 6), mode="bilinear")
    heads = F.unfold(y, 3).reshape(2, 4, 9, 16)
    y = F.scaled_dot_product_attention(heads, heads, heads)
    y, _ = tt.nn.GRU(16, 16)(y.flatten(0, 1))
    y = tt.fft.irfft(tt.fft.rfft(F.layer_norm(y, (16,)).tanh()) * 0.5)
    y.pow(2).sum().backward()
    return [y.sum().item(), *x.grad.flatten().tolist()[::17]]


def algebra():
    """Decompositions, equations, functions of matrices and complex numbers: forward and back."""
    tt.manual_seed(3)
    a = (data(2, 4, 4) + 2 * tt.eye(4)).requires_grad_()
    g, la = a @ a.mT + tt.eye(4), tt.linalg
    u, s, vh = la.svd(a)
    q, r = la.qr(a)
    p, lower, upper = la.lu(a)
    found = [(u * s.unsqueeze(-2)) @ vh, la.eigh(g)[0], q * r, lower @ upper, la.cholesky(g)]
    found += [la.solve(g, a), la.lstsq(a, g)[0], la.inv(g), la.matrix_exp(a), la.slogdet(g)[1], la.pinv(a)]
    found += [la.solve_triangular(g, a, upper=True), la.matrix_norm(a, 2), la.eigvals(a).abs(), la.matrix_power(a, 3)]
    z = tt.complex(a, a.mT)
    found += [
        tt.view_as_real(z @ z.mH),
        (z * z.conj()).sin().abs(),
        tt.stft(z.imag.reshape(2, 16), 8, window=tt.hann_window(8), return_complex=True),
    ]
    loss = sum(tt.view_as_real(x).sum() if x.is_complex() else x.sum() for x in found)
    loss.backward()
    return [loss.item(), *a.grad.flatten().tolist()]


def scattered():
    """Sparse tensors of both layouts, bags, several recurrent layers, transposed convolution, lined up sequences,
    special functions: forward and back."""
    tt.manual_seed(4)
    x = data(6, 6).requires_grad_()
    coo = x.relu().to_sparse()
    y = tt.sparse.mm(coo, x) + (coo + coo * 2).coalesce().to_dense() + (x > 0).float().to_sparse_csr() @ x
    y = y + F.embedding_bag(tt.arange(12).reshape(6, 2) % 6, x)
    y = F.conv_transpose1d(y.reshape(1, 6, 6), data(6, 3, 3), stride=2)
    y, _ = nn.LSTM(13, 5, 2, bidirectional=True)(y)
    y, _ = nn.MultiheadAttention(10, 2)(y, y, y)
    y = F.max_pool1d(F.instance_norm(y), 2)
    y = F.batch_norm(F.adaptive_avg_pool1d(y, 4), None, None, training=True)
    lined = F.ctc_loss(y.reshape(4, 1, 3).log_softmax(2), tt.tensor([[1, 2]]), (4,), (2,))
    loss = lined + tt.special.i0e(y).sum() + tt.special.xlogy(y, 3.0).sum() + F.grid_sample(
        x.reshape(1, 1, 6, 6), y.reshape(1, 2, 3, 2), align_corners=False).sum()  # fmt: skip
    loss.backward()
    return [loss.item(), *x.grad.flatten().tolist()]


def files():
    """A file that is written and read: a state dict, tensors on one storage, sparse ones, attributes."""
    f, x = io.BytesIO(), data(6, 5)
    x.note = {"a": x[1:3].requires_grad_()}
    tt.save({"net": network().state_dict(), "x": [x, x[2:4].t()], "sparse": x.to_sparse(), "p": nn.Parameter(x)}, f)
    f.seek(0)
    got = tt.load(f)
    got["x"][0].mul_(2)
    found = [*got["net"].values(), *got["x"], got["x"][0].note["a"], got["sparse"].to_dense(), got["p"]]
    return [t.sum().item() for t in found]


class Tripled(tt.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 3

    @staticmethod
    def backward(ctx, g):
        return g * 3 + 0 * ctx.saved_tensors[0]


def recomputed():
    """Checkpointed parts, one of them inside of another, packed values, a Function of one's own."""
    net, x = network()[1:], data(6, 8).requires_grad_()

    def part(x):
        return Tripled.apply(checkpoint(net[0], x, use_reentrant=False).tanh())

    with tt.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), tt.tensor):
        y = (x * x).sin()
    y = checkpoint(net[2:], checkpoint(part, y, use_reentrant=False), use_reentrant=False)
    y.square().sum().backward()
    return [*x.grad.flatten().tolist(), *(p.grad.sum().item() for p in net[:1].parameters())]


def plain():
    """Operators with a fast path in C, of which another is the general one."""
    a, b = PLAIN
    return [x.detach() is not None for x in (a + b, a @ b, (a * b).exp(), a.softmax(1), a.mT.contiguous(), a[1:3] * 2)]


PLAIN = data(90, 90), data(90, 90) + 1


STEPS = {f.__name__: f for f in (train, fused, second, several, layers, algebra, scattered, files, recomputed)}
EVERY = STEPS | {"plain": plain}
