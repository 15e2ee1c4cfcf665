"""What a tensor says about its place in the graph: requires_grad, grad, grad_fn, detach, data."""

from __future__ import annotations

import warnings

from ..backends.cpu import error, lib
from ..backends.native import last_write
from ..dtypes import DIFFERENTIABLE
from ..tensor import Tensor, gives_tensor, owned
from .engine import retain
from .node import AccumulateGrad, Port, count, describe
from .modes import current
from .views import FLAG_INFERENCE, FLAG_VIEW, Invalid, base_of, refresh


def make_leaf(t: Tensor) -> Tensor:
    """Makes ``t`` a leaf that requires grad; RuntimeError unless its dtype is floating."""
    if not DIFFERENTIABLE[t._h.dtype]:
        raise RuntimeError(f"Only Tensors of floating point and complex dtype can require gradients, got {t.dtype!r}")
    if t._h.flags & FLAG_INFERENCE and not current().inference:
        raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
    t._grad = None
    t._node = AccumulateGrad(t)
    return t


def _requires_grad(self) -> bool:
    if self._h.flags & FLAG_VIEW:
        refresh(self)
    return self._node is not None


def _set_requires_grad(self, flag: bool) -> None:
    if self._h.flags & FLAG_VIEW:
        refresh(self)
    node = self._node
    if not isinstance(flag, bool):
        raise RuntimeError(f"requires_grad must be a bool, got {type(flag).__name__}")
    if node is not None and type(node) is not AccumulateGrad:
        if not flag:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a "
                "computed variable in a subgraph that doesn't require differentiation use "
                "var_no_grad = var.detach()."
            )
        return
    if flag and node is None:
        if not DIFFERENTIABLE[self._h.dtype]:
            raise RuntimeError(f"only Tensors of floating point dtype can require gradients, got {self.dtype!r}")
        make_leaf(self)
    elif not flag:
        self._node = None


def _requires_grad_(self, requires_grad: bool = True):
    """Says in place whether gradients of this leaf are wanted. RuntimeError for non-floating dtypes and for computed
    tensors. Follows ``torch.Tensor.requires_grad_``."""
    _set_requires_grad(self, requires_grad)
    return self


def _is_leaf(self) -> bool:
    if self._h.flags & FLAG_VIEW:
        refresh(self)
    return self._node is None or type(self._node) is AccumulateGrad


def _grad_fn(self):
    refresh(self)
    node = self._node
    if type(node) is Port:
        return node.edges[0]
    if type(node) is Invalid:
        raise RuntimeError(node.saved[0])
    return None if type(node) is AccumulateGrad else node


def _set_grad_fn(self, value) -> None:
    if value is not None:
        raise RuntimeError("_grad_fn can be only set to None")
    _detach_(self)


def _deleted_grad_fn(self):
    raise RuntimeError("Deletion of _grad_fn not allowed. Detach tensor instead!")


def _output_nr(self) -> int:
    refresh(self)
    return self._node.saved[0] if type(self._node) is Port else 0


def _get_grad(self):
    grad = getattr(self, "_grad", None)
    if grad is None and self._node is not None and type(self._node) is not AccumulateGrad and not _retains_grad(self):
        warnings.warn(
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
            "attribute won't be populated during autograd.backward(). If you indeed want the .grad field to "
            "be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor.",
            stacklevel=2,
        )
    return grad


def _set_grad(self, value) -> None:
    if value is None:
        self._grad = None
        return
    if not isinstance(value, Tensor):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}")
    if value is self:
        raise RuntimeError("can't assign Variable as its own grad")
    if value.dtype is not self.dtype:
        raise RuntimeError(
            f"assigned grad has data of a different type: the tensor is a {describe(self)}, the grad a "
            f"{describe(value)}"
        )
    if value.shape != self.shape:
        raise RuntimeError(
            f"assigned grad has data of a different size: the tensor is a {describe(self)}, the grad a "
            f"{describe(value)}"
        )
    if value._h.storage.device != self._h.storage.device:
        raise RuntimeError(
            f"assigned grad has data located on a different device: the tensor is on {self.device}, the "
            f"grad on {value.device}"
        )
    self._grad = value


def _retain_grad(self) -> None:
    """Makes backward keep this computed tensor's gradient in ``grad``; nothing for leaves. RuntimeError if it does
    not require grad. Follows ``torch.Tensor.retain_grad``."""
    refresh(self)
    if self._node is None:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if type(self._node) is not AccumulateGrad:
        retain(self)


def _retains_grad(self) -> bool:
    extra = self._node.extra if self._node is not None else None
    return extra is not None and extra.retains is not None and any(ref() is self for ref in extra.retains)


def _detach(self):
    """The same memory without history: a view that never requires grad. Follows ``torch.Tensor.detach``."""
    return owned.tt_alias(self._h)


def _detach_(self):
    """Cuts this tensor from its history, in place. RuntimeError for views. Follows ``torch.Tensor.detach_``."""
    if self._h.flags & FLAG_VIEW:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using "
            "DistributedDataParallel, detach before wrapping."
        )
    self._node = None
    last_write[0] = count()  # backward looks at what was saved before, as after a write
    return self


def _set_data(self, value) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    if self._node is not None and not DIFFERENTIABLE[value._h.dtype]:
        raise RuntimeError(
            f"data set to a tensor that requires gradients must be floating point or complex dtype, got {value.dtype!r}"
        )
    shown = owned.tt_alias(value._h)
    if lib.tt_keep_counter(shown._h, self._h) < 0:
        raise error()
    self._h, shown._h = shown._h, self._h


_apart = gives_tensor(lib.tt_apart)


def _get_data(self):
    shown = _apart(self._h)
    if shown is None:
        raise error()
    return shown


def _deleted_data(self):
    raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")


def _get_base(self):
    return base_of(self)


def _is_view(self) -> bool:
    """Does it show the memory of another tensor, its ``_base``?"""
    return self._h.flags & FLAG_VIEW != 0


def _is_inference(self) -> bool:
    """Was it made in inference mode?"""
    return self._h.flags & FLAG_INFERENCE != 0


Tensor.requires_grad = property(
    _requires_grad,
    _set_requires_grad,
    lambda self: _set_requires_grad(self, None),
    "Are gradients of this tensor wanted?",
)
Tensor.is_leaf = property(_is_leaf, doc="Was it made by the user, or without recording?")
Tensor.grad = property(
    _get_grad, _set_grad, lambda self: _set_grad(self, None), doc="The gradient that backward accumulated, or None."
)
Tensor.grad_fn = property(_grad_fn, doc="The Node that made this tensor; None for leaves.")
Tensor._grad_fn = property(_grad_fn, _set_grad_fn, _deleted_grad_fn, "The same; set to None, it detaches in place.")
Tensor.output_nr = property(_output_nr, doc="Which output of its Node this is.")
Tensor.retains_grad = property(_retains_grad, doc="Does backward keep the gradient of this computed tensor?")
Tensor.data = property(
    _get_data,
    _set_data,
    _deleted_data,
    "The same memory without history, whose writes backward does not notice; assignable.",
)
Tensor._base = property(_get_base, doc="The tensor of which this one is a view, or None.")
Tensor.requires_grad_, Tensor.retain_grad = _requires_grad_, _retain_grad
Tensor.detach, Tensor.detach_, Tensor._is_view, Tensor.is_inference = _detach, _detach_, _is_view, _is_inference
