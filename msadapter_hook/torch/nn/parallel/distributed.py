# DistributedDataParallel: several processes that average their gradients.
from ..modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Not available: NotImplementedError on construction, so that a program may import it. Source: PyTorch,
    torch.nn.parallel.DistributedDataParallel.
    """

    def __init__(self, module, *args, **kwargs):
        raise NotImplementedError(
            "torch.nn.parallel.DistributedDataParallel: training over several processes is not available; "
            "call the module itself in one process."
        )
