"""torch.distributed.tensor.experimental: refused, as are sharded tensors."""

from ...._refusal import refuse_all as _refuse_all
from .. import ADVICE

_refuse_all(globals(), "torch.distributed.tensor.experimental", "context_parallel implicit_replication local_map register_sharding", ADVICE)
