"""Operators by PyTorch's inner names, ``torch.ops.aten.mm.default``, which policies of selective checkpoints name. They
are the operators' records; all overloads of one name are one."""

from __future__ import annotations

from .declare import OPS, Op

# Those whose kernel has another name here.
_HERE = {
    "_log_softmax": "log_softmax",
    "_scaled_dot_product_flash_attention_for_cpu": "scaled_dot_product_flash_attention_for_cpu",
    "_softmax": "softmax",
    "_to_copy": "to_copy",
    "binary_cross_entropy": "bce",
    "huber_loss": "huber",
    "linalg_vector_norm": "norm_2",
    "native_dropout": "dropout",
    "native_layer_norm": "layer_norm",
    "smooth_l1_loss": "smooth_l1",
}
_OVERLOADS = ("default", "Tensor", "Scalar", "dim", "dim_IntList", "int", "self", "out")


class Packet:
    """An operator before one of its overloads is chosen."""

    def __init__(self, name: str, op: Op):
        self._name, self._op = name, op

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return list(_OVERLOADS)

    def __getattr__(self, overload: str) -> Op:
        first = overload.partition("_")[0]
        if overload in _OVERLOADS or first in ("Tensor", "Scalar"):
            return self._op
        raise AttributeError(f"The underlying op of 'aten.{self._name}' has no overload name '{overload}'")

    def __repr__(self):
        return f"aten.{self._name}"


def __getattr__(name: str) -> Packet:
    here = _HERE.get(name, name)
    op = OPS.get(here) or OPS.get(f"nn.functional.{here}")
    if op is None or name.startswith("__"):
        raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
    return Packet(name, op)


def overload_of(op: Op, handles: tuple) -> Op:
    """The operator as which PyTorch would compute a call: of products, one by the number of dimensions."""
    if op.name == "linear":
        return OPS["addmm"] if handles[2] else OPS["mm"]
    if op.name == "matmul":
        a, b = handles[0].ndim, handles[1].ndim
        if b == 1:
            return OPS["dot"] if a == 1 else OPS["mv"]
        return OPS["bmm"] if a > 2 and b > 2 else OPS["mm"]
    return op
