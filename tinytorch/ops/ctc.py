"""The loss of connectionist temporal classification (Graves et al. 2006).

Targets are extended by blanks before, between and behind their labels: L = 2 S + 1 states. alpha[t, s] is the logarithm
of the probability of all ways to state s at time t, beta[t, s] that of all ways from there to the end, both with what
time t itself gives. The gradient is that for log-probabilities which come of log_softmax, as PyTorch has it.
"""

from __future__ import annotations

import math

from ..autograd.formulas import not_implemented
from ..dtypes import int64
from ..tensor import Tensor
from .create import as_tensor
from .declare import function, ints, primitive
from .join import stack
from .loss import reduction_code
from .pad import pad
from .pointwise import _where as where
from .ranges import arange

_INF = math.inf


def _later(x: Tensor, by: int) -> Tensor:
    """States ``by`` places further (negative: back), -inf where there are none."""
    return pad(x, (by, -by), value=-_INF)


def _ways(x: Tensor, by: int, may_skip: Tensor) -> Tensor:
    """From state s itself, its neighbour and, where no blank has to lie between, the one after."""
    return x.logaddexp(_later(x, by)).logaddexp(where(may_skip, _later(x, 2 * by), x.new_full((), -_INF)))


def _states(targets: Tensor, blank: int):
    """The labels of the states, (N, L), and where the label of two states before is another one."""
    n, s = targets.shape
    labels = targets.new_full((n, 2 * s + 1), blank)
    labels[:, 1::2] = targets
    other = labels.new_zeros((n, 2 * s + 1)).bool()
    other[:, 2:] = (labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2])
    return labels, other


def _last_states(x: Tensor, lengths: Tensor) -> Tensor:
    """The logarithm of the sum of the two states in which a target may end."""
    end = x.gather(1, (2 * lengths).unsqueeze(1)).squeeze(1)
    before = x.gather(1, (2 * lengths - 1).clamp(min=0).unsqueeze(1)).squeeze(1)
    return where(lengths > 0, end.logaddexp(before), end)


def _forward(emitted: Tensor, other: Tensor, times: Tensor, lengths: Tensor):
    """alpha, (T, N, L), and the loss of each target."""
    steps, n, states = emitted.shape
    nothing = emitted.new_full((), -_INF)
    number = arange(states, device=emitted.device)
    alpha = where((number == 0) | ((number == 1) & (lengths > 0).unsqueeze(1)), emitted[0], nothing)
    alphas = [alpha]
    for t in range(1, steps):
        alpha = where((times > t).unsqueeze(1), _ways(alpha, 1, other) + emitted[t], alpha)
        alphas.append(alpha)
    loss = -_last_states(alpha, lengths)
    return stack(alphas), where(times > 0, loss, where(lengths > 0, loss.new_full((), _INF), loss.new_zeros(())))


def _backward_states(emitted: Tensor, other: Tensor, times: Tensor, lengths: Tensor) -> Tensor:
    """beta, (T, N, L)."""
    steps, n, states = emitted.shape
    nothing = emitted.new_full((), -_INF)
    number, end = arange(states, device=emitted.device), (2 * lengths).unsqueeze(1)
    last = (number == end) | (number == end - 1)
    skip = pad(other[:, 2:], (0, 2)) if states > 2 else other
    beta, betas = nothing.expand(n, states), []
    for t in reversed(range(steps)):
        on = _ways(beta, -1, skip) + emitted[t]
        beta = where((times == t + 1).unsqueeze(1), where(last, emitted[t], nothing), on)
        beta = where((times > t).unsqueeze(1), beta, nothing)
        betas.append(beta)
    return stack(betas[::-1])


@primitive(
    title="CtcLossBackward0",
    extra=("alpha",),
    log_probs=lambda g, log_probs, targets, times, lengths, blank, zero_infinity, out, alpha: _ctc_backward(
        g, log_probs, targets, times, lengths, blank, zero_infinity, out.detach(), alpha
    ),
)
def _ctc_loss(log_probs, targets, times, lengths, blank, zero_infinity):
    labels, other = _states(targets, blank)
    emitted = log_probs.detach().gather(2, labels.expand(log_probs.shape[0], -1, -1))
    alpha, loss = _forward(emitted, other, times, lengths)
    return loss, alpha


@primitive(
    name="ctc_loss_backward",
    g=not_implemented("_ctc_loss_backward"),
    log_probs=not_implemented("_ctc_loss_backward"),
)
def _ctc_backward(g, log_probs, targets, times, lengths, blank, zero_infinity, loss, alpha):
    log_probs, g = log_probs.detach(), g.detach()
    steps = log_probs.shape[0]
    labels, other = _states(targets, blank)
    labels = labels.expand(steps, -1, -1)
    emitted = log_probs.gather(2, labels)
    beta = _backward_states(emitted, other, times, lengths)
    within = alpha + beta
    share = where(within == -_INF, within.new_zeros(()), (within - emitted + loss.unsqueeze(1)).exp())
    grad = (log_probs.exp() - log_probs.new_zeros(tuple(log_probs.shape)).scatter_add(2, labels, share)) * g.unsqueeze(
        1
    )
    done = arange(steps, device=g.device).unsqueeze(1) >= times
    if zero_infinity:
        done = done | (loss == _INF)
    return grad.masked_fill(done.unsqueeze(2), 0)


def _lengths(name: str, lengths, other, batch: int, device) -> Tensor:
    if isinstance(lengths, Tensor) and not isinstance(other, Tensor):
        raise TypeError("ctc_loss(): input_lengths and target_lengths must both be Tensors, or both sequences")
    if isinstance(lengths, Tensor) and (lengths.is_floating_point() or lengths.is_complex()):
        raise RuntimeError(f"ctc_loss: {name} must be integral")
    if not isinstance(lengths, Tensor):
        lengths = ints((list(lengths),))
    lengths = as_tensor(lengths, dtype=int64, device=device).reshape(-1)
    if len(lengths) != batch:
        raise RuntimeError(f"ctc_loss: {name} must be of size batch_size")
    return lengths


def _rows(targets: Tensor, lengths: Tensor, longest: int, blank: int) -> Tensor:
    """The targets of each element of the batch, one after the other in a vector, as rows."""
    starts = lengths.cumsum(0) - lengths
    place = arange(longest, device=targets.device)
    at = (starts.unsqueeze(1) + place).clamp(max=max(len(targets) - 1, 0))
    rows = targets[at] if len(targets) else at
    return where(place < lengths.unsqueeze(1), rows, rows.new_full((), blank))


@function(namespace="nn.functional")
def ctc_loss(
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    blank=0,
    reduction="mean",
    zero_infinity=False,
):
    """The negative logarithm of the probability of all alignments of ``targets`` with ``log_probs``, of shape
    (T, N, C) or (T, C). Follows ``torch.nn.functional.ctc_loss``; it has no second derivative, as there.

    Args:
        log_probs: logarithms of probabilities of C labels at T times
        targets: labels, (N, S), or one after the other in a vector
        input_lengths: how many of the T times each element of the batch has
        target_lengths: how many labels each target has
        blank: the label that stands for none
        reduction: ``'mean'`` of the losses over their targets' lengths, ``'sum'`` of the losses, or ``'none'``
        zero_infinity: whether losses that are infinite, as of a target that is too long, count as 0
    Returns:
        A 0-d tensor, or (N).
    Raises:
        ValueError: ``reduction`` is unknown
        RuntimeError: a label or a length is out of range
    """
    code = reduction_code(reduction)
    for name, t in (("log_probs", log_probs), ("targets", targets)):
        if not isinstance(t, Tensor):
            raise TypeError(f"ctc_loss(): argument '{name}' must be Tensor, not {type(t).__name__}")
    if not log_probs._h.ndim:
        raise IndexError("ctc_loss: Dimension out of range: log_probs has no dimensions")
    if log_probs.dtype.name not in ("float32", "float64"):
        raise NotImplementedError(f"ctc_loss: not implemented for '{log_probs.dtype.name}'")
    if targets.is_floating_point() or targets.is_complex():
        raise RuntimeError("ctc_loss: targets must be integral")
    batched = log_probs._h.ndim == 3
    if log_probs._h.ndim not in (2, 3) or targets._h.ndim not in (1, 2):
        raise RuntimeError("ctc_loss: expected log_probs of 2 or 3 dimensions, and targets of 1 or 2")
    rows = log_probs if batched else log_probs.unsqueeze(1)
    steps, batch, classes = rows.shape
    if not 0 <= blank < classes:
        raise RuntimeError(f"ctc_loss: blank must be in label range, got {blank}")
    times = _lengths("input_lengths", input_lengths, target_lengths, batch, rows.device)
    lengths = _lengths("target_lengths", target_lengths, input_lengths, batch, rows.device)
    longest = int(lengths.max()) if batch else 0
    if batch and (int(times.max()) > steps or int(times.min()) < 0 or int(lengths.min()) < 0):
        raise RuntimeError(f"ctc_loss: Expected input_lengths to have value at most {steps}, and lengths of at least 0")
    targets = targets.long()
    if targets._h.ndim == 1:
        if int(lengths.sum()) > len(targets):
            raise RuntimeError(f"ctc_loss: expected {int(lengths.sum())} targets, but got {len(targets)}")
        targets = _rows(targets, lengths, longest, blank)
    else:
        if targets.shape[0] != batch or targets.shape[1] < longest:
            raise RuntimeError(
                f"ctc_loss: Expected targets of shape ({batch}, {longest}) at least, but got {list(targets.shape)}"
            )
        targets = targets[:, :longest]
        targets = where(arange(longest, device=targets.device) < lengths.unsqueeze(1), targets, targets * 0 + blank)
    if targets._h.numel and not bool(((targets >= 0) & (targets < classes)).all()):
        raise RuntimeError("ctc_loss: a target is out of the range of labels")
    losses = _ctc_loss(rows, targets, times, lengths, blank, bool(zero_infinity))[0]
    if zero_infinity:
        losses = where(losses == _INF, losses.new_zeros(()), losses)
    if code == 1:
        return (losses / lengths.clamp(min=1).to(losses.dtype)).mean()
    return losses.sum() if code == 2 else losses if batched else losses.squeeze(0)
