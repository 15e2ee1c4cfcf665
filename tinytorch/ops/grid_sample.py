"""Images sampled at given places (Jaderberg et al. 2015, arXiv:1506.02025): formulas over gather, so that derivatives
of every order follow; on devices that have them, kernels for the result and its first derivatives."""

from __future__ import annotations

import functools
import itertools
import operator

from ..autograd.api import grad
from ..backends.cpu import lib
from ..dtypes import ALL
from ..tensor import Tensor, owned
from .convert import in_dtype
from .create import zeros
from .declare import flags_only, function, primitive
from .join import cat
from .pointwise import _where as where
from .ranges import linspace

_MODES = ("nearest", "bilinear", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def _limited(x: Tensor, n: int) -> Tensor:
    """Within [0, n - 1]; no gradient goes to what is at an end or beyond it."""
    return where((x > 0) & (x < n - 1), x, x.detach().clamp(0, n - 1))


def _reflected(x: Tensor, low: float, high: float) -> Tensor:
    """Mirrored at ``low`` and ``high`` as often as it takes."""
    span = high - low
    if span <= 0:
        return x * 0
    away = (x - low).abs()
    rounds = (away.detach() / span).floor()
    rest = away - rounds * span
    return where(rounds % 2 == 0, rest + low, (span - rest) + low)


def _padded(x: Tensor, n: int, padding: str, align: bool) -> Tensor:
    """Coordinates in an image of n elements, those beyond it as the padding says."""
    if padding == "border":
        return _limited(x, n)
    if padding == "reflection":
        return _limited(_reflected(x, 0.0, n - 1.0) if align else _reflected(x, -0.5, n - 0.5), n)
    return x


def _elements(flat: Tensor, sizes, places) -> Tensor:
    """The elements of (N, C, *sizes), flattened, at whole coordinates, (N, P) for each dimension; 0 outside."""
    index = inside = None
    for n, place in zip(sizes, places):
        place = place.detach()
        within = (place >= 0) & (place <= n - 1)
        place = where(within, place, place.new_zeros(())).long()
        index = place if index is None else index * n + place
        inside = within if inside is None else inside & within
    picked = flat.gather(2, index.unsqueeze(1).expand(-1, flat.shape[1], -1))
    return picked.masked_fill(inside.logical_not().unsqueeze(1), 0)


def _sum_of(flat, sizes, taps) -> Tensor:
    """The sum over all combinations of taps, (coordinate, weight) of each dimension, of elements times weights."""
    terms = []
    for corner in itertools.product(*taps):
        weight = functools.reduce(operator.mul, [w for _, w in corner])
        terms.append(_elements(flat, sizes, [place for place, _ in corner]) * weight.unsqueeze(1))
    return functools.reduce(operator.add, terms)


def _cubic_weights(t: Tensor, a: float = -0.75) -> list[Tensor]:
    """Of the four neighbours, the second of which is t away (Keys 1981)."""

    def near(x):
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x):
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _one(p: Tensor) -> Tensor:
    """Ones, through which a gradient of 0 goes to ``p``."""
    return p.masked_fill(p.new_ones(()).bool(), 1)


def _check(input: Tensor, grid: Tensor, mode: str, padding_mode: str) -> int:
    """The number of spatial dimensions."""
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(f"grid_sample: expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode not in _PADDINGS:
        raise ValueError(
            f"grid_sample: expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{padding_mode}'"
        )
    for name, t in (("input", input), ("grid", grid)):
        if not t._h.ndim:
            raise IndexError(f"grid_sample: Dimension out of range: {name} has no dimensions")
    dims = input._h.ndim - 2
    if dims not in (2, 3) or grid._h.ndim != dims + 2:
        raise RuntimeError(
            "grid_sample: expected 4D or 5D input and grid with same number of dimensions, but got input with sizes "
            f"{list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if not input.is_floating_point():
        raise NotImplementedError(f"grid_sample: not implemented for '{input.dtype.name}'")
    if input.dtype is not grid.dtype:
        raise RuntimeError(
            f"grid_sample: expected input and grid to have the same floating dtype, but input has {input.dtype.name} "
            f"and grid has {grid.dtype.name}"
        )
    if input.shape[0] != grid.shape[0]:
        raise RuntimeError(
            "grid_sample: expected grid and input to have same batch size, but got input with sizes "
            f"{list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if grid.shape[-1] != dims:
        raise RuntimeError(
            f"grid_sample: expected grid to have size {dims} in last dimension, but got grid with sizes "
            f"{list(grid.shape)}"
        )
    if 0 in tuple(input.shape[2:]):
        raise RuntimeError(
            f"grid_sample: expected input to have non-empty spatial dimensions, but input has sizes {list(input.shape)}"
        )
    if mode == "bicubic" and dims == 3:
        raise RuntimeError("grid_sample: bicubic interpolation only supports 4D input")
    return dims


@function(namespace="nn.functional")
def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """``input``, of shape (N, C, H, W) or (N, C, D, H, W), at the places that ``grid``, (N, H', W', 2) or
    (N, D', H', W', 3), names: (x, y) or (x, y, z), from -1 at one end to 1 at the other. Follows
    ``torch.nn.functional.grid_sample``.

    Args:
        grid: places, the last dimension first
        mode: ``"bilinear"``, ``"nearest"`` or, of two dimensions, ``"bicubic"``
        padding_mode: what lies beyond the ends: ``"zeros"``, ``"border"`` or ``"reflection"``
        align_corners: whether -1 and 1 are the centres of the first and last elements, rather than their outer edges
    Returns:
        A tensor (N, C, H', W') or (N, C, D', H', W').
    Raises:
        ValueError: an unknown mode
        NotImplementedError: ``input`` is not floating
        RuntimeError: shapes or dtypes do not fit
    """
    _check(input, grid, mode, padding_mode)
    flags_only("grid_sample", align_corners=False if align_corners is None else align_corners)
    if lib.tt_grid_sample_fits(input._h, grid._h):
        return _by_kernels(input, grid, mode, padding_mode, bool(align_corners))
    return _composed(input, grid, mode, padding_mode, bool(align_corners))


def _composed(input: Tensor, grid: Tensor, mode: str, padding_mode: str, align: bool) -> Tensor:
    dims = grid.shape[-1]
    sizes, dtype = tuple(input.shape[2:]), ALL[input.dtype.compute]
    flat = in_dtype(input, dtype).flatten(2)
    places = in_dtype(grid, dtype).reshape(grid.shape[0], -1, dims).unbind(2)[::-1]
    places = [(p + 1) * ((n - 1) / 2) if align else ((p + 1) * n - 1) / 2 for p, n in zip(places, sizes)]
    if mode == "bicubic":
        whole = [p.detach().floor() for p in places]
        taps = [
            [
                (_padded(w + (k - 1), n, padding_mode, align).round(), weight)
                for k, weight in enumerate(_cubic_weights(p - w))
            ]
            for p, w, n in zip(places, whole, sizes)
        ]
    else:
        places = [_padded(p, n, padding_mode, align) for p, n in zip(places, sizes)]
        if mode == "nearest":
            taps = [[(p.detach().round(), _one(p))] for p in places]
        else:
            whole = [p.detach().floor() for p in places]
            taps = [[(w, w + 1 - p), (w + 1, p - w)] for p, w in zip(places, whole)]
    out = _sum_of(flat, sizes, taps)
    return in_dtype(out, input.dtype).reshape(*input.shape[:2], *grid.shape[1:-1])


def _options(mode: str, padding_mode: str, align: bool) -> tuple[int, int, bool]:
    return _MODES.index(mode), _PADDINGS.index(padding_mode), align


def _derived(g, input, grid, mode, padding_mode, align, edges):
    """The gradients of the formulas, with their history."""
    apart = [x.view_as(x) for x in (input, grid)]
    wanted = [x for x, edge in zip(apart, edges, strict=True) if edge is not None]
    found = iter(grad(_composed(*apart, mode, padding_mode, align), wanted, g, create_graph=True, allow_unused=True))
    return [None if edge is None else next(found) for edge in edges]


def _first_order(g, input, grid, mode, padding_mode, align, edges):
    derivatives = owned.tt_grid_sample_of_input, owned.tt_grid_sample_of_grid
    operands = g._h, input._h, grid._h, *_options(mode, padding_mode, align)
    return [None if edge is None else of(*operands) for of, edge in zip(derivatives, edges, strict=True)]


@primitive(
    name="sampled_grid",
    title={"GridSampler2DBackward0": "input.ndim == 4", "GridSampler3DBackward0": ""},
    inputs=("input", "grid"),
    vjp=_derived,
    first_order=_first_order,
)
def _by_kernels(input, grid, mode, padding_mode, align):
    return owned.tt_grid_sample(input._h, grid._h, *_options(mode, padding_mode, align))


@function(namespace="nn.functional")
def affine_grid(theta, size, align_corners=None):
    """The places for ``grid_sample`` that affine maps ``theta``, of shape (N, 2, 3) or (N, 3, 4), take an image's
    elements to. Follows ``torch.nn.functional.affine_grid``.

    Args:
        theta: a matrix for each image
        size: the sizes of the images, (N, C, H, W) or (N, C, D, H, W)
        align_corners: whether -1 and 1 are the centres of the first and last elements, rather than their outer edges
    Returns:
        A tensor (N, H, W, 2) or (N, D, H, W, 3).
    Raises:
        ValueError: shapes do not fit, or ``theta`` is not floating
        NotImplementedError: a size of other dimensions
    """
    if not theta.is_floating_point():
        raise ValueError(f"affine_grid: Expected theta to have floating point type, but got {theta.dtype.name}")
    dims = len(size) - 2
    if dims not in (2, 3):
        raise NotImplementedError(
            f"affine_grid: only supports 4D and 5D sizes, for 2D and 3D affine transforms. Got size {size}"
        )
    if tuple(theta.shape[1:]) != (dims, dims + 1) or theta._h.ndim != 3:
        raise ValueError(
            f"affine_grid: Expected a batch of affine matrices of shape Nx{dims}x{dims + 1} for size {size}. Got "
            f"{tuple(theta.shape)}."
        )
    size = tuple([operator.index(n) for n in size])
    if len(size) != dims + 2:
        raise RuntimeError(f"affine_grid: expected {dims + 2} sizes, but got {size}")
    if min(size) <= 0:
        raise ValueError(f"affine_grid: Expected non-zero, positive output size. Got {size}")
    if theta.shape[0] != size[0]:
        raise RuntimeError(f"affine_grid: expected {size[0]} matrices, but got {theta.shape[0]}")
    flags_only("affine_grid", align_corners=False if align_corners is None else align_corners)
    axes = []
    for k, n in enumerate(reversed(size[2:])):  # x, y, z
        axis = (
            linspace(-1, 1, n, dtype=theta.dtype, device=theta.device)
            if n > 1
            else zeros(1, dtype=theta.dtype, device=theta.device)
        )
        axis = axis if align_corners else axis * ((n - 1) / n)
        axes.append(axis.reshape([n if d == dims - 1 - k else 1 for d in range(dims)]).expand(size[2:]).unsqueeze(-1))
    axes.append(axes[0] * 0 + 1)
    base = cat(axes, -1).reshape(-1, dims + 1)
    return (base @ theta.transpose(1, 2)).reshape(size[0], *size[2:], dims)
