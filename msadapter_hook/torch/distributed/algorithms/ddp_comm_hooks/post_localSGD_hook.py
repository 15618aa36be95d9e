# The communication hook of post-local SGD: averages over all processes at first, later within a subgroup only or not at all.
from ....futures import Future
from .default_hooks import _mean_later

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """What the hook knows: the groups, when local steps begin, and how many steps there have been. A subgroup of None is this
    process alone. Source: PyTorch, PostLocalSGDState."""

    def __init__(self, process_group, subgroup, start_localSGD_iter, post_local_gradient_allreduce=True):
        self.process_group = process_group
        self.subgroup = subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket):
        """Count a step with its last bucket."""
        if bucket.is_last():
            self.iter += 1


def post_localSGD_hook(state, bucket):
    """The average over all processes before `start_localSGD_iter`, after that over the subgroup. Source: PyTorch, post_localSGD_hook."""
    flat = bucket.buffer()
    local = state.iter >= state.start_localSGD_iter
    state.maybe_increase_iter(bucket)
    if not local:
        return _mean_later(state.process_group, flat)
    if not state.post_local_gradient_allreduce or state.subgroup is None:
        future = Future()
        future.set_result(flat)
        return future
    return _mean_later(state.subgroup, flat)
