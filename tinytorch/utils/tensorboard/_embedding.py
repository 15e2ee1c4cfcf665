"""The files beside the event file that the projector of embeddings reads."""

from __future__ import annotations

import math
import os
from io import BytesIO

import numpy as np
from PIL import Image
from tensorboard.compat import tf
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo

from ._convert_np import make_np
from ._utils import make_grid


def _write(folder: str, name: str, data: bytes) -> None:
    with tf.io.gfile.GFile(os.path.join(folder, name), "wb") as file:
        file.write(data)


def make_tsv(metadata, save_path: str, metadata_header=None) -> None:
    """Writes what is said of each point; with a header each is a row of texts."""
    if not metadata_header:
        lines = [str(x) for x in metadata]
    else:
        if len(metadata_header) != len(metadata[0]):
            raise AssertionError("len of header must be equal to the number of columns in metadata")
        lines = ["\t".join(str(e) for e in row) for row in [metadata_header, *metadata]]
    _write(save_path, "metadata.tsv", ("\n".join(lines) + "\n").encode())


def make_sprite(label_img, save_path: str) -> None:
    """Writes the points' images (N, C, H, W) as one square image."""
    across = math.ceil(len(label_img) ** 0.5)
    grid = make_grid(make_np(label_img), ncols=across).transpose(1, 2, 0)
    square = np.zeros((grid.shape[1], grid.shape[1], 3))
    square[: grid.shape[0]] = grid
    with BytesIO() as file:
        Image.fromarray(np.uint8((square * 255).clip(0, 255))).save(file, format="PNG")
        _write(save_path, "sprite.png", file.getvalue())


def get_embedding_info(metadata, label_img, subdir: str, global_step: int, tag: str) -> EmbeddingInfo:
    """What the projector is told of one embedding."""
    info = EmbeddingInfo(
        tensor_name=f"{tag}:{str(global_step).zfill(5)}", tensor_path=os.path.join(subdir, "tensors.tsv")
    )
    if metadata is not None:
        info.metadata_path = os.path.join(subdir, "metadata.tsv")
    if label_img is not None:
        info.sprite.image_path = os.path.join(subdir, "sprite.png")
        info.sprite.single_image_dim.extend([label_img.shape[3], label_img.shape[2]])
    return info


def write_pbtxt(save_path: str, contents: str) -> None:
    """Writes what the projector is told of all."""
    _write(save_path, "projector_config.pbtxt", contents.encode())


def make_mat(matlist, save_path: str) -> None:
    """Writes the points, one a line."""
    lines = ["\t".join(str(x.item()) for x in row) + "\n" for row in matlist]
    _write(save_path, "tensors.tsv", "".join(lines).encode())
