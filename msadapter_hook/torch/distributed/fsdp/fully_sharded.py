"""The wrappers, which refuse: a model is whole in each process here."""

from dataclasses import dataclass

from msadapter_hook.errors import unsupported

from ..._refusal import refuse_all as _refuse_all
from ...nn import Module

ADVICE = "parameters are not sharded over processes; use torch.nn.parallel.DistributedDataParallel"

_refuse_all(globals(), "torch.distributed.fsdp", "fully_shard register_fsdp_forward_method", ADVICE)


class FullyShardedDataParallel(Module):
    """The type of a sharded model; no object is one. NotImplementedError on construction."""

    def __init__(self, *args, **kwargs):
        raise unsupported("torch.distributed.fsdp.FullyShardedDataParallel", ADVICE)

    @staticmethod
    def fsdp_modules(module, root_only=False):
        """No module is sharded: an empty list."""
        return []


class FSDPModule:
    """The type that fully_shard would give a module; no module is one."""


class UnshardHandle:
    """Waits for parameters to be gathered; none ever are."""


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of parameters, gradients and results while they are in use."""

    param_dtype: object = None
    reduce_dtype: object = None
    output_dtype: object = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parameters stay where they are."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters wait on the CPU."""

    pin_memory: bool = True
