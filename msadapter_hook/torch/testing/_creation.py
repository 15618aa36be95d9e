"""torch.testing.make_tensor: random tensors for tests."""

from .. import bool as _bool
from .. import empty, randint, rand

__all__ = ["make_tensor"]


def make_tensor(*shape, dtype, device="cpu", low=None, high=None, requires_grad=False, noncontiguous=False, exclude_zero=False,
                memory_format=None):
    """A tensor of `shape` with values drawn uniformly from [low, high) (by default a range that suits the dtype). Source:
    PyTorch, torch.testing.make_tensor."""
    size = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else tuple(shape)
    drawn = (size[:-1] + (2 * size[-1],)) if noncontiguous and size else size
    if dtype is _bool:
        made = randint(0, 2, drawn).to(dtype)
    elif dtype.is_floating_point or dtype.is_complex:
        low, high = -9.0 if low is None else float(low), 9.0 if high is None else float(high)
        if not low < high:
            raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
        made = empty(drawn, dtype=dtype)
        made.copy_(rand(drawn, dtype=dtype if dtype.is_complex or dtype.itemsize > 2 else None) * (high - low) + low)
    else:
        low = (-9 if dtype.is_signed else 0) if low is None else int(low)
        high = 10 if high is None else int(high)
        made = randint(low, high, drawn).to(dtype)
    if exclude_zero:
        made[made == 0] = 1
    if noncontiguous and size:
        made = made[..., ::2]
    if memory_format is not None:
        made = made.clone(memory_format=memory_format)
    return made.to(device).requires_grad_(requires_grad)
