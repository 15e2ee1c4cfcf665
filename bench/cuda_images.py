"""Rows of the suite for GPUs: operators on images, forward and backward."""

import functools

import numpy as np

from .cuda import SUITE, normal

BATCH, CHANNELS, SIDE = 32, 64, 112


def _image(name, function, result, shape=(BATCH, CHANNELS, SIDE, SIDE), dtype="float32", last=False, more=()):
    """Add a row: ``function`` of torch, an image and ``more`` arrays, and the image's gradient; ``result``: its shape.
    ``last``: channels lie closest together."""
    layout = ", channels_last" if last else ""
    item, elements = (4 if dtype == "float32" else 2), int(np.prod(shape)) + int(np.prod(result))

    @SUITE.row(
        f"{name}, {' x '.join(map(str, shape))}, {dtype}{layout}",
        nbytes=2 * item * elements,
        target=0.95,
        tolerance=1e-4 if item == 4 else 2e-2,
    )
    def make(side):
        form = side.torch.channels_last if last else side.torch.contiguous_format
        arrays = normal(*shape), normal(*result, seed=1)  # were both the same, batch norm's gradient would vanish
        x, upstream = (side.tensor(array, dtype).contiguous(memory_format=form) for array in arrays)
        others = [side.tensor(data, dtype) for data in more]
        return functools.partial(
            side.vjp(lambda x: function(side.torch, x, *others)), upstream, x.detach().requires_grad_()
        )


def _half(n):
    return (BATCH, CHANNELS, n, n)


for _dtype, _last in (("float32", False), ("float32", True), ("bfloat16", False), ("bfloat16", True)):
    _row = functools.partial(_image, dtype=_dtype, last=_last)
    _row("max_pool2d 3, stride 2", lambda torch, x: torch.nn.functional.max_pool2d(x, 3, 2, 1), _half(56))
    _row("avg_pool2d 2", lambda torch, x: torch.nn.functional.avg_pool2d(x, 2), _half(56))
    _row(
        "adaptive_avg_pool2d 7",
        lambda torch, x: torch.nn.functional.adaptive_avg_pool2d(x, 7),
        (BATCH, 256, 7, 7),
        (BATCH, 256, 56, 56),
    )
    _row(
        "interpolate bilinear to 2 x",
        lambda torch, x: torch.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
        _half(SIDE),
        _half(56),
    )
    _row(
        "batch_norm in training",
        lambda torch, x, w, b: torch.nn.functional.batch_norm(x, None, None, w, b, training=True),
        _half(SIDE),
        more=(normal(CHANNELS), normal(CHANNELS, seed=1)),
    )
_image(
    "grid_sample bilinear",
    lambda torch, x, grid: torch.nn.functional.grid_sample(x, grid, align_corners=False),
    _half(56),
    _half(56),
    more=(np.random.default_rng(2).uniform(-1.1, 1.1, (BATCH, 56, 56, 2)).astype(np.float32),),
)
