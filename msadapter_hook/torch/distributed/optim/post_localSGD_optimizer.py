# PostLocalSGDOptimizer: an optimizer whose parameters are averaged over processes by an averager after each step.
import warnings

from ...optim import Optimizer

__all__ = ["PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(Optimizer):
    """Steps `optim`, then lets `averager` average the parameters when it is time; for DistributedDataParallel with
    `post_localSGD_hook`. Source: PyTorch, torch.distributed.optim.PostLocalSGDOptimizer."""

    def __init__(self, optim, averager):
        self.optim = optim
        self.param_groups = optim.param_groups
        self.averager = averager

    @property
    def state(self):
        return self.optim.state

    def __repr__(self):
        return repr(self.optim)

    def state_dict(self):
        """The optimizer's, and the averager's number of steps under "step"."""
        return self.optim.state_dict() | {"step": self.averager.step}

    def load_state_dict(self, state_dict):
        """Take over a state; a missing number of steps is told and counted as 0."""
        self.optim.load_state_dict({key: value for key, value in state_dict.items() if key != "step"})
        if "step" in state_dict:
            self.averager.step = state_dict["step"]
        else:
            warnings.warn("Loaded state dict does not contain a step counter for an averager. Setting step counter to 0.", stacklevel=2)
            self.averager.step = 0

    def step(self, *args, **kwargs):
        """One step of the optimizer, then the averager's turn."""
        loss = self.optim.step(*args, **kwargs)
        self.averager.average_parameters(params=self.param_groups)
        return loss

    def zero_grad(self, set_to_none=True):
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group):
        self.optim.add_param_group(param_group)
