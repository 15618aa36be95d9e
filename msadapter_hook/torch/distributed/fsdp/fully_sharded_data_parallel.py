"""torch.distributed.fsdp.fully_sharded_data_parallel: another place for the names of torch.distributed.fsdp."""

from . import *  # noqa: F403
