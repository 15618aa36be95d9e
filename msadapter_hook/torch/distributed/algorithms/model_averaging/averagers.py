# Averagers: objects that average parameters over processes at each call, or at some.
import warnings

from .utils import average_parameters_or_parameter_groups

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager:
    """Base of averagers; counts steps. Source: PyTorch, ModelAverager."""

    def __init__(self, process_group=None):
        from .... import distributed as dist

        self.process_group = process_group if process_group is not None else dist.group.WORLD
        self.step = 0

    def average_parameters(self, params):
        raise NotImplementedError(f"{type(self).__name__} does not define average_parameters")


class PeriodicModelAverager(ModelAverager):
    """Averages every `period` steps once `warmup_steps` are over. ValueError for a period below 1 or a negative warm-up.

    Source: PyTorch, PeriodicModelAverager.
    """

    def __init__(self, period, warmup_steps=0, process_group=None):
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        self.warmup_steps = warmup_steps
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warnings.warn("When period is 1, no need to use model averaging because the communication cost of all-reducing parameters "
                          "will be no less than the cost of all-reducing gradients by DistributedDataParallel in the backward pass. "
                          "Therefore, only DistributedDataParallel should be used for this case.", stacklevel=2)
        self.period = period

    def average_parameters(self, params):
        """Count a step and average where it is time."""
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
