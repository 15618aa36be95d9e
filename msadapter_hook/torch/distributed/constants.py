# torch.distributed.constants: how long collectives wait by default.
from .rendezvous import default_pg_timeout

default_pg_nccl_timeout = None

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]
