# Communication hooks that send quantized gradients: refused by name.
from ...._refusal import refuse_all

refuse_all(globals(), "torch.distributed.algorithms.ddp_comm_hooks.quantization_hooks",
           "quantization_pertensor_hook quantization_perchannel_hook",
           "use default_hooks.fp16_compress_hook or bf16_compress_hook to send less")
