"""Images made larger or smaller.

One linear kernel does all modes: along each dimension, sums of neighbours with weights that the mode says
(kernels/api/resample.h). Its derivative is the transposed one, and the derivative of that the kernel again.
"""

from __future__ import annotations

import math
import numbers
import warnings

from ..backends.cpu import lib
from ..dtypes import float32
from ..tensor import Tensor, owned
from .declare import function, primitive
from .pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

_MODES = {
    "nearest": lib.TT_NEAREST,
    "nearest-exact": lib.TT_NEAREST_EXACT,
    "linear": lib.TT_LINEAR,
    "bilinear": lib.TT_LINEAR,
    "trilinear": lib.TT_LINEAR,
    "bicubic": lib.TT_CUBIC,
}
_RANKS = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
_AREAS = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}
_KINDS = {
    "Nearest{}D": f"code == {lib.TT_NEAREST}",
    "NearestExact{}D": f"code == {lib.TT_NEAREST_EXACT}",
    "Bilinear2DAa": f"code == {lib.TT_LINEAR} and antialias",
    "Bicubic2DAa": "antialias",
    "Bicubic2D": f"code == {lib.TT_CUBIC}",
    "Linear1D": "len(sizes) == 1",
    "Bilinear2D": "len(sizes) == 2",
    "Trilinear3D": "",
}
_TITLES = {
    f"Upsample{kind.format(n)}Backward0": condition + (f" and len(sizes) == {n}" if "{" in kind else "")
    for kind, condition in _KINDS.items()
    for n in (1, 2, 3)
}


@primitive(
    title=_TITLES,
    input=lambda g, input_shape, scales, code, align, antialias: _resample_backward(
        g, input_shape[2:], scales, code, align, antialias
    ),
)
def _resample(input, sizes, scales, code, align, antialias):
    return owned.tt_resample(input._h, len(sizes), sizes, scales, code, align, antialias, 0)


@primitive(
    name="interpolate_backward",
    g=lambda g, g_shape, scales, code, align, antialias: _resample(g, g_shape[2:], scales, code, align, antialias),
)
def _resample_backward(g, sizes, scales, code, align, antialias):
    return owned.tt_resample(g._h, len(sizes), sizes, scales, code, align, antialias, 1)


def _resample_bytes(input, sizes, scales, code, align, antialias):
    """Each dimension is rounded to bytes, the last one first."""
    out, done = input.to(float32), list(input.shape[2:])
    for d in reversed(range(len(sizes))):
        if done[d] != sizes[d]:
            done[d] = sizes[d]
            own = [scale if k == d else 0.0 for k, scale in enumerate(scales)]
            out = _resample(out, tuple(done), own, code, align, antialias)
            out = (out + 0.5).floor().clamp(0, 255)
    return out.to(input.dtype)


def _per_dim(name: str, value, dims: int) -> list:
    if not isinstance(value, (tuple, list)):
        return [value] * dims
    if len(value) != dims:
        raise ValueError(
            f"interpolate: Input and {name} must have the same number of spatial dimensions, but got input with "
            f"spatial dimensions of {dims} and {name} of {list(value)}."
        )
    return list(value)


def _sizes(input: Tensor, size, scale_factor, recompute: bool) -> tuple[tuple[int, ...], list[float]]:
    """The spatial sizes of the result, and the factors that coordinates are computed with: 0 where that is their
    quotient."""
    shape = input.shape[2:]
    if (size is None) == (scale_factor is None):
        which = "only one of" if size is not None else "either"
        raise ValueError(f"interpolate: {which} size or scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError("interpolate: recompute_scale_factor is not meaningful with an explicit size.")
        alone, size = not isinstance(size, (tuple, list)), _per_dim("output size", size, len(shape))
        if any(isinstance(n, bool) or not (alone or isinstance(n, (numbers.Integral, Tensor))) for n in size):
            kinds = ", ".join(type(n).__name__ for n in size)
            raise TypeError(f"interpolate(): argument 'size' must be int or Sequence of ints, got {kinds}")
        return tuple([n.__index__() for n in size]), [0.0] * len(shape)
    given = _per_dim("scale_factor", scale_factor, len(shape))
    if any(isinstance(f, (str, bytes)) for f in given):
        raise TypeError("interpolate(): argument 'scale_factor' must be float or Sequence of floats, not str")
    if not recompute and not all(isinstance(f, numbers.Number) for f in given):
        raise TypeError("interpolate(): argument 'scale_factor' must be float or Sequence of floats")
    factors = [float(f) for f in given]
    if not all(map(math.isfinite, factors)):
        raise RuntimeError(f"interpolate: scale_factor must be finite, but got {factors}")
    sizes = tuple([math.floor(n * f) for n, f in zip(shape, factors)])
    if any(abs(n) >> 63 for n in sizes):
        raise RuntimeError(f"interpolate: value cannot be converted to type int64_t without overflow: {sizes}")
    return sizes, [0.0] * len(shape) if recompute else factors


@function(namespace="nn.functional")
def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """``input``, of shape (N, C, L), (N, C, H, W) or (N, C, D, H, W), with other sizes in the last dimensions. Follows
    ``torch.nn.functional.interpolate``.

    Args:
        size: the sizes of the last dimensions, a number or one for each; or
        scale_factor: by which factor they change, likewise
        mode: ``"nearest"``, ``"nearest-exact"``, ``"area"``; ``"linear"`` of one dimension, ``"bilinear"`` and
            ``"bicubic"`` of two, ``"trilinear"`` of three
        align_corners: whether the corners' centres stay where they are, rather than the outer edges
        recompute_scale_factor: whether coordinates follow from the sizes, rather than from ``scale_factor``
        antialias: whether an image that shrinks is smoothed, with ``"bilinear"`` and ``"bicubic"``
    Returns:
        A tensor (N, C, *).
    Raises:
        ValueError: neither or both of ``size`` and ``scale_factor``, or an option that does not go with the mode
        NotImplementedError: the mode does not go with so many dimensions, or with the dtype
        RuntimeError: a size of 0
    """
    dims = input._h.ndim - 2
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "interpolate: align_corners option can only be set with the interpolating modes: linear | bilinear | "
            "bicubic | trilinear"
        )
    recompute = bool(recompute_scale_factor) or (mode == "area" and size is None)
    sizes, scales = _sizes(input, size, scale_factor, recompute)
    if antialias and not (mode in ("bilinear", "bicubic") and dims == 2):
        raise ValueError(
            "interpolate: Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as "
            "input"
        )
    if dims not in (1, 2, 3) or not isinstance(mode, str) or (mode != "area" and mode not in _MODES):
        raise NotImplementedError(
            f"interpolate: Input Error: Only 3D, 4D and 5D input Tensors supported (got {dims + 2}D) for the modes: "
            f"nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact (got {mode})"
        )
    if mode == "area":
        return _AREAS[dims](input, sizes)
    if _RANKS.get(mode, dims) != dims:
        raise NotImplementedError(
            f"interpolate: Got {dims + 2}D input, but {mode} mode needs {_RANKS[mode] + 2}D input"
        )
    if 0 in tuple(input.shape)[1:] or min(sizes) < 1:
        raise RuntimeError(
            f"interpolate: Input and output sizes should be greater than 0, but got input {list(input.shape)} and "
            f"output {list(sizes)}"
        )
    code, align = _MODES[mode], bool(align_corners)
    if input._h.dtype == lib.TT_U8 and code >= lib.TT_LINEAR and dims < 3:
        return _resample_bytes(input, sizes, scales, code, align, bool(antialias))
    return _resample(input, sizes, scales, code, align, bool(antialias))


@function(namespace="nn.functional")
def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The older name of ``interpolate``. Follows ``torch.nn.functional.upsample``."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


@function(namespace="nn.functional")
def upsample_nearest(input, size=None, scale_factor=None):
    """``interpolate`` to the nearest. Follows ``torch.nn.functional.upsample_nearest``."""
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor)


@function(namespace="nn.functional")
def upsample_bilinear(input, size=None, scale_factor=None):
    """``interpolate`` bilinearly, with aligned corners. Follows ``torch.nn.functional.upsample_bilinear``."""
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, "bilinear", True)
