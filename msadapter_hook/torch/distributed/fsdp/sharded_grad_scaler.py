"""torch.distributed.fsdp.sharded_grad_scaler: gradient scaling for sharded models, which do not exist here."""

from msadapter_hook.errors import unsupported

from ...amp import GradScaler
from .fully_sharded import ADVICE


class ShardedGradScaler(GradScaler):
    """For isinstance. NotImplementedError on construction."""

    def __init__(self, *args, **kwargs):
        raise unsupported("torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler", f"{ADVICE} with torch.amp.GradScaler")
