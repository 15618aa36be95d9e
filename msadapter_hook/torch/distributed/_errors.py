# Errors of torch.distributed. Source: PyTorch, torch.distributed.DistError and its kin.
__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "QueueEmptyError"]


class DistError(RuntimeError):
    """Something went wrong between processes."""


class DistBackendError(DistError):
    """A collective failed: a process did not come, is gone, or came to another collective."""


class DistNetworkError(DistError):
    """A connection could not be made or was lost."""


class DistStoreError(DistError):
    """A store did not give what was asked for in time."""


class QueueEmptyError(DistStoreError):
    """A queue of a store is empty."""


for _error in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _error.__module__ = __package__
