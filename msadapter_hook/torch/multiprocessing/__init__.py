"""torch.multiprocessing: Python's multiprocessing; tensors travel by copy."""

import multiprocessing as _multiprocessing
from multiprocessing import *

from .spawn import ProcessException, ProcessExitedException, ProcessRaisedException, spawn, start_processes

__all__ = [*_multiprocessing.__all__, "ProcessException", "ProcessExitedException", "ProcessRaisedException",
           "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn", "start_processes"]


def set_sharing_strategy(new_strategy):
    """Tensors are copied between processes either way. Source: PyTorch, torch.multiprocessing.set_sharing_strategy."""
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(f"unknown sharing strategy {new_strategy!r}")


def get_sharing_strategy():
    return "file_system"


def get_all_sharing_strategies():
    return {"file_descriptor", "file_system"}
