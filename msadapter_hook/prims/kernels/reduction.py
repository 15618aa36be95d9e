"""Sums and means over the first axes in stages: NumPy adds row after row to one total, which loses digits where there are many."""

import math

import numpy as np

from msadapter_hook.tape.kernel import Kernel

from .. import reduction
from .linear import FLOATS

_MANY, _STAGE = 64, 16  # rows from which on they are added in stages, so many at a time


def _rows_added(a, axes, keepdims):
    """The sum over the first axes of a contiguous array; None where they are others, or there is little to add."""
    lead = len(axes)
    if sorted(axes) != list(range(lead)) or lead == a.ndim or not a.flags.c_contiguous:
        return None
    n = math.prod(a.shape[:lead])
    if n < _MANY or not a.size:
        return None
    rows, rest = a.reshape(n, -1), []
    while len(rows) >= _MANY:
        whole = len(rows) - len(rows) % _STAGE
        if whole < len(rows):
            rest.append(np.add.reduce(rows[whole:], 0))
        rows = np.add.reduce(rows[:whole].reshape(whole // _STAGE, _STAGE, -1), 1)
    total = np.add.reduce(rows, 0)
    for more in reversed(rest):
        total += more
    return total.reshape((1,) * (lead if keepdims else 0) + a.shape[lead:])


def _sum(keep, a, *, axes, keepdims):
    total = _rows_added(a, axes, keepdims)
    return None if total is None else (total, None)


def _mean(keep, a, *, axes, keepdims):
    total = _rows_added(a, axes, keepdims)
    if total is None:
        return None
    total /= a.size // total.size
    return total, None


#: more exact than NumPy, as PyTorch's are: these serve without the switch, too
EXACT = {
    reduction.sum: Kernel(_sum, dtypes=FLOATS),
    reduction.mean: Kernel(_mean, dtypes=FLOATS),
}
KERNELS = EXACT
