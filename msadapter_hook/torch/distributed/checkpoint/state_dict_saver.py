# torch.distributed.checkpoint.state_dict_saver: save, and save in the background.
import inspect
from concurrent.futures import ThreadPoolExecutor
from enum import Enum

from msadapter_hook.errors import unsupported

from ... import Tensor, no_grad
from ._together import Ranks, older_name, storage_for
from .filesystem import FileSystemWriter
from .planner import DefaultSavePlanner
from .stateful import Stateful

__all__ = ["save", "async_save", "save_state_dict", "AsyncCheckpointerType"]


class AsyncCheckpointerType(Enum):
    """Where `async_save` works. Source: PyTorch, the same name."""

    THREAD = "thread"
    PROCESS = "process"


def states_of(state_dict):
    """The dictionary with each Stateful replaced by its state."""
    return {key: value.state_dict() if isinstance(value, Stateful) and not inspect.isclass(value) else value
            for key, value in state_dict.items()}


@no_grad()
def save(state_dict, *, checkpoint_id=None, storage_writer=None, planner=None, process_group=None, no_dist=False, use_collectives=True):
    """Save a (nested) dictionary of tensors, objects and Stateful objects into the folder `checkpoint_id`; gives its Metadata.

    Called by every rank of the group: tensors that several ranks have are written by one, other objects by rank 0. Without a process group
    (or with `no_dist`) one process saves alone. CheckpointException on all ranks where one fails. NotImplementedError for writers of
    one's own and for `use_collectives=False`. Source: PyTorch, torch.distributed.checkpoint.save.
    """
    if not use_collectives:
        raise unsupported("torch.distributed.checkpoint.save(use_collectives=False)", "leave it at True")
    writer = storage_for("save", FileSystemWriter, checkpoint_id, storage_writer)
    planner = planner if planner is not None else DefaultSavePlanner()
    ranks = Ranks(process_group, no_dist)
    flat, paths = {}, {}

    def plan():
        found, where = planner.set_up(states_of(state_dict))
        flat.update(found)
        paths.update(where)
        if ranks.is_coordinator:
            writer.prepare()
        return planner.sizes(flat), where

    plans = ranks.each("plan", plan)
    owners = planner.owners([sizes for sizes, _ in plans])
    mine = {key: flat[key] for key, rank in owners.items() if rank == ranks.rank}
    rows = [row for part in ranks.each("write", lambda: writer.write(ranks.rank, mine)) for row in part]
    every_path = {key: path for _, part in reversed(plans) for key, path in part.items() if key in owners}
    in_order = {key: every_path[key] for _, part in plans for key in part if key in owners}
    finished = ranks.each("finish", lambda: writer.finish(rows, in_order) if ranks.is_coordinator else None)
    return finished[0]


def async_save(state_dict, *, checkpoint_id=None, storage_writer=None, planner=None, process_group=None,
               async_checkpointer_type=AsyncCheckpointerType.THREAD, async_stager=None, no_dist=False, use_collectives=True):
    """Copy the state and save the copy in a thread; gives a `concurrent.futures.Future` of the Metadata.

    NotImplementedError in a group of several processes, whose collectives must not run beside those of training, for a process instead
    of a thread, and for a stager of one's own. Source: PyTorch, torch.distributed.checkpoint.async_save.
    """
    if async_checkpointer_type is not AsyncCheckpointerType.THREAD or async_stager is not None:
        raise unsupported("torch.distributed.checkpoint.async_save(async_checkpointer_type=…, async_stager=…)", "leave them out")
    if Ranks(process_group, no_dist).world_size > 1:
        raise unsupported("torch.distributed.checkpoint.async_save", "with several processes, call save()")
    writer = storage_for("save", FileSystemWriter, checkpoint_id, storage_writer)
    staged = _copied(states_of(state_dict))
    pool = ThreadPoolExecutor(max_workers=1)
    future = pool.submit(save, staged, storage_writer=writer, planner=planner, no_dist=True)
    pool.shutdown(wait=False)
    return future


def _copied(value):
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(map(_copied, value))
    return value


def save_state_dict(state_dict, storage_writer, process_group=None, coordinator_rank=0, no_dist=False, planner=None):
    """The older name of `save`. Source: PyTorch, torch.distributed.checkpoint.save_state_dict."""
    older_name("save_state_dict", "save", coordinator_rank)
    return save(state_dict, storage_writer=storage_writer, process_group=process_group, no_dist=no_dist, planner=planner)
