# torch.distributed.checkpoint.api: the error of saving and loading.
import traceback

__all__ = ["CheckpointException"]


class CheckpointException(BaseException):
    """Saving or loading failed on one or more ranks; `failures` holds {rank: (exception, traceback)}. Source: PyTorch, the same name."""

    def __init__(self, msg, failures):
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self):
        return self._failures

    def __str__(self):
        text = f"CheckpointException ranks:{self._failures.keys()}\n"
        for rank, (error, frames) in self._failures.items():
            text += f"Traceback (most recent call last): (RANK {rank})\n"
            if frames is not None:
                text += "".join(traceback.format_list(frames))
            text += "".join(traceback.format_exception_only(type(error), error))
        return text
