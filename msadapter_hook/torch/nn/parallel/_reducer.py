# The reducer of DistributedDataParallel: hooks on the parameters, buckets reduced as they become ready, gradients handed back.
from msadapter_hook.autograd.graph import leaves_of
from msadapter_hook.autograd.passes import queue_callback

from ... import int32, no_grad, tensor
from ...futures import Future
from ._buckets import GradBucket, assign

__all__ = ["Reducer"]

_UNFINISHED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your module has "
    "parameters that were not used in producing loss. You can enable unused parameter detection by passing the keyword argument "
    "`find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure all `forward` function outputs "
    "participate in calculating loss. \nIf you already have done the above, then the distributed data parallel module wasn't able to "
    "locate the output tensors in the return value of your module's `forward` function. Please include the loss function and the "
    "structure of the return value of `forward` of your module when reporting this issue (e.g. list, dict, iterable).")

_TWICE = (
    "Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) Use of a module parameter "
    "outside the `forward` function. Please make sure model parameters are not shared across multiple concurrent forward-backward "
    "passes, or try to use _set_static_graph() as a workaround if this module graph does not change during training loop. 2) Reused "
    "parameters in multiple reentrant backward passes. For example, if you use multiple `checkpoint` functions to wrap the same part "
    "of your model, it would result in the same set of parameters been used by different reentrant backward passes multiple times, "
    "and hence marking a variable ready multiple times. DDP does not support such use cases in default. You can try to use "
    "_set_static_graph() as a workaround if your module graph does not change over iterations.\n"
    "Parameter at index {index}{name} has been marked as ready twice.")


class Reducer:
    """Averages the gradients of `params` over a group, bucket by bucket, during backward.

    A bucket is reduced once all its gradients are there and all buckets before it have been started, so that the processes
    agree on the order. With `static_graph` all buckets are reduced at the end of the outermost backward pass, however
    often a gradient comes. Gradients are handed back when the backward pass that made the last bucket ready ends.
    """

    def __init__(self, params, names, group, limits, *, find_unused, shared, static_graph, skip_unused=False, sparse=()):
        self.params = params
        self.names = names
        self.group = group
        self.find_unused = find_unused
        self.static_graph = static_graph
        self.skip_unused = skip_unused
        self.buckets = assign(params, limits, shared, sparse)
        self._bucket_of = {place: bucket for bucket in self.buckets for place in bucket.places}
        self._hook = None
        self._expecting = False  # a forward that is to be synchronized has run
        self._unfinished = False  # gradients have come, and not every bucket has been handed back
        self._seen = set()  # places whose gradient has come
        self._unused = set()  # places that no output depends on
        self._next = 0
        self._handles = [p.register_post_accumulate_grad_hook(self._arrival(i)) for i, p in enumerate(params)]
        self.iterations = 0
        self.unused_history = set()

    def remove_hooks(self):
        """Let the parameters go."""
        for handle in self._handles:
            handle.remove()

    def set_hook(self, hook):
        """Reduce by `hook(GradBucket) -> Future` instead of the average. RuntimeError the second time."""
        if self._hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._hook = hook

    def ensure_finished(self):
        """RuntimeError where gradients are still missing from the last synchronized backward."""
        if not self._unfinished:
            return
        missing = sorted(set(range(len(self.params))) - self._seen)
        from ... import distributed as dist

        rank = dist.get_rank(self.group)
        if missing:
            raise RuntimeError(
                f"{_UNFINISHED}\nParameter indices which did not receive grad for rank {rank}: {' '.join(map(str, missing))} "
                f"({', '.join(self.names[i] for i in missing)})")
        raise RuntimeError(f"{_UNFINISHED}\nThe backward pass before this one did not reach its end on rank {rank}.")

    def prepare_for_backward(self, outputs):
        """Expect a backward through `outputs`, the tensors that forward gave."""
        self.ensure_finished()
        self._expecting = True
        self._next = 0
        self._seen.clear()
        for bucket in self.buckets:
            bucket.reset()
        self._unused = self._unreached(outputs) if self.find_unused and not self.static_graph else set()
        # What no output depends on will not come; its bucket waits for the others only.
        for place in self._unused:
            self._bucket_of[place].pending -= 1

    def _unreached(self, outputs):
        reached = leaves_of(outputs)
        return {i for i, p in enumerate(self.params) if p._leaf not in reached}

    # ------------------------------------------------------------------------------------------ during backward
    def _arrival(self, place):
        def arrived(_):
            if self._expecting:
                self._arrived(place)

        return arrived

    def _arrived(self, place):
        first = not self._unfinished
        self._unfinished = True
        if self.static_graph:
            self._seen.add(place)
            if first:
                queue_callback(self._finish_static, outermost=True)
            return
        if place in self._seen or place in self._unused:
            name = f" with name {self.names[place]}"
            raise RuntimeError(_TWICE.format(index=place, name=name))
        self._seen.add(place)
        self._bucket_of[place].pending -= 1
        self._start_ready()

    def _start_ready(self):
        while self._next < len(self.buckets) and self.buckets[self._next].pending == 0:
            self._start(self.buckets[self._next])
            self._next += 1
            if self._next == len(self.buckets):
                queue_callback(self._finish)

    def _start(self, bucket):
        with no_grad():
            if self._hook is None:
                bucket.average(self.group)
            else:
                bucket.gather(1)
                future = self._hook(GradBucket(bucket))
                if not isinstance(future, Future):
                    raise RuntimeError("DDP communication hook's callback must return a torch.futures.Future object, but got "
                                       f"{type(future).__module__}.{type(future).__name__}")
                bucket.future = future

    def _finish_static(self):
        self._unused = set(range(len(self.params))) - self._seen
        for bucket in self.buckets:
            self._start(bucket)
        self._finish()

    def _finish(self):
        """Wait for the buckets in order and hand the gradients back."""
        self._expecting = False
        with no_grad():
            keep = self._unused_everywhere()
            for bucket in self.buckets:
                bucket.hand_out(self._reduced(bucket), keep)
        self._unfinished = False
        self.iterations += 1
        self.unused_history.add(frozenset(self._unused))

    @staticmethod
    def _reduced(bucket):
        result = bucket.future.wait()
        return result[0] if isinstance(result, (list, tuple)) else result

    def _unused_everywhere(self):
        """Places whose parameter no process has used: their gradients stay as they are."""
        if not (self.find_unused or self.static_graph):
            return ()
        if self.skip_unused:
            return self._unused
        from ... import distributed as dist

        used = tensor([int(i not in self._unused) for i in range(len(self.params))], dtype=int32)
        dist.all_reduce(used, group=self.group)
        return {i for i, n in enumerate(used.tolist()) if n == 0}
