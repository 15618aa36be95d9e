# torch.distributed.rpc: not there; programs that ask `is_available()` go their other way.
from ..._refusal import refuse_all

__all__ = ["is_available"]


def is_available():
    """False. Source: PyTorch, torch.distributed.rpc.is_available."""
    return False


refuse_all(globals(), "torch.distributed.rpc", "init_rpc shutdown rpc_sync rpc_async remote get_worker_info RRef",
           "MindSpore has no remote calls; use the collectives or messages of torch.distributed between the processes")
