"""What the fuzzers found, in kind: each ended the process, hung, or raised what tells of a fault inside."""

import inspect
import itertools
import math
import signal
import warnings

import numpy as np
import pytest

import tinytorch as tt
from fuzz.arguments import HOSTILE
from tinytorch.nn import functional as F
from tinytorch.ops.declare.op import NAMESPACES
from tinytorch.ops.declare.refusals import IN_CPP


@pytest.mark.parametrize("cls", [tt.dtype, tt.layout, tt.memory_format])
def test_what_is_there_once_cannot_be_made(cls):
    for arguments in ((), ("float32",), (99, True, 1)):
        with pytest.raises(TypeError, match="cannot create"):
            cls(*arguments)


def test_polygamma_of_huge_orders():
    assert tt.polygamma(171, tt.ones(1)).item() == math.inf
    assert tt.polygamma(2**40, tt.ones(1)).item() == -math.inf


def test_triangles_are_counted_without_looking(torch):
    for rows, cols, offset in itertools.product(range(5), range(5), range(-7, 8)):
        for name in ("tril_indices", "triu_indices"):
            assert getattr(tt, name)(rows, cols, offset).tolist() == getattr(torch, name)(rows, cols, offset).tolist()
    assert tt.triu_indices(2**40, 1).tolist() == [[0], [0]]
    assert tt.tril_indices(2**40, 1, 1 - 2**40).tolist() == [[2**40 - 1], [0]]
    with pytest.raises(tt.OutOfMemoryError):
        tt.tril_indices(2**40, 99)


def test_an_index_of_nothing():
    x = tt.ones(4, 3)
    assert tt.index_put(x, (), tt.ones(3), accumulate=True).tolist() == [[2.0] * 3] * 4
    with pytest.raises(RuntimeError):
        tt.index_put(x, (), tt.ones(6, 3), accumulate=True)


def test_more_parts_than_memory():
    with pytest.raises(MemoryError):
        tt.ones(4, 5).tensor_split(2**62)


X = tt.ones(2, 3)
NO_TENSORS = {
    "a function": lambda: tt.argwhere(3),
    "a view": lambda: tt.permute("x", (0,)),
    "a primitive": lambda: tt.cumsum([1], 0),
    "a reduction": lambda: tt.amax(None),
    "a reduction along a dimension": lambda: tt.sum("text", 0),
    "a composite": lambda: tt.polygamma(1, "text"),
    "an elementwise operator": lambda: tt.sqrt(3),
    "in place": lambda: tt.add_(3, X),
    "zero_": lambda: tt.zero_((X,)),
    "out": lambda: tt.sqrt(X, out=(X,)),
    "out of a reduction": lambda: tt.sum(X, 0, out=3),
    "one of several": lambda: tt.atleast_1d(X, 3),
    "in a list": lambda: tt.block_diag(X, (3,)),
    "an index": lambda: tt.index_select(X, 0, [0]),
    "a loss": lambda: F.mse_loss(X, 3.0),
    "a layer": lambda: F.linear(X, 3j),
    "an activation": lambda: F.relu(None),
    "a number of many": lambda: X.narrow(X, 0, 1),
    "a bool of many": lambda: tt.var_mean(X, (0, 1), X),
    "keepdim": lambda: X.amax(9, "yes"),
    "dtype": lambda: X.sum(dtype=3),
    "a dimension": lambda: X.logsumexp(5.5),
}


@pytest.mark.parametrize("name", NO_TENSORS)
def test_arguments_of_the_wrong_type(name):
    with pytest.raises(TypeError) as error:
        NO_TENSORS[name]()
    assert "_h" not in str(error.value) and "has no attribute" not in str(error.value)


def test_a_program_s_own_tensors_are_no_numbers():
    """The error for bool(t) and int(t) is the program's own."""
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(X)
    with pytest.raises(ValueError, match="only one element"):
        int(X)


def test_arguments_without_keys_or_tensors():
    """What PyTorch answers with a KeyError or an AttributeError."""
    for name in ("Adam", "AdamW", "Adamax", "NAdam", "RAdam", "SparseAdam"):
        with pytest.raises(TypeError, match="betas"):
            getattr(tt.optim, name)([X], betas={0: 1})
    with pytest.raises(TypeError, match="Tensor"):
        tt.autograd.graph.register_multi_grad_hook((tt.ones(2, requires_grad=True), None), print)


def test_an_error_holds_nothing(no_gc):
    """Looking at the arguments makes no cycle that would keep them."""
    before = tt.cpu.memory_allocated()
    for call in (lambda x: x.roll((1, 2), 0), lambda x: tt.argwhere((x, 3)), lambda x: tt.kron(x, "text")):
        with pytest.raises((TypeError, RuntimeError)):
            call(tt.ones(100))
    assert tt.cpu.memory_allocated() == before


#: Calls that raised another class than PyTorch's, of each kind: sizes and numbers that are no ints, dtypes that have no
#: kernel, lists of the wrong length, arguments that come before others.
RAISES = """
    F.ctc_loss(T(3, 1, 4), T(1, 2).long(), torch.tensor([3]), (2,))
    torch.broadcast_to(T(), -1)
    F.scaled_dot_product_attention(T(2, 3, 4), T(2, 5, 4), T(2, 5, 2), T(7))
    F.scaled_dot_product_attention(T(1, 2, 3, 4), T(1, 2, 5, 4), T(1, 2, 5, 4), T(5))
    torch.slice_copy(T(4, 3), 0, 1, 9, -1)
    torch.slice_copy(T(4, 3), Index(-9), 1, 9, 2)
    torch.unfold_copy(T(), 0, 3, 1)
    torch.nonzero_static(T(3), size=-1)
    torch.unbind_copy(T(3), out=3)
    F.unfold(T(3, 4), 2)
    F.unfold(T(3, 4, 4), T(0))
    F.unfold(T(3, 4, 4), iter((0, 1)))
    F.max_unpool2d(T(2, 3, 3), 3, 2, -2**31)
    F.max_unpool3d(T(2, 3, 3, 3), 3, 2, 2)
    torch.conv_transpose1d(T(1, 2, 3).int(), T(2, 1, 3))
    torch.conv2d(T(1, 1, 3, 3).bool(), T(1, 1, 2, 2))
    F.grid_sample(T(1, 1, 3, 3).short(), T(1, 2, 2, 2))
    torch.fft.fft(T(4), norm=b"x")
    torch.fft.fftshift(T(), dim=(0, -1))
    torch.fft.hfftn(T(2, 3), T().to(torch.complex64), (0, 1))
    torch.unflatten(T(4), 0, range(3))
    T(4).unflatten(0, memoryview(b"abc"))
    torch.pixel_shuffle(T(4, 1, 1), 2**40)
    torch.pixel_shuffle(T(4, 1, 1), Index(-9))
    F.channel_shuffle(T(2, 4, 3), Index(-9))
    torch.channel_shuffle("text", 2)
    torch.linalg.vander(T(3), N=Index(-9))
    torch.lstm_cell(T(4, 3), [T(4, 2), T(4, 2)], T(8, 3), T(3))
    torch.rnn_tanh(T(3, 2, 3), T(2, 2, 2), [T(2, 3), T(2, 2), T(2), T(2)], True, 1, 0.0, True, False, False)
    torch.rnn_tanh(T(6, 3), T(3), T(1, 3, 2), [T(2, 3), T(2, 2), T(2), T(2)], True, 1, 0.0, True, False)
    torch.rnn_tanh(T(6, 3), T(3).long(), T(2, 3, 2), [T(2, 3), T(2, 2), T(2), T(2)], True, 1, -1.5, True, True)
    torch.gradient(T(4, 2), edge_order=Index(-9))
    torch.baddbmm(T(2, 2, 2).int(), T(2, 2, 2).int(), T(2, 2, 2).int(), beta=inf)
    torch.baddbmm(T(2, 2, 2).int(), T(2, 2, 2).int(), T(2, 2, 2).int(), alpha=nan)
    torch.as_strided_([T(2)])
    torch.mvlgamma(T(2), 2**62)
    torch.mvlgamma(T(2), 0)
    T(2).long().mvlgamma_(np.int64(1))
    torch.signal.windows.general_cosine(T() * -1, a=[1.0])
    torch.signal.windows.general_cosine(7, a="x")
    torch.blackman_window(Index(-9))
    torch.cdist(T(2, 3).half(), T(2, 3))
    torch.cdist(T(2, 3), T(2, 3), 3, set())
    F.embedding_bag(T(1, 2, 1, 3), T(6).long(), T(4, 3), T(3).long(), mode="max")
    F.adaptive_avg_pool2d(T(2, 5, 6), [])
    F.adaptive_avg_pool2d(T(2, 5, 6), range(3))
    F.adaptive_avg_pool2d(T(2, 5, 6), (nan,))
    F.adaptive_max_pool1d(T(2, 5), memoryview(b"abc"))
    F.avg_pool2d(T(3, 4), 2)
    F.max_pool2d(T(2, 5, 6), 3, np.int8(-1))
    F.interpolate(T(1, 1, 3), scale_factor=inf)
    F.interpolate(T(1, 1, 3), scale_factor="")
    F.interpolate(T(1, 1, 3), scale_factor=2, mode=[1])
    F.upsample(T(1, 1, 3), scale_factor=2, mode=T(3))
    F.local_response_norm(T(2, 5, 2, 2), 2, T(3, 2))
    T(2, 3).nanquantile(T(3) * 5, -9)
    torch.renorm(T(2, 3), 2, Index(-9), 1.0)
    torch.trapezoid(T(3, 2, 4), T(2, 4), dim=Index(0))
    torch.vsplit(T(4, 2), Index(-9))
    T().squeeze_(Index(-9))
    torch.nn.utils.rnn.invert_permutation(3)
    torch.nn.utils.rnn.pack_padded_sequence(1e300, T(1))
    torch.autograd.graph.increment_version(["a"])
    torch.func.functional_call(torch.nn.Linear(1, 1), (T(2), None), 1)
    torch.nn.TransformerEncoder(2, 2)
    F.linear(T(2, 3), [[1.0]], T(1))
    F.unfold(T(1, 4, 4), 2, stride=False)
    F.unfold(T(5), 0, 2, True)
    F.unfold(T(2, 0), (2, 3), padding=1)
    F.fold(T(1, 1, 4), 2, True)
    torch.addcmul(T(2).int(), T(2).int(), T(2).int(), value=inf)
    T(2).byte().addcmul(T(2).byte(), T(2).byte(), value=300)
    torch.addcdiv(T(2).int(), T(2).int(), T(2).int(), value=nan)
    torch.polygamma(torch.tensor(-1), T(2))
    T(20).stft(8, 2, 5, T(5), center=Index(1), align_to_window=True, return_complex=True)
    torch.linalg.tensorsolve(T(6, 6), T(2, 3), 3)
    torch.tensordot(T(2, 3), T(2, 3), (0, 1))
    torch.tensordot(T(2, 3), T(2, 3), ((0,), None))
    torch.unflatten(T(6), 0, 0)
    torch.unflatten(T(6), 0, None)
    T(6).unflatten(0, -0.0)
    F.interpolate(T(1, 1, 3), scale_factor=1e300)
    F.interpolate(T(1, 1, 3), scale_factor=torch.tensor(-1), mode="linear")
    torch.gradient(T(3, 4), spacing=(Index(2),), dim=(1, 0))
    F.embedding_bag(T(3, 2), T(2, 3).long(), T(4, 2), mode="max")
    F.grid_sample(T(), T(1, 2, 3, 2, 3))
    F.affine_grid(T(1, 3, 4), T(2, 3, 4))
    torch.mm(T(3).to_sparse(), T(3, 4))
    torch.lstm(T(3, 2, 3), (), [T(8, 3), T(8, 2), T(8), T(8)], True, 1, 0.0, True, False, False)
    torch.rnn_relu(T(3, 2, 3), T(), [T(2, 3), T(2, 2), T(2), T(2)], True, 1, 0.0, True, False, False)
    torch.lstm(T(6, 3), T().long(), [T(1, 3, 2)] * 2, [T(8, 3), T(8, 2), T(8), T(8)], True, 1, 0.0, True, False)
    torch.rnn_tanh_cell(T(0), T(1, 2), T(2, 3), T(2, 2))
    torch.rnn_tanh_cell(T(1, 3), T(1), T(2, 3), T(2, 2))
    torch.rnn_tanh_cell(T(4, 3), T(4, 2), T(1), T(2, 2), T(2), T(2))
    F.ctc_loss(T(), T(2, 3).long(), (5, 4), (3, 2))
    T(0).bool().index_put_((T(2).long(),), T(2, 4).bool())
    torch.matmul(T(3).bool(), T(2, 3, 2).bfloat16())
    torch.view_copy(T(2, 3).short(), torch.int64)
    torch.norm(T(2, 3), b"x")
    F.rms_norm(T(0), (2, 3))
    torch.unravel_index(T(2).long(), [Index(0)])
    torch.unravel_index(T(2).long(), Index(-9))
    T(0, 3).amin([0, 0])
    T(3).quantile(0.5, Index(1))
    T(1, 3).broadcast_to(99)
    torch.signal.windows.general_hamming(T(1) * -1)
    torch.nuclear_norm(T(2, 2, 3), 3, True)
    torch.nonzero_static(T(), size=Index(-9))
    torch.ones(3).untyped_storage().byteswap(99)
    torch.distributions.Normal(T(3) - 1, T(3)).icdf(2**62)
    torch.distributions.Exponential(T(3)).icdf(0)
    torch.distributions.Cauchy(T(3) - 1, T(3)).icdf(0)
    F.scaled_dot_product_attention(T(1, 4, 3, 2), T(1, 2, 5, 2), T(1, 2, 5, 2), enable_gqa=np.array([None]))
    torch.index_reduce(T(4, 3), 0, torch.tensor([0, -1]), T(2, 3), "amax")
    T(4).index_reduce_(0, torch.tensor([9]), T(1), "prod")
    T(4, 3).narrow_copy(1, Index(-9), 2)
    torch.rnn_relu(T(3), T(1, 2, 2), [T(2, 3), T(2, 2), T(2), T(2)], True, 1, 0.0, True, False, True)
    torch.nn.Sequential(torch.nn.ReLU()).insert(0, True)
    torch.tensordot(T(3, 2), T(1, 2, 3), ((0, 2), (1, 2)))
    torch.combinations(T(4), -torch.ones(1).long())
    torch.nn.grad.conv1d_weight(T(1, 1, 3), (1, 1, 2), T(1, 1, 2), dilation=[])
    F.adaptive_max_pool2d(T(1, 2, 5, 6), [True])
    F.adaptive_avg_pool2d(T(1, 2, 5, 6), "mean")
    F.rms_norm(T(), T(2, 3), T(3))
    F.interpolate(T(1, 1, 3), scale_factor=Index(0), mode="linear")
    torch.lstm(T(2, 3), [T(1, 1, 2)] * 2, [T(8, 3), T(8, 2), T(8), T(8)], True, 1, 0.0, True, False, False)
    F.batch_norm(T(1), T(3), T(3))
    F.batch_norm(T(2), None, None, training=True)
    torch.func.functional_call(2**62, T(0).int())
    torch.split_copy(T(5, 2), np.int8(-1))
    F.huber_loss(T(2).bool(), T(2), T())
    torch.gru(T(3, 3), T(1, 2, 2), [T(6, 3), T(6, 2), T(6), T(6)], True, 1, 0.0, True, False, False)
    F.adaptive_avg_pool1d(T(2, 5), (2, None))
    F.margin_ranking_loss(T(3), T(3), T(3), margin=T(0))
    T(3, 2).diff(-T(1).int(), 0)
    torch.cov(T(3, 4), correction=False)
    torch.aminmax(T(0), dim=0, keepdim=True)
    F.dropout(T(3), nan, False)
    F.alpha_dropout(T(3), nan)
    torch.amax(T(), [0, 0])
    torch.squeeze_copy(T(2, 1), T(1).byte() * 255)
    torch.einsum(b"x", T(2), T(3))
    F.multilabel_soft_margin_loss(T(2, 3).bool(), T(2, 3))
    torch.bincount(T(3).long(), minlength=Index(-9))
    torch.embedding_renorm_(T(2, 3), np.array([None]), 2, 2)
    F.adaptive_avg_pool2d(T(0), 1)
    F.lp_pool2d(T(2, 3, 4), 0, 2)
    torch.pca_lowrank(T(2, 2), 2, False, -inf)
    F.batch_norm(T(1), None, None, training=True)
    torch.matmul(T(3), T(1, 3).to_sparse())
    torch.testing.make_tensor(2, dtype="meta", device="cpu")
    torch.nn.ParameterDict({"a": T(2)}).pop(-2)
    torch.pixel_shuffle(T(4, 2, 2), Liar())
    torch.pixel_unshuffle(T(1, 2, 2), Liar())
    F.adaptive_max_pool2d(T(1, 5, 6), Liar())
    F.adaptive_avg_pool3d(T(1, 4, 3, 4), Short([1, 2]))
    F.adaptive_avg_pool1d(T(), 4)
    F.adaptive_avg_pool3d(T(), 2)
    F.adaptive_avg_pool2d(T().long(), 1)
    F.adaptive_max_pool2d(T(2).long(), (None, 4))
    F.fractional_max_pool3d(T(3, 4), 2, 2)
    F.avg_pool2d(T().bool(), 2)
    F.max_unpool1d(T(1, 1, 3).int(), T(1, 1, 3).long(), 2, output_size=(9,))
    F.max_unpool1d(T(1, 1, 3), T(1, 1, 3).long(), (), output_size=(7,))
    F.max_unpool2d(T(1, 3, 3), T(1, 3, 3).long(), nan)
    F.max_unpool3d(T(1, 3, 3, 3), T(1, 3, 3, 3).long(), torch.tensor(-1))
    F.max_pool2d(T(1, 5, 6), 2, ceil_mode=np.array([1, 2]))
    F.kl_div(T(2), T(2), log_target=np.array([1, 2]))
    F.local_response_norm(T(2, 5, 3), 3, beta=np.array([1, 2]))
    F.instance_norm(T(2, 3, 2, 2), use_input_stats=[])
    F.batch_norm(T(2, 3, 2), T(3).long(), None, training=True)
    F.binary_cross_entropy(T(2) * 3, T(2), size_average=[])
    F.normalize(T(2, 3), dim=(1, 2))
    F.normalize(T(2, 3), dim=(0, 0))
    F.l1_loss(T(2, 3), T(2, 3), weight=T(7))
    F.huber_loss(T(2, 3), T(2, 3), weight=T(3))
    F.multi_margin_loss(T().bool(), T().long())
    F.nll_loss(T(2, 3, 4), (T(2, 4) * 9).byte())
    F.ctc_loss(T().long(), T(2, 3).long(), (5, 4), (3, 2))
    F.embedding_bag(T(2, 3).bool(), T(4, 2))
    F.embedding_bag(T(6).long(), T(4, 2), T().bool())
    F.embedding_bag(T(6).long(), T(4, 2), torch.zeros(2).long(), mode="sum", per_sample_weights=T().long())
    F.bilinear(T(2, 2), T(2, 3), T().long())
    F.linear_cross_entropy(T(3, 4), T(5, 4), T(3).long(), linear_bias=np.int64(1))
    torch.pca_lowrank(T(5, 2).int(), 2)
    torch.pca_lowrank(T(5, 2), 2, niter=nan)
    torch.lstm_cell(T(4, 3), [T(4, 2)] * 2, T(3).long(), T(8, 2))
    torch.gru_cell(T(), T(1, 2), T(6, 3), T(6, 2))
    torch.rnn_tanh_cell(T(1, 3), T(3), T(2, 3), T(2, 2))
    torch.rnn_relu_cell(T(1, 3), T(), T(2, 3), T(2, 2))
    torch.gru(T(6, 3), T(3).long(), T().long(), [T(6, 3), T(6, 2), T(6), T(6)], True, 1, 0.0, True, False)
    torch.var(T(2).long(), (0, 1))
    torch.std_mean(T().bool(), 9)
    torch.mean(T(2).int(), 9)
    torch.std(T(2, 3), unbiased=False, out=T())
    torch.nansum(T(2, 3), 0, out=T().long())
    torch.mv(T(), T(3))
    torch.trace(T().bool())
    torch.bincount(T(2, 2).bool())
    torch.norm_except_dim(T().bool())
    torch.norm(T(2, 3), inf, dtype=int)
    torch.linalg.matrix_norm(T(3, 2), dtype=int)
    torch.linalg.norm(T(2, 3), b"x", 0)
    torch.linalg.eigh(T(2, 2), UPLO=b"x")
    torch.linalg.ldl_solve(T(3, 3), T(3).int(), T(3))
    torch.linalg.vecdot(T(2, 3), T(2, 3), dim=(0, 0))
    torch.nuclear_norm(T(2, 2, 3), torch.tensor(1))
    torch.segment_reduce(T(6), b"x", lengths=T(3).long())
    torch.hann_window(3, device=b"x")
    torch.ones(2, device=np.int64(-1))
    T(2).to(np.int64(-1))
    torch.bartlett_window(3, dtype=int)
    torch.signal.windows.cosine(3, dtype=int)
    torch.index_add(T(4, 3), 0, torch.tensor([9]), T(1, 3))
    torch.index_add(T(4, 3), 0, torch.tensor([9]).int(), T(1, 3))
    torch.index_add(T(4, 3), 0, torch.tensor([9]), T(1, 3), alpha=2)
    torch.index_add(T(4), 0, torch.tensor([9]), T(1))
    torch.slice_scatter(T(4, 3), T(4, 2), 1, 0, 3, Index(-9))
    torch.slice_copy(T(4, 3), 0, 1, 9, Index(-9))
    torch.tensor_split(T(5), Index(0))
    torch.rot90(T(2, 3), 1, Short([1, 2]))
    torch.repeat_interleave(T(2, 3), None)
    torch.repeat_interleave(T(2, 3))
    torch.round(T(2).long(), decimals=2**31)
    torch.clone(T(2), memory_format=torch.strided)
    torch.tensordot(T(2, 3), T(3, 2), T(0))
    torch.histogramdd(T(5, 2), torch.tensor(-1))
    torch.histogram(T(3), torch.tensor(-1), range=(-1.0, 1.0))
    torch.istft(T(5, 4), 8, win_length=torch.tensor(True))
    torch.gradient(T(4), dim=Index(-9))
    torch.argmin(T(), axis=Index(1))
    torch.cat((T(2, 3), T(1, 3)), axis=Index(1))
    torch.addmm(T(2, 4).long(), T(2, 3).long(), T(3, 4).long(), beta=Liar())
    torch.nn.utils.fuse_conv_bn_weights(T(2, 3), T(2), 1, 2, 3, 4, 5)
    torch.lstm(T(3, 2, 3), [T(2, 0), T(3, 2)], [T(8, 3), T(8, 2), T(8), T(8)], True, 1, 0.0, True, False, False)
    F.rms_norm(T(2, 3), "nonsense")
    F.fractional_max_pool3d(T(1, 2, 4, 3, 4), 2, [T(), None])
    torch.histogram(T(3), 4, range=[T()])
    T().__dlpack__(stream=True)
    T(2, 3).count_nonzero(1, -1)
    torch.nn.grad.conv3d_input(b"x", {}, T(0), dilation=2**62)
    torch.full((2,), -1.0, dtype=torch.uint8)
    T(2).byte().fill_(-0.5)
    T(2).byte().addcmul(T(2).byte(), T(2).byte(), value=-T())
    torch.conv1d(T(1, 2, 6), T(2, 2, 3), padding=-T(1).int().to_sparse())
    T().size(0)
    T().stride(-1)
    torch.nn.ModuleList([torch.nn.ReLU()]).insert(T(3, 3), -99)
    torch.autograd.graph.get_gradient_edge(Anything())
    torch.transpose(T(3).to_sparse(), 1, 1)
    torch.nn.functional.fold(T(1), T(6, 16), (3, 4), (2, 3), padding=(1, 1), stride=1)
    torch.gru(T(0), T(4, 2, 2), [T(6, 2)] * 8, False, 2, 0.0, False, True, True)
    torch.nn.functional.batch_norm(T(2, 3), T(3), None, training=True)
    torch.linalg.matrix_rank(T(0), T(2, 3, 3), atol=T(2))
    torch.linalg.pinv(T(3, 3), 0.1, atol=0.1)
    torch.nn.utils.fuse_linear_bn_eval(torch.nn.Linear(3, 2), -2)
    torch.addmm(T(2, 2).char(), T(2, 2).char(), T(2, 2).char(), alpha=1e300)
    torch.addmm(T(2, 2).byte(), T(2, 2).byte(), T(2, 2).byte(), beta=300)
    torch.addmm(T(2, 2).half(), T(2, 2).half(), T(2, 2).half(), alpha=1e39)
    torch.addmv(T(2).half(), T(2, 2).half(), T(2).half(), beta=1e6)
    torch.addr(T(2, 2).char(), T(2).char(), T(2).char(), alpha=300)
    T(2, 2, 2).char().baddbmm_(T(2, 2, 2).char(), T(2, 2, 2).char(), beta=300)
    torch.add(T(2).char(), T(2).char(), alpha=300)
    torch.add(T(2).char(), 2, alpha=300)
    T(2).half().add_(T(2).half(), alpha=1e6)
    torch.sub(T(2).byte(), T(2).byte(), alpha=-300)
    torch.rsub(T(2), T(2), alpha=-1e39)
    torch.rsub(T(2).char(), 2, alpha=300)
    torch.index_add(T(2).char(), 0, torch.tensor([0]), T(1).char(), alpha=300)
    torch.addcmul(T(2), T(2), T(2), value=1e39)
    T(2).addcdiv_(T(2), T(2), value=1e39)
    F.threshold(T(2).char(), 300, 0)
    F.hardtanh(T(2).char(), -1e39, 1e39)
    torch.arange(0, 1e300, 1e299, dtype=torch.int8)
    torch.range(0, inf)
    torch.linspace(0, 300, 3, dtype=torch.int8)
    torch.linspace(0, nan, 3, dtype=torch.int8)
    torch.logspace(0, 1e39, 3)
    T(2).long().masked_fill(T(2).bool(), nan)
    T(2, 3).count_nonzero(Index(-9))
    F.batch_norm(T(0, 3), T(3), T(3), T())
    F.huber_loss(T(3, 3), T(2, 3), T(2, 3))
    F.mse_loss(T(3, 3).long(), T(2, 3).long(), reduction="x")
    F.smooth_l1_loss(T(3, 3), T(2, 3), beta=-1)
    F.nll_loss(T(2, 3).char(), T(4).long())
    F.affine_grid(T(2, 2, 3), "mean")
    F.local_response_norm(T(2, 5, 3), T(2, 3).bool())
    F.cosine_similarity(T(2, 3), T(2, 3), eps=-1)
    torch.gru(T(2, 3).half(), T(1, 2, 2), [T(6, 3), T(6, 2), T(6), T(6)], True, 1, 0.0, True, False, False)
    torch.mv(T(3).to_sparse(), T(3))
    torch.matmul(T(2, 3), T(4).to_sparse())
    torch.matmul(T(3).to_sparse(), T(3, 4).int())
    torch.matmul(T(3).to_sparse(), T(3))
    torch.addmm(T(2, 4), T(3).to_sparse(), T(3, 4))
    torch.permute(T(3).to_sparse(), (1, 0))
    torch.index_select(T(2, 3).to_sparse(), 0, torch.tensor([0]), out=T(1, 3))
    torch.cat([T(2, 3).to_sparse()], out=T(2, 3))
    T(6, 1).unflatten(1, (True,))
    T(2, 3).size(True)
    torch.native_dropout(T(2), "x", False)
    torch.native_dropout(T(2), 0.5, "x")
    F.dropout("x", 0.5, False)
    F.dropout(T(2), 0.5, "x")
    F.alpha_dropout(T(2).numpy())
    torch.resolve_conj("x")
    torch.is_neg({})
    torch.isposinf("x")
    torch.rad2deg(T(2).numpy())
    torch.matrix_power(T(2, 2).numpy(), 2)
    F.kl_div(T(2).numpy(), T(2), reduction="sum")
    F.soft_margin_loss(T(2).numpy(), T(2))
    F.cosine_embedding_loss(T(2, 3), T(2, 3).numpy(), T(2))
    F.pairwise_distance(T(2, 3), T(2, 3).numpy())
    F.batch_norm(T(2, 3), T(3), T(3), training="x")
    F.grid_sample(T(1, 1, 2, 2), T(1, 2, 2, 2), align_corners={})
    F.affine_grid(T(1, 2, 3), (1, 1, 2, 2), "x")
    torch.put(T(4), torch.tensor([0]), T(1), "x")
    torch.scatter_reduce(T(4), 0, torch.tensor([0]), T(1), "sum", include_self=[])
    torch.stft(T(24), 8, return_complex="x")
    torch.convolution(T(1, 2, 4), T(3, 2, 2), None, [1], [0], [1], "x", [0], 1)
    torch.lstm(T(3, 2, 3), [T(1, 2, 2)] * 2, [T(8, 3), T(8, 2), T(8), T(8)], "x", 1, 0.0, True, False, False)
    torch.gru(T(3, 2, 3), T(1, 2, 2), [T(6, 3), T(6, 2), T(6), T(6)], True, 1, 0.0, True, {}, False)
    torch.rnn_tanh_cell(T(4, 3), T(4, 2), T(2, 3), T(2, 2), T(2), T(2).numpy())
    torch.frobenius_norm(T(2, 3), {})
"""


@pytest.mark.parametrize("call", [line.strip() for line in RAISES.strip().split("\n")])
def test_the_class_is_pytorch_s(torch, call):
    raised = []
    for m in (torch, tt):
        names = {"torch": m, "F": m.nn.functional, "T": lambda *size, m=m: m.ones(size), **HOSTILE}
        with warnings.catch_warnings(), pytest.raises(Exception) as error:
            warnings.simplefilter("ignore")
            eval(call, names)
        raised.append(error.type)
    if raised[1] is not tt.OutOfMemoryError:
        assert raised[0].__name__.lstrip("_") in [c.__name__ for c in raised[1].__mro__], error.value


#: And calls that were refused.
ANSWERS = """
    F.scaled_dot_product_attention(A(2, 3, 4), A(2, 5, 4), A(2, 5, 2), A(5))
    F.scaled_dot_product_attention(A(3, 4), A(5, 4), A(5, 4), A(5) > 1)
    F.scaled_dot_product_attention(A(3, 4), A(5, 4), A(5, 4), A(1)[0])
    F.unfold(A(3, 4, 4), [2, 3])
    F.unfold(A(3, 4, 4), iter((2, 3)), padding=range(2))
    F.adaptive_avg_pool2d(A(2, 5, 6), range(1, 3))
    torch.fft.fft(A(4), norm=b"ortho").real
    torch.gradient(A(4, 2), dim=np.int64(1))[0]
    torch.mvlgamma(A(2) + 9, np.int64(3))
    torch.mvlgamma(A(2, 3) + 50, 70)
    torch.polygamma(torch.tensor(1), A(2) + 1)
    torch.einsum(b"ij->ji", A(2, 3))
    torch.matmul(A(3), A(3, 2).to_sparse())
    A(3).broadcast_to(Index(3))
    F.unfold(A(1, 4, 4), (2, True))
    F.adaptive_avg_pool2d(A(3, 4), 1)
    A(2, 3).count_nonzero(0, 1)
    A(3) * ((A(1) + 2).to_sparse().item() + float((A(1) + 2).to_sparse()) + int((A(1) + 2).to_sparse()))
    A(2).int().addcmul(A(2).int(), A(2).int(), value=A() + 2)
    F.adaptive_avg_pool3d(A(2, 2, 2, 2, 3, 4), 1)
    torch.histogramdd(A(5, 2), torch.tensor(3)).hist
    torch.histogram(A(3), torch.tensor(3), range=(-1.0, 1.0)).hist
    torch.linalg.eigvalsh(A(2, 2), UPLO=b"L")
    A(2).to(b"cpu")
    torch.round(A(2), decimals=2**31)
    torch.round(A(2) + 0.125, decimals=-(2**62))
    torch.slice_copy(A(4, 3), 0, 1, 9, Index(2))
    torch.matmul(A(3).to_sparse(), A(3, 4))
    torch.matmul(A(3, 4), A(4).to_sparse())
    torch.mv(A(3, 4), A(4).to_sparse())
    torch.addmm(A(4), A(3, 3).to_sparse(), A(3, 4), beta=2)
    torch.neg(A(2, 3).to_sparse(), out=None).to_dense()
    A(3).long().masked_fill(A(3) > 1, -1.5)
    F.threshold(A(3).int(), 1, 2.5)
    torch.addmm(A(2, 2).byte(), A(2, 2).byte(), A(2, 2).byte(), alpha=-1)
    torch.add(A(2).char(), 2, alpha=127)
    torch.add(A(2).long(), A(2), alpha=300)
    F.batch_norm(A(0, 3), None, None, A(2), A(1) + 1)
    A(2, 3) + A(2, 3).to_sparse().itemsize
    A(1) + any(getattr(A(3).to_sparse(), name) for name in ("is_meta", "is_quantized", "is_xpu", "volatile"))
"""


@pytest.mark.parametrize("call", [line.strip() for line in ANSWERS.strip().split("\n")])
def test_the_answer_is_pytorch_s(torch, call):
    found = []
    for m in (torch, tt):

        def A(*size, m=m):
            return (m.arange(math.prod(size)) % 7).reshape(size).float()

        found.append(eval(call, {"torch": m, "F": m.nn.functional, "A": A, **HOSTILE}).tolist())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-6)


def test_steps_without_end_are_interrupted():
    """As many steps as were asked for, as in PyTorch."""

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            tt.svd_lowrank(tt.ones(2, 4), 2, 2**31)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_what_a_memo_is():
    for memo in (tt.ones(2), [], None):
        with pytest.raises(TypeError, match="memo"):
            tt.ones(2).__deepcopy__(memo)


def test_functions_that_pytorch_has_in_cpp(torch):
    """Their parser comes before the ValueErrors of functions in Python."""
    names = [name for name in NAMESPACES["nn.functional"] if hasattr(torch.nn.functional, name)]
    assert {n for n in names if inspect.isbuiltin(getattr(torch.nn.functional, n))} == IN_CPP


def test_more_layers_than_memory():
    for cls, layer in ((tt.nn.TransformerEncoder, "Encoder"), (tt.nn.TransformerDecoder, "Decoder")):
        with pytest.raises(MemoryError):
            cls(getattr(tt.nn, f"Transformer{layer}Layer")(2, 1, 2), 2**62)
