"""The adaptive softmax: many classes, of which few are common."""

from __future__ import annotations

from typing import NamedTuple

from ..ops.join import cat
from ..tensor import Tensor
from . import functional as F
from .containers import ModuleList, Sequential
from .linear import Linear
from .module import Module


class _Result(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """The log-probabilities of targets among classes that are sorted by how common they are. Those up to ``cutoffs[0]``
    have a place each in the head, the others share one with their cluster, where they have a projection of
    ``in_features / div_value ** k`` features. ``forward(input, target)``, of (N, in_features) and (N,), or without
    N, gives the pair ``output``, ``loss`` (the mean of -output). Follows ``torch.nn.AdaptiveLogSoftmaxWithLoss``;
    ValueError for cutoffs that do not rise from 1 to n_classes - 1, RuntimeError for inputs that do not fit."""

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs,
        div_value: float = 4.0,
        head_bias: bool = False,
        device=None,
        dtype=None,
    ):
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            any(int(c) != c for c in cutoffs)
            or any(a >= b for a, b in zip((0, *cutoffs), cutoffs))
            or cutoffs[-1] > n_classes - 1
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1"
            )
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*cutoffs, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for k, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            narrow = int(in_features // div_value ** (k + 1))
            self.tail.append(
                Sequential(
                    Linear(in_features, narrow, False, device, dtype), Linear(narrow, high - low, False, device, dtype)
                )
            )

    def reset_parameters(self) -> None:
        """New initial values of all layers."""
        self.head.reset_parameters()
        for narrow, classes in self.tail:
            narrow.reset_parameters()
            classes.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _Result:
        if target_.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if input_.dim() != target_.dim() + 1:
            raise RuntimeError(
                f"{target_.dim()}D target tensor expects {target_.dim() + 1}D input tensors, but found inputs of "
                f"size {input_.size()}"
            )
        if target_.dim() and input_.shape[0] != target_.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        input, target = (input_, target_) if target_.dim() else (input_.unsqueeze(0), target_.unsqueeze(0))
        if target.numel() and not 0 <= int(target.amin()) <= int(target.amax()) < self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{target.min().item()}, "
                f"{target.max().item()}] were found. "
            )
        place, output = target.clone(), input.new_zeros(target.shape[0])
        for k, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel():
                place = place.index_fill(0, rows, self.shortlist_size + k)
                within = F.log_softmax(self.tail[k](input.index_select(0, rows)), dim=1)
                own = within.gather(1, (target.index_select(0, rows) - low).unsqueeze(1)).squeeze(1)
                output = output.index_copy(0, rows, own)
        output = output + F.log_softmax(self.head(input), dim=1).gather(1, place.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _Result(output if target_.dim() else output.squeeze(0), loss)

    def _log_prob(self, input: Tensor, head: Tensor) -> Tensor:
        head = F.log_softmax(head, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for k, classes in enumerate(self.tail):
            parts.append(F.log_softmax(classes(input), dim=1) + head[:, self.shortlist_size + k].unsqueeze(1))
        return cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes: (N, in_features) to (N, n_classes)."""
        return self._log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row: (N, in_features) to (N,)."""
        head = self.head(input)
        best = head.argmax(1)
        rows = (best >= self.shortlist_size).nonzero().squeeze(1)  # theirs is in a cluster, perhaps
        if not rows.numel():
            return best
        return best.index_copy(0, rows, self._log_prob(input[rows], head[rows]).argmax(1))
