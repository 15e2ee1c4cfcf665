"""Summaries of images and videos."""

from __future__ import annotations

import importlib
import io
import tempfile

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from tensorboard.compat.proto.summary_pb2 import Summary

from ._convert_np import make_np
from ._utils import _prepare_video, convert_to_HWC


def _as_bytes(array: np.ndarray) -> np.ndarray:
    """Pixels in [0, 255]; those of uint8 are that already, others in [0, 1]."""
    scale = 1 if array.dtype == np.uint8 else 255
    return (array.astype(np.float32) * scale).clip(0, 255).astype(np.uint8)


def image(tag: str, tensor, rescale: float = 1, dataformats: str = "NCHW") -> Summary:
    """An image, or several in a grid, as PNG; the dimensions are named by ``dataformats``."""
    array = convert_to_HWC(make_np(tensor), dataformats)
    return Summary(value=[Summary.Value(tag=tag, image=make_image(_as_bytes(array), rescale=rescale))])


def image_boxes(
    tag: str, tensor_image, tensor_boxes, rescale: float = 1, dataformats: str = "CHW", labels=None
) -> Summary:
    """An image with boxes (N, 4) of left, top, right and bottom drawn on it, and texts for them."""
    array = convert_to_HWC(make_np(tensor_image), dataformats)
    made = make_image(_as_bytes(array), rescale=rescale, rois=make_np(tensor_boxes), labels=labels)
    return Summary(value=[Summary.Value(tag=tag, image=made)])


def draw_boxes(disp_image: Image.Image, boxes: np.ndarray, labels=None) -> Image.Image:
    """The image, with boxes drawn on it."""
    draw, font = ImageDraw.Draw(disp_image), ImageFont.load_default()
    for i, (left, top, right, bottom) in enumerate(boxes[:, :4].tolist()):
        corners = [(left, top), (left, bottom), (right, bottom), (right, top), (left, top)]
        draw.line(corners, width=2, fill="Red")
        if labels is not None and labels[i]:
            x0, y0, x1, y1 = font.getbbox(labels[i])
            width, height = x1 - x0, y1 - y0
            margin = np.ceil(0.05 * height)
            draw.rectangle([(left, bottom - height - 2 * margin), (left + width, bottom)], fill="Red")
            draw.text((left + margin, bottom - height - margin), labels[i], fill="black", font=font)
    return disp_image


def make_image(tensor: np.ndarray, rescale: float = 1, rois=None, labels=None) -> Summary.Image:
    """An image (H, W, C) of uint8 as PNG, ``rescale`` times as large, with the boxes ``rois``."""
    height, width, channel = tensor.shape
    picture = Image.fromarray(tensor)
    if rois is not None:
        picture = draw_boxes(picture, rois, labels=labels)
    picture = picture.resize((int(width * rescale), int(height * rescale)), Image.Resampling.LANCZOS)
    with io.BytesIO() as file:
        picture.save(file, format="PNG")
        data = file.getvalue()
    return Summary.Image(height=height, width=width, colorspace=channel, encoded_image_string=data)


def video(tag: str, tensor, fps: float = 4) -> Summary:
    """Videos (N, T, C, H, W), side by side, as GIF; wants moviepy, and without it is empty."""
    made = make_video(_as_bytes(_prepare_video(make_np(tensor))), fps)
    return Summary(value=[Summary.Value(tag=tag, image=made)])


def make_video(tensor: np.ndarray, fps: float) -> Summary.Image | None:
    """Frames (T, H, W, C) of uint8 as GIF; None, and a word about it, without moviepy."""
    try:
        moviepy = importlib.import_module("moviepy")
        if not hasattr(moviepy, "ImageSequenceClip"):  # before its version 2
            moviepy = importlib.import_module("moviepy.editor")
    except ImportError as exc:
        print(f"add_video needs package moviepy ({exc})")
        return None
    _, h, w, c = tensor.shape
    clip = moviepy.ImageSequenceClip(list(tensor), fps=fps)
    with tempfile.NamedTemporaryFile(suffix=".gif") as file:
        clip.write_gif(file.name, logger=None)
        data = file.read()
    return Summary.Image(height=h, width=w, colorspace=c, encoded_image_string=data)
