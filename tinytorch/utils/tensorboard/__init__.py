"""Event files for TensorBoard. Follows ``torch.utils.tensorboard``; the package ``tensorboard`` writes them:
``pip install tinytorch[tensorboard]``."""

try:
    from tensorboard.summary.writer.record_writer import RecordWriter
except ImportError as exc:
    raise ImportError(
        "tinytorch.utils.tensorboard needs the package tensorboard, which is not installed: pip install "
        f"'tinytorch[tensorboard]', or pip install tensorboard ({exc})"
    ) from exc

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
