# torch.distributed over MindSpore's communication: process groups, collectives, messages, stores.
#
# _job: the processes, how the engine starts and ends; _circle: how they meet; _groups: process groups; _collectives, _messages, _objects:
# what programs call; _store, _tcp_store, rendezvous: how processes find each other; run: the launcher.
from ..nn.parallel._buckets import BuiltinCommHookType, GradBucket
from .distributed_c10d import *
from .distributed_c10d import (
    _all_gather_base,
    _broadcast_coalesced,
    _coalescing_manager,
    _get_default_group,
    _get_process_group_name,
    _rank_not_in_group,
    _reduce_scatter_base,
    _world,
)


def is_available():
    """True: torch.distributed is there. Source: PyTorch, torch.distributed.is_available."""
    return True
