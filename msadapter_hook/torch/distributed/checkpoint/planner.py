# torch.distributed.checkpoint.planner: which keys are saved or loaded, and under which names.
from ... import Tensor
from ._flatten import flatten

__all__ = ["SavePlanner", "LoadPlanner", "DefaultSavePlanner", "DefaultLoadPlanner"]


class _Planner:
    def __init__(self, flatten_state_dict=True):
        self.flatten_state_dict = flatten_state_dict

    def set_up(self, state_dict):
        """({key: value}, {key: path} or None) of a state dictionary."""
        if self.flatten_state_dict:
            return flatten(state_dict)
        return dict(state_dict), {key: (key,) for key in state_dict}


class SavePlanner(_Planner):
    """Base of the planners that `save` takes; custom ones derive from DefaultSavePlanner."""


class LoadPlanner(_Planner):
    """Base of the planners that `load` takes; custom ones derive from DefaultLoadPlanner."""


class DefaultSavePlanner(SavePlanner):
    """Flattens the state dictionary and saves each tensor once: on the rank with the least to write, or the lowest one
    (`dedup_save_to_lowest_rank`). There are no sharded tensors to flatten, and plans are too cheap to be kept.

    Source: PyTorch, torch.distributed.checkpoint.DefaultSavePlanner.
    """

    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, dedup_replicated_tensors=None,
                 dedup_save_to_lowest_rank=False, enable_plan_caching=False):
        super().__init__(flatten_state_dict)
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank

    def owners(self, plans):
        """{key: rank that saves it} from the {key: bytes, or None for an object that is no tensor} of every rank. Objects that are no
        tensors are those of rank 0."""
        load, owners = [0] * len(plans), {}
        holders = {}
        for rank, plan in enumerate(plans):
            for key, size in plan.items():
                if size is None:
                    if rank == 0:
                        owners[key] = 0
                else:
                    holders.setdefault(key, []).append((rank, size))
        for key, found in holders.items():
            if self.dedup_save_to_lowest_rank:
                rank, size = found[0]
            else:
                rank, size = min(found, key=lambda pair: load[pair[0]])
            load[rank] += size
            owners[key] = rank
        return owners

    def sizes(self, flat):
        """{key: bytes, or None for what is no tensor}."""
        return {key: value.numel() * value.element_size() if isinstance(value, Tensor) else None for key, value in flat.items()}


class DefaultLoadPlanner(LoadPlanner):
    """Flattens the state dictionary and loads each of its keys; with `allow_partial_load` those that the checkpoint has.

    Source: PyTorch, torch.distributed.checkpoint.DefaultLoadPlanner.
    """

    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, allow_partial_load=False):
        super().__init__(flatten_state_dict)
        self.allow_partial_load = allow_partial_load
