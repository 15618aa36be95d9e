# ZeroRedundancyOptimizer: each process keeps the optimizer's state of its share of the parameters.
from msadapter_hook.errors import unsupported

from ...nn.parallel._buckets import broadcast_coalesced
from ...optim import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]

_AT_ONCE = 250 * 1024 * 1024


class ZeroRedundancyOptimizer(Optimizer):
    """An `optimizer_class` whose state is divided over the processes of a group. Each updates its own parameters, then sends them
    to the others.

    Parameters go to the process with the least so far, large ones first; a parameter is never divided. They travel in one
    flat tensor per process, with `parameters_as_bucket_view` or without. NotImplementedError for `overlap_with_ddp=True`.
    Source: PyTorch, torch.distributed.optim.ZeroRedundancyOptimizer.
    """

    def __init__(self, params, optimizer_class, process_group=None, parameters_as_bucket_view=False, overlap_with_ddp=False, **defaults):
        from ... import distributed as dist

        if overlap_with_ddp:
            raise unsupported("torch.distributed.optim.ZeroRedundancyOptimizer(overlap_with_ddp=True)", "call step() after backward()")
        self._dist = dist
        self.process_group = process_group if process_group is not None else dist.group.WORLD
        self.world_size = dist.get_world_size(self.process_group)
        self.rank = dist.get_rank(self.process_group)
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._optimizer_class = optimizer_class
        self._options = defaults
        self._consolidated = None
        self.optim = None
        super().__init__(params, defaults)
        self._divide()

    def add_param_group(self, param_group):
        """Further parameters, on every process alike; those that are there stay where they are."""
        super().add_param_group(param_group)
        if self.optim is not None:
            self._divide()

    # -------------------------------------------------------------------------------------------- shares
    def _divide(self):
        """Who updates which parameters: `_shares[rank][group]` is a list of parameters."""
        load = [0] * self.world_size
        self._shares = [[] for _ in range(self.world_size)]
        for group in self.param_groups:
            for share in self._shares:
                share.append([])
            for p in sorted(group["params"], key=lambda p: -p.numel()):
                rank = load.index(min(load))
                self._shares[rank][-1].append(p)
                load[rank] += p.numel()
        before = self.optim.state if self.optim is not None else {}
        own = [group | {"params": share} for group, share in zip(self.param_groups, self._shares[self.rank])]
        self.optim = self._optimizer_class(own, **self._options)
        for p in (p for share in self._shares[self.rank] for p in share):
            if p in before:
                self.optim.state[p] = before[p]
        # options that only the local optimizer knows, such as its betas
        for mine, theirs in zip(self.param_groups, self.optim.param_groups):
            for key, value in theirs.items():
                if key != "params":
                    mine.setdefault(key, value)

    def _places(self, rank):
        """The numbers of a process's parameters among all, in the order of its optimizer."""
        number = {id(p): i for i, p in enumerate(p for group in self.param_groups for p in group["params"])}
        return [number[id(p)] for share in self._shares[rank] for p in share]

    @staticmethod
    def _copy_options(source, target):
        for theirs, mine in zip(source, target):
            mine.update({key: value for key, value in theirs.items() if key != "params"})

    # -------------------------------------------------------------------------------------------- steps
    def step(self, closure=None, **kwargs):
        """A step of this process's optimizer on its share, then every process sends what it has updated."""
        self._copy_options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(closure=closure, **kwargs) if closure is not None else self.optim.step(**kwargs)
        self._copy_options(self.optim.param_groups, self.param_groups)
        for rank, shares in enumerate(self._shares):
            broadcast_coalesced(self.process_group, [p for share in shares for p in share], _AT_ONCE, rank)
        return loss

    # -------------------------------------------------------------------------------------------- state
    def consolidate_state_dict(self, to=0):
        """Bring the state of all processes to rank `to`, where `state_dict()` gives it afterwards. Called on every process."""
        self._copy_options(self.param_groups, self.optim.param_groups)
        parts = [None] * self.world_size if self.rank == to else None
        self._dist.gather_object(self.optim.state_dict()["state"], parts, dst=self._dist.get_global_rank(self.process_group, to),
                                 group=self.process_group)
        self._consolidated = parts

    def state_dict(self):
        """The state of all parameters, in the form that an undivided optimizer has. RuntimeError without consolidate_state_dict."""
        if self._consolidated is None:
            raise RuntimeError(
                f"Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to={self.rank})` on all "
                "ranks beforehand if you meant to save the global state.")
        whole = super().state_dict()
        found = {}
        for rank, part in enumerate(self._consolidated):
            places = self._places(rank)
            found.update({places[i]: state for i, state in part.items()})
        whole["state"] = {place: found[place] for place in sorted(found)}
        return whole

    def load_state_dict(self, state_dict):
        """Take this process's share of a whole state, as `state_dict()` or an undivided optimizer gives it."""
        places = self._places(self.rank)
        at = {place: i for i, place in enumerate(places)}
        super().load_state_dict(state_dict | {"state": {}})
        local = self.optim.state_dict()
        local["state"] = {at[place]: state for place, state in state_dict["state"].items() if place in at}
        self._copy_options(self.param_groups, local["param_groups"])
        self.optim.load_state_dict(local)

    def join_hook(self, **kwargs):
        raise unsupported("torch.distributed.optim.ZeroRedundancyOptimizer.join_hook", "give every process the same number of batches")
