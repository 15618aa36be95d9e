# torch.distributed.checkpoint.storage: base classes of what writes and reads checkpoints.
__all__ = ["StorageWriter", "StorageReader"]


class StorageWriter:
    """Base of writers; FileSystemWriter is the one that `save` knows. Source: PyTorch, the same name."""


class StorageReader:
    """Base of readers; FileSystemReader is the one that `load` knows. Source: PyTorch, the same name."""
