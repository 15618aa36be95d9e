"""torch.distributed.tensor.parallel: refused, as are sharded tensors."""

from ...._refusal import refuse_all as _refuse_all
from .. import ADVICE

_refuse_all(globals(), "torch.distributed.tensor.parallel", "ColwiseParallel RowwiseParallel SequenceParallel PrepareModuleInput "
            "PrepareModuleInputOutput PrepareModuleOutput ParallelStyle loss_parallel parallelize_module", ADVICE)
