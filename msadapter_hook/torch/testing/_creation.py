"""torch.testing.make_tensor: random tensors for tests."""

import math as _math
import warnings as _warnings

from .. import bool as _bool
from .. import empty, finfo, float32, full, iinfo, randint
from .. import view_as_complex as _view_as_complex

__all__ = ["make_tensor"]


def _limits(dtype):
    """(smallest value, first value beyond the largest) of a dtype, and the default interval."""
    if dtype is _bool:
        return 0, 2, 0, 2
    if dtype.is_floating_point or dtype.is_complex:
        info = finfo(dtype)
        return info.min, info.max, -9, 9
    info = iinfo(dtype)
    # randint takes int64, so the largest int64 itself is never drawn
    return info.min, info.max + (0 if info.bits == 64 else 1), -9 if dtype.is_signed else 0, 10


def _interval(dtype, low, high):
    """The half-open interval to draw from. ValueError where it is empty, no number, or outside of the dtype."""
    lowest, highest, low_default, high_default = _limits(dtype)
    low, high = low_default if low is None else low, high_default if high is None else high
    if low != low or high != high:
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    real = dtype.is_floating_point or dtype.is_complex
    if low == high and real:
        _warnings.warn("Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated: use "
                       "`torch.full(...)`", FutureWarning, stacklevel=4)
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < lowest or low >= highest:
        raise ValueError(f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports "
                         f"[{lowest}, {highest})")
    low, high = max(low, lowest), min(high, highest)
    return (low, high) if real else (_math.ceil(low), _math.ceil(high))


def _drawn(size, dtype, low, high):
    if not (dtype.is_floating_point or dtype.is_complex):
        return randint(low, high, size).to(dtype)
    if low == high:
        return full(size, complex(low, low) if dtype.is_complex else low, dtype=dtype)
    if dtype.is_complex:
        return _view_as_complex(_uniform((*size, 2), dtype.to_real(), low, high)).clone()
    return _uniform(size, dtype, low, high)


def _uniform(size, dtype, low, high):
    made = empty(size, dtype=float32 if dtype.itemsize < 4 else dtype)
    limit = finfo(made.dtype).max / 2  # the width of the interval must be a number of the dtype
    if high - low > 2 * limit or _math.isinf(high - low):
        return made.uniform_(max(low, -limit), min(high, limit)).mul_(2).clamp_(low, high).to(dtype)
    return made.uniform_(low, high).to(dtype)


def make_tensor(*shape, dtype, device="cpu", low=None, high=None, requires_grad=False, noncontiguous=False, exclude_zero=False,
                memory_format=None):
    """A tensor of `shape` with values drawn uniformly from [low, high), by default a range that suits the dtype.

    `exclude_zero` puts the smallest positive number in the place of zeros. ValueError for intervals that are empty or
    outside of the dtype. Source: PyTorch, torch.testing.make_tensor.
    """
    size = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else tuple(shape)
    real = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not real:
        raise ValueError("`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype="
                         f"{dtype}")
    if noncontiguous and memory_format is not None:
        raise ValueError("The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
                         f"{noncontiguous=} and {memory_format=}")
    spread = noncontiguous and _math.prod(size) > 1
    made = _drawn((*size[:-1], 2 * size[-1]) if spread else size, dtype, *_interval(dtype, low, high))
    if exclude_zero:
        least = finfo(dtype).tiny if real else 1
        made[made == 0] = complex(least, least) if dtype.is_complex else least
    if spread:
        made = made[..., 1::2]
    if memory_format is not None:
        made = made.clone(memory_format=memory_format)
    return made.to(device).requires_grad_(requires_grad)
