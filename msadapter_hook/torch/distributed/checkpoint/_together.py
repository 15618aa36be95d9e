# A step of all ranks: each does its part, all learn the results, and a failure anywhere is an error everywhere.
import traceback

from .api import CheckpointException

__all__ = ["Ranks"]


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
