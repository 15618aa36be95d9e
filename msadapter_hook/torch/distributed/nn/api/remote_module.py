# torch.distributed.nn.api.remote_module: modules on other workers need RPC, which there is none of.
from ...._refusal import refused

__all__ = ["RemoteModule"]

RemoteModule = refused("torch.distributed.nn.RemoteModule",
                       "modules that live on another worker need RPC; use torch.nn.parallel.DistributedDataParallel")
