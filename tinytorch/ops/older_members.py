"""Members of Tensor that older programs name; what was removed from PyTorch, or is not
here, says so."""

from __future__ import annotations

import math
import warnings

from ..devices import absent
from ..devices import device as _device
from ..layouts import layout, preserve_format, sparse_csr
from ..layouts import memory_format as _memory_format
from ..tensor import Tensor
from .addmm import addmm
from .complex_numbers import conj_physical
from .declare import both, function, ints, method, publish
from .activation import gelu, relu
from .members import NEVER
from .sparse import RULES, SparseTensor, sparse_csr_tensor


def _absent_device(name: str) -> None:
    def move(self, device=None, non_blocking=False, memory_format=preserve_format):
        if device is not None:
            _device(device)
        for argument, given, kind in (
            ("non_blocking", non_blocking, bool),
            ("memory_format", memory_format, _memory_format),
        ):
            if type(given) is not kind:
                raise TypeError(f"{name}(): argument '{argument}' must not be {type(given).__name__}")
        raise absent(name, f"{name}(): ")

    move.__doc__ = f"{type(absent(name)).__name__}: there are no {name} devices. Follows ``torch.Tensor.{name}``."
    move.__name__ = name
    method(kind="query")(move)


for _name in ("ipu", "mtia", "xpu"):
    _absent_device(_name)


_REMOVED = {
    "eig": "linalg.eig(A), whose results are complex",
    "lstsq": "linalg.lstsq(A, B), whose arguments are the other way round",
    "matrix_rank": "linalg.matrix_rank, where 'symmetric' is 'hermitian'",
    "solve": "linalg.solve(A, B), whose arguments are the other way round",
    "symeig": "linalg.eigh or eigvalsh, which read the lower triangle unless UPLO='U' is given",
}


def _removed(name: str, instead: str) -> None:
    def refuse(input, *rest: object, **named: object):
        raise RuntimeError(
            f"{name}: this function was deprecated since version 1.9 of PyTorch and is now removed. Use {instead}."
        )

    refuse.__doc__ = f"RuntimeError: PyTorch removed it. Use {instead}."
    publish(refuse, name=name, method=None if name == "matrix_rank" else True, kind="query")


for _name, _instead in _REMOVED.items():
    _removed(_name, _instead)


@both
def dequantize(input):
    """The elements as float32; no tensor here is quantized. Follows ``torch.dequantize``."""
    return input.float()


@both(kind="query")
def is_distributed(input) -> bool:
    """False. Follows ``torch.is_distributed``."""
    return False


@method(kind="query")
def const_data_ptr(self) -> int:
    """``data_ptr()``. Follows ``torch.Tensor.const_data_ptr``."""
    return self.data_ptr()


def _resized(self, shape: tuple[int, ...], op: str):
    warnings.warn(f"non-inplace {op} is deprecated", stacklevel=4)
    if math.prod(shape) != self.numel():
        raise RuntimeError(
            f"requested resize to {'x'.join(map(str, shape))} ({math.prod(shape)} elements in total), but the given "
            f"tensor has a size of {'x'.join(map(str, self.shape))} ({self.numel()} elements)"
        )
    return self.contiguous().view(shape)


@method
def resize(self, *sizes: int):
    """``view`` of as many elements, deprecated. Follows ``torch.Tensor.resize``.

    Args:
        sizes: the sizes
    Raises:
        RuntimeError: there are not as many elements
    """
    return _resized(self, ints(sizes), "resize")


@method
def resize_as(self, tensor):
    """``view`` of the shape of ``tensor``, deprecated. Follows ``torch.Tensor.resize_as``.

    Args:
        tensor: a tensor of as many elements
    Raises:
        RuntimeError: it has not as many elements
    """
    return _resized(self, tuple(tensor.shape), "resize_as")


@method
def __reversed__(self):
    """The elements of the first dimension in reverse order. Follows ``torch.Tensor.__reversed__``."""
    return self.flip(0) if self.ndim else self


def _need_bool(op: str, input) -> None:
    if input.dtype.name != "bool":
        raise RuntimeError(f"{op}: expected a bool tensor, got {input.dtype.name}")


@both
def _is_all_true(input):
    """``all()`` of a bool tensor. Follows ``torch._is_all_true``.

    Raises:
        RuntimeError: it is not bool
    """
    _need_bool("_is_all_true", input)
    return input.all()


@both
def _is_any_true(input):
    """``any()`` of a bool tensor. Follows ``torch._is_any_true``.

    Raises:
        RuntimeError: it is not bool
    """
    _need_bool("_is_any_true", input)
    return input.any()


@both
def _addmm_activation(input, mat1, mat2, *, beta=1, alpha=1, use_gelu: bool = False):
    """``relu`` of ``addmm``, or ``gelu``, on a CUDA device by the hyperbolic tangent. Follows
    ``torch._addmm_activation``.

    Args:
        mat1: a matrix (n, m)
        mat2: a matrix (m, p)
        use_gelu: whether it is ``gelu``
    """
    out = addmm(input, mat1, mat2, beta=beta, alpha=alpha)
    return gelu(out, approximate="tanh" if out.is_cuda else "none") if use_gelu else relu(out)


@method
def module_load(self, other, assign: bool = False):
    """What ``load_state_dict`` puts in the place of this tensor: with ``assign`` the other, else this one with the
    other's elements. Follows ``torch.Tensor.module_load``.

    Args:
        other: the tensor of the state
        assign: whether it is taken as it is
    """
    return other.detach() if assign else self.copy_(other).detach()


def _not_here(name: str, what: str) -> None:
    def refuse(self, *rest: object, **named: object):
        raise NotImplementedError(f"{name}: not implemented: {what}")

    refuse.__doc__ = f"NotImplementedError: {what}. Follows ``torch.Tensor.{name}``."
    refuse.__name__ = name
    method(kind="query")(refuse)
    RULES[name] = refuse


for _name in ("ccol_indices", "row_indices", "to_sparse_bsc", "to_sparse_bsr", "to_sparse_csc"):
    _not_here(_name, "sparse layouts are sparse_coo and sparse_csr")
_not_here("to_mkldnn", "there are no tensors in oneDNN's layout")
_not_here("to_padded_tensor", "there are no nested tensors")


@function
def sparse_compressed_tensor(
    compressed_indices: Tensor,
    plain_indices: Tensor,
    values,
    size=None,
    *,
    dtype=None,
    layout: layout,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
):
    """``sparse_csr_tensor``, the only one of these layouts that is here. Follows ``torch.sparse_compressed_tensor``.
    Otherwise like ``sparse_csr_tensor``.

    Args:
        compressed_indices: its ``crow_indices``
        plain_indices: its ``col_indices``
    Returns:
        A tensor of the layout ``sparse_csr``.
    Raises:
        NotImplementedError: another layout
    """
    if layout is not sparse_csr:
        raise NotImplementedError(f"sparse_compressed_tensor: not implemented for the layout {layout!r}")
    return sparse_csr_tensor(
        compressed_indices,
        plain_indices,
        values,
        size,
        dtype=dtype,
        device=device,
        pin_memory=pin_memory,
        requires_grad=requires_grad,
        check_invariants=check_invariants,
    )


def _always(value, doc: str) -> property:
    return property(lambda self: value, doc=doc)


Tensor.name = _always(None, "None: tensors have no names.")
Tensor.volatile = _always(False, "False: it was replaced by ``no_grad``.").setter(
    lambda self, value: warnings.warn("volatile was removed; use `with no_grad():` instead.", stacklevel=2)
)
Tensor._has_symbolic_sizes_strides = _always(False, "False: sizes are numbers.")
for _name in ("_has_symbolic_sizes_strides", "itemsize", "name", "volatile", *NEVER):  # of a sparse tensor, too
    setattr(SparseTensor, _name, vars(Tensor)[_name])
Tensor._conj, Tensor._conj_physical = Tensor.conj, conj_physical


@method
def __div__(self, other):
    """``self / other``, of Python 2."""
    return self / other


@method(kind="query")
def __nonzero__(self):
    """``bool(self)``, of Python 2."""
    return bool(self)


@method(kind="query")
def __long__(self):
    """``int(self)``, of Python 2."""
    return int(self)
