# torch.distributed.elastic.multiprocessing: errors of workers.
from . import errors

__all__ = ["errors"]
