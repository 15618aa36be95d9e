# torch.distributed.algorithms.join: training on uneven numbers of batches. The interfaces are there; Join itself is refused.
from msadapter_hook.errors import unsupported

__all__ = ["JoinHook", "Joinable", "Join"]


class JoinHook:
    """What a finished process does while others go on. Source: PyTorch, torch.distributed.algorithms.JoinHook."""

    def main_hook(self):
        """Called for each iteration that others still run."""

    def post_hook(self, is_last_joiner):
        """Called once all have finished."""


class Joinable:
    """Base of classes that can take part in a Join. Source: PyTorch, torch.distributed.algorithms.Joinable."""

    def join_hook(self, **kwargs):
        raise NotImplementedError(f"{type(self).__name__} does not define join_hook")


class Join:
    """Refused where enabled: NotImplementedError. Source: PyTorch, torch.distributed.algorithms.Join."""

    def __init__(self, joinables, enable=True, throw_on_early_termination=False, **kwargs):
        if enable:
            raise unsupported(
                "torch.distributed.algorithms.Join",
                "give every process the same number of batches (torch.utils.data.distributed.DistributedSampler does)")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None

    @staticmethod
    def notify_join_context(joinable):
        """Nothing to tell: there is no context."""
