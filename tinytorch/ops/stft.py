"""Short-time Fourier transforms: of a signal's frames, which overlap, and back, by the sum of overlapping frames."""

from __future__ import annotations

import warnings

from ..dtypes import COMPLEX, FLOATING
from ..tensor import Tensor
from ..warn_once import first_time
from .complex_numbers import view_as_real
from .create import ones
from .declare import both, flags_only
from .fft import _c2c, _c2r, _r2c, scale_of
from .pad import pad
from .slicing import unfold_backward


def _warn_without_window(name: str, text: str) -> None:
    if first_time(f"{name} without a window"):
        warnings.warn(f"A window was not provided. A rectangular window will be applied. {text}", stacklevel=4)


def _lengths(text: str, n_fft, hop_length, win_length) -> tuple[int, int]:
    """The step from one frame to the next, and the length of the window."""
    hop = n_fft // 4 if hop_length is None else hop_length
    win = n_fft if win_length is None else win_length
    if hop <= 0:
        raise RuntimeError(f"{text}: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < win <= n_fft:
        raise RuntimeError(f"{text}: expected 0 < win_length <= n_fft, but got win_length={win}")
    return hop, win


def _in_the_middle(text: str, window: Tensor | None, n_fft: int, length: int) -> Tensor | None:
    """The window with zeros around it, so that it has n_fft numbers."""
    if window is not None and (window.ndim != 1 or window.shape[0] != length):
        raise RuntimeError(
            f"{text}: expected a 1D window tensor of size equal to win_length={length}, but got window with size "
            f"{list(window.shape)}"
        )
    before = (n_fft - length) // 2
    if length == n_fft:
        return window
    return pad(window, (before, n_fft - length - before))


def _centered(input: Tensor, n_fft: int, pad_mode: str) -> Tensor:
    ndim = input.ndim
    if ndim < 3:
        input = input.reshape(*[1] * (3 - ndim), *input.shape)
    padded = pad(input, (n_fft // 2, n_fft // 2), pad_mode)
    return padded.reshape(padded.shape[3 - ndim :]) if ndim < 3 else padded


@both
def stft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode="reflect",
    normalized=False,
    onesided=None,
    return_complex=None,
    align_to_window=None,
):
    """The Fourier transforms of the frames of a signal. Follows ``torch.stft``.

    Args:
        input: a signal (L), or several (B, L), real or complex
        n_fft: the length of a frame
        hop_length: the step from one frame to the next; ``n_fft // 4`` unless given
        win_length: the length of the window; ``n_fft`` unless given
        window: what frames are multiplied by, in their middle; ones unless given
        center: whether the signal is padded, so that frame t has element t * ``hop_length`` in its middle
        pad_mode: with what, as in ``nn.functional.pad``
        normalized: whether the result is divided by the root of ``n_fft``
        onesided: whether half of the result is given, of which the rest are the conjugates; True for real numbers
            unless given
        return_complex: whether the result is complex; else it has parts in a last dimension
        align_to_window: without ``center``, whether the window of the first frame begins with the signal
    Returns:
        A tensor (N, T) or (B, N, T) of N = ``n_fft // 2 + 1`` frequencies (or ``n_fft``) and T frames.
    Raises:
        RuntimeError: a length does not fit, ``input`` has not one dimension or two, or ``return_complex`` is left out
            for real numbers
    """
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    if center:
        input = _centered(input, n_fft, pad_mode)
    text = f"stft({input.dtype!r}{list(input.shape)}, n_fft={n_fft})"
    is_complex = COMPLEX[input._h.dtype] or (window is not None and COMPLEX[window._h.dtype])
    if return_complex is None:
        if not is_complex:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that "
                "return_complex=True in a future PyTorch release."
            )
        return_complex = True
    flags_only("stft", return_complex=return_complex)
    if not FLOATING[input._h.dtype] and not COMPLEX[input._h.dtype]:
        raise RuntimeError(f"{text}: expected a tensor of floating point or complex values")
    if input.ndim not in (1, 2):
        raise RuntimeError(f"{text}: expected a 1D or 2D tensor")
    if not 0 < n_fft <= input.shape[-1]:
        raise RuntimeError(f"{text}: expected 0 < n_fft < {input.shape[-1]}, but got n_fft={n_fft}")
    hop, win = _lengths(text, n_fft, hop_length, win_length)
    if window is None:
        _warn_without_window("stft", "Others, such as hann_window, show less spectral leakage.")
    if win < n_fft and window is None:
        window = ones(win, dtype=input.dtype, device=input.device)
    whole = _in_the_middle(text, window, n_fft, win)
    if align_to_window:
        before = (n_fft - win) // 2
        input = pad(input, (before, n_fft - win - before))
    frames = input.unfold(-1, n_fft, hop)
    frames = frames if whole is None else frames * whole
    scale, dims = scale_of("ortho" if normalized else None, n_fft, True), (frames.ndim - 1,)
    onesided = not is_complex if onesided is None else onesided
    if not is_complex:
        result = _r2c(frames, dims, scale, bool(onesided))
    elif onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    else:
        result = _c2c(frames, dims, scale, True)
    result = result.transpose(-2, -1)
    return result if return_complex else view_as_real(result)


def _check_spectrum(text: str, input: Tensor, n_fft: int, onesided) -> bool:
    """Is ``input`` the half of a symmetric spectrum?"""
    if not COMPLEX[input._h.dtype]:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if input.numel() == 0:
        raise RuntimeError(f"{text}: input tensor cannot be empty.")
    if input.ndim not in (2, 3):
        raise RuntimeError(f"{text}: expected a tensor with 2 or 3 dimensions, but got {input.ndim}")
    size = input.shape[-2]
    onesided = size != n_fft if onesided is None else onesided
    expected = n_fft // 2 + 1 if onesided else n_fft
    if size != expected:
        raise RuntimeError(
            f"{text}: expected the frequency dimension (3rd to the last) of the input tensor to be {expected} when "
            f"onesided={onesided}, but got {size}"
        )
    return bool(onesided)


@both
def istft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    normalized=False,
    onesided=None,
    length=None,
    return_complex=False,
):
    """The signal of which ``input`` is the ``stft``: the sum of the frames, over that of the squares of their windows.
    Follows ``torch.istft``.

    Args:
        input: what ``stft`` gives, complex: (N, T) or (B, N, T)
        n_fft: the length of a frame
        hop_length: the step from one frame to the next; ``n_fft // 4`` unless given
        win_length: the length of the window; ``n_fft`` unless given
        window: what frames were multiplied by; ones unless given
        center: whether the signal was padded
        normalized: whether the transform was divided by the root of ``n_fft``
        onesided: whether ``input`` is half of the spectrum; so it is unless N is ``n_fft``, if not given
        length: how many elements of the signal are wanted; all that the frames tell unless given
        return_complex: whether the signal is complex
    Returns:
        A signal (L), or several (B, L).
    Raises:
        RuntimeError: a length does not fit, ``input`` is not complex, or all windows are 0 at some element
    """
    text = f"istft({input.dtype!r}{list(input.shape)}, n_fft={n_fft})"
    if n_fft <= 0:
        raise RuntimeError(f"{text}: expected n_fft > 0, but got n_fft={n_fft}")
    hop, win = _lengths(text, n_fft, hop_length, win_length)
    if hop > win:
        raise RuntimeError(f"{text}: expected 0 < hop_length <= win_length")
    onesided = _check_spectrum(text, input, n_fft, onesided)
    frames = input.shape[-1]
    if window is None:
        _warn_without_window("istft", "It must be that of stft for the signal to come back.")
        window = ones(win, dtype=input.dtype.to_real(), device=input.device)
    elif not return_complex and COMPLEX[window._h.dtype]:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    whole = _in_the_middle(text, window, n_fft, win)
    scale = scale_of("ortho" if normalized else None, n_fft, False)
    spectrum = input.transpose(-2, -1)
    dims = (input.ndim - 1,)
    if return_complex:
        if onesided:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        parts = _c2c(spectrum, dims, scale, False)
    else:
        parts = _c2r(spectrum if onesided else spectrum[..., : n_fft // 2 + 1], dims, scale, n_fft)
    total = n_fft + hop * (frames - 1)
    signal = unfold_backward(parts * whole, (*input.shape[:-2], total), input.ndim - 2, n_fft, hop)
    squares = unfold_backward((whole * whole).expand(frames, n_fft), (total,), 0, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - n_fft // 2 if center else total
    signal, squares = signal[..., start:end], squares[start:end]
    if not squares.numel() or float(squares.detach().abs().min()) < 1e-11:
        raise RuntimeError(f"{text}: window overlap add min: 1")
    signal = signal / squares
    if end > total:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in "
            "the tail. Please check your center and hop_length settings.",
            stacklevel=2,
        )
        signal = pad(signal, (0, end - total))
    return signal
