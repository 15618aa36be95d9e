"""torch.utils.tensorboard: writing what TensorBoard shows, through the tensorboard package."""

try:
    import tensorboard as _tensorboard
except ImportError as e:
    raise ImportError("torch.utils.tensorboard needs the package tensorboard: pip install tensorboard") from e

from tensorboard.summary.writer.record_writer import RecordWriter

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
