# Communication hooks that step a ZeroRedundancyOptimizer within backward: refused by name.
from ...._refusal import refuse_all

refuse_all(globals(), "torch.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook", "hook_with_zero_step hook_with_zero_step_interleaved",
           "call ZeroRedundancyOptimizer.step() after backward()")
