"""The options of fully sharded data parallelism, as values. Source: PyTorch, torch.distributed.fsdp."""

import enum
from dataclasses import dataclass

ShardingStrategy = enum.Enum("ShardingStrategy", "FULL_SHARD SHARD_GRAD_OP NO_SHARD HYBRID_SHARD _HYBRID_SHARD_ZERO2")
BackwardPrefetch = enum.Enum("BackwardPrefetch", "BACKWARD_PRE BACKWARD_POST")
StateDictType = enum.Enum("StateDictType", "FULL_STATE_DICT LOCAL_STATE_DICT SHARDED_STATE_DICT")
OptimStateKeyType = enum.Enum("OptimStateKeyType", "PARAM_NAME PARAM_ID")


@dataclass
class MixedPrecision:
    """The dtypes of parameters, gradients and buffers while they are in use."""

    param_dtype: object = None
    reduce_dtype: object = None
    buffer_dtype: object = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: tuple = ()


@dataclass
class CPUOffload:
    """Whether parameters wait on the CPU."""

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """How state dicts are gathered."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Whole tensors, in all processes or the first."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """The shards as they lie."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Sharded tensors."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """How state dicts of optimizers are gathered."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """Whole tensors, in all processes or the first."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """The shards as they lie."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Sharded tensors."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """What kind of state dict, and how each is gathered."""

    state_dict_type: object
    state_dict_config: object
    optim_state_dict_config: object
