"""torch.distributed.tensor: names for imports and isinstance. Tensors are not sharded here; making one says so."""

from ..._refusal import refuse_all as _refuse_all
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = ["DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor"]

ADVICE = ("tensors and modules are not sharded over processes; use torch.nn.parallel.DistributedDataParallel, which keeps the whole "
          "model in each of them")

_refuse_all(globals(), "torch.distributed.tensor", "distribute_tensor distribute_module empty full ones rand randn zeros", ADVICE)


class DTensor:
    """The type of a sharded tensor; no object is one. NotImplementedError on construction."""

    def __new__(cls, *args, **kwargs):
        from msadapter_hook.errors import unsupported

        raise unsupported("torch.distributed.tensor.DTensor", ADVICE)

    @staticmethod
    def from_local(*args, **kwargs):
        return DTensor()
