# torch.distributed.optim: optimizers over several processes.
from ..._refusal import refuse_all
from .post_localSGD_optimizer import PostLocalSGDOptimizer
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

refuse_all(globals(), "torch.distributed.optim", "DistributedOptimizer",
           "parameters on other workers need RPC; use torch.nn.parallel.DistributedDataParallel and an optimizer of torch.optim")
refuse_all(globals(), "torch.distributed.optim", "_apply_optimizer_in_backward _get_in_backward_optimizers",
           "register a hook by Tensor.register_post_accumulate_grad_hook that steps an optimizer of that parameter")

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]
