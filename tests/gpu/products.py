"""Products of matrices on the emulated device, by NumPy."""

import numpy as np

from tinytorch.backends.cpu import ffi, lib

# By our dtypes: what the memory is read as.
_TYPES = {
    lib.TT_F16: np.float16,
    lib.TT_BF16: np.uint16,
    lib.TT_F32: np.float32,
    lib.TT_F64: np.float64,
    lib.TT_C64: np.complex64,
    lib.TT_C128: np.complex128,
}


def read(pointer, dtype: int, shape, strides) -> np.ndarray:
    """A view of memory; strides in elements."""
    kind = np.dtype(_TYPES[dtype])
    reach = 1 + sum((n - 1) * step for n, step in zip(shape, strides))
    flat = np.frombuffer(ffi.buffer(ffi.cast("char *", pointer), reach * kind.itemsize), kind)
    return np.lib.stride_tricks.as_strided(flat, shape, [step * kind.itemsize for step in strides])


def _wide(values: np.ndarray, dtype: int) -> np.ndarray:
    """In the dtype that sums are computed in."""
    if dtype == lib.TT_BF16:
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float32) if dtype == lib.TT_F16 else values


def _narrow(values: np.ndarray, dtype: int) -> np.ndarray:
    """Rounded to what is stored."""
    if dtype != lib.TT_BF16:
        return values.astype(_TYPES[dtype])
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)


def multiply(p, a, b, c, out, bias, alpha, beta) -> None:
    """out = alpha a b + beta c + bias: see tt_gemm in kernels/api/cuda.h."""
    assert p.m > 0 and p.n > 0 and p.k > 0 and p.count > 0
    for shift, pointer in zip((0, 4, 8, 8, 12), (a, b, c, out, bias)):
        assert not int(ffi.cast("intptr_t", pointer)) % (1 << (p.align >> shift & 15)) or pointer == ffi.NULL
    left = read(a, p.dtype, (p.count, *((p.k, p.m) if p.trans & 1 else (p.m, p.k))), (p.step_a, p.lda, 1))
    right = read(b, p.dtype, (p.count, *((p.n, p.k) if p.trans & 2 else (p.k, p.n))), (p.step_b, p.ldb, 1))
    assert p.lda >= left.shape[2] and p.ldb >= right.shape[2]
    left, right = _wide(left, p.dtype), _wide(right, p.dtype)
    shape, strides = (p.count, p.m, p.n), (p.m * p.n, p.n, 1)
    factor, keep = (np.frombuffer(ffi.buffer(x, left.itemsize), left.dtype)[0] for x in (alpha, beta))
    left = np.swapaxes(left, 1, 2) if p.trans & 1 else left
    right = np.swapaxes(right, 1, 2) if p.trans & 2 else right
    with np.errstate(all="ignore"):
        made = factor * left @ right
        if keep:
            made = made + keep * _wide(read(c, p.dtype, shape, strides), p.dtype)
        if p.bias:
            made = made + _wide(read(bias, p.dtype, (p.n,), (1,)), p.dtype)
    read(out, p.dtype, shape, strides)[...] = _narrow(made, p.dtype)
