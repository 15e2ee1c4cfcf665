"""Functions of networks that are in the top namespace too, with the parameters of PyTorch's kernels: expressions that
must give the same with both libraries."""

import pytest
from compare import assert_same

import tinytorch

# x, y: (2, 3, 4) of floats, y in (0, 1); s: signs; i: lengths; o: offsets; w, b: of channels; z: zeros, written to.
EXPRESSIONS = """
batch_norm(x, w, b, None, None, True, 0.1, 1e-5, True); batch_norm(x, w, None, b, w, False, 0.1, 1e-5, False)
batch_norm(x, w, b, z, w, training=True, momentum=0.5, eps=1e-3, cudnn_enabled=True).sum() * 0 + z
instance_norm(x, w, b, None, None, True, 0.1, 1e-5, True); instance_norm(x, None, None, b, w, False, 0.1, 1e-5, True)
binary_cross_entropy_with_logits(x, y); binary_cross_entropy_with_logits(x, y, y, reduction=0)
binary_cross_entropy_with_logits(x, y, None, x[0, 0].abs(), 2); kl_div(x, y); kl_div(x, y, 2)
kl_div(x, x, log_target=True); kl_div(x, y, reduction=0); hinge_embedding_loss(x, s)
hinge_embedding_loss(x, s, 0.5, 0); margin_ranking_loss(x, y, s)
margin_ranking_loss(x, y, s, margin=0.3, reduction=2); cosine_embedding_loss(x[0], y[0], s[0, :, 0])
cosine_embedding_loss(x[0], y[0], s[0, :, 0], 0.2, 0); poisson_nll_loss(x, y, True, False, 1e-8, 1)
poisson_nll_loss(y, y + 3, False, True, 1e-8, 0); ctc_loss(x.log_softmax(2), i, i, i)
ctc_loss(x.log_softmax(2), i, i, i, 1, 0); constant_pad_nd(x, (1, 2), 3.5); constant_pad_nd(x, [0, -1, 1, 0])
grid_sampler(x[None], x[:, :, :2][None], 0, 0, True); grid_sampler(x[None], x[:, :, :2][None], 1, 2, False)
grid_sampler(x[None], x[:, :, :2][None], 2, 1, False); affine_grid_generator(x[:, :2, :3], (2, 3, 4, 5), False)
max_pool1d(x, 2); max_pool1d_with_indices(x, 2, 1); max_pool2d(x, 2, 1, 1); max_pool3d(x[None], (1, 2, 2))
adaptive_max_pool1d(x, 2); bilinear(x, x, x[:, :, :1] @ x[:, :1], b[:2]); threshold(x, 0.1, 20)
threshold_(x.clone(), 0.1, 20); celu_(x.clone(), 0.5); selu_(x.clone()); rrelu(x, 0.1, 0.3)
rrelu_(x.clone(), 0.1, 0.3, False); alpha_dropout(x, 0.5, False); alpha_dropout(x, 1.0, True)
dropout_(x.clone(), 1.0, True); dropout_(x.clone(), 0.5, False); alpha_dropout_(x.clone(), 1.0, True)
feature_alpha_dropout_(x.clone(), 1.0, True); feature_alpha_dropout(x, 0.5, False); kl_div(x, y, "mean")
grid_sampler_2d(x[None], x[:, :, :2][None], 0, 0, True); grid_sampler_2d(x, x, 0, 0, True)
grid_sampler_3d(x[None, None], x[None, None, :, :, :3], 0, 1, False); grid_sampler_3d(x[None], x[None], 0, 0, True)
conv_tbc(x, x.permute(0, 2, 1), b); conv_tbc(x, x.permute(0, 2, 1), b, 2); conv_tbc(x, x, b); conv_tbc(x, w, b)
conv_tbc(x, x.permute(0, 2, 1), b[:2], pad=1); embedding_renorm_(x[0].clone(), i, 0.3, 2.0)
embedding_renorm_(x[1].clone(), i, 0.3, 1.0); feature_dropout(x, 1.0, True); feature_dropout(x, 0.5, False)
feature_dropout(x, 0.0, True); feature_dropout_(x.clone(), 1.0, True); feature_dropout_(x.clone(), 0.5, False)
feature_dropout(w, 0.5, True); vander(w); vander(w, 5); vander(w, 2, True); vander(w, N=0); vander(w, 1); vander(x)
vander(w, -1); vander(i); vander(w > 1, 4); vander(w.half(), 3, increasing=True); vander(w.int()); detach_(x.clone())
addmv_(b.clone(), x[0], x[0, 0]); addmv_(b.clone(), x[0], x[0, 0], beta=2, alpha=0.5); addmv_(b, x[0], w)
embedding_bag(x[0], i, i.sort()[0] - 1); embedding_bag(x[1], i, i[:2] * 0, mode=1)
embedding_bag(x[0], i, o, False, 2)
embedding_bag(x[0], i, o, False, 1, False, None, True); embedding_bag(x[0], i, o, True, 2, include_last_offset=True)
embedding_bag(x[0], i, o, False, 0, False, None, False, 1); embedding_bag(x[0], i, o, False, 1, False, None, True, -1)
embedding_bag(x[0], i, o, False, 2, False, None, False, 1); embedding_bag(x[0], i, o, per_sample_weights=w)
embedding_bag(x, i, o); embedding_bag(x[0], i, o, False, 3); embedding_bag(x[0], i, o, mode="sum")
embedding_bag(x[0], i, o, False, 1, False, None, False, 7); embedding_bag(x[0], i, o, False, 2, True)
native_layer_norm(x, (4,), None, None, 1e-5); native_layer_norm(x, x.shape[1:], x[0], x[1], 1e-3)
native_layer_norm(x.half(), [3, 4], None, None, 1e-5); native_layer_norm(x, (5,), None, None, 1e-5)
native_group_norm(x, w, b, 2, 3, 4, 1, 1e-5)
native_group_norm(x, None, None, N=2, C=3, HxW=4, group=3, eps=1e-2)
native_dropout(x, 0.5, False); native_dropout(x, 1.0, True); native_dropout(x, 0.0, None)
nn.functional.huber_loss(x, y, weight=y, delta=0.2); nn.functional.mse_loss(x[0, :, :1], y[0], weight=y[0, :, :1])
nn.functional.l1_loss(x[0, :, :1], y[0], weight=y[0, :, :1]); nn.functional.huber_loss(x, y, "sum", weight=y)
nn.functional.huber_loss(x, y, "none", weight=y); nn.functional.l1_loss(x, y, weight=y[0])
nn.functional.instance_norm(x, w, None); nn.functional.instance_norm(x, w.double(), None)
native_dropout(s.long(), 0.5, True); native_dropout(s.long(), 0.5, False); repeat_interleave(i, dim=0)
repeat_interleave(w, 2, output_size=5); repeat_interleave(w, i, output_size=5); repeat_interleave(i, output_size=3)
repeat_interleave(w, i, output_size=4); repeat_interleave(x, 2, 1, output_size=6); x.std(0, 1); x.var(0, True)
round(x, decimals=1.5); embedding_bag(w[:, None], i, o, False, i[1]); embedding_bag(w[:, None], i, o, False, True)
nn.LayerNorm(i.numpy()[0]).weight; nn.RMSNorm(i.numpy()[0]).weight
[e := z.clone(), round(w, decimals=1, out=e)][0]; round(w, decimals=1, out=w.double()); where(z > 0, out=z)
hinge_embedding_loss(x, s, 1.0, "sum"); grid_sampler(x[None], x[:, :, :2][None], "bilinear", 0, True)
"""
CASES = [case.strip() for line in EXPRESSIONS.strip().splitlines() for case in line.split(";")]


def evaluate(case, torch):
    x = (torch.arange(24.0) * 7 % 11 / 11 - 0.3).reshape(2, 3, 4)
    w, b = torch.tensor([0.5, 2.0, 1.5]), torch.tensor([0.1, -0.2, 0.3])
    names = {"x": x, "y": x.sigmoid(), "s": (x > 0.2).float() * 2 - 1, "w": w, "b": b, "z": torch.zeros(3)}
    return eval(case, vars(torch) | names | {"i": torch.tensor([2, 1, 1]), "o": torch.tensor([0, 1, 3])})


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore")
def test_expression(case, torch):
    results = []
    for library in (tinytorch, torch):
        try:
            results.append(evaluate(case, library))
        except Exception as exc:
            results.append(type(exc).__name__)
    ours, theirs = results
    if isinstance(theirs, str):
        assert ours == theirs
    else:
        assert_same(ours, theirs, rtol=1e-5, atol=1e-6)


def test_dropped_channels():
    y = tinytorch.feature_dropout(tinytorch.ones(40, 50, 3), 0.25, True)
    assert bool(((y == 0) | (y == tinytorch.tensor(4 / 3))).all()) and bool((y == y[..., :1]).all())
    assert 0.7 < float((y > 0).float().mean()) < 0.8
