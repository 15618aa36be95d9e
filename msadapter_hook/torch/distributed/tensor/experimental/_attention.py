"""torch.distributed.tensor.experimental._attention: refused, as are sharded tensors."""

from ...._refusal import refuse_all as _refuse_all
from .. import ADVICE

_refuse_all(globals(), "torch.distributed.tensor.experimental._attention", "set_rotate_method context_parallel", ADVICE)
