# Communication hooks that send low-rank approximations of the gradients: refused by name.
from ...._refusal import refuse_all

refuse_all(globals(), "torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook", "PowerSGDState powerSGD_hook batched_powerSGD_hook",
           "use default_hooks.fp16_compress_hook or bf16_compress_hook to send less")
