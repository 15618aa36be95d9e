# torch.distributed.elastic.multiprocessing.errors: `record`, the mark on a worker's main function.
import functools

__all__ = ["ChildFailedError", "record"]


class ChildFailedError(Exception):
    """A worker failed (PyTorch, torch.distributed.elastic.multiprocessing.errors.ChildFailedError)."""


def record(fn, error_handler=None):
    """A worker's main function. Its traceback goes to stderr, where the launcher's report points to. Source: PyTorch,
    torch.distributed.elastic.multiprocessing.errors.record."""

    @functools.wraps(fn)
    def wrapped(*args, **kwargs):
        return fn(*args, **kwargs)

    return wrapped
