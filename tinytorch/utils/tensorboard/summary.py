"""Summaries: what an event file says of a scalar, a histogram, a text ..., as protocol buffers."""

from __future__ import annotations

import io
import json
import struct
import wave

import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.mesh import metadata as mesh_metadata
from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData
from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

from ... import dtypes
from ...ops.complex_numbers import view_as_real
from ...ops.create import as_tensor
from ...tensor import Tensor
from ._convert_np import make_np
from .hparams import hparams
from .pictures import draw_boxes, image, image_boxes, make_image, make_video, video

__all__ = [
    "audio",
    "compute_curve",
    "custom_scalars",
    "draw_boxes",
    "half_to_int",
    "histogram",
    "histogram_raw",
    "hparams",
    "image",
    "image_boxes",
    "int_to_half",
    "make_histogram",
    "make_image",
    "make_video",
    "mesh",
    "pr_curve",
    "pr_curve_raw",
    "scalar",
    "tensor_proto",
    "text",
    "video",
]

_MOST_THRESHOLDS = 127  # what the plugin's protocol buffer takes


def half_to_int(f: float) -> int:
    """The bits of a number as float32, as an int."""
    return struct.unpack("i", struct.pack("f", f))[0]


def int_to_half(i: int) -> float:
    """The float32 with these bits."""
    return struct.unpack("f", struct.pack("i", i))[0]


def _elements(t: Tensor) -> list:
    return t.flatten().tolist()


def _bits(t: Tensor) -> list[int]:
    return [half_to_int(x) for x in _elements(t)]


def _parts(t: Tensor) -> list[float]:
    return _elements(view_as_real(t))


_KINDS = {  # dtype: the protocol buffer's name for it, the field of the elements, and how they stand there
    dtypes.float16: ("DT_HALF", "half_val", _bits),
    dtypes.bfloat16: ("DT_BFLOAT16", "half_val", _bits),
    dtypes.float32: ("DT_FLOAT", "float_val", _elements),
    dtypes.float64: ("DT_DOUBLE", "double_val", _elements),
    dtypes.uint8: ("DT_UINT8", "uint32_val", _elements),
    dtypes.int8: ("DT_INT8", "int_val", _elements),
    dtypes.int16: ("DT_INT16", "int_val", _elements),
    dtypes.int32: ("DT_INT32", "int_val", _elements),
    dtypes.int64: ("DT_INT64", "int64_val", _elements),
    dtypes.bool: ("DT_BOOL", "bool_val", _elements),
    dtypes.complex64: ("DT_COMPLEX64", "scomplex_val", _parts),
    dtypes.complex128: ("DT_COMPLEX128", "dcomplex_val", _parts),
}


def _shape(*sizes: int) -> TensorShapeProto:
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in sizes])


def _of_plugin(name: str, content: bytes = b"") -> SummaryMetadata:
    return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=name, content=content))


def _one(tag: str, **value) -> Summary:
    return Summary(value=[Summary.Value(tag=tag, **value)])


def scalar(name: str, tensor, collections=None, new_style: bool = False, double_precision: bool = False) -> Summary:
    """One number; ``new_style`` puts it into a tensor, which TensorBoard reads sooner. AssertionError for more."""
    array = make_np(tensor).squeeze()
    if array.ndim != 0:
        raise AssertionError(
            "Tensor should contain one element (0 dimensions). "
            f"Was given size: {array.size} and {array.ndim} dimensions."
        )
    value = float(array)
    if not new_style:
        return _one(name, simple_value=value)
    if double_precision:
        held = TensorProto(double_val=[value], dtype="DT_DOUBLE")
    else:
        held = TensorProto(float_val=[value], dtype="DT_FLOAT")
    return _one(name, tensor=held, metadata=_of_plugin("scalars"))


def tensor_proto(tag: str, tensor: Tensor) -> Summary:
    """A tensor with its shape and dtype. ValueError for one of 2 GiB, or of a dtype that has no name there."""
    if tensor.numel() * tensor.itemsize >= 1 << 31:
        raise ValueError("tensor is bigger than protocol buffer's hard limit of 2GB in size")
    if tensor.dtype not in _KINDS:
        raise ValueError(f"{tag} has unsupported tensor dtype {tensor.dtype}")
    kind, field, elements = _KINDS[tensor.dtype]
    held = TensorProto(dtype=kind, tensor_shape=_shape(*tensor.shape), **{field: elements(tensor)})
    return _one(tag, tensor=held, metadata=_of_plugin("tensor"))


def histogram_raw(name: str, min, max, num, sum, sum_squares, bucket_limits, bucket_counts) -> Summary:
    """A histogram whose figures are known."""
    held = HistogramProto(
        min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, bucket_limit=bucket_limits, bucket=bucket_counts
    )
    return _one(name, histo=held)


def histogram(name: str, values, bins, max_bins: int | None = None) -> Summary:
    """A histogram of all elements, in the bins that ``numpy.histogram`` takes."""
    return _one(name, histo=make_histogram(make_np(values).astype(float), bins, max_bins))


def make_histogram(values: np.ndarray, bins, max_bins: int | None = None) -> HistogramProto:
    """The counts of the bins from the one before the first that holds something to the last; neighbours are put
    together where there are more than ``max_bins``. ValueError for no elements."""
    if values.size == 0:
        raise ValueError("The input has no element.")
    values = values.reshape(-1)
    counts, limits = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        together = len(counts) // max_bins
        counts = np.pad(counts, (0, -len(counts) % together)).reshape(-1, together).sum(-1)
        limits = np.append(limits[:-1:together], limits[-1])
    held = np.flatnonzero(counts)
    if not len(held):
        raise ValueError("The histogram is empty, please file a bug report.")
    first, last = int(held[0]), int(held[-1])
    # A bin is given by its right limit: the empty one before the first tells where that begins.
    shown = counts[first - 1 : last + 1] if first else np.concatenate([[0], counts[: last + 1]])
    return HistogramProto(
        min=values.min(),
        max=values.max(),
        num=len(values),
        sum=values.sum(),
        sum_squares=values.dot(values),
        bucket_limit=limits[first : last + 2].tolist(),
        bucket=shown.tolist(),
    )


def audio(tag: str, tensor, sample_rate: int = 44100) -> Summary:
    """One channel of sound, of values in [-1, 1], as a WAV file. AssertionError for more dimensions."""
    array = make_np(tensor).squeeze()
    if abs(array).max() > 1:
        print("warning: audio amplitude out of range, auto clipped.")
        array = array.clip(-1, 1)
    if array.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    array = (array * np.iinfo(np.int16).max).astype("<i2")
    with io.BytesIO() as file:
        with wave.open(file, "wb") as writer:
            writer.setnchannels(1)
            writer.setsampwidth(2)
            writer.setframerate(sample_rate)
            writer.writeframes(array.tobytes())
        data = file.getvalue()
    held = Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=array.shape[-1],
        encoded_audio_string=data,
        content_type="audio/wav",
    )
    return _one(tag, audio=held)


def text(tag: str, text: str) -> Summary:
    """A text, which TensorBoard shows as Markdown."""
    held = TensorProto(dtype="DT_STRING", string_val=[text.encode()], tensor_shape=_shape(1))
    content = TextPluginData(version=0).SerializeToString()
    return _one(f"{tag}/text_summary", metadata=_of_plugin("text", content), tensor=held)


def _chart(title: str, kind: str, tags) -> layout_pb2.Chart:
    if kind != "Margin":
        return layout_pb2.Chart(title=title, multiline=layout_pb2.MultilineChartContent(tag=tags))
    if len(tags) != 3:
        raise AssertionError("len(tags) != 3")
    series = layout_pb2.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
    return layout_pb2.Chart(title=title, margin=layout_pb2.MarginChartContent(series=[series]))


def custom_scalars(layout: dict) -> Summary:
    """Which scalars stand in one chart: {category: {title: ["Multiline" or "Margin", tags]}}."""
    categories = [
        layout_pb2.Category(title=name, chart=[_chart(title, *chart[:2]) for title, chart in charts.items()])
        for name, charts in layout.items()
    ]
    data = layout_pb2.Layout(category=categories).SerializeToString()
    held = TensorProto(dtype="DT_STRING", string_val=[data], tensor_shape=_shape())
    return _one("custom_scalars__config__", tensor=held, metadata=_of_plugin("custom_scalars"))


def _curve(tag: str, data: np.ndarray, num_thresholds: int) -> Summary:
    content = PrCurvePluginData(version=0, num_thresholds=num_thresholds).SerializeToString()
    held = TensorProto(dtype="DT_FLOAT", float_val=data.reshape(-1).tolist(), tensor_shape=_shape(*data.shape))
    return _one(tag, metadata=_of_plugin("pr_curves", content), tensor=held)


def pr_curve_raw(
    tag: str, tp, fp, tn, fn, precision, recall, num_thresholds: int = _MOST_THRESHOLDS, weights=None
) -> Summary:
    """A curve of precision over recall whose points are known."""
    data = np.stack([tp, fp, tn, fn, precision, recall])
    return _curve(tag, data, min(num_thresholds, _MOST_THRESHOLDS))


def pr_curve(tag: str, labels, predictions, num_thresholds: int = _MOST_THRESHOLDS, weights=None) -> Summary:
    """The curve of precision over recall of predictions in [0, 1]."""
    num_thresholds = min(num_thresholds, _MOST_THRESHOLDS)
    return _curve(tag, compute_curve(labels, predictions, num_thresholds, weights), num_thresholds)


def compute_curve(labels: np.ndarray, predictions: np.ndarray, num_thresholds: int, weights=None) -> np.ndarray:
    """For each threshold the true and false positives, the true and false negatives, precision and recall: (6,
    thresholds)."""
    weights = 1.0 if weights is None else weights
    right = labels.astype(np.float64)
    bucket = np.int32(np.floor(predictions * (num_thresholds - 1)))

    def at_least(of) -> np.ndarray:
        counts, _ = np.histogram(bucket, bins=num_thresholds, range=(0, num_thresholds - 1), weights=of * weights)
        return np.cumsum(counts[::-1])[::-1]

    tp, fp = at_least(right), at_least(1.0 - right)
    tn, fn = fp[0] - fp, tp[0] - tp
    return np.stack([tp, fp, tn, fn, tp / np.maximum(1e-7, tp + fp), tp / np.maximum(1e-7, tp + fn)])


def mesh(tag: str, vertices, colors, faces, config_dict, display_name=None, description=None) -> Summary:
    """Points (N, points, 3), with colours and triangles of the same form or None, and a dictionary for three.js."""
    config = "{}" if config_dict is None else json.dumps(config_dict, sort_keys=True)
    given = [(vertices, MeshPluginData.VERTEX), (faces, MeshPluginData.FACE), (colors, MeshPluginData.COLOR)]
    given = [(as_tensor(values), kind) for values, kind in given if values is not None]
    components = mesh_metadata.get_components_bitmask([kind for _, kind in given])
    values = []
    for t, kind in given:
        said = mesh_metadata.create_summary_metadata(
            tag, display_name, kind, components, tuple(t.shape), description, json_config=config
        )
        held = TensorProto(dtype="DT_FLOAT", float_val=_elements(t), tensor_shape=_shape(*t.shape[:3]))
        values.append(Summary.Value(tag=mesh_metadata.get_instance_name(tag, kind), tensor=held, metadata=said))
    return Summary(value=values)
