"""Pictures and videos as arrays that PNG and GIF take."""

from __future__ import annotations

import importlib
import math

import numpy as np


def figure_to_image(figures, close: bool = True) -> np.ndarray:
    """A matplotlib figure as an image (3, H, W) of uint8, or a list of figures as (N, 3, H, W); ``close`` closes
    them. Wants matplotlib."""
    plt = importlib.import_module("matplotlib.pyplot")
    agg = importlib.import_module("matplotlib.backends.backend_agg")

    def rendered(figure) -> np.ndarray:
        canvas = agg.FigureCanvasAgg(figure)
        canvas.draw()
        pixels = np.asarray(canvas.buffer_rgba())
        if close:
            plt.close(figure)
        return np.moveaxis(pixels[:, :, :3], 2, 0)

    return np.stack([rendered(f) for f in figures]) if isinstance(figures, list) else rendered(figures)


def _prepare_video(video: np.ndarray) -> np.ndarray:
    """Frames (T, H', W', C) of videos (N, T, C, H, W), which are shown side by side, in a grid of a power of two."""
    n, t, c, h, w = video.shape
    if video.dtype == np.uint8:
        video = np.float32(video) / 255.0
    places = n if n & (n - 1) == 0 else 1 << n.bit_length()
    video = np.concatenate([video, np.zeros((places - n, t, c, h, w))]) if places > n else video
    rows = 1 << (n.bit_length() - 1) // 2
    grid = video.reshape(rows, places // rows, t, c, h, w).transpose(2, 0, 4, 1, 5, 3)
    return grid.reshape(t, rows * h, places // rows * w, c)


def make_grid(images: np.ndarray, ncols: int = 8) -> np.ndarray:
    """Images (N, 1 or 3, H, W) in one (3, rows H, columns W), ``ncols`` in a row. AssertionError for other shapes."""
    if not isinstance(images, np.ndarray):
        raise AssertionError("plugin error, should pass numpy array here")
    if images.shape[1] == 1:
        images = np.concatenate([images] * 3, 1)
    if images.ndim != 4 or images.shape[1] != 3:
        raise AssertionError("Input should be a 4D numpy array with 3 channels")
    n, _, h, w = images.shape
    ncols = min(n, ncols)
    grid = np.zeros((3, h * math.ceil(n / ncols), w * ncols), dtype=images.dtype)
    for i, image in enumerate(images):
        y, x = divmod(i, ncols)
        grid[:, y * h : (y + 1) * h, x * w : (x + 1) * w] = image
    return grid


def convert_to_HWC(tensor: np.ndarray, input_format: str) -> np.ndarray:
    """An image whose dimensions ``input_format`` names, such as "CHW", as (H, W, 3); several ("NCHW") as a grid.
    AssertionError where the two do not fit."""
    if len(set(input_format)) != len(input_format):
        raise AssertionError(f"You can not use the same dimension shorthand twice. input_format: {input_format}")
    if tensor.ndim != len(input_format):
        raise AssertionError(
            "size of input tensor and input format are different. "
            f"tensor shape: {tensor.shape}, input_format: {input_format}"
        )
    order = {4: "NCHW", 3: "HWC", 2: "HW"}[len(input_format)]
    tensor = tensor.transpose([input_format.upper().find(name) for name in order])
    if order == "NCHW":
        return make_grid(tensor).transpose(1, 2, 0)
    if order == "HW":
        return np.stack([tensor] * 3, 2)
    return np.concatenate([tensor] * 3, 2) if tensor.shape[2] == 1 else tensor
