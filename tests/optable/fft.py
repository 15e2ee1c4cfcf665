"""Fourier transforms. PyTorch's fails for a batch of nothing: tests/test_fft.py."""

from operator import attrgetter

from compare import INTS

from optable.core import Op, S, T

TAKEN = ("float32", "float64", *INTS, "bool")
LAYOUTS = (
    T(6),
    T(5),
    T(1, 2),
    T(2, 3, layout="transposed"),
    T(3, 4, layout="strided"),
    T(2, 4, layout="offset"),
    T(2, 4, layout="expanded"),
    T(2, 1, 3, 4, layout="transposed"),
)
LINES = (
    *(S(t) for t in LAYOUTS),
    S(T(7), 4),
    S(T(3, 4), 7, 0),
    S(T(3, 5), n=8, norm="ortho"),
    S(T(3, 5), dim=0, norm="forward"),
    S(T(2, 3, 5), None, 1, "backward"),
    S(T(2, 3, 5, layout="transposed"), dim=-2),
)
SPACES = (
    *(S(t) for t in LAYOUTS if len(t.shape) > 1),
    S(T(2, 3, 4), (3, 5)),
    S(T(2, 3, 4), s=(4, 2), dim=(0, 2), norm="ortho"),
    S(T(2, 3, 4), dim=(-1, 0), norm="forward"),
    S(T(2, 3, 4), (-1, 3), (1, 2)),
    S(T(2, 3, 5, layout="transposed"), dim=(2, 1)),
)
ANY = (S(T(5)), S(T(2, 3, 4), dim=(0, 2, 1)), S(T(2, 3, 4), s=3), S(T(2, 3, 4), dim=1))


def transform(name, samples, **how):
    return Op(f"fft.{name}", tuple(samples), call=call_of(f"fft.{name}"), dtypes=TAKEN, cpu=True, **how)


def call_of(name):
    find = attrgetter(name)
    return lambda m, *args, **kwargs: find(m)(*args, **kwargs)


OPS = (
    *(transform(name, LINES, out=True) for name in ("fft", "ifft", "rfft", "ihfft")),
    *(transform(name, LINES, out=True) for name in ("irfft", "hfft")),
    *(transform(f"{name}2", SPACES, out=True) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")),
    *(transform(f"{name}n", (*SPACES, *ANY), out=True) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")),
    *(
        Op(
            f"fft.{name}",
            (S(T(5)), S(T(4)), S(T(2, 3)), S(T(2, 3), 1), S(T(2, 3, 4), dim=(0, -1)), S(T(3, 2, layout="transposed"))),
            call=call_of(f"fft.{name}"),
        )
        for name in ("fftshift", "ifftshift")
    ),
    *(
        Op(
            f"fft.{name}",
            (S(6), S(5), S(0), S(4, 0.5), S(n=5, d=3.0), S(3, 0)),
            call=call_of(f"fft.{name}"),
            dtypes=("float32",),
            composite=True,
            grad=False,
            out=True,
        )
        for name in ("fftfreq", "rfftfreq")
    ),
)
