# Collectives on tensors: what PyTorch's functions check, give and write, over the meetings and arrays of a circle.
import numpy as np

from msadapter_hook.tape import Value
from msadapter_hook.tensor import Tensor
from msadapter_hook.tensor.core import detached

from ..autograd.grad_mode import no_grad
from ._errors import DistError
from ._group import Work
from ._ranks import check_one_sided, group_for, rank_in, root_in
from ._reduce import ReduceOp, check_reducible, kind_of, reduce_arrays, reduce_over

__all__ = ["all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_single", "all_reduce", "all_reduce_coalesced",
           "all_to_all", "all_to_all_single", "barrier", "broadcast", "gather", "monitored_barrier", "reduce", "reduce_scatter",
           "reduce_scatter_single", "reduce_scatter_tensor", "scatter", "supports_complex"]


# ------------------------------------------------------------------------------------------------ tensors in and out
def array_of(tensor):
    """The elements of a tensor as a contiguous array of its own."""
    return np.array(detached(tensor).numpy, order="C", copy=True)


def write(tensor, array):
    """Overwrite a tensor's elements; what autograd has recorded of it stays as it was."""
    with no_grad():
        tensor.detach()._write(Value(tuple(tensor.shape), array.dtype, np.ascontiguousarray(array).reshape(tuple(tensor.shape))))


def check_tensor(x, name):
    if not isinstance(x, Tensor):
        raise TypeError(f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
                        f"             but got {type(x)} instead.")


def check_tensors(xs, name):
    if not isinstance(xs, (list, tuple)) or not all(isinstance(x, Tensor) for x in xs):
        raise TypeError(f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
                        f"             but got {type(xs)} instead.")


def check_one_dtype(*tensors):
    for x in tensors[1:]:
        if x.dtype != tensors[0].dtype:
            raise ValueError("Invalid usage of tensors with different dtypes"
                             f"Found {tensors[0].dtype} and  {x.dtype}")


def described(name, tensor, *more):
    """What a process has come to a meeting for: it must be the same for all."""
    return " ".join([f"{name}({tuple(tensor.shape)}, {tensor.dtype})", *map(str, more)])


def perform(name, run, group, async_op):
    """Run a collective: `run(pg)` gives the tensors written. Processes outside the group are warned; with async_op a handle."""
    pg = group_for(name, group)
    if pg is None:
        return None
    try:
        tensors = run(pg)
    except DistError as error:
        if not async_op:
            raise
        return Work([], error)
    return Work(tensors) if async_op else None


# ------------------------------------------------------------------------------------------------ collectives
def supports_complex(reduceOp):
    """True for reductions that complex tensors can have. Source: PyTorch, torch.distributed.supports_complex."""
    return kind_of(reduceOp) in (ReduceOp.SUM, ReduceOp.AVG)


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduce over all processes of the group; all get the result in `tensor` (any shape, equal on all). Source: PyTorch,
    torch.distributed.all_reduce."""
    check_tensor(tensor, "tensor")
    op = kind_of(op)

    def run(pg):
        check_reducible("all_reduce", op, tensor.dtype.numpy)
        pg._circle.meet(described("all_reduce", tensor, op))
        if pg.size() > 1:
            write(tensor, reduce_over(pg._circle, array_of(tensor), op))
        return [tensor]

    return perform("all_reduce", run, group, async_op)


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op=False):
    """all_reduce of several tensors. Source: PyTorch, torch.distributed.all_reduce_coalesced."""
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    check_tensors(tensors, "tensors")
    check_one_dtype(*tensors)
    for tensor in tensors:
        all_reduce(tensor, op, group)
    return perform("all_reduce_coalesced", lambda pg: tensors, group, async_op)


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """Reduce over all processes; the process `dst` gets the result, the tensors of the others stay. Source: PyTorch,
    torch.distributed.reduce."""
    check_tensor(tensor, "tensor")
    op = kind_of(op)

    def run(pg):
        root = rank_in(pg, dst, group_dst, "reduce")
        check_reducible("reduce", op, tensor.dtype.numpy)
        pg._circle.meet(described("reduce", tensor, op, root))
        if pg.size() > 1:
            reduced = reduce_over(pg._circle, array_of(tensor), op)
            if pg.rank() == root:
                write(tensor, reduced)
        return [tensor]

    return perform("reduce", run, group, async_op)


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    """All processes get the tensor of the process `src`. Source: PyTorch, torch.distributed.broadcast."""
    check_tensor(tensor, "tensor")

    def run(pg):
        root = rank_in(pg, src, group_src, "broadcast")
        pg._circle.meet(described("broadcast", tensor, root))
        if pg.size() > 1:
            array = array_of(tensor)
            pg._circle.broadcast(array, pg._ranks[root])
            if pg.rank() != root:
                write(tensor, array)
        return [tensor]

    return perform("broadcast", run, group, async_op)


def _check_gathered(tensors, tensor, size, what):
    if len(tensors) != size:
        raise RuntimeError(f"ProcessGroup::{what}: invalid output tensor list at index 0 (expected length {size}, got "
                           f"{len(tensors)})")
    for i, one in enumerate(tensors):
        if tuple(one.shape) != tuple(tensor.shape):
            raise RuntimeError(f"ProcessGroup::{what}: invalid tensor size at index {i} (expected {_shape(tensor)}, got "
                               f"{_shape(one)})")


def _shape(tensor):
    return f"({', '.join(map(str, tensor.shape))})"


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """The tensors of all processes, in the order of their ranks, into `tensor_list` (one of the same shape for each). Source:
    PyTorch, torch.distributed.all_gather."""
    check_tensors(tensor_list, "tensor_list")
    check_tensor(tensor, "tensor")
    check_one_dtype(*tensor_list, tensor)

    def run(pg):
        _check_gathered(tensor_list, tensor, pg.size(), "allgather")
        pg._circle.meet(described("all_gather", tensor))
        for out, array in zip(tensor_list, pg._circle.all_gather(array_of(tensor))):
            write(out, array)
        return list(tensor_list)

    return perform("all_gather", run, group, async_op)


def all_gather_coalesced(output_tensor_lists, input_tensor_list, group=None, async_op=False):
    """all_gather of several tensors. Source: PyTorch, torch.distributed.all_gather_coalesced."""
    check_tensors(input_tensor_list, "tensor_list")
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for outputs, tensor in zip(output_tensor_lists, input_tensor_list):
        all_gather(outputs, tensor, group)
    return perform("all_gather_coalesced", lambda pg: [t for ts in output_tensor_lists for t in ts], group, async_op)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """The tensors of all processes one after the other along the first dimension, or stacked, as the shape of `output_tensor`
    says. Source: PyTorch, torch.distributed.all_gather_into_tensor."""
    check_tensor(input_tensor, "input_tensor")
    check_tensor(output_tensor, "output_tensor")
    check_one_dtype(output_tensor, input_tensor)

    def run(pg):
        if output_tensor.numel() != input_tensor.numel() * pg.size():
            raise RuntimeError(f"ProcessGroup::allgather: output tensor size must be equal to world_size ({pg.size()}) times input "
                               f"tensor size (expected {input_tensor.numel() * pg.size()} elements, got {output_tensor.numel()})")
        pg._circle.meet(described("all_gather_into_tensor", input_tensor))
        write(output_tensor, np.stack(pg._circle.all_gather(array_of(input_tensor))))
        return [output_tensor]

    return perform("all_gather_into_tensor", run, group, async_op)


all_gather_single = all_gather_into_tensor


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    """The process `dst` (by default rank 0) gets the tensors of all in `gather_list`, which is None on the others. Source:
    PyTorch, torch.distributed.gather."""
    check_tensor(tensor, "tensor")
    if gather_list:
        check_tensors(gather_list, "gather_list")
        check_one_dtype(tensor, *gather_list)

    def run(pg):
        root = root_in(pg, dst, group_dst, "gather")
        check_one_sided(pg, root, gather_list, "gather_list", "destination")
        if pg.rank() == root:
            _check_gathered(gather_list, tensor, pg.size(), "gather")
        pg._circle.meet(described("gather", tensor, root))
        array = array_of(tensor)
        for out, received in zip(gather_list or (), pg._circle.gather(array, root, [array.size] * pg.size())):
            write(out, received)
        return list(gather_list or ())

    return perform("gather", run, group, async_op)


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    """Each process gets the tensor of its rank from `scatter_list` of the process `src` (by default rank 0). Source: PyTorch,
    torch.distributed.scatter."""
    check_tensor(tensor, "tensor")
    if scatter_list:
        check_tensors(scatter_list, "scatter_list")
        check_one_dtype(tensor, *scatter_list)

    def run(pg):
        root = root_in(pg, src, group_src, "scatter")
        check_one_sided(pg, root, scatter_list, "scatter_list", "source")
        if pg.rank() == root:
            _check_gathered(scatter_list, tensor, pg.size(), "scatter")
        pg._circle.meet(described("scatter", tensor, root))
        received = np.empty(tuple(tensor.shape), tensor.dtype.numpy)
        pg._circle.scatter([array_of(one) for one in scatter_list or ()], root, received)
        write(tensor, received)
        return [tensor]

    return perform("scatter", run, group, async_op)


def _scattered_sum(circle, parts, op):
    """The reduction of the part for this process: `parts[i]` is meant for the process i."""
    incoming = [np.empty_like(parts[circle.rank]) for _ in range(circle.size)]
    circle.exchange(parts, incoming)
    return reduce_arrays(incoming, op)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduce a list of tensors, one for each process; each gets its own in `output`. Source: PyTorch,
    torch.distributed.reduce_scatter."""
    check_tensor(output, "output")
    check_tensors(input_list, "input_list")
    check_one_dtype(output, *input_list)
    op = kind_of(op)

    def run(pg):
        check_reducible("reduce_scatter", op, output.dtype.numpy)
        if len(input_list) != pg.size():
            raise RuntimeError(f"ProcessGroup::reduce_scatter: invalid input tensor list at index 0 (expected length {pg.size()}, got "
                               f"{len(input_list)})")
        if tuple(input_list[pg.rank()].shape) != tuple(output.shape):
            raise RuntimeError(f"ProcessGroup::reduce_scatter: invalid tensor size at index {pg.rank()} (expected {_shape(output)}, "
                               f"got {_shape(input_list[pg.rank()])})")
        shapes = [tuple(t.shape) for t in input_list]
        pg._circle.meet(f"reduce_scatter({shapes}, {output.dtype}) {op}")
        write(output, _scattered_sum(pg._circle, [array_of(t) for t in input_list], op))
        return [output]

    return perform("reduce_scatter", run, group, async_op)


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduce a tensor; each process gets its share along the first dimension in `output`. Source: PyTorch,
    torch.distributed.reduce_scatter_tensor."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    check_one_dtype(output, input)
    op = kind_of(op)

    def run(pg):
        check_reducible("reduce_scatter_tensor", op, output.dtype.numpy)
        if input.numel() != output.numel() * pg.size():
            raise RuntimeError(f"ProcessGroup::reduce_scatter: input tensor must be the same size as output size times world size "
                               f"(expected {output.numel() * pg.size()} elements, got {input.numel()})")
        pg._circle.meet(described("reduce_scatter_tensor", input, op))
        parts = list(array_of(input).reshape(pg.size(), -1))
        write(output, _scattered_sum(pg._circle, parts, op))
        return [output]

    return perform("reduce_scatter_tensor", run, group, async_op)


reduce_scatter_single = reduce_scatter_tensor


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """Each process sends its i-th tensor to the process i; what comes from i goes into the i-th output. Source: PyTorch,
    torch.distributed.all_to_all."""
    check_tensors(output_tensor_list, "output_tensor_list")
    check_tensors(input_tensor_list, "input_tensor_list")
    check_one_dtype(*output_tensor_list, *input_tensor_list)

    def run(pg):
        for tensors, what in ((output_tensor_list, "output"), (input_tensor_list, "input")):
            if len(tensors) != pg.size():
                raise RuntimeError(f"ProcessGroup::alltoall: invalid {what} tensor list (expected length {pg.size()}, got {len(tensors)})")
        pg._circle.meet(f"all_to_all({input_tensor_list[0].dtype})")
        incoming = [np.empty(tuple(t.shape), t.dtype.numpy) for t in output_tensor_list]
        pg._circle.exchange([array_of(t) for t in input_tensor_list], incoming)
        for out, array in zip(output_tensor_list, incoming):
            write(out, array)
        return list(output_tensor_list)

    return perform("all_to_all", run, group, async_op)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    """Each process sends the i-th share of `input` (along the first dimension, equal shares or as the split sizes say) to the
    process i. Source: PyTorch, torch.distributed.all_to_all_single."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    check_one_dtype(output, input)

    def run(pg):
        circle = pg._circle
        shares_out = _shares(output, output_split_sizes, pg.size())
        shares_in = _shares(input, input_split_sizes, pg.size())
        circle.meet(f"all_to_all_single({input.dtype})")
        made = np.empty(tuple(output.shape), output.dtype.numpy)
        circle.exchange([np.ascontiguousarray(part) for part in np.split(array_of(input), shares_in)], np.split(made, shares_out))
        write(output, made)
        return [output]

    return perform("all_to_all_single", run, group, async_op)


def _shares(tensor, sizes, count):
    """Where a tensor is cut along its first dimension."""
    length = tensor.shape[0] if tensor.ndim else 0
    if not sizes:
        if length % count:
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        sizes = [length // count] * count
    elif len(sizes) != count:
        raise RuntimeError("Number of tensor splits not equal to group size")
    elif sum(sizes) != length:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return list(np.cumsum(sizes)[:-1])


def barrier(group=None, async_op=False, device_ids=None, timeout=None):
    """Wait until all processes of the group are here. Source: PyTorch, torch.distributed.barrier."""
    if device_ids is not None and not isinstance(device_ids, list):
        raise TypeError("Invalid function argument: device_ids type should be List[int]")

    def run(pg):
        pg._circle.meet("barrier", None if timeout is None else timeout.total_seconds())
        return []

    return perform("barrier", run, group, async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """A barrier whose error names the ranks that did not come in time (all of them with wait_all_ranks). Source: PyTorch,
    torch.distributed.monitored_barrier."""
    pg = group_for("monitored_barrier", group)
    if pg is None:
        return
    if timeout is not None and timeout.total_seconds() <= 0:
        raise ValueError("monitored_barrier: the timeout must be positive")
    pg.monitored_barrier(timeout, wait_all_ranks)
