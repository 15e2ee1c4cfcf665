"""Fourier transforms on the emulated device, by NumPy."""

import numpy as np

from gpu.products import read
from tinytorch.backends.cpu import lib


def transform(p, a, out) -> None:
    """Each row's, without a scale: see tt_transform in kernels/api/cuda.h."""
    for stride, step, n in ((p.in_stride, p.in_step, p.size), (p.out_stride, p.out_step, p.size)):
        assert (stride or n == 1) and (step or p.rows == 1), "the library takes no expanded dimension"
    half, to_real = p.size // 2 + 1, p.out_dtype in (lib.TT_F32, lib.TT_F64)
    from_real = p.in_dtype in (lib.TT_F32, lib.TT_F64)
    rows = read(a, p.in_dtype, (p.rows, half if to_real else p.size), (p.in_step, p.in_stride))
    made = read(out, p.out_dtype, (p.rows, half if from_real else p.size), (p.out_step, p.out_stride))
    if from_real:
        made[...] = np.fft.rfft(rows)
    elif to_real:
        assert not rows[:, 0].imag.any(), "the library may look at it"
        made[...] = np.fft.irfft(rows, p.size) * p.size
        rows[...] = np.nan  # as the library may
    else:
        made[...] = np.fft.fft(rows) if p.forward else np.fft.ifft(rows) * p.size
