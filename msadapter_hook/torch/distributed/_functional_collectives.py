# torch.distributed._functional_collectives: collectives that give new tensors, by PyTorch's newer names; gradients flow through.
# A result is there when the call returns, so waiting is nothing.
from msadapter_hook.errors import unsupported

from .. import cat, empty, empty_like
from .nn.functional import _AllGather, _AllReduce, _AllToAllSingle, _Broadcast, _dist, _ReduceScatter

__all__ = [
    "all_gather_into_tensor_coalesced", "all_gather_single", "all_gather_single_autograd", "all_gather_tensor",
    "all_gather_tensor_autograd", "all_reduce", "all_reduce_coalesced", "all_to_all_single", "all_to_all_single_autograd", "broadcast",
    "permute_tensor", "reduce_scatter_single", "reduce_scatter_single_autograd", "reduce_scatter_tensor",
    "reduce_scatter_tensor_autograd", "reduce_scatter_tensor_coalesced", "wait_tensor",
]  # fmt: skip


def _group(group):
    if group is None or isinstance(group, _dist().ProcessGroup):
        return group
    raise unsupported("torch.distributed._functional_collectives",
                      f"a group of type {type(group).__name__}: give a ProcessGroup, as torch.distributed.new_group(ranks) makes")


def _op(name):
    ops = _dist().ReduceOp
    names = {"sum": ops.SUM, "avg": ops.AVG, "product": ops.PRODUCT, "min": ops.MIN, "max": ops.MAX, "band": ops.BAND, "bor": ops.BOR,
             "bxor": ops.BXOR}
    if name.lower() not in names:
        raise ValueError(f"Invalid reduce operation {name}")
    return names[name.lower()]


def wait_tensor(tensor):
    """The tensor: every collective here has ended when it returns."""
    return tensor


def all_reduce(self, reduceOp, group, tag=""):
    """The tensors of all ranks reduced by the operation named (`"sum"`, `"avg"`, …). Source: PyTorch, the same name."""
    return _AllReduce.apply(_op(reduceOp), _group(group), self)


def all_reduce_coalesced(self, reduceOp, group, tag=""):
    """all_reduce of each tensor of a list."""
    return [all_reduce(t, reduceOp, group, tag) for t in self]


def broadcast(self, src, group, tag=""):
    """The tensor of rank `src`. Source: PyTorch, the same name."""
    return _Broadcast.apply(src, _group(group), self)


def all_gather_single(self, gather_dim, group, tag=""):
    """The tensors of all ranks, joined along `gather_dim`. Source: PyTorch, the same name."""
    return cat(_AllGather.apply(_group(group), self.contiguous()), gather_dim)


def reduce_scatter_single(self, reduceOp, scatter_dim, group, tag=""):
    """This rank's part, along `scatter_dim`, of the tensors of all ranks reduced. AssertionError where it does not divide.

    Source: PyTorch, the same name.
    """
    world = _dist().get_world_size(_group(group))
    if self.size(scatter_dim) % world:
        raise AssertionError(f"input dimension {scatter_dim} ({self.size(scatter_dim)}) must be a multiple of group_size {world}")
    parts = self.chunk(world, scatter_dim)
    return _ReduceScatter.apply(_op(reduceOp), _group(group), empty_like(parts[0]), *parts)


def all_to_all_single(self, output_split_sizes, input_split_sizes, group, tag=""):
    """Rows of this rank to every other and theirs to this one. Source: PyTorch, the same name."""
    rows = sum(output_split_sizes) if output_split_sizes is not None else self.size(0)
    output = empty((rows, *self.shape[1:]), dtype=self.dtype, device=self.device)
    return _AllToAllSingle.apply(_group(group), output, output_split_sizes, input_split_sizes, self)


def permute_tensor(self, src_dst, group, tag=""):
    """The tensor of the rank whose entry in `src_dst` names this one; zeros of no rank are never given. Source: PyTorch, the same name."""
    group = _group(group)
    rank, world = _dist().get_rank(group), _dist().get_world_size(group)
    if sorted(src_dst) != list(range(world)):
        raise ValueError(f"src_dst must name each rank of the group once, got {src_dst}")
    sent, received = [0] * world, [0] * world
    sent[src_dst[rank]] = received[src_dst.index(rank)] = self.numel()
    flat = all_to_all_single(self.reshape(-1), received, sent, group)
    return flat.view(self.shape)


def all_gather_into_tensor_coalesced(self, group, tag=""):
    """all_gather along dimension 0 of each tensor of a list."""
    return [all_gather_single(t, 0, group, tag) for t in self]


def reduce_scatter_tensor_coalesced(inputs, reduceOp, scatter_dim, group, tag=""):
    """reduce_scatter of each tensor of a list."""
    return [reduce_scatter_single(t, reduceOp, dim, group, tag) for t, dim in zip(inputs, scatter_dim)]


all_gather_tensor = all_gather_tensor_autograd = all_gather_single_autograd = all_gather_single
reduce_scatter_tensor = reduce_scatter_tensor_autograd = reduce_scatter_single_autograd = reduce_scatter_single
all_to_all_single_autograd = all_to_all_single
