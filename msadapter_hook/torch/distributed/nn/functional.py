# torch.distributed.nn.functional: collectives that gradients flow through. Each has the collective that carries them back.
import functools
import warnings

from ... import empty, empty_like, zeros_like
from ...autograd import Function

__all__ = ["broadcast", "gather", "scatter", "reduce", "reduce_scatter", "all_gather", "all_to_all", "all_to_all_single", "all_reduce"]


def _dist():
    # looked up at call time: torch.distributed imports what stands on it
    from ... import distributed

    return distributed


def _op(op):
    return _dist().ReduceOp.SUM if op is None else op


def _newer(name, other):
    """Mark a function for which PyTorch 2.13 has a newer one: FutureWarning at each call."""

    def mark(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            warnings.warn(f"torch.distributed.nn.functional.{name} is deprecated, use "
                          f"torch.distributed._functional_collectives.{other} instead.", FutureWarning, stacklevel=2)
            return function(*args, **kwargs)

        return call

    return mark


@_newer("broadcast", "broadcast")
def broadcast(tensor, src, group=None):
    """The tensor of rank `src`, on every rank; gradients of all ranks are summed on `src`. `tensor` itself stays as it is.

    Source: PyTorch, torch.distributed.nn.functional.broadcast.
    """
    return _Broadcast.apply(src, group, tensor)


def gather(tensor, dst=0, group=None):
    """A tuple of every rank's tensor on `dst`, of zeros elsewhere. Source: PyTorch, torch.distributed.nn.functional.gather."""
    return _Gather.apply(dst, group, tensor)


def scatter(tensors, src=0, group=None):
    """This rank's entry of the list that `src` gives. Source: PyTorch, torch.distributed.nn.functional.scatter."""
    return _Scatter.apply(src, group, *tensors)


def reduce(tensor, dst, op=None, group=None):
    """On `dst`, the tensors of all ranks reduced by `op` (None: SUM); what other ranks get means nothing.

    Source: PyTorch, torch.distributed.nn.functional.reduce.
    """
    return _Reduce.apply(dst, _op(op), group, tensor)


@_newer("reduce_scatter", "reduce_scatter_single")
def reduce_scatter(output, input_list, op=None, group=None):
    """The entry of this rank, reduced over the lists of all ranks; also written to `output`.

    Source: PyTorch, torch.distributed.nn.functional.reduce_scatter.
    """
    return _ReduceScatter.apply(_op(op), group, output, *input_list)


@_newer("all_gather", "all_gather_single")
def all_gather(tensor, group=None):
    """A tuple of every rank's tensor, on every rank. Source: PyTorch, torch.distributed.nn.functional.all_gather."""
    return _AllGather.apply(group, tensor)


def _all_gather_base(output_tensor, input_tensor, group=None):
    """Every rank's tensor, one after another, as one tensor; also written to `output_tensor`."""
    return _AllGatherBase.apply(output_tensor, input_tensor, group)


def all_to_all(output_tensor_list, input_tensor_list, group=None):
    """Entry j of the list goes to rank j; a tuple with an entry from each rank comes back, also in `output_tensor_list`.

    Source: PyTorch, torch.distributed.nn.functional.all_to_all.
    """
    return _AllToAll.apply(group, output_tensor_list, *input_tensor_list)


@_newer("all_to_all_single", "all_to_all_single")
def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None):
    """As all_to_all with the rows of one tensor: equal parts, or parts of the sizes given; also written to `output`.

    Source: PyTorch, torch.distributed.nn.functional.all_to_all_single.
    """
    return _AllToAllSingle.apply(group, output, output_split_sizes, input_split_sizes, input)


@_newer("all_reduce", "all_reduce")
def all_reduce(tensor, op=None, group=None):
    """The tensors of all ranks reduced by `op` (None: SUM); `tensor` itself stays as it is. Gradients are reduced by the same `op`,
    as in PyTorch: that is right for SUM and AVG.

    Source: PyTorch, torch.distributed.nn.functional.all_reduce.
    """
    return _AllReduce.apply(_op(op), group, tensor)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx, src, group, tensor):
        ctx.src, ctx.group = src, group
        copy = tensor.clone()
        _dist().broadcast(copy, src, group=group)
        return copy

    @staticmethod
    def backward(ctx, grad):
        summed = _Reduce.apply(ctx.src, _op(None), ctx.group, grad)
        return None, None, summed if _dist().get_rank() == ctx.src else zeros_like(grad)


class _Gather(Function):
    @staticmethod
    def forward(ctx, dst, group, tensor):
        dist = _dist()
        ctx.dst, ctx.group = dst, group
        tensor = tensor.contiguous()
        parts = [zeros_like(tensor) for _ in range(dist.get_world_size(group))]
        dist.gather(tensor, parts if dist.get_rank() == dst else None, dst=dst, group=group)
        return tuple(parts)

    @staticmethod
    def backward(ctx, *grads):
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx, src, group, *tensors):
        dist = _dist()
        if len({t.size() for t in tensors}) > 1:
            raise RuntimeError("torch.distributed.nn.functional.scatter: all tensors must have the same size")
        ctx.src, ctx.group = src, group
        part = empty_like(tensors[0])
        dist.scatter(part, [t.contiguous() for t in tensors] if dist.get_rank() == src else None, src=src, group=group)
        return part

    @staticmethod
    def backward(ctx, grad):
        return None, None, *_Gather.apply(ctx.src, ctx.group, grad)


class _Reduce(Function):
    @staticmethod
    def forward(ctx, dst, op, group, tensor):
        ctx.dst, ctx.group = dst, group
        copy = tensor.clone()
        _dist().reduce(copy, dst, op=op, group=group)
        return copy

    @staticmethod
    def backward(ctx, grad):
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, grad)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx, op, group, output, *parts):
        ctx.group = group
        made = empty_like(parts[0])
        _dist().reduce_scatter(made, [p.contiguous() for p in parts], op=op, group=group)
        output.copy_(made)
        return made

    @staticmethod
    def backward(ctx, grad):
        return None, None, None, *_AllGather.apply(ctx.group, grad)


class _AllGather(Function):
    @staticmethod
    def forward(ctx, group, tensor):
        dist = _dist()
        ctx.group = group
        parts = [empty_like(tensor) for _ in range(dist.get_world_size(group))]
        dist.all_gather(parts, tensor.contiguous(), group=group)
        return tuple(parts)

    @staticmethod
    def backward(ctx, *grads):
        return None, _ReduceScatter.apply(_op(None), ctx.group, empty_like(grads[0]), *grads)


class _AllGatherBase(Function):
    @staticmethod
    def forward(ctx, output, tensor, group):
        dist = _dist()
        ctx.group, ctx.rows = group, tuple(tensor.shape)
        made = empty((dist.get_world_size(group), *tensor.shape), dtype=tensor.dtype, device=tensor.device)
        dist.all_gather_into_tensor(made, tensor.contiguous(), group=group)
        output.copy_(made.view(output.shape))
        return made.view(output.shape)

    @staticmethod
    def backward(ctx, grad):
        parts = grad.reshape(-1, *ctx.rows).unbind(0)
        return None, _ReduceScatter.apply(_op(None), ctx.group, empty_like(parts[0]), *parts), None


class _AllToAll(Function):
    @staticmethod
    def forward(ctx, group, outputs, *parts):
        ctx.group = group
        ctx.sent = [(tuple(p.shape), p.dtype) for p in parts]
        received = [empty_like(o) for o in outputs]
        _dist().all_to_all(received, [p.contiguous() for p in parts], group=group)
        for out, part in zip(outputs, received):
            out.copy_(part)
        return tuple(received)

    @staticmethod
    def backward(ctx, *grads):
        back = [empty(shape, dtype=dtype) for shape, dtype in ctx.sent]
        return None, None, *_AllToAll.apply(ctx.group, back, *grads)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx, group, output, output_sizes, input_sizes, input):
        ctx.group, ctx.shape, ctx.sizes = group, tuple(input.shape), (output_sizes, input_sizes)
        made = empty_like(output)
        _dist().all_to_all_single(made, input.contiguous(), output_sizes, input_sizes, group=group)
        output.copy_(made)
        return made

    @staticmethod
    def backward(ctx, grad):
        output_sizes, input_sizes = ctx.sizes
        back = empty(ctx.shape, dtype=grad.dtype, device=grad.device)
        return None, None, None, None, _AllToAllSingle.apply(ctx.group, back, input_sizes, output_sizes, grad.contiguous())


class _AllReduce(Function):
    @staticmethod
    def forward(ctx, op, group, tensor):
        ctx.op, ctx.group = op, group
        copy = tensor.clone()
        _dist().all_reduce(copy, op, group=group)
        return copy

    @staticmethod
    def backward(ctx, grad):
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad.contiguous())
