"""Losses of class indices: cross_entropy and nll_loss, forward and backward one kernel each.

They are sums over rows i and classes c of -q[i, c] log p[i, c], where q holds the weights of row i's target and, for
cross_entropy, log p is log_softmax of the input. So d loss / d input = p sum(q) - q, or -q for nll_loss.
"""

from __future__ import annotations

import math
import operator

from ..backends.cpu import error, ffi, lib
from ..dtypes import FLOATING, int64
from ..tensor import Tensor, attempted, gives_tensors, owned
from .softmax import _log_softmax, _softmax
from .declare import computed, primitive, refuse
from .loss import legacy, reduction_code

NULL = ffi.NULL
_INT64 = lib.TT_I64
_CLASSES = (lib.TT_I64, lib.TT_U8)


def _formula(g, input, target, weight, stats, logits, wide, reduction, ignore, smoothing):
    """In differentiable operations."""
    half = input.dtype
    if wide:
        input = input.to(stats.dtype)
    q = owned.tt_class_targets(
        target._h, NULL if weight is None else weight._h, input.shape[1], input._h.dtype, ignore, smoothing
    )
    if reduction == 0:
        g = g.unsqueeze(1)
    elif reduction == 1:
        g = g / stats[-1].to(input.dtype)
    grad = _softmax(input, 1) * q.sum(1, keepdim=True) - q if logits else -q
    grad = grad * g
    return grad.to(half) if wide else grad


def _first_order(g, input, target, weight, stats, logits, wide, reduction, ignore, smoothing):
    grad = attempted.tt_class_loss_backward(
        g._h, input._h, target._h, NULL if weight is None else weight._h, stats._h, logits, reduction, ignore, smoothing
    )
    return computed(grad, _formula, g, input, target, weight, stats, logits, wide, reduction, ignore, smoothing)


_class_loss = gives_tensors(lib.tt_class_loss, raises=False)


def _declare(name: str):
    """The operator of a matrix and a vector of class indices. Besides the loss it gives what the kernel notes of each
    row."""

    @primitive(name=name, extra=("stats",), input=_formula, first_order={"input": _first_order})
    def class_loss(input, target, weight, logits, wide, reduction, ignore, smoothing):
        handles = (input._h, target._h, NULL if weight is None else weight._h)
        made = _class_loss(*handles, logits, wide, reduction, ignore, smoothing, ffi.new("tt_array *[1]"))
        if made is None:
            raise error(name)
        return made

    return class_loss


_cross_entropy, _nll_loss = _declare("cross_entropy"), _declare("nll_loss")


def _any_shape(loss, input, target, weight, logits, wide, reduction, ignore, smoothing):
    """Brings (C) and (N, C, d1, d2, ...) to a matrix, classes last."""
    op, shape, wanted = loss.op.name, tuple(input.shape), tuple(target.shape)
    if target._h.dtype == lib.TT_U8 and len(shape) < 3:
        target = target.to(int64)
    if logits and input._h.numel and shape and not FLOATING[input._h.dtype]:
        raise NotImplementedError(f"{op}: not implemented for '{input.dtype.name}'")
    if len(shape) == 1:
        if len(wanted) > 1:
            raise RuntimeError(f"{op}: a target of 0 or 1 dimensions expected, got {list(wanted)}")
        if target._h.dtype != _INT64:
            raise RuntimeError(f"{op}: expected a target of int64, got {target.dtype.name}")
        if wanted and wanted[0] != 1:
            raise ValueError(f"{op}: Expected input batch_size (1) to match target batch_size ({wanted[0]}).")
        out = loss(input.unsqueeze(0), target.reshape(-1), weight, logits, wide, reduction, ignore, smoothing)[0]
        return out.reshape(wanted) if reduction == 0 else out
    if len(shape) < 2:
        raise (IndexError if logits else ValueError)(f"{op}: input should be at least 1D, got 0D")
    batch = wanted[0] if wanted else 0
    if not wanted or shape[0] != batch:
        raise ValueError(f"{op}: Expected input batch_size ({shape[0]}) to match target batch_size ({batch}).")
    if shape[2:] != wanted[1:]:
        raise RuntimeError(f"{op}: Expected target size {[shape[0], *shape[2:]]}, got {list(wanted)}")
    rows = input.movedim(1, -1).reshape(target._h.numel, shape[1])
    out = loss(rows, target.reshape(-1), weight, logits, wide, reduction, ignore, smoothing)[0]
    return out.reshape(wanted) if reduction == 0 else out


def cross_entropy(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0
):
    """-log softmax(input)[target]: logits (N, C), (C) or (N, C, d1, ...); target either int64 class indices (N), () or
    (N, d1, ...), or probabilities of input's shape. ``weight``: of each class; rows with ``ignore_index`` do not
    count; the mean is over the weights of the targets. IndexError for a target that is no class. Follows
    ``torch.nn.functional.cross_entropy``.

    Args:
        input: logits (C), (N, C) or (N, C, *)
        target: int64 classes (), (N) or (N, *), or probabilities of the shape of ``input``
        weight: a weight for each class (C), or None
        ignore_index: a class whose rows do not count
        label_smoothing: how much of the target's probability all classes share
    Returns:
        A 0-d tensor, or losses of the shape of the classes.
    Raises:
        ValueError: shapes do not match, or ``reduction`` is unknown
        IndexError: a class is out of range
    """
    try:
        if size_average is not None or reduce is not None:
            reduction = legacy(reduction, size_average, reduce)
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"cross_entropy: label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
        a, b = input._h, target._h
        if a.ndim == 2 and b.ndim == 1 and b.dtype == _INT64:
            reduction = reduction_code(reduction)
            return _cross_entropy(input, target, weight, 1, 0, reduction, ignore_index, label_smoothing)[0]
        if input.shape == target.shape:
            if operator.index(ignore_index) >= 0:
                raise RuntimeError("cross_entropy: ignore_index is not supported for floating point target")
            return _of_probabilities(input, target, weight, reduction, label_smoothing)
        return _any_shape(
            _cross_entropy, input, target, weight, 1, 0, reduction_code(reduction), ignore_index, label_smoothing
        )
    except Exception as exc:
        refuse(exc)
        raise


def cross_entropy_of_halves(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0
):
    """``cross_entropy(input.float(), ...)`` for logits of half types: its bits, without that copy of the logits where
    the target is of classes."""
    if isinstance(weight, Tensor):
        weight = weight.float()
    classes = isinstance(target, Tensor) and target._h.dtype in _CLASSES
    if size_average is None and reduce is None and classes and 0 <= label_smoothing <= 1:
        code = reduction_code(reduction)
        return _any_shape(_cross_entropy, input, target, weight, 1, 1, code, ignore_index, label_smoothing)
    return cross_entropy(input.float(), target, weight, size_average, ignore_index, reduce, reduction, label_smoothing)


def _of_probabilities(input, target, weight, reduction, smoothing):
    if not FLOATING[target._h.dtype]:
        raise RuntimeError(
            f"cross_entropy: Expected floating point type for target with class probabilities, got {target.dtype.name}"
        )
    if not input._h.ndim:
        raise IndexError("cross_entropy: input should be at least 1D, got 0D")
    dim = 0 if input._h.ndim == 1 else 1
    classes = input.shape[dim]
    if smoothing:
        target = target * (1 - smoothing) + smoothing / classes
    terms = _log_softmax(input, dim) * target
    if weight is not None:
        if tuple(weight.shape) != (classes,):
            raise RuntimeError(
                f"cross_entropy: weight tensor should be defined either for all {classes} classes or no "
                f"classes but got weight tensor of shape: {list(weight.shape)}"
            )
        terms = terms * (weight if dim == 0 else weight.reshape([-1] + [1] * (input._h.ndim - 2)))
    code = reduction_code(reduction)
    if code == 0:
        return -terms.sum(dim)
    return -terms.sum() / (input._h.numel / classes if classes else math.nan) if code == 1 else -terms.sum()


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """-input[target] for log-probabilities: shapes, weights and ``ignore_index`` as in cross_entropy. Follows
    ``torch.nn.functional.nll_loss``. Otherwise like ``cross_entropy``.

    Args:
        input: log-probabilities (C), (N, C) or (N, C, *)
        target: int64 classes (), (N) or (N, *)
    Returns:
        A 0-d tensor, or losses of the shape of ``target``.
    """
    try:
        reduction = legacy(reduction, size_average, reduce)
        if input._h.ndim == 2 and target._h.ndim == 1 and target._h.dtype == _INT64:
            return _nll_loss(input, target, weight, 0, 0, reduction_code(reduction), ignore_index, 0.0)[0]
        return _any_shape(_nll_loss, input, target, weight, 0, 0, reduction_code(reduction), ignore_index, 0.0)
    except Exception as exc:
        refuse(exc)
        raise
