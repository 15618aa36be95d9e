# Communication hooks that average a bucket, as it is or in half precision on the way.
from .... import bfloat16, float16
from ....futures import Future

__all__ = [
    "allreduce_hook", "fp16_compress_hook", "bf16_compress_hook", "fp16_compress_wrapper", "bf16_compress_wrapper",
]  # fmt: skip


def _mean_later(group, flat):
    # divided before the sum, so that half precision does not overflow
    from .... import distributed as dist

    flat.div_(dist.get_world_size(group))
    work = dist.all_reduce(flat, group=group, async_op=True)
    return work.get_future().then(lambda future: future.value()[0])


def allreduce_hook(process_group, bucket):
    """The average of the bucket over the group; what happens without a hook. Source: PyTorch, allreduce_hook."""
    return _mean_later(process_group, bucket.buffer())


def _compress(dtype, process_group, bucket):
    flat = bucket.buffer()
    return _mean_later(process_group, flat.to(dtype)).then(lambda future: flat.copy_(future.value()))


def fp16_compress_hook(process_group, bucket):
    """The average, computed and sent in float16. Source: PyTorch, fp16_compress_hook."""
    return _compress(float16, process_group, bucket)


def bf16_compress_hook(process_group, bucket):
    """The average, computed and sent in bfloat16. Source: PyTorch, bf16_compress_hook."""
    return _compress(bfloat16, process_group, bucket)


def _wrapped(dtype, hook):
    def compressed(state, bucket) -> Future:
        original = bucket.buffer()
        bucket.set_buffer(original.to(dtype))
        return hook(state, bucket).then(lambda future: original.copy_(future.value()))

    return compressed


def fp16_compress_wrapper(hook):
    """`hook` on buckets turned into float16. Source: PyTorch, fp16_compress_wrapper."""
    return _wrapped(float16, hook)


def bf16_compress_wrapper(hook):
    """`hook` on buckets turned into bfloat16. Source: PyTorch, bf16_compress_wrapper."""
    return _wrapped(bfloat16, hook)
