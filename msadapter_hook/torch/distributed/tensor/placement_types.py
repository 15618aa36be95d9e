"""How a sharded tensor would lie over the processes: descriptions that can be made, compared and printed."""

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor lies along one dimension of a mesh. Source: PyTorch, torch.distributed.tensor.placement_types."""

    def is_shard(self, dim=None):
        """Whether it is split (along `dim`, where given)."""
        return isinstance(self, Shard) and dim in (None, getattr(self, "dim", None))

    def is_replicate(self):
        """Whether each process has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op=None):
        """Whether each process has a summand."""
        return isinstance(self, Partial) and reduce_op in (None, getattr(self, "reduce_op", None))


@dataclass(frozen=True)
class Shard(Placement):
    """Split along `dim`."""

    dim: int


@dataclass(frozen=True)
class _StridedShard(Shard):
    """Split along `dim`, after another split of it."""

    split_factor: int = 1


@dataclass(frozen=True)
class Replicate(Placement):
    """The whole in each process."""


@dataclass(frozen=True)
class Partial(Placement):
    """A summand in each process, to be reduced by `reduce_op`."""

    reduce_op: str = "sum"
