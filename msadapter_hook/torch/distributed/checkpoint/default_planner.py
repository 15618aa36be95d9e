# torch.distributed.checkpoint.default_planner: the planners by their other address.
from .planner import DefaultLoadPlanner, DefaultSavePlanner

__all__ = ["DefaultSavePlanner", "DefaultLoadPlanner"]
