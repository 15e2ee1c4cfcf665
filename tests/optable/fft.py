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
    return Op(f"fft.{name}", tuple(samples), call=call_of(f"fft.{name}"), dtypes=TAKEN, **how)


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
    Op(
        "stft",
        (
            S(T(24), 8, return_complex=True),
            S(T(2, 24), 8, 3, 6, return_complex=True, normalized=True),
            S(T(20), 5, center=False, return_complex=False),
            S(T(20), 8, 2, 5, T(5), center=False, align_to_window=True, return_complex=True),
            S(T(2, 21, layout="transposed"), 7, window=T(7), onesided=False, return_complex=True),
            S(T(20, layout="strided"), 6, pad_mode="constant", return_complex=True),
            S(T(20), 6, window=T(6, layout="offset"), pad_mode="circular", return_complex=True),
        ),
        dtypes=("float32", "float64"),
        method=True,
        composite=True,
    ),
    Op(
        "istft",
        (S(T(5, 4), 8), S(T(2, 5, 4), 8, 3, 6), S(T(8, 4), 8, 2, onesided=False, normalized=True, length=9)),
        call=lambda m, x, *args, **kw: m.istft(m.complex(x, x.flip(0) * 0.5), *args, **kw),
        dtypes=("float32", "float64"),
        composite=True,
    ),
    Op(
        "istft_of_frames",
        (
            S(T(5, 4), T(8, low=0.5, high=1.5), n_fft=8),
            S(T(2, 4, 4), T(5, low=0.5, high=1.5), n_fft=7, win_length=5, hop_length=2, length=8),
            S(T(8, 3), T(8, low=0.5, high=1.5), n_fft=8, center=False, return_complex=True, hop_length=4),
        ),
        call=lambda m, x, w, **kw: m.istft(m.complex(x, x.flip(0) * 0.5), window=w, **kw),
        dtypes=("float32", "float64"),
        composite=True,
    ),
    *(
        Op(
            f"{name}_window",
            (S(6), S(7, False), S(1), S(0), S(2, periodic=False), *more),
            dtypes=("float32",),
            composite=True,
            grad=False,
        )
        for name, more in {
            "bartlett": (),
            "blackman": (),
            "hamming": (S(5, True, 0.5, 0.25), S(5, False, alpha=0.75)),
            "hann": (),
            "kaiser": (S(5, True, 3.0), S(9, False, beta=0.0)),
        }.items()
    ),
    *(
        Op(
            f"signal.windows.{name}",
            tuple(S(m, **options, **how) for m in (6, 7, 2, 1, 0) for how in ({}, {"sym": False}) for options in every),
            call=call_of(f"signal.windows.{name}"),
            dtypes=("float32",),
            composite=True,
            grad=False,
        )
        for name, every in {
            "bartlett": ({},),
            "blackman": ({},),
            "cosine": ({},),
            "exponential": ({}, {"tau": 2.5}),
            "gaussian": ({}, {"std": 0.75}),
            "general_cosine": ({"a": (0.5, 0.25, 0.25)}, {"a": [1.0]}),
            "general_hamming": ({}, {"alpha": 0.75}),
            "hamming": ({},),
            "hann": ({},),
            "kaiser": ({}, {"beta": 2.0}),
            "nuttall": ({},),
        }.items()
    ),
)
