# Batch normalization by the statistics of all processes of a group: the autograd function behind SyncBatchNorm.
from ... import cat, empty, full_like, no_grad
from ...autograd import Function
from ...autograd.function import once_differentiable

__all__ = ["sync_batch_norm"]


def _per_channel(v, x):
    return v.view((1, -1) + (1,) * (x.dim() - 2))


def _sum(x):
    """Sums by channel of (N, C, …)."""
    return x.sum([d for d in range(x.dim()) if d != 1])


def _local(x, channels):
    """(mean, sum of squared deviations, count) by channel, as one vector (2 C + 1); zeros for an empty batch."""
    count = x.numel() // channels
    middle = _sum(x) / max(count, 1)
    spread = _sum((x - _per_channel(middle, x)).square())
    return cat([middle, spread, full_like(middle[:1], count)])


def _global(rows, channels):
    """Mean, biased variance and count over all processes from the rows of `_local`. Deviations are added about the common
    mean, so nothing cancels."""
    counts = rows[:, -1:]
    total = counts.sum()
    means, spreads = rows[:, :channels], rows[:, channels:-1]
    middle = (means * counts).sum(0) / total
    spread = (spreads + counts * (means - middle).square()).sum(0) / total
    return middle, spread, total


class _SyncBatchNorm(Function):
    """input (N, C, …) → the same normalized. Gradients of weight and bias are those of this process's part, as for every
    parameter: averaging them over processes is the optimizer's or DistributedDataParallel's business."""

    @staticmethod
    def forward(ctx, input, weight, bias, running_mean, running_var, eps, momentum, group, dist):
        channels = input.size(1)
        x = input.float() if input.element_size() < 4 else input
        mine = _local(x, channels)
        rows = empty((dist.get_world_size(group), mine.numel()), dtype=mine.dtype, device=mine.device)
        dist.all_gather_into_tensor(rows, mine, group=group)
        middle, spread, total = _global(rows, channels)
        n = total.item()
        if n == 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.size()}")
        inverse = (spread + eps).rsqrt()
        if running_mean is not None:
            with no_grad():
                running_mean.mul_(1 - momentum).add_(middle.to(running_mean.dtype), alpha=momentum)
                running_var.mul_(1 - momentum).add_((spread * (n / (n - 1))).to(running_var.dtype), alpha=momentum)
        scale = inverse if weight is None else inverse * weight.to(x.dtype)
        shift = -middle * scale
        if bias is not None:
            shift = shift + bias.to(x.dtype)
        ctx.save_for_backward(input, weight, middle, inverse)
        ctx.count, ctx.group, ctx.dist, ctx.has_bias = n, group, dist, bias is not None
        return (x * _per_channel(scale, x) + _per_channel(shift, x)).to(input.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        input, weight, middle, inverse = ctx.saved_tensors
        x, g = (input.float(), grad_output.float()) if input.element_size() < 4 else (input, grad_output)
        channels = x.size(1)
        centred = x - _per_channel(middle, x)
        level, slope = _sum(g), _sum(g * centred)
        result = [None] * 9
        if weight is not None and ctx.needs_input_grad[1]:
            result[1] = (slope * inverse).to(weight.dtype)
        if ctx.has_bias and ctx.needs_input_grad[2]:
            result[2] = level.to(weight.dtype if weight is not None else input.dtype)
        if ctx.needs_input_grad[0]:
            both = cat([level, slope])
            ctx.dist.all_reduce(both, group=ctx.group)
            level, slope = (both / ctx.count).split(channels)
            scale = inverse if weight is None else inverse * weight.to(x.dtype)
            through = g - _per_channel(level, x) - centred * _per_channel(slope * inverse.square(), x)
            result[0] = (through * _per_channel(scale, x)).to(input.dtype)
        return tuple(result)


def sync_batch_norm(input, weight, bias, running_mean, running_var, eps, momentum, group):
    """(N, C, …) normalized by channel with the mean and variance over all processes of `group`; running statistics move with the
    unbiased variance. A process may have an empty batch. ValueError for one value per channel in all. Source: PyTorch,
    torch.nn.SyncBatchNorm."""
    from ... import distributed as dist

    return _SyncBatchNorm.apply(input, weight, bias, running_mean, running_var, eps, momentum, group, dist)
