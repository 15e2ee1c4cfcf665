"""A hash of a tensor's elements."""

from __future__ import annotations

from ..dtypes import NEWER, int64, uint64
from .declare import both, write_out


@both
def hash_tensor(input, dim=(), *, keepdim=False, mode: int = 0, out=None):
    """A number for all elements, or for those along ``dim``, that tells whether they have changed: the exclusive or of
    their bits, integers' as int64, floating ones' as float64. Follows ``torch.hash_tensor``.

    Args:
        dim: the dimensions that are hashed; all for ``()``
        mode: 0, the one way there is
    Returns:
        A tensor of uint64.
    Raises:
        RuntimeError: ``mode`` is another, or there are no elements and ``dim`` does not say along what
        IndexError: a dimension is out of range, or has no elements
        NotImplementedError: complex numbers, or the unsigned integers wider than a byte
    """
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if input.is_complex() or input.dtype in NEWER:
        raise NotImplementedError(f"hash_tensor: not implemented for '{input.dtype.name}'")
    dims = [input._dim(d) for d in ((dim,) if hasattr(dim, "__index__") else dim or ())]
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"hash_tensor(): a dim appears multiple times in the list of dims {tuple(dims)}")
    if not dims and input.numel() == 0:
        raise RuntimeError("hash_tensor: Expected reduction dim to be specified for input.numel() == 0.")
    for d in dims:
        if input.ndim and input.shape[d] == 0:
            raise IndexError(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")
    shape = input.shape
    last = [d for d in range(input.ndim) if not dims or d in dims]
    kept = [d for d in range(input.ndim) if d not in last]
    bits = input.detach()
    bits = bits.double().view(int64) if bits.dtype.is_floating_point else bits.to(int64)
    bits = bits.permute(*kept, *last).reshape(*(shape[d] for d in kept), -1) if input.ndim else bits.reshape(1)
    while bits.shape[-1] > 1:
        half = bits.shape[-1] // 2
        rest = bits[..., 2 * half :]  # one, or none
        bits = bits[..., :half] ^ bits[..., half : 2 * half]
        if rest.shape[-1]:
            bits[..., :1] ^= rest
    sizes = [1 if d in last else n for d, n in enumerate(shape)] if keepdim else [shape[d] for d in kept]
    return write_out("hash_tensor", bits.reshape(sizes).clone().view(uint64), out)
