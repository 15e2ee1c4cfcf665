"""Fourier transforms on the CPU: NumPy's own functions, handed to the C side. Note [NumPy's loops] in
kernels/cpu/fft.c."""

from __future__ import annotations

import numpy.fft

from .cpu import ffi, lib

_UFUNCS = {
    lib.TT_FFT_FORWARD: "fft",
    lib.TT_FFT_INVERSE: "ifft",
    lib.TT_FFT_REAL_EVEN: "rfft_n_even",
    lib.TT_FFT_REAL_ODD: "rfft_n_odd",
    lib.TT_FFT_TO_REAL: "irfft",
}


def announce() -> None:
    """Tells the C side the functions of numpy.fft. Older NumPys have none for float32, or others: then transforms raise
    NotImplementedError."""
    module = getattr(getattr(numpy.fft, "_pocketfft", None), "pfu", None)
    for loop, name in _UFUNCS.items():
        ufunc = getattr(module, name, None)
        if not isinstance(ufunc, numpy.ufunc) or ufunc.signature not in ("(n),()->(m)", "(m),()->(n)"):
            return
        inside = ffi.cast("tt_ufunc *", id(ufunc) + object.__basicsize__)
        if (inside.nin, inside.nout, inside.nargs, inside.ntypes) != (2, 1, 3, ufunc.ntypes):
            return
        for k, types in enumerate(ufunc.types):
            scale = types[1]
            if scale in "fd":
                data = inside.data[k] if inside.data else ffi.NULL
                lib.tt_fft_use(loop, scale == "d", inside.functions[k], data)
