"""Functions of neural networks, without state: ``tinytorch.nn.functional``. Most are gathered here from ops/, where
their kernels and derivatives are; those below are compositions."""

from __future__ import annotations

import inspect
import math as _math
from types import FunctionType

from ..dtypes import finfo as _finfo
from ..ops import declare as _declare
from ..ops.activation import (
    celu,
    elu,
    gelu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    logsigmoid,
    mish,
    prelu,
    relu,
    relu6,
    selu,
    silu,
    softplus,
    softshrink,
    softsign,
    tanhshrink,
    threshold,
)
from ..ops.attention import scaled_dot_product_attention
from ..ops.class_loss import cross_entropy, nll_loss
from ..ops.conv import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d

from ..ops.distance import pdist
from ..ops.fitting import fitted as _fitted
from ..ops.gather import embedding as _rows
from ..ops.linear import bilinear, linear
from ..ops.sparse_embedding import sparse_embedding as _sparse_rows
from ..ops.linear_cross_entropy import linear_cross_entropy
from ..ops.loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    gaussian_nll_loss,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    poisson_nll_loss,
    smooth_l1_loss,
)
from ..ops.margin_loss import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    pairwise_distance,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from ..ops.multi_head_attention import multi_head_attention_forward
from ..ops.norm import group_norm, layer_norm, rms_norm
from ..ops.pad import pad
from ..ops.dropout import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout, rrelu
from ..ops.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from ..ops.rearrange import one_hot
from ..ops.bags import embedding_bag
from ..ops.bags import shorten as _shorten
from ..ops.batch_norm import batch_norm, instance_norm, local_response_norm
from ..ops.shuffle import pixel_shuffle, pixel_unshuffle, channel_shuffle
from ..ops.unfold import fold, unfold
from ..ops.softmax import implicit_dim as _implicit_dim
from ..ops.softmax import log_softmax as _log_softmax
from ..ops.softmax import softmax as _softmax
from ..ops.softmax import softmin
from ..ops.interpolate import interpolate, upsample, upsample_nearest, upsample_bilinear
from ..ops.grid_sample import grid_sample, affine_grid
from ..ops.grouped_mm import grouped_mm
from ..ops.ctc import ctc_loss
from ..tensor import FUNCTIONS


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """exp(x) / sum(exp(x)) along ``dim``. Follows ``torch.nn.functional.softmax``.

    Args:
        _stacklevel: taken as in PyTorch
    Returns:
        A tensor of the shape of ``input``, whose sums along ``dim`` are 1.
    Raises:
        RuntimeError: integers without a floating ``dtype``
    """
    try:
        return _softmax(input, _implicit_dim("softmax", input, dim), dtype)
    except Exception as exc:
        _declare.refuse(exc)
        raise


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """log(softmax(x)) along ``dim``. Follows ``torch.nn.functional.log_softmax``. Otherwise like ``softmax``.

    Returns:
        A tensor of the shape of ``input``.
    """
    try:
        return _log_softmax(input, _implicit_dim("log_softmax", input, dim), dtype)
    except Exception as exc:
        _declare.refuse(exc)
        raise


def sigmoid(input):
    """1 / (1 + exp(-x))."""
    return input.sigmoid()


def tanh(input):
    """The hyperbolic tangent."""
    return input.tanh()


# Samples.


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A sample from the Gumbel-softmax distribution; ``hard`` gives one-hot values with the soft ones' gradient (Jang
    et al. 2017, arXiv:1611.01144). Follows ``torch.nn.functional.gumbel_softmax``."""
    noise = -logits.detach().clone().exponential_().log()
    soft = _softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    winner = soft.argmax(dim, keepdim=True)
    chosen = soft.detach().new_zeros(tuple(soft.shape)).scatter_(dim, winner, 1.0)
    return chosen - soft.detach() + soft


# Tables, distances, attention.


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """The rows of ``weight`` (n, d) that the int64 or int32 tensor ``input`` names: shape (*input.shape, d). The row
    ``padding_idx`` gets no gradient; rows longer than ``max_norm`` are shortened to it in place first. IndexError out
    of range. Follows ``torch.nn.functional.embedding``.

    Args:
        input: an integer tensor of numbers of rows
        weight: a matrix (n, d)
        padding_idx: a row that gets no gradient, or None
        max_norm: the largest norm that a row may have: longer ones are shortened in place
        norm_type: the order of that norm
        scale_grad_by_freq: whether to divide a row's gradient by how often it occurs
        sparse: whether the gradient of ``weight`` is sparse
    Returns:
        A tensor (*, d), where * is the shape of ``input``.
    Raises:
        IndexError: a number is out of range
        NotImplementedError: a sparse gradient of a computed ``weight``
    """
    try:
        if padding_idx is not None and not weight._h.ndim:
            raise IndexError("embedding: weight should have 2 dimensions, got 0")
        n = weight._h.shape[0] if weight._h.ndim else 0
        if padding_idx is not None and not -n <= padding_idx < n:
            raise AssertionError("Padding_idx must be within num_embeddings")
        if max_norm is not None:
            _shorten(weight.detach(), input, max_norm, norm_type)
        padding_idx = None if padding_idx is None else padding_idx % n
        if sparse and weight.requires_grad:
            if not weight.is_leaf:
                raise NotImplementedError("embedding: sparse gradients are implemented for leaves alone")
            return _sparse_rows(weight, input, padding_idx, scale_grad_by_freq)
        return _rows(weight, input, padding_idx, scale_grad_by_freq)
    except Exception as exc:
        _declare.refuse(exc)
        raise


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """``input`` divided by its p-norm along ``dim``, which is not taken below ``eps``. Follows
    ``torch.nn.functional.normalize``.

    Args:
        p: the order of the norm
        dim: the dimension, or several
        eps: the least divisor
    Returns:
        A tensor of the shape of ``input``.
    """
    result = input / input.norm(p, dim, keepdim=True).clamp_min(eps)
    return result if out is None else out.copy_(result)


@_declare.function
def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """The cosine of the angle between x1 and x2 along ``dim``, norms not taken below ``eps``. Follows
    ``torch.nn.functional.cosine_similarity``.

    Args:
        x1: a tensor
        x2: a tensor, broadcast with ``x1``
        dim: the dimension of the vectors
        eps: the least norm
    Returns:
        A tensor without dimension ``dim``.
    Raises:
        RuntimeError: the shapes do not broadcast, or ``eps`` is negative
    """
    _declare.real_only("cosine_similarity", x1=x1, x2=x2)
    if not eps >= 0:
        raise RuntimeError(f"cosine_similarity: eps must not be negative, got {eps}")
    if x1.shape != x2.shape:
        x1, x2 = FUNCTIONS["broadcast_tensors"](x1, x2)
    eps = _fitted(float(eps), x1._h.dtype, computing=True)
    if not eps >= 0:
        raise RuntimeError(f"cosine_similarity: eps must be non-negative, got {eps}")
    n1, n2 = x1.norm(2, dim, keepdim=True), x2.norm(2, dim, keepdim=True)
    if x1.is_floating_point() and eps > _finfo(x1.dtype).max:  # of a half type, which is computed wider
        eps = _math.inf
    return (x1 / n1.clamp_min(eps) * (x2 / n2.clamp_min(eps))).sum(dim)


def _writing(fn):
    """The activation ``fn`` in place, a function without that parameter."""
    shown = inspect.signature(fn)

    def written(*args, **kwargs):
        return fn(*args, inplace=True, **kwargs)

    written.__signature__ = shown.replace(parameters=[p for p in shown.parameters.values() if p.name != "inplace"])
    written.__name__ = written.__qualname__ = fn.__name__ + "_"
    written.__doc__ = f"``{fn.__name__}`` in place. Follows ``torch.nn.functional.{fn.__name__}_``."
    return written


celu_, elu_, hardtanh_, leaky_relu_ = (_writing(fn) for fn in (celu, elu, hardtanh, leaky_relu))
rrelu_, selu_, threshold_, relu_ = (_writing(fn) for fn in (rrelu, selu, threshold, relu))

_RANDOM = {
    "alpha_dropout",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
    "gumbel_softmax",
    "multi_head_attention_forward",
    "rrelu",
    "scaled_dot_product_attention",
}
__all__ = sorted(name for name, fn in globals().items() if isinstance(fn, FunctionType) and not name.startswith("_"))
for _name in __all__:
    _fn = globals()[_name]
    if _name in _declare.OPS and _declare.OPS[_name].function is _fn:  # tinytorch's own, too
        _declare.names_of("nn.functional")[_name] = _fn
    else:
        globals()[_name] = _declare.publish(_fn, namespace="nn.functional", pure=_name not in _RANDOM)
