"""Types of tensors of one dtype, ``FloatTensor`` and its like: PyTorch's older way to name a dtype. They make tensors,
and ``isinstance`` knows these; the class of all tensors is Tensor."""

from __future__ import annotations

from ..devices import CPU
from ..dtypes import COMPLEX, NEWER, dtype, set_default_dtype
from ..tensor import Tensor
from .convert import TYPE_NAMES
from .ranges import made_of


class TensorType(type):
    """The class of these types."""

    dtype: dtype

    def __call__(cls, *args, device=None) -> Tensor:
        if args and isinstance(args[0], Tensor) and args[0].dtype is not cls.dtype:
            raise TypeError(f"{cls.__name__}: expected a tensor of {cls.dtype!r}, got {args[0].dtype!r}")
        return made_of(args, cls.dtype.code, CPU if device is None else device, cls.__name__)

    def __instancecheck__(cls, x) -> bool:
        return isinstance(x, Tensor) and x.dtype is cls.dtype and x.is_cpu


TYPES = {
    name: TensorType(
        name,
        (),
        {
            "__module__": "tinytorch",
            "dtype": d,
            "__doc__": f"Makes tensors of {d!r}: (2, 3) is a shape, [1, 2] are values.",
        },
    )
    for name, d in TYPE_NAMES.items()
    if not COMPLEX[d.code] and d not in NEWER
}


def set_default_tensor_type(t) -> None:
    """Makes the dtype of a type of tensors, or of its name, the default. Follows ``torch.set_default_tensor_type``,
    which advises ``set_default_dtype``.

    Raises:
        TypeError: no type of floating tensors
    """
    name = t.removeprefix("tiny").removeprefix("torch.") if isinstance(t, str) else None
    found = TYPES.get(name) if name else t
    if not isinstance(found, TensorType):
        raise TypeError(f"set_default_tensor_type: invalid type object: {t!r}")
    set_default_dtype(found.dtype)


def typename(obj) -> str:
    """The name of an object's type with its module; of a tensor, that of its dtype too. Follows ``torch.typename``."""
    if isinstance(obj, Tensor):
        return obj.type()
    cls = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(cls, "__module__", None) or ""
    return cls.__qualname__ if module in ("", "builtins") else f"{module}.{cls.__qualname__}"
