"""Memory formats: the strides that PyTorch gives a tensor asked for in one."""

from . import dtypes, geometry


def in_channels_last(size, memory_format):
    """The strides of a size in one of the formats with channels innermost. RuntimeError where the rank is another."""
    rank = 4 if memory_format is dtypes.channels_last else 5
    if len(size) != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {str(memory_format).rpartition('.')[2]} format")
    return geometry.channels_last_stride(size)


def like_geometry(tensor, memory_format):
    """The strides of a tensor made like `tensor`; None: contiguous."""
    if memory_format in (None, dtypes.preserve_format):
        if geometry.is_dense(tensor._size, tensor._stride) and not geometry.overlaps(tensor._size, tensor._stride):
            return tensor._stride
        return geometry.elementwise_stride(tensor._size, [(tensor._size, tensor._stride)])
    if memory_format is dtypes.contiguous_format:
        return None
    return in_channels_last(tensor._size, memory_format)
