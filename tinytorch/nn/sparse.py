"""Tables of vectors."""

from __future__ import annotations

from ..autograd.modes import no_grad
from ..ops.create import empty
from ..tensor import Tensor
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter


class Embedding(Module):
    """A table of ``num_embeddings`` vectors: integers of any shape to (*, embedding_dim). The vector at ``padding_idx``
    starts as zeros and has no gradient. With ``sparse`` the table's gradient is sparse. Follows
    ``torch.nn.Embedding``."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None:
            if padding_idx < -num_embeddings or padding_idx >= num_embeddings:
                raise ValueError(
                    f"Embedding: padding_idx must be within num_embeddings, got {padding_idx} for {num_embeddings}"
                )
            padding_idx %= num_embeddings
        self.padding_idx, self.max_norm, self.norm_type = padding_idx, max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        if _weight is None:
            self.weight = Parameter(empty((num_embeddings, embedding_dim), device=device, dtype=dtype), not _freeze)
            self.reset_parameters()
        else:
            if tuple(_weight.shape) != (num_embeddings, embedding_dim):
                raise ValueError(
                    f"Shape of weight does not match num_embeddings and embedding_dim: got "
                    f"{tuple(_weight.shape)}, expected {(num_embeddings, embedding_dim)}"
                )
            self.weight = Parameter(_weight, not _freeze)

    def reset_parameters(self) -> None:
        """Normal; zeros at the padding."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self):
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        defaults = {"padding_idx": None, "max_norm": None, "norm_type": 2, "scale_grad_by_freq": False}
        for name, default in defaults.items():
            value = getattr(self, name)
            if value is not default and value != default:
                text += f", {name}={value}"
        return text + (", sparse=True" if self.sparse else "")

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ):
        """An Embedding with the given table; without gradient if ``freeze``."""
        if embeddings.dim() != 2:
            raise ValueError(f"Embeddings parameter is expected to be 2-dimensional, got {embeddings.dim()} dimensions")
        rows, columns = embeddings.shape
        return cls(rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, embeddings, freeze)


class EmbeddingBag(Module):
    """Sums, means or maxima of bags of vectors of a table of ``num_embeddings``. The vector at ``padding_idx``
    starts as zeros and does not count. Follows ``torch.nn.EmbeddingBag``; gradients are dense."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        if padding_idx is not None:
            if padding_idx < -num_embeddings or padding_idx >= num_embeddings:
                raise AssertionError("padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.padding_idx, self.mode, self.sparse = padding_idx, mode, sparse
        self.include_last_offset = include_last_offset
        if _weight is None:
            self.weight = Parameter(empty((num_embeddings, embedding_dim), device=device, dtype=dtype))
            self.reset_parameters()
        elif tuple(_weight.shape) != (num_embeddings, embedding_dim):
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        else:
            self.weight = Parameter(_weight)

    reset_parameters = Embedding.reset_parameters

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ):
        """A layer whose table is a matrix that is there; without gradient if ``freeze``."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        layer = cls(
            *embeddings.shape,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            _weight=embeddings,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        layer.weight.requires_grad_(not freeze)
        return layer

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self):
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        defaults = {"max_norm": None, "norm_type": 2, "scale_grad_by_freq": False}
        parts += [f"{name}={getattr(self, name)}" for name, value in defaults.items() if getattr(self, name) != value]
        parts.append(f"mode={self.mode!r}")
        return ", ".join(parts + ([] if self.padding_idx is None else [f"padding_idx={self.padding_idx}"]))
