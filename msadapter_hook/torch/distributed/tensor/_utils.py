"""Arithmetic of shards. Refused: tensors are not sharded here."""

from ..._refusal import refuse_all as _refuse_all
from . import ADVICE

_refuse_all(globals(), "torch.distributed.tensor._utils", "compute_global_tensor_info compute_local_shape "
            "compute_local_shape_and_global_offset", ADVICE)
