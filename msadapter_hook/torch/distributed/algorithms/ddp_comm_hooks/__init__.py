# Communication hooks of DistributedDataParallel, and their registration by kind.
from enum import Enum

from ....nn.parallel import DistributedDataParallel
from . import debugging_hooks, default_hooks, post_localSGD_hook, powerSGD_hook, quantization_hooks

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


class DDPCommHookType(Enum):
    """Kinds of communication hooks. Source: PyTorch, torch.distributed.algorithms.ddp_comm_hooks.DDPCommHookType."""

    ALLREDUCE = "allreduce"
    FP16_COMPRESS = "fp16_compress"
    BF16_COMPRESS = "bf16_compress"
    QUANTIZE_PER_TENSOR = "quantize_per_tensor"
    QUANTIZE_PER_CHANNEL = "quantize_per_channel"
    POWER_SGD = "power_sgd"
    POWER_SGD_RANK2 = "power_sgd_rank2"
    BATCHED_POWER_SGD = "batched_power_sgd"
    BATCHED_POWER_SGD_RANK2 = "batched_power_sgd_rank2"
    NOOP = "noop"


_HOOKS = {
    DDPCommHookType.ALLREDUCE: default_hooks.allreduce_hook,
    DDPCommHookType.FP16_COMPRESS: default_hooks.fp16_compress_hook,
    DDPCommHookType.BF16_COMPRESS: default_hooks.bf16_compress_hook,
    DDPCommHookType.NOOP: debugging_hooks.noop_hook,
}

_REFUSED = {
    DDPCommHookType.QUANTIZE_PER_TENSOR: quantization_hooks.quantization_pertensor_hook,
    DDPCommHookType.QUANTIZE_PER_CHANNEL: quantization_hooks.quantization_perchannel_hook,
    DDPCommHookType.BATCHED_POWER_SGD: powerSGD_hook.batched_powerSGD_hook,
    DDPCommHookType.BATCHED_POWER_SGD_RANK2: powerSGD_hook.batched_powerSGD_hook,
    DDPCommHookType.POWER_SGD: powerSGD_hook.powerSGD_hook,
    DDPCommHookType.POWER_SGD_RANK2: powerSGD_hook.powerSGD_hook,
}


def register_ddp_comm_hook(comm_hook_type, model, state=None):
    """Let `model`, a DistributedDataParallel, reduce its buckets by the hook of this kind. NotImplementedError for the kinds that
    quantize or factorize. Source: PyTorch, register_ddp_comm_hook."""
    if not isinstance(model, DistributedDataParallel):
        raise TypeError(f"a communication hook needs a DistributedDataParallel, not {type(model).__name__}")
    if comm_hook_type in _REFUSED:
        _REFUSED[comm_hook_type]()
    model.register_comm_hook(state, _HOOKS[comm_hook_type])
