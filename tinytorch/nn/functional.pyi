"""Functions of tinytorch.nn.functional. Written by .ci/stubs.py: do not edit."""

from collections.abc import Callable, Sequence
from ..ops.linear_cross_entropy import LinearCrossEntropyOptions
from ..tensor import Tensor
from ..types import Number, _bool, _dtype, _float, _int

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "affine_grid", "alpha_dropout", "avg_pool1d",
    "avg_pool2d", "avg_pool3d", "batch_norm", "bilinear", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "celu", "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "cosine_embedding_loss", "cosine_similarity", "cross_entropy", "ctc_loss", "dropout", "dropout1d", "dropout2d",
    "dropout3d", "elu", "embedding", "embedding_bag", "feature_alpha_dropout", "fold", "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices", "fractional_max_pool3d", "fractional_max_pool3d_with_indices",
    "gaussian_nll_loss", "gelu", "glu", "grid_sample", "group_norm", "gumbel_softmax", "hardshrink", "hardsigmoid",
    "hardswish", "hardtanh", "hinge_embedding_loss", "huber_loss", "instance_norm", "interpolate", "kl_div", "l1_loss",
    "layer_norm", "leaky_relu", "linear", "linear_cross_entropy", "local_response_norm", "log_softmax", "logsigmoid",
    "lp_pool1d", "lp_pool2d", "lp_pool3d", "margin_ranking_loss", "max_pool1d", "max_pool1d_with_indices", "max_pool2d",
    "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d", "max_unpool3d",
    "mish", "mse_loss", "multi_head_attention_forward", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "nll_loss", "normalize", "one_hot", "pad", "pairwise_distance", "pdist",
    "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu", "relu6", "rms_norm", "rrelu",
    "scaled_dot_product_attention", "selu", "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax",
    "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "triplet_margin_loss",
    "triplet_margin_with_distance_loss", "unfold", "upsample", "upsample_bilinear", "upsample_nearest",
]

def adaptive_avg_pool1d(input: Tensor, output_size: _int | Sequence[_int | None]) -> Tensor: ...
def adaptive_avg_pool2d(input: Tensor, output_size: _int | Sequence[_int | None]) -> Tensor: ...
def adaptive_avg_pool3d(input: Tensor, output_size: _int | Sequence[_int | None]) -> Tensor: ...
def adaptive_max_pool1d(
    input: Tensor, output_size: _int | Sequence[_int | None], return_indices: _bool = False,
) -> Tensor: ...
def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: _int | Sequence[_int | None], return_indices: _bool = False,
) -> Tensor: ...
def adaptive_max_pool2d(
    input: Tensor, output_size: _int | Sequence[_int | None], return_indices: _bool = False,
) -> Tensor: ...
def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: _int | Sequence[_int | None], return_indices: _bool = False,
) -> Tensor: ...
def adaptive_max_pool3d(
    input: Tensor, output_size: _int | Sequence[_int | None], return_indices: _bool = False,
) -> Tensor: ...
def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: _int | Sequence[_int | None], return_indices: _bool = False,
) -> Tensor: ...
def affine_grid(theta: Tensor, size: Sequence[_int], align_corners: _bool | None = None) -> Tensor: ...
def alpha_dropout(input: Tensor, p: _float = 0.5, training: _bool = False, inplace: _bool = False) -> Tensor: ...
def avg_pool1d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0, ceil_mode: _bool = False, count_include_pad: _bool = True,
) -> Tensor: ...
def avg_pool2d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0, ceil_mode: _bool = False, count_include_pad: _bool = True,
    divisor_override: _int | None = None,
) -> Tensor: ...
def avg_pool3d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0, ceil_mode: _bool = False, count_include_pad: _bool = True,
    divisor_override: _int | None = None,
) -> Tensor: ...
def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: _bool = False, momentum: _float = 0.1, eps: _float = 1e-05,
) -> Tensor: ...
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor: ...
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: _bool | None = None,
    reduce: _bool | None = None, reduction: str = 'mean',
) -> Tensor: ...
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: _bool | None = None,
    reduce: _bool | None = None, reduction: str = 'mean', pos_weight: Tensor | None = None,
) -> Tensor: ...
def celu(input: Tensor, alpha: _float = 1.0, inplace: _bool = False) -> Tensor: ...
def channel_shuffle(input: Tensor, groups: _int) -> Tensor: ...
def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1,
    padding: _int | str | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, groups: _int = 1,
) -> Tensor: ...
def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1,
    padding: _int | str | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, groups: _int = 1,
) -> Tensor: ...
def conv3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1,
    padding: _int | str | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, groups: _int = 1,
) -> Tensor: ...
def conv_transpose1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0, output_padding: _int | Sequence[_int] = 0, groups: _int = 1,
    dilation: _int | Sequence[_int] = 1,
) -> Tensor: ...
def conv_transpose2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0, output_padding: _int | Sequence[_int] = 0, groups: _int = 1,
    dilation: _int | Sequence[_int] = 1,
) -> Tensor: ...
def conv_transpose3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0, output_padding: _int | Sequence[_int] = 0, groups: _int = 1,
    dilation: _int | Sequence[_int] = 1,
) -> Tensor: ...
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: _float = 0, size_average: _bool | None = None,
    reduce: _bool | None = None, reduction: str = 'mean',
) -> Tensor: ...
def cosine_similarity(
    x1: Tensor, x2: Tensor, dim: _int = 1, eps: _float = 1e-08, *, axis: _int | None = None,
) -> Tensor: ...
def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: _bool | None = None,
    ignore_index: _int = -100, reduce: _bool | None = None, reduction: str = 'mean',
    label_smoothing: _float = 0.0,
) -> Tensor: ...
def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor | Sequence[_int],
    target_lengths: Tensor | Sequence[_int], blank: _int = 0, reduction: str = 'mean',
    zero_infinity: _bool = False,
) -> Tensor: ...
def dropout(input: Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor: ...
def dropout1d(input: Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor: ...
def dropout2d(input: Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor: ...
def dropout3d(input: Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False) -> Tensor: ...
def elu(input: Tensor, alpha: _float = 1.0, inplace: _bool = False) -> Tensor: ...
def embedding(
    input: Tensor, weight: Tensor, padding_idx: _int | None = None, max_norm: _float | None = None,
    norm_type: _float = 2.0, scale_grad_by_freq: _bool = False, sparse: _bool = False,
) -> Tensor: ...
def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: _float | None = None,
    norm_type: _float = 2, scale_grad_by_freq: _bool = False, mode: str = 'mean', sparse: _bool = False,
    per_sample_weights: Tensor | None = None, include_last_offset: _bool = False,
    padding_idx: _int | None = None,
) -> Tensor: ...
def feature_alpha_dropout(
    input: Tensor, p: _float = 0.5, training: _bool = False, inplace: _bool = False,
) -> Tensor: ...
def fold(
    input: Tensor, output_size: _int | Sequence[_int], kernel_size: _int | Sequence[_int],
    dilation: _int | Sequence[_int] = 1, padding: _int | Sequence[_int] = 0, stride: _int | Sequence[_int] = 1,
) -> Tensor: ...
def fractional_max_pool2d(
    input: Tensor, kernel_size: _int | Sequence[_int], output_size: _int | Sequence[_int | None] = None,
    output_ratio: _float | Sequence[_float] | None = None, return_indices: _bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor: ...
def fractional_max_pool2d_with_indices(
    input: Tensor, kernel_size: _int | Sequence[_int], output_size: _int | Sequence[_int | None] = None,
    output_ratio: _float | Sequence[_float] | None = None, return_indices: _bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor: ...
def fractional_max_pool3d(
    input: Tensor, kernel_size: _int | Sequence[_int], output_size: _int | Sequence[_int | None] = None,
    output_ratio: _float | Sequence[_float] | None = None, return_indices: _bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor: ...
def fractional_max_pool3d_with_indices(
    input: Tensor, kernel_size: _int | Sequence[_int], output_size: _int | Sequence[_int | None] = None,
    output_ratio: _float | Sequence[_float] | None = None, return_indices: _bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor: ...
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | _float, full: _bool = False, eps: _float = 1e-06,
    reduction: str = 'mean',
) -> Tensor: ...
def gelu(input: Tensor, *, approximate: str = 'none') -> Tensor: ...
def glu(input: Tensor, dim: _int = -1) -> Tensor: ...
def grid_sample(
    input: Tensor, grid: Tensor, mode: str = 'bilinear', padding_mode: str = 'zeros',
    align_corners: _bool | None = None,
) -> Tensor: ...
def group_norm(
    input: Tensor, num_groups: _int, weight: Tensor | None = None, bias: Tensor | None = None,
    eps: _float = 1e-05, cudnn_enabled: _bool = True,
) -> Tensor: ...
def gumbel_softmax(
    logits: Tensor, tau: _float = 1, hard: _bool = False, eps: _float = 1e-10, dim: _int = -1,
) -> Tensor: ...
def hardshrink(input: Tensor, lambd: _float = 0.5) -> Tensor: ...
def hardsigmoid(input: Tensor, inplace: _bool = False) -> Tensor: ...
def hardswish(input: Tensor, inplace: _bool = False) -> Tensor: ...
def hardtanh(input: Tensor, min_val: _float = -1.0, max_val: _float = 1.0, inplace: _bool = False) -> Tensor: ...
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: _float = 1.0, size_average: _bool | None = None,
    reduce: _bool | None = None, reduction: str = 'mean',
) -> Tensor: ...
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = 'mean', delta: _float = 1.0, weight: Tensor | None = None,
) -> Tensor: ...
def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
    weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: _bool = True,
    momentum: _float = 0.1, eps: _float = 1e-05,
) -> Tensor: ...
def interpolate(
    input: Tensor, size: _int | Sequence[_int] | None = None,
    scale_factor: _float | Sequence[_float] | None = None, mode: str = 'nearest',
    align_corners: _bool | None = None, recompute_scale_factor: _bool | None = None, antialias: _bool = False,
) -> Tensor: ...
def kl_div(
    input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: _bool | None = None,
    reduction: str = 'mean', log_target: _bool = False,
) -> Tensor: ...
def l1_loss(
    input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: _bool | None = None,
    reduction: str = 'mean', weight: Tensor | None = None,
) -> Tensor: ...
def layer_norm(
    input: Tensor, normalized_shape: Sequence[_int], weight: Tensor | None = None, bias: Tensor | None = None,
    eps: _float = 1e-05, cudnn_enable: _bool = True,
) -> Tensor: ...
def leaky_relu(input: Tensor, negative_slope: _float = 0.01, inplace: _bool = False) -> Tensor: ...
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor: ...
def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = 'mean', ignore_index: _int | None = None,
    label_smoothing: _float = 0.0, options: LinearCrossEntropyOptions | None = None,
) -> Tensor: ...
def local_response_norm(
    input: Tensor, size: _int, alpha: _float = 0.0001, beta: _float = 0.75, k: _float = 1.0,
) -> Tensor: ...
def log_softmax(
    input: Tensor, dim: _int | None = None, _stacklevel: _int = 3, dtype: _dtype | None = None,
) -> Tensor: ...
def logsigmoid(input: Tensor) -> Tensor: ...
def lp_pool1d(
    input: Tensor, norm_type: _float, kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None, ceil_mode: _bool = False,
) -> Tensor: ...
def lp_pool2d(
    input: Tensor, norm_type: _float, kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None, ceil_mode: _bool = False,
) -> Tensor: ...
def lp_pool3d(
    input: Tensor, norm_type: _float, kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None, ceil_mode: _bool = False,
) -> Tensor: ...
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: _float = 0, size_average: _bool | None = None,
    reduce: _bool | None = None, reduction: str = 'mean',
) -> Tensor: ...
def max_pool1d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> Tensor: ...
def max_pool1d_with_indices(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> Tensor: ...
def max_pool2d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> Tensor: ...
def max_pool2d_with_indices(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> Tensor: ...
def max_pool3d(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> Tensor: ...
def max_pool3d_with_indices(
    input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0, dilation: _int | Sequence[_int] = 1, ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> Tensor: ...
def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0,
    output_size: Sequence[_int] | None = None,
) -> Tensor: ...
def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0,
    output_size: Sequence[_int] | None = None,
) -> Tensor: ...
def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None, padding: _int | Sequence[_int] = 0,
    output_size: Sequence[_int] | None = None,
) -> Tensor: ...
def mish(input: Tensor, inplace: _bool = False) -> Tensor: ...
def mse_loss(
    input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: _bool | None = None,
    reduction: str = 'mean', weight: Tensor | None = None,
) -> Tensor: ...
def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor | Number, embed_dim_to_check: _int, num_heads: _int,
    in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None,
    add_zero_attn: _bool, dropout_p: _float, out_proj_weight: Tensor, out_proj_bias: Tensor | None,
    training: _bool = True, key_padding_mask: Tensor | None = None, need_weights: _bool = True,
    attn_mask: Tensor | None = None, use_separate_proj_weight: _bool = False,
    q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None, static_k: Tensor | None = None, static_v: Tensor | None = None,
    average_attn_weights: _bool = True, is_causal: _bool = False,
) -> tuple[Tensor, Tensor | None]: ...
def multi_margin_loss(
    input: Tensor, target: Tensor, p: _float = 1, margin: _float = 1.0, weight: Tensor | None = None,
    size_average: _bool | None = None, reduce: _bool | None = None, reduction: str = 'mean',
) -> Tensor: ...
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: _bool | None = None,
    reduction: str = 'mean',
) -> Tensor: ...
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: _bool | None = None,
    reduce: _bool | None = None, reduction: str = 'mean',
) -> Tensor: ...
def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: _bool | None = None,
    ignore_index: _int = -100, reduce: _bool | None = None, reduction: str = 'mean',
) -> Tensor: ...
def normalize(
    input: Tensor, p: _float = 2.0, dim: _int = 1, eps: _float = 1e-12, out: Tensor | None = None,
) -> Tensor: ...
def one_hot(tensor: Tensor, num_classes: _int = -1) -> Tensor: ...
def pad(input: Tensor, pad: Sequence[_int], mode: str = 'constant', value: _float | None = None) -> Tensor: ...
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: _float = 2.0, eps: _float = 1e-06, keepdim: _bool = False, *,
    keepdims: _bool = False,
) -> Tensor: ...
def pdist(input: Tensor, p: _float = 2.0) -> Tensor: ...
def pixel_shuffle(input: Tensor, upscale_factor: _int) -> Tensor: ...
def pixel_unshuffle(input: Tensor, downscale_factor: _int) -> Tensor: ...
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: _bool = True, full: _bool = False,
    size_average: _bool | None = None, eps: _float = 1e-08, reduce: _bool | None = None, reduction: str = 'mean',
) -> Tensor: ...
def prelu(input: Tensor, weight: Tensor) -> Tensor: ...
def relu(input: Tensor, inplace: _bool = False) -> Tensor: ...
def relu6(input: Tensor, inplace: _bool = False) -> Tensor: ...
def rms_norm(
    input: Tensor, normalized_shape: Sequence[_int], weight: Tensor | None = None, eps: _float | None = None,
) -> Tensor: ...
def rrelu(
    input: Tensor, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False,
    inplace: _bool = False,
) -> Tensor: ...
def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor | Number, attn_mask: Tensor | None = None, dropout_p: _float = 0.0,
    is_causal: _bool = False, scale: _float | None = None, enable_gqa: _bool = False,
) -> Tensor: ...
def selu(input: Tensor, inplace: _bool = False) -> Tensor: ...
def sigmoid(input: Tensor) -> Tensor: ...
def silu(input: Tensor, inplace: _bool = False) -> Tensor: ...
def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: _bool | None = None,
    reduction: str = 'mean', beta: _float = 1.0,
) -> Tensor: ...
def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: _bool | None = None, reduce: _bool | None = None,
    reduction: str = 'mean',
) -> Tensor: ...
def softmax(
    input: Tensor, dim: _int | None = None, _stacklevel: _int = 3, dtype: _dtype | None = None,
) -> Tensor: ...
def softmin(
    input: Tensor, dim: _int | None = None, _stacklevel: _int = 3, dtype: _dtype | None = None,
) -> Tensor: ...
def softplus(input: Tensor, beta: Number = 1.0, threshold: Number = 20.0) -> Tensor: ...
def softshrink(input: Tensor, lambd: _float = 0.5) -> Tensor: ...
def softsign(input: Tensor) -> Tensor: ...
def tanh(input: Tensor) -> Tensor: ...
def tanhshrink(input: Tensor) -> Tensor: ...
def threshold(input: Tensor, threshold: Number, value: Number, inplace: _bool = False) -> Tensor: ...
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: _float = 1.0, p: Number = 2, eps: _float = 1e-06,
    swap: _bool = False, size_average: _bool | None = None, reduce: _bool | None = None, reduction: str = 'mean',
) -> Tensor: ...
def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Callable[[Tensor, Tensor],
    Tensor] | None = None, margin: _float = 1.0, swap: _bool = False, reduction: str = 'mean',
) -> Tensor: ...
def unfold(
    input: Tensor, kernel_size: _int | Sequence[_int], dilation: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0, stride: _int | Sequence[_int] = 1,
) -> Tensor: ...
def upsample(
    input: Tensor, size: _int | Sequence[_int] | None = None,
    scale_factor: _float | Sequence[_float] | None = None, mode: str = 'nearest',
    align_corners: _bool | None = None,
) -> Tensor: ...
def upsample_bilinear(
    input: Tensor, size: _int | Sequence[_int] | None = None,
    scale_factor: _float | Sequence[_float] | None = None,
) -> Tensor: ...
def upsample_nearest(
    input: Tensor, size: _int | Sequence[_int] | None = None,
    scale_factor: _float | Sequence[_float] | None = None,
) -> Tensor: ...
