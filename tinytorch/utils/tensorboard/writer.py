"""SummaryWriter: what a training program tells TensorBoard."""

from __future__ import annotations

import os
import socket
import time
from datetime import datetime

from google.protobuf import text_format
from tensorboard.compat import tf
from tensorboard.compat.proto import event_pb2
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from . import summary
from ._convert_np import make_np
from ._embedding import get_embedding_info, make_mat, make_sprite, make_tsv, write_pbtxt
from ._onnx_graph import load_onnx_graph
from ._pytorch_graph import graph
from ._utils import figure_to_image

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """Writes protocol buffers to a new event file in ``log_dir``, in a thread of its own. Follows
    ``torch.utils.tensorboard.FileWriter``.

    Args:
        log_dir: a folder, which is made if need be
        max_queue: how many events wait for the thread at most
        flush_secs: after how many seconds they are on the disk
        filename_suffix: what the file's name ends with
    """

    def __init__(self, log_dir, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = ""):
        self._options = str(log_dir), max_queue, flush_secs, filename_suffix
        self.event_writer, self._open = EventFileWriter(*self._options), True

    def get_logdir(self) -> str:
        """The folder."""
        return self.event_writer.get_logdir()

    def add_event(self, event, step=None, walltime: float | None = None) -> None:
        """Writes an Event, of now unless ``walltime`` is given."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary, global_step=None, walltime: float | None = None) -> None:
        """Writes a Summary."""
        self.add_event(event_pb2.Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_profile, walltime: float | None = None) -> None:
        """Writes a graph and what a run of it took."""
        graph, taken = graph_profile
        self.add_event(event_pb2.Event(graph_def=graph.SerializeToString()), None, walltime)
        run = event_pb2.TaggedRunMetadata(tag="step1", run_metadata=taken.SerializeToString())
        self.add_event(event_pb2.Event(tagged_run_metadata=run), None, walltime)

    def add_onnx_graph(self, graph, walltime: float | None = None) -> None:
        """Writes a graph of which no run is known."""
        self.add_event(event_pb2.Event(graph_def=graph.SerializeToString()), None, walltime)

    def flush(self) -> None:
        """Waits until all is on the disk."""
        self.event_writer.flush()

    def close(self) -> None:
        """Writes what is left, and closes the file."""
        self.event_writer.close()
        self._open = False

    def reopen(self) -> None:
        """Goes on, after ``close``, in another file."""
        if not self._open:
            self.event_writer, self._open = EventFileWriter(*self._options), True


def _default_bins() -> list[float]:
    """The limits of histograms' bins: each is a tenth larger than the one before, to both sides of 0."""
    bins, limit = [], 1e-12
    while limit < 1e20:
        bins.append(limit)
        limit *= 1.1
    return [-b for b in reversed(bins)] + [0] + bins


class SummaryWriter:
    """Writes what TensorBoard shows to event files in ``log_dir``, while the program goes on. Tensors may be on any
    device; ``global_step`` is the step of training that an entry belongs to, ``walltime`` its time in seconds unless
    that is now. Follows ``torch.utils.tensorboard.SummaryWriter``.

    Args:
        log_dir: a folder; runs/DATE_HOST unless given
        comment: what the name of that folder ends with
        purge_step: entries of this step and later ones, of a run that had crashed, are not shown
        max_queue: how many entries wait to be written at most
        flush_secs: after how many seconds they are on the disk
        filename_suffix: what the files' names end with
    """

    def __init__(
        self,
        log_dir=None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ):
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir, self.purge_step = log_dir, purge_step
        self.max_queue, self.flush_secs, self.filename_suffix = max_queue, flush_secs, filename_suffix
        self.file_writer = self.all_writers = None
        self.default_bins = _default_bins()
        self._projector_config = ProjectorConfig()
        self._get_file_writer()

    def _new_writer(self, folder) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def _get_file_writer(self) -> FileWriter:
        """The writer of the run's own file: a new one after ``close``."""
        if self.file_writer is None:
            self.file_writer = self._new_writer(self.log_dir)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                self.file_writer.add_event(Event(step=self.purge_step, file_version="brain.Event:2"))
                start = SessionLog(status=SessionLog.START)
                self.file_writer.add_event(Event(step=self.purge_step, session_log=start))
                self.purge_step = None
        return self.file_writer

    def _add(self, made, global_step=None, walltime=None) -> None:
        self._get_file_writer().add_summary(made, global_step, walltime)

    def get_logdir(self):
        """The folder."""
        return self.log_dir

    def add_hparams(
        self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None
    ) -> None:
        """Hyperparameters ({name: number, text or bool}), and how good they were ({name: number}), as a run of its own;
        ``hparam_domain_discrete`` lists all values that some may have. TypeError for what is no dictionary."""
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        summaries = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as run:
            for made in summaries:
                run.file_writer.add_summary(made, global_step)
            for name, value in metric_dict.items():
                run.add_scalar(name, value, global_step)

    def add_scalar(
        self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False
    ) -> None:
        """A number, or a tensor of one element. ``new_style`` is read sooner, and may be ``double_precision``."""
        made = summary.scalar(tag, scalar_value, new_style=new_style, double_precision=double_precision)
        self._add(made, global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None) -> None:
        """Several numbers for one chart, each in an event file of its own."""
        walltime = time.time() if walltime is None else walltime
        folder = self._get_file_writer().get_logdir()
        for tag, value in tag_scalar_dict.items():
            name = f"{folder}/{main_tag.replace('/', '_')}_{tag}"
            if name not in self.all_writers:
                self.all_writers[name] = self._new_writer(name)
            self.all_writers[name].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag, tensor, global_step=None, walltime=None) -> None:
        """A tensor, with its shape and dtype."""
        self._add(summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None) -> None:
        """How the elements are distributed. ``bins`` are limits, or what ``numpy.histogram`` takes."""
        bins = self.default_bins if isinstance(bins, str) and bins == "tensorflow" else bins
        self._add(summary.histogram(tag, values, bins, max_bins=max_bins), global_step, walltime)

    def add_histogram_raw(
        self, tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts, global_step=None, walltime=None
    ) -> None:
        """A histogram whose figures are known: a bin is given by its right limit. ValueError where there are not as
        many limits as counts."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        made = summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._add(made, global_step, walltime)

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW") -> None:
        """An image, of uint8 or of values in [0, 1]; ``dataformats`` names the dimensions: CHW, HWC, HW."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW") -> None:
        """Several images in a grid."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_image_with_boxes(
        self, tag, img_tensor, box_tensor, global_step=None, walltime=None, rescale=1, dataformats="CHW", labels=None
    ) -> None:
        """An image with boxes (N, 4), of left, top, right and bottom, and N texts for them."""
        if labels is not None:
            labels = [labels] if isinstance(labels, str) else labels
            labels = labels if len(labels) == box_tensor.shape[0] else None
        made = summary.image_boxes(tag, img_tensor, box_tensor, rescale=rescale, dataformats=dataformats, labels=labels)
        self._add(made, global_step, walltime)

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None) -> None:
        """A figure of matplotlib's, or a list of them as a grid; ``close`` closes them."""
        form = "NCHW" if isinstance(figure, list) else "CHW"
        self.add_image(tag, figure_to_image(figure, close), global_step, walltime, dataformats=form)

    def add_video(self, tag, vid_tensor, global_step=None, fps=4, walltime=None) -> None:
        """Videos (N, T, C, H, W), of uint8 or of values in [0, 1], side by side. Wants moviepy."""
        self._add(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(self, tag, snd_tensor, global_step=None, sample_rate=44100, walltime=None) -> None:
        """Sound (1, L), of values in [-1, 1]."""
        self._add(summary.audio(tag, snd_tensor, sample_rate=sample_rate), global_step, walltime)

    def add_text(self, tag, text_string, global_step=None, walltime=None) -> None:
        """A text, which is shown as Markdown."""
        self._add(summary.text(tag, text_string), global_step, walltime)

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True) -> None:
        """A model's graph, as a run with ``input_to_model``, a tensor or a tuple of them, shows it; ``verbose`` prints
        it. ``use_strict_trace`` makes no difference."""
        self._get_file_writer().add_graph(graph(model, input_to_model, verbose, use_strict_trace))

    def add_onnx_graph(self, prototxt) -> None:
        """The graph of the model in the ONNX file ``prototxt``. ModuleNotFoundError without the onnx package."""
        self._get_file_writer().add_onnx_graph(load_onnx_graph(prototxt))

    @staticmethod
    def _encode(rawstr: str) -> str:
        for c in "%/\\":
            rawstr = rawstr.replace(c, f"%{ord(c):02x}")
        return rawstr

    def add_embedding(
        self, mat, metadata=None, label_img=None, global_step=None, tag="default", metadata_header=None
    ) -> None:
        """Points (N, D), with what is said of each (``metadata``: N texts, or with ``metadata_header`` rows of them),
        and images of them (N, C, H, W). AssertionError for another number or other dimensions."""
        mat = make_np(mat)
        step = 0 if global_step is None else global_step
        subdir = f"{str(step).zfill(5)}/{self._encode(tag)}"
        folder = self._get_file_writer().get_logdir()
        path = os.path.join(folder, subdir)
        if not tf.io.gfile.exists(path):
            tf.io.gfile.makedirs(path)
        elif tf.io.gfile.isdir(path):
            print("warning: Embedding dir exists, did you set global_step for add_embedding()?")
        else:
            raise NotADirectoryError(f"Path: `{path}` exists, but is a file. Cannot proceed.")
        if metadata is not None:
            if len(mat) != len(metadata):
                raise AssertionError("#labels should equal with #data points")
            make_tsv(metadata, path, metadata_header=metadata_header)
        if label_img is not None:
            if len(mat) != label_img.shape[0]:
                raise AssertionError("#images should equal with #data points")
            make_sprite(label_img, path)
        if mat.ndim != 2:
            raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
        make_mat(mat, path)
        self._projector_config.embeddings.append(get_embedding_info(metadata, label_img, subdir, step, tag))
        write_pbtxt(folder, text_format.MessageToString(self._projector_config))

    def add_pr_curve(
        self, tag, labels, predictions, global_step=None, num_thresholds=127, weights=None, walltime=None
    ) -> None:
        """Precision over recall of predictions in [0, 1], whose truth ``labels`` tells."""
        made = summary.pr_curve(tag, make_np(labels), make_np(predictions), num_thresholds, weights)
        self._add(made, global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag,
        true_positive_counts,
        false_positive_counts,
        true_negative_counts,
        false_negative_counts,
        precision,
        recall,
        global_step=None,
        num_thresholds=127,
        weights=None,
        walltime=None,
    ) -> None:
        """A curve of precision over recall whose points are known."""
        counts = true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts
        made = summary.pr_curve_raw(tag, *counts, precision, recall, num_thresholds, weights)
        self._add(made, global_step, walltime)

    def add_custom_scalars_multilinechart(self, tags, category="default", title="untitled") -> None:
        """Several scalars in one chart."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags, category="default", title="untitled") -> None:
        """A scalar between two others. AssertionError for another number of them."""
        if len(tags) != 3:
            raise AssertionError(f"Expected 3 tags, got {len(tags)}.")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_custom_scalars(self, layout) -> None:
        """Charts of scalars: {category: {title: ["Multiline" or "Margin", tags]}}."""
        self._add(summary.custom_scalars(layout))

    def add_mesh(
        self, tag, vertices, colors=None, faces=None, config_dict=None, global_step=None, walltime=None
    ) -> None:
        """Points (N, points, 3), their colours, and the triangles between them, of the same form; ``config_dict`` goes
        to three.js."""
        self._add(summary.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def flush(self) -> None:
        """Waits until all is on the disk."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Writes what is left, and closes the files."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        self.close()
