# What saving and loading have in common: the storage that is meant, the older names, and a step of all ranks, in which each does its
# part, all learn the results, and a failure anywhere is an error everywhere.
import traceback
import warnings

from msadapter_hook.errors import unsupported

from .api import CheckpointException

__all__ = ["Ranks", "older_name", "storage_for"]


_ARGUMENTS = {"save": "storage_writer", "load": "storage_reader"}


def storage_for(function, kind, checkpoint_id, given):
    """The writer or reader (of this `kind`) that `function`, save or load, works with: of the folder `checkpoint_id`, or the one
    `given`. RuntimeError where neither is there, NotImplementedError for one of another kind."""
    if given is None:
        if checkpoint_id is None:
            raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
        return kind(checkpoint_id)
    if not isinstance(given, kind):
        raise unsupported(f"torch.distributed.checkpoint.{function}({_ARGUMENTS[function]}={type(given).__name__})",
                          f"use {kind.__name__}, or torch.{function}")
    if checkpoint_id is not None:
        given.path = type(given.path)(checkpoint_id)
    return given


def older_name(old, new, coordinator_rank):
    """What the deprecated names do before they do what the new ones do. NotImplementedError for another coordinator than rank 0."""
    warnings.warn(f"'{old}' is deprecated and will be removed in future versions. Please use '{new}' instead.", FutureWarning,
                  stacklevel=3)
    if coordinator_rank != 0:
        raise unsupported(f"torch.distributed.checkpoint.{old}(coordinator_rank=…)", "rank 0 coordinates")


class Ranks:
    """The processes that save or load together; one alone where there is no process group, or with `no_dist`."""

    def __init__(self, process_group, no_dist):
        from ... import distributed as dist

        self._dist = dist if not no_dist and dist.is_available() and dist.is_initialized() else None
        self._group = process_group
        self.rank = dist.get_rank(process_group) if self._dist is not None else 0
        self.world_size = dist.get_world_size(process_group) if self._dist is not None else 1

    @property
    def is_coordinator(self):
        return self.rank == 0

    def each(self, name, function):
        """The results of `function()` on all ranks, as a list. CheckpointException where it failed on any."""
        try:
            mine = (function(), None)
        except Exception as error:
            mine = (None, (error, traceback.extract_tb(error.__traceback__)))
        if self._dist is None:
            every = [mine]
        else:
            every = [None] * self.world_size
            self._dist.all_gather_object(every, mine, group=self._group)
        failures = {rank: failure for rank, (_, failure) in enumerate(every) if failure is not None}
        if failures:
            raise CheckpointException(name, failures)
        return [result for result, _ in every]
