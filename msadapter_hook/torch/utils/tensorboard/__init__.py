"""torch.utils.tensorboard: writing what TensorBoard shows, through the tensorboard package."""

try:
    import tensorboard as _tensorboard
except ImportError as e:
    raise ModuleNotFoundError("No module named 'tensorboard' (torch.utils.tensorboard needs it: pip install tensorboard)",
                              name="tensorboard") from e

from tensorboard.summary.writer.record_writer import RecordWriter

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
